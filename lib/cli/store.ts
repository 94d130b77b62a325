/** Which store a command uses. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve, sep } from 'node:path'
import type { StoreOptions } from '../../index.js'
import { defaultStorePath } from '../index.ts'
import { journalOf } from '../journal.ts'
import { UsageError } from './terminal.ts'

/** The help lines of the option. */
export const STORE_HELP = `  --store STORE         the database file, or the http address of an XTDB node
                        (default: CONTEXT_XTDB_URL with CONTEXT_STORE=xtdb,
                        else the file that the Pi extension uses)`

/** The store named by the option. Throws a {@link UsageError} if the file does not exist, unless it may be new. */
export function storeOf(text: string | undefined, mayBeNew = false): { options: StoreOptions; name: string } {
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
export function ownedStoreOf(text: string | undefined): { options: StoreOptions; name: string } {
  const { options, name } = storeOf(text)
  if (options.kind !== 'xtdb') return { options, name }
  const journal = process.env['CONTEXT_XTDB_JOURNAL'] ?? journalOf(options.url, dirname(defaultStorePath()))
  return { options: existsSync(journal) ? { ...options, journal } : options, name }
}

/** A resolved path as the store has it: with slashes, on Windows too. */
export function asStored(path: string): string {
  return sep === '/' ? path : path.replaceAll(sep, '/')
}

/** Provides a folder that only the user can read, and removes it afterwards. */
export async function withFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'pi-context-'))
  try {
    return await work(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
