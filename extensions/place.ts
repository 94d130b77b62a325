/** Decides where a session is stored, from the settings and the environment variables. */
import { stat } from 'node:fs/promises'
import type { StoreOptions, StoreState } from '../index.js'
import { LARGE_BYTES } from '../lib/ui/index.ts'
import { ADDRESS_WANTED, shownUrl, storeInEnv } from '../lib/core/index.ts'
import type { StoreInEnv } from '../lib/core/index.ts'

/** An XTDB database, as named in the settings. */
export interface XtdbPlace {
  /** The first node to use. */
  url: string
  /** Further nodes of the same database, for fail-over. */
  urls?: string[]
  /** The file that takes every write immediately and sends it on. Default: one per `url`, next to the default store. */
  journal?: string
}

/** A store, and its name for the user. */
interface Place {
  options: StoreOptions
  name: string
}

/** Milliseconds after which the status line says that something is waiting. */
const LONG_MS = 30_000

/**
 * The store of a session. CONTEXT_STORE (`sqlite`, `xtdb` or `memory`) and CONTEXT_STORE_PATH take precedence over
 * the settings. Throws a message if they contradict each other. `kept`: whether Pi keeps the session.
 */
export function placeOf(kept: boolean, setting: string | XtdbPlace | undefined, env: NodeJS.ProcessEnv, defaultPath: () => string): Place {
  // If Pi does not keep a session, neither do we.
  if (!kept) return MEMORY
  const named = storeInEnv(env)
  if (named.kind === 'memory') return MEMORY
  const remote = typeof setting === 'object' ? setting : undefined
  if (named.kind === 'xtdb') return xtdb(named, remote)
  if (named.kind === undefined && remote !== undefined) return xtdb({ nodes: [], journal: undefined }, remote)
  const file = named.path ?? (typeof setting === 'string' ? setting : defaultPath())
  return { options: { kind: 'sqlite', path: file }, name: file }
}

const MEMORY: Place = { options: { kind: 'memory' }, name: 'memory' }

function xtdb(named: Pick<StoreInEnv, 'nodes' | 'journal'>, setting: XtdbPlace | undefined): Place {
  const [url, ...urls] = named.nodes.length > 0 ? named.nodes : setting === undefined ? [] : [setting.url, ...(setting.urls ?? [])]
  if (url === undefined) throw new Error(ADDRESS_WANTED)
  const journal = named.journal ?? setting?.journal
  return {
    options: { kind: 'xtdb', url, urls, ...(journal === undefined ? {} : { journal }) },
    name: `xtdb ${shownUrl(url)}`,
  }
}

/** The place and state of the store in one line. */
export function storeLine(name: string, state: StoreState): string {
  const { kind, connected, queued, waitingSince, lastError, notice } = state
  if (kind !== 'xtdb' || connected === undefined) return name
  // After a failover, a different node answers than the one in the settings.
  const parts = [`xtdb ${state.url ?? ''}`, queued > 0 ? waiting(queued, waitingSince) : 'everything sent']
  if (!connected) parts.push('no answer')
  if (lastError !== undefined) parts.push(`last error: ${lastError.replaceAll(/\s+/g, ' ')}`)
  if (notice !== undefined) parts.push(notice.replaceAll(/\s+/g, ' '))
  return parts.join(', ')
}

/** The length of a database and its log; 0 for what can't be looked at. */
export async function bytesOf(path: string): Promise<number> {
  const sizes = [path, `${path}-wal`].map(async (file) => (await stat(file)).size)
  const found = await Promise.allSettled(sizes)
  return found.reduce((sum, one) => sum + (one.status === 'fulfilled' ? one.value : 0), 0)
}

/** One line for the owner of a large store; undefined for a smaller one. */
export function sizeHint(bytes: number): string | undefined {
  if (bytes < LARGE_BYTES) return undefined
  const size = `${(bytes / 1024 ** 3).toFixed(1)} GiB`
  return `The store takes ${size}: "npx pi-context-manager prune --older-than 90d --dry-run" shows what could be removed`
}

/** Returns what the status line says about a queue: nothing, unless it has been waiting for long. */
export function longWait({ queued, waitingSince }: StoreState, nowMs: number): string | undefined {
  if (queued === 0 || waitingSince === undefined || nowMs - Date.parse(waitingSince) < LONG_MS) return undefined
  return `${queued} waiting for XTDB`
}

function waiting(count: number, since: string | undefined): string {
  const what = `${count} ${count === 1 ? 'transaction' : 'transactions'} waiting`
  return since === undefined ? what : `${what} since ${since}`
}
