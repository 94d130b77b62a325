/** Which store a command uses. */
import { accessSync, chmodSync, constants, copyFileSync, existsSync, rmSync, statSync } from 'node:fs'
import { dirname, join, resolve, sep } from 'node:path'
import type { StoreOptions } from '../../index.js'
import { defaultStorePath, journalOf } from '../place.ts'
import { Store } from '../store.ts'
import { UsageError } from './terminal.ts'
import { withFolder } from './unfinished.ts'

/** A store, and its name for people. */
export interface NamedStore {
  options: StoreOptions
  name: string
}

/** The help lines of the option. */
export const STORE_HELP = `  --store STORE         the database file, or the http address of an XTDB node
                        (default: CONTEXT_XTDB_URL with CONTEXT_STORE=xtdb,
                        else the file that the Pi extension uses)`

/** The store named by the option. Throws a {@link UsageError} if the file does not exist, unless it may be new. */
export function storeOf(text: string | undefined, mayBeNew = false): NamedStore {
  const node = text ?? (process.env['CONTEXT_STORE'] === 'xtdb' ? process.env['CONTEXT_XTDB_URL'] : undefined)
  if (node !== undefined && /^https?:\/\//.test(node)) {
    const [url = node, ...urls] = node.split(/[\s,]+/).filter((part) => part !== '')
    return { options: { kind: 'xtdb', url, urls }, name: url.replace(/^(\w+:\/\/)[^/@]*@/, '$1') }
  }
  const path = resolve(text ?? process.env['CONTEXT_STORE_PATH'] ?? defaultStorePath())
  if (!mayBeNew && !existsSync(path)) {
    const hint = text === undefined ? '; the Pi extension creates it in its first session' : ''
    throw new UsageError(`there is no store at ${path}${hint}`)
  }
  return { options: { kind: 'sqlite', path }, name: path }
}

/** The same, for what the owner erases or removes: on XTDB together with this machine's journal, if there is one. */
export function ownedStoreOf(text: string | undefined): NamedStore {
  const { options, name } = storeOf(text)
  if (options.kind !== 'xtdb') return { options, name }
  const journal = process.env['CONTEXT_XTDB_JOURNAL'] ?? journalOf(options.url, dirname(defaultStorePath()))
  return { options: existsSync(journal) ? { ...options, journal } : options, name }
}

/** Opens a store for one piece of work. */
export async function inStore<T>(options: StoreOptions, work: (store: Store) => Promise<T>): Promise<T> {
  const store = await Store.open(options)
  try {
    return await work(store)
  } finally {
    await store.close()
  }
}

/** A resolved path as the store has it: with slashes, on Windows too. */
export function asStored(path: string): string {
  return sep === '/' ? path : path.replaceAll(sep, '/')
}

/**
 * Works with a store that is only read. A file that can't be written, such as a backup on a read-only disk, is read from
 * a private copy in the temporary folder, which is removed afterwards.
 */
export async function reading<T>(text: string | undefined, work: (store: NamedStore) => Promise<T>): Promise<T> {
  const store = storeOf(text)
  if (store.options.kind !== 'sqlite' || canWrite(store.options.path)) return work(store)
  const { path } = store.options
  return withFolder((folder) => work({ options: { kind: 'sqlite', path: copied(path, folder) }, name: store.name }))
}

/** Whether SQLite can use the file as it is: it writes the log and its index beside it. */
function canWrite(path: string): boolean {
  return [path, `${path}-wal`, `${path}-shm`].every((file) => {
    const exists = existsSync(file)
    return mayWrite(exists ? file : dirname(path))
  })
}

function mayWrite(path: string): boolean {
  try {
    accessSync(path, constants.W_OK)
    return true
  } catch {
    return false
  }
}

/** How often a copy is made again because the file was being written. */
const COPIES = 5

/** Copies a store with its log. Another user's process may be writing it, so the copy counts only if nothing changed. */
function copied(path: string, folder: string): string {
  const copy = join(folder, 'context.db')
  const state = (): string => [path, `${path}-wal`].map(stamp).join(' ')
  for (let attempt = 0; attempt < COPIES; attempt += 1) {
    const before = state()
    for (const end of ['', '-wal']) {
      rmSync(`${copy}${end}`, { force: true })
      if (!existsSync(`${path}${end}`)) continue
      copyFileSync(`${path}${end}`, `${copy}${end}`, constants.COPYFILE_FICLONE)
      chmodSync(`${copy}${end}`, 0o600)
    }
    if (state() === before) return copy
  }
  throw new Error(`${path} can only be read, and is being written by another process; try again when that has ended`)
}

/** Tells whether a file has changed. */
export function stamp(path: string): string {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false })
  return found === undefined ? '-' : `${found.ino} ${found.size} ${found.mtimeNs}`
}
