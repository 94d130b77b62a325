import { basename, dirname, join, resolve } from 'node:path'
import { OutputDirectory } from './directory.ts'
import { expect, reasonOf, StorageError } from './error.ts'
import { outputNames } from './names.ts'
import { storedContext } from './stored.ts'
import type { IFileSystem } from './types.ts'

/** The part of the main entry point's `ContextManager` that the bridge needs. */
export interface ToolcallStore {
  /** Records a toolcall and resolves with the object's ID: the one given, unless another object has it. */
  recordToolcall(call: { id: string; tool: string; args: object; content: string; status: 'ok' | 'fail' }): Promise<string>
  /** The current version of an object. */
  get(id: string): Promise<{ content?: string | null } | null>
  /** All current objects of a type. */
  query(filter: { type: 'toolcall' }): Promise<readonly { 'xt/id': string; [field: string]: unknown }[]>
  /** The session's sets, of which only the session index is used. */
  sessionSets(): Promise<{ sessionIndex: readonly string[] }>
  /** Removes an object from the active set; refuses if it is not there. */
  deactivate(id: string): Promise<unknown>
  /** Removes an object from the metadata pool; refuses if it is not there. */
  demote(id: string): Promise<unknown>
}

/** The outcome of {@link indexContextDir}. */
export interface IndexedDirectory {
  /** Each file that this call turned into a toolcall object of the session, oldest first. */
  indexed: { filepath: string; id: string }[]
  /** Each file that did not, and why. */
  skipped: { filepath: string; reason: string }[]
}

/** The number of files whose texts are in memory at a time. */
const FILES_AT_ONCE = 64
/** The tool of the objects that record the removal of a file. */
const UNLINK = 'unlink'

/**
 * Indexes the files of a context directory as toolcall objects of the main `ContextManager`, oldest first. A
 * file's object has the file's name without `.json` as its ID, the tool and the arguments of the call, and the
 * result as its content: a string as it is, all else as JSON. The objects join the session's metadata pool, not
 * its active set: they were put aside for later. Indexing a directory again adds only what is new.
 *
 * Rejects with `IO` where the directory can't be read, and with what the manager rejects with.
 */
export async function indexContextDir(manager: ToolcallStore, dir: string): Promise<IndexedDirectory> {
  expect(typeof dir === 'string' && dir !== '', 'dir must be a path')
  const directory = resolve(dir)
  const files = new OutputDirectory(directory, true)
  const names = await files.names()
  const known = new Set((await manager.sessionSets()).sessionIndex)
  const outcome: IndexedDirectory = { indexed: [], skipped: [] }
  for (let i = 0; i < names.length; i += FILES_AT_ONCE) {
    const part = names.slice(i, i + FILES_AT_ONCE).filter((name) => !known.has(basename(name, '.json')))
    const texts = await files.load(part)
    for (const [at, name] of part.entries()) {
      const filepath = join(directory, name)
      const { text, reason } = texts[at] ?? {}
      const read = text === undefined ? { reason: reason ?? 'it was not read' } : parsed(text)
      if ('reason' in read) {
        outcome.skipped.push({ filepath, reason: read.reason })
        continue
      }
      const { toolName: tool, args, result } = read.context
      const content = typeof result === 'string' ? result : JSON.stringify(result)
      const id = await manager.recordToolcall({ id: basename(name, '.json'), tool, args, content, status: 'ok' })
      await manager.deactivate(id)
      outcome.indexed.push({ filepath, id })
    }
  }
  return outcome
}

/**
 * A file system for the storage class's option `fileSystem` that keeps each output as a toolcall object of the
 * main `ContextManager`, so that one store serves both. The object's ID is the file's path, its content the
 * file's text, and its tool and arguments are those of the call.
 *
 * The store's history is append-only, so a removed file is not erased: a second object, with the tool `unlink`, hides
 * it, also from later processes. For the same reason a file can't be replaced (`EEXIST`). Temporary files stay in
 * memory until they are renamed; a directory exists as soon as it is named. Outputs are in the session's metadata
 * pool but not in its active set; removed ones are in neither.
 */
export function storeFileSystem(manager: ToolcallStore): IFileSystem {
  const held = new Map<string, string>()
  const removalOf = (path: string) => `${path}#${UNLINK}`

  const stored = async (path: string): Promise<string | undefined> => {
    if ((await manager.get(removalOf(path))) != null) return undefined
    return (await manager.get(path))?.content ?? undefined
  }
  const read = async (path: string): Promise<string> => {
    const text = held.get(path) ?? (await stored(path))
    if (text === undefined) throw failure('ENOENT', `no such file: ${path}`)
    return text
  }
  const record = async (id: string, tool: string, args: object, content: string) => {
    const given = await manager.recordToolcall({ id, tool, args, content, status: 'ok' })
    if (given !== id) throw failure('EEXIST', `the store already holds another object of the id ${id}`)
    await manager.deactivate(id)
  }

  return {
    async mkdir() {},
    async writeFile(path, data) {
      if (held.has(path) || (await stored(path)) !== undefined) throw failure('EEXIST', `the file exists: ${path}`)
      held.set(path, data)
    },
    async readFile(path) {
      return await read(path)
    },
    async readdir(directory) {
      const objects = await manager.query({ type: 'toolcall' })
      const ids = new Set(objects.map((object) => object['xt/id']))
      const visible = [...ids].filter((id) => dirname(id) === directory && !ids.has(removalOf(id)))
      const names = outputNames(
        visible.map((id) => basename(id)),
        false,
      )
      return [...names, ...[...held.keys()].filter((path) => dirname(path) === directory).map((path) => basename(path))]
    },
    async rename(from, to) {
      const text = held.get(from)
      if (text === undefined) throw failure('ENOENT', `no such file: ${from}`)
      if ((await manager.get(removalOf(to))) != null) throw failure('EEXIST', `the file was removed before: ${to}`)
      const outcome = parsed(text)
      if ('reason' in outcome) throw new StorageError('INVALID_ARGUMENT', `${to} is not a tool output: ${outcome.reason}`)
      await record(to, outcome.context.toolName, outcome.context.args, text)
      held.delete(from)
    },
    async unlink(path) {
      if (held.delete(path)) return
      if ((await stored(path)) === undefined) throw failure('ENOENT', `no such file: ${path}`)
      await record(removalOf(path), UNLINK, { path }, '')
      await manager.demote(removalOf(path))
      await manager.deactivate(path)
      await manager.demote(path)
    },
    async stat(path) {
      await read(path)
      return { isFile: () => true }
    },
  }
}

function parsed(text: string): { context: ReturnType<typeof storedContext> } | { reason: string } {
  try {
    return { context: storedContext(text) }
  } catch (error) {
    return { reason: reasonOf(error) }
  }
}

function failure(code: string, message: string): Error {
  return Object.assign(new Error(message), { code })
}
