/** Where the embedded store is, and the journal in front of an XTDB database. */
import { createHash } from 'node:crypto'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'
import type { StoreOptions } from '../index.js'

/**
 * The default path of the embedded store: `pi-context-manager/context.db` in the user's data directory
 * (`$XDG_DATA_HOME`, on macOS `~/Library/Application Support`, on Windows `%LOCALAPPDATA%`, else `~/.local/share`).
 */
export function defaultStorePath(): string {
  const data = process.env['XDG_DATA_HOME']
  const base = data !== undefined && isAbsolute(data) ? data : dataFolder()
  return join(base, 'pi-context-manager', 'context.db')
}

/** The journal's default path. One per database: it has what that database does not have yet. Failover nodes come and go. */
export function journalOf(url: string, folder: string): string {
  return join(folder, `xtdb-${createHash('sha256').update(url).digest('hex').slice(0, 12)}.db`)
}

/** A store with the paths that its options leave open. */
export function placed(store: StoreOptions | undefined): StoreOptions {
  if (store === undefined) return { kind: 'sqlite', path: defaultStorePath() }
  if (store.kind !== 'xtdb' || store.journal !== undefined) return store
  return { ...store, journal: journalOf(store.url, dirname(defaultStorePath())) }
}

/** The directory where programs keep a user's data. On Windows only the user can read it. */
function dataFolder(): string {
  if (process.platform === 'darwin') return join(homedir(), 'Library', 'Application Support')
  if (process.platform === 'win32') return process.env['LOCALAPPDATA'] ?? join(homedir(), 'AppData', 'Local')
  return join(homedir(), '.local', 'share')
}
