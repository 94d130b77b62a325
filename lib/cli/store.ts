/** The store that a command uses. */
import { existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { StoreOptions } from '../../index.js'
import { ADDRESS_WANTED, addressesIn, defaultStorePath, isAddress, isThere, journalOf, shownUrl, storeInEnv } from '../core/index.ts'
import type { StoreInEnv } from '../core/index.ts'
import { billsFile } from '../gateway/index.ts'
import { reasonOf, UsageError } from '../ui/index.ts'

/** A store, and its name for people. */
export interface NamedStore {
  options: StoreOptions
  name: string
}

/** The help lines of the option. */
export const STORE_HELP = `  --store STORE         the database file, or the http address of an XTDB node
                        (default: CONTEXT_XTDB_URL with CONTEXT_STORE=xtdb, else
                        the file that the Pi extension uses)`

/** The store named by the option. Throws a {@link UsageError} if the file does not exist, unless it may be new. */
export function storeOf(text: string | undefined, mayBeNew = false): NamedStore {
  const named = text === undefined ? namedInEnv() : undefined
  // A text that is meant as an address may have a password, so it is not shown.
  const nodes = text === undefined ? (named?.kind === 'xtdb' ? named.nodes : []) : isAddress(text) ? addressesIn(text) : []
  const [url, ...urls] = nodes
  if (url !== undefined) {
    if (/^https?:\/\//i.test(url)) return { options: { kind: 'xtdb', url, urls }, name: shownUrl(url) }
    const name = text === undefined ? 'CONTEXT_XTDB_URL' : '--store'
    throw new UsageError(`${name} is not the address of an XTDB node; write it as http://host:port`)
  }
  const path = resolve(text ?? named?.path ?? defaultStorePath())
  if (!mayBeNew && !isMade(path)) {
    const hint = text === undefined ? '; the first session of Pi or of the gateway creates it, and --store names another one' : '; check the path'
    throw new UsageError(`there is no store at ${path}${hint}`)
  }
  return { options: { kind: 'sqlite', path }, name: path }
}

/** The store that the environment names. Throws a {@link UsageError} where it names no store that can be opened here. */
function namedInEnv(): StoreInEnv {
  let named: StoreInEnv
  try {
    named = storeInEnv(process.env)
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
  if (named.kind === 'memory') throw new UsageError('CONTEXT_STORE=memory keeps nothing after a session; name a store with --store')
  if (named.kind === 'xtdb' && named.nodes.length === 0) throw new UsageError(`${ADDRESS_WANTED}; or name a store with --store`)
  return named
}

/** The file of the first session, if no store was named and none has been made yet; undefined otherwise. */
export function unmadeStore(text: string | undefined): string | undefined {
  if (text !== undefined) return undefined
  const named = namedInEnv()
  if (named.path !== undefined || named.kind === 'xtdb') return undefined
  const path = resolve(defaultStorePath())
  return isMade(path) ? undefined : path
}

/** True if there is a file. Throws a {@link UsageError} with the system's reason if that can't be seen. */
function isMade(path: string): boolean {
  try {
    return isThere(path)
  } catch (error) {
    throw new UsageError(`${path} can't be opened: ${reasonOf(error)}`)
  }
}

/** The same, for what the owner erases or removes: on XTDB together with this machine's journal, if there is one. */
export function ownedStoreOf(text: string | undefined): NamedStore {
  const { options, name } = storeOf(text)
  if (options.kind !== 'xtdb') return { options, name }
  const journal = journalFor(options)
  return { options: existsSync(journal) ? { ...options, journal } : options, name }
}

/** This machine's journal of an XTDB database, whether it is there or not. */
export function journalFor({ url, urls }: { url: string; urls?: string[] }): string {
  return storeInEnv(process.env).journal ?? journalOf(url, dirname(defaultStorePath()), urls)
}

/** The gateway's file beside a store; undefined without a store. */
export function billsBeside(store: string | undefined): string | undefined {
  try {
    return billsFile(storeOf(store, true).options)
  } catch (error) {
    if (store === undefined && error instanceof UsageError) return undefined
    throw error
  }
}

/** Works with a store that is only read, also with a file that can't be written, such as a backup on a read-only disk. */
export async function reading<T>(named: string | NamedStore | undefined, work: (store: NamedStore) => Promise<T>): Promise<T> {
  const { options, name } = typeof named === 'object' ? named : storeOf(named)
  return work({ options: options.kind === 'memory' ? options : { ...options, readOnly: true }, name })
}
