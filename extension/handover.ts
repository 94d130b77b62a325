/**
 * Subagents that run as a Pi of their own. What the arguments of a tool call name (`id=05f49740`) is laid out in a private
 * folder, which the environment of this process names, and so that of every Pi that it starts. There, what the prompt
 * names is taken over from the folder, and nothing else: neither what the parent has besides, nor what it has laid out
 * for another one.
 */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { readFile, rename, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ToolCallEvent } from '@earendil-works/pi-coding-agent'
import type { ContextManager, Toolcall } from '../index.js'
import { namesIn } from '../lib/harness/handover.ts'
import { TOOLS } from './tools.ts'

/** The variable that names the folder. */
export const HANDOVER = 'PI_CONTEXT_HANDOVER'

/** Tools that start no agent, though their arguments may name something. */
const ALONE: ReadonlySet<string> = new Set([...TOOLS, 'read', 'edit', 'write', 'grep', 'find', 'ls'])

/** What lies in the folder under an object's name. */
type Laid = { path: string } | { call: Toolcall }

/** What this process has been handed, and what it hands on. */
export class Handover {
  /** The folder of the process that has started this one. */
  readonly #from = process.env[HANDOVER]
  #folder: string | undefined

  /** Lays out what a call's arguments name, if this session has it. */
  async lay(manager: ContextManager, { toolName, input }: ToolCallEvent): Promise<void> {
    if (ALONE.has(toolName)) return
    const names = namesIn(JSON.stringify(input))
    if (names.length === 0) return
    const { session_index } = await manager.sessionSets()
    for (const name of names) {
      const document = await manager.get(name)
      if (document === null || !session_index.includes(document['xt/id'])) continue
      const { type, source, content } = document
      if (type === 'file') await this.#write(name, { path: (source as { path: string }).path })
      if (type !== 'toolcall' || typeof content !== 'string') continue
      const call: Toolcall = {
        id: document['xt/id'].replace(/^toolcall:/, ''),
        tool: String(document['tool']),
        args: (document['args'] ?? {}) as object,
        content,
        status: document['status'] === 'fail' ? 'fail' : 'ok',
      }
      await this.#write(name, { call })
    }
  }

  /** Takes over what a prompt names and was laid out. Returns the names of what the model can bring back now. */
  async take(manager: ContextManager, prompt: string): Promise<string[]> {
    const taken: string[] = []
    for (const name of namesIn(prompt)) {
      // What this session has under the name, it means.
      if ((await manager.get(name)) !== null) continue
      const laid = await this.#read(name)
      if (laid === undefined) continue
      if ('path' in laid) await manager.discover([laid.path])
      else await manager.deactivate(await manager.recordToolcall(laid.call))
      if ((await manager.get(name)) !== null) taken.push(name)
    }
    return taken
  }

  /** Removes what was laid out. */
  close(): void {
    if (this.#folder === undefined) return
    rmSync(this.#folder, { recursive: true, force: true })
    if (process.env[HANDOVER] === this.#folder) delete process.env[HANDOVER]
    this.#folder = undefined
  }

  async #write(name: string, laid: Laid): Promise<void> {
    // Only the user can look into a folder that was made in this way.
    const folder = (this.#folder ??= mkdtempSync(join(tmpdir(), 'pi-context-')))
    process.env[HANDOVER] = folder
    const path = join(folder, name)
    const draft = `${path}.${randomUUID()}`
    await writeFile(draft, JSON.stringify(laid), { mode: 0o600 })
    await rename(draft, path)
  }

  async #read(name: string): Promise<Laid | undefined> {
    for (const folder of [this.#from, this.#folder]) {
      if (folder === undefined || folder === '') continue
      try {
        return JSON.parse(await readFile(join(folder, name), 'utf8')) as Laid
      } catch (error) {
        // It was not laid out, or its folder went with the process that had made it.
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      }
    }
    return undefined
  }
}

/** Tells the model of a subagent how it has what its prompt names. */
export function handedLine(names: readonly string[], tool: 'read' | 'activate'): string {
  const how = tool === 'read' ? `read with path "id=${names[0]}"` : `activate with id "${names[0]}"`
  return `Handed over with this task, whole: ${names.map((name) => `id=${name}`).join(', ')}. ${how} shows ${names.length === 1 ? 'it' : 'the first'}.`
}
