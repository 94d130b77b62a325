/**
 * The same document in plain TypeScript, written the straightforward way: the peer of the figures, and the
 * reference of the tests.
 */
import { createHash } from 'node:crypto'
import { open, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { ContextPointer, StoredContext } from '../../lib/storage/index.ts'

export class PlainContextManager {
  #pointers: ContextPointer[] = []
  #counter = 0
  readonly #directory: string
  readonly #write: (filepath: string, text: string) => Promise<void>

  constructor(options: { contextDir: string; write?: (filepath: string, text: string) => Promise<void> }) {
    this.#directory = options.contextDir
    this.#write = options.write ?? writeFile
  }

  async saveContext(toolName: string, args: Record<string, unknown>, result: unknown, taskId?: number, queryId?: string): Promise<string> {
    const toolDescription = this.describe(toolName, args)
    const hash = createHash('sha256').update(canonical(args)).digest('hex').slice(0, 6)
    const random = Math.random().toString(36).slice(2, 6)
    const filename = `${toolName}_${hash}_${Date.now()}_${this.#counter++}_${random}.json`
    const filepath = join(this.#directory, filename)
    const timestamp = new Date().toISOString()
    const text = JSON.stringify({ toolName, toolDescription, args, timestamp, taskId, queryId, result })
    await this.#write(filepath, text)
    this.#pointers.push({ filepath, filename, toolName, toolDescription, args, taskId, queryId } as ContextPointer)
    return filepath
  }

  getAllPointers(): ContextPointer[] {
    return [...this.#pointers]
  }

  async loadContexts(filepaths: string[]): Promise<StoredContext[]> {
    const read = async (filepath: string) => {
      try {
        return JSON.parse(await readFile(filepath, 'utf8')) as StoredContext
      } catch {
        return undefined
      }
    }
    return (await Promise.all(filepaths.map(read))).filter((context) => context !== undefined)
  }

  selectRelevantContexts(query: string, pointers: ContextPointer[]): string[] {
    const wanted = keywords(query)
    const scored = pointers.map((pointer) => {
      let score = 0
      for (const word of keywords(pointer.toolDescription)) if (wanted.has(word)) score += 1
      return { filepath: pointer.filepath, score }
    })
    const matched = scored.filter(({ score }) => score > 0).sort((a, b) => b.score - a.score)
    return (matched.length > 0 ? matched : scored).map(({ filepath }) => filepath)
  }

  describe(toolName: string, args: Record<string, unknown>): string {
    const words = toolName
      .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
      .replace(/[^A-Za-z0-9]+/g, ' ')
      .trim()
      .toLowerCase()
    return [words, ...Object.values(args).filter((value) => typeof value === 'string')].join(' ')
  }
}

/** The product's steps for each save, with `node:fs`: temporary file, flush, rename, flush of the directory. */
export async function writeDurably(filepath: string, text: string): Promise<void> {
  const temporary = `${filepath}.tmp`
  const file = await open(temporary, 'wx', 0o600)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(temporary, filepath)
  const directory = await open(dirname(filepath))
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}

/** The words of more than two characters. */
export function keywords(text: string): Set<string> {
  const words =
    text
      .normalize('NFKC')
      .toLowerCase()
      .match(/[\p{Alphabetic}\p{M}\p{N}]+/gu) ?? []
  return new Set(words.filter((word) => word.length > 2))
}

/** JSON with sorted keys. */
export function canonical(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  const record = value as Record<string, unknown>
  const fields = Object.keys(record)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonical(record[key])}`)
  return `{${fields.join(',')}}`
}
