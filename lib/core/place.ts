/** The places of the embedded store, and of the journal in front of an XTDB database. */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { dirname, isAbsolute, join } from 'node:path'
import type { StoreOptions } from '../../index.js'
import { earlierNodeOf, nodeOf } from './node-address.ts'
import { homeFolder } from './paths.ts'

/**
 * The default path of the embedded store: `pi-context-manager/context.db` in the user's data directory
 * (`$XDG_DATA_HOME`, on macOS `~/Library/Application Support`, on Windows `%LOCALAPPDATA%`, else `~/.local/share`).
 */
export function defaultStorePath(): string {
  const data = process.env['XDG_DATA_HOME']
  const base = data !== undefined && isAbsolute(data) ? data : dataFolder()
  return join(base, 'pi-context-manager', 'context.db')
}

/**
 * The journal's default path: one for each database, because it has what that database does not have yet. It depends on the
 * nodes' schemes, hosts, ports and paths, however they are spelled and in whatever order, and not on user names and
 * passwords. Nodes come and go: where one of them has a journal, it is that one.
 */
export function journalOf(url: string, folder: string, urls: readonly string[] = []): string {
  const nodes = [...new Set([url, ...urls].map(nodeOf))].sort()
  const named = nodes.map((node) => join(folder, `xtdb-${short(node)}.db`))
  // Earlier versions named it after a spelling that left more as it was written, and before that after the address itself.
  const spellings = [url, ...urls].flatMap((address) => [earlierNodeOf(address), address])
  const earlier = spellings.map((spelling) => join(folder, `xtdb-${short(spelling)}.db`))
  return [...named, ...earlier].find((path) => existsSync(path)) ?? named[0]!
}

/** The journals in the folder of the default store. */
export function journals(): string[] {
  const folder = dirname(defaultStorePath())
  const names = existsSync(folder) ? readdirSync(folder) : []
  return names
    .filter((name) => /^xtdb-[\da-f]{12}\.db$/.test(name))
    .sort()
    .map((name) => join(folder, name))
}

/** A store with the paths that its options leave open. */
export function placed(store: StoreOptions | undefined): StoreOptions {
  if (store === undefined) return { kind: 'sqlite', path: defaultStorePath() }
  if (store.kind !== 'xtdb' || store.journal !== undefined) return store
  return { ...store, journal: journalOf(store.url, dirname(defaultStorePath()), store.urls) }
}

function short(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 12)
}

/** The directory where programs keep a user's data. On Windows only the user can read it. */
function dataFolder(): string {
  if (process.platform === 'darwin') return join(homeFolder(), 'Library', 'Application Support')
  if (process.platform === 'win32') return process.env['LOCALAPPDATA'] ?? join(homeFolder(), 'AppData', 'Local')
  return join(homeFolder(), '.local', 'share')
}
