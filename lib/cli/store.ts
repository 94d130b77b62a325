/** Which store a command uses. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { StoreOptions } from '../../index.js'
import { defaultStorePath } from '../index.ts'
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

/** Provides a folder that only the user can read, and removes it afterwards. */
export async function withFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'pi-context-'))
  try {
    return await work(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
