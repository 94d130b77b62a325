/** Private copies of stores that can't be written, or must not be. SQLite writes beside a database even to read it. */
import { accessSync, chmodSync, constants, copyFileSync, existsSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { StoreOptions } from '../../index.js'
import { unavailable } from './errors.ts'

/** The number of times that a copy is made again because the file was being written. */
const COPIES = 5

/** A store that is open for reading only. */
export interface ReadOnly {
  /** The store to read from. */
  store: StoreOptions
  /** Removes what is left of it. Doing so twice is fine. */
  remove: () => void
}

/** Copies the store that the options name if they have `readOnly`; undefined if they don't. */
export function readOnly(options: StoreOptions): ReadOnly | undefined {
  if (options.kind !== 'sqlite' || options.readOnly !== true) return undefined
  const folder = mkdtempSync(join(tmpdir(), `pi-context-manager-${process.pid}-`))
  const remove = (): void => {
    process.off('exit', remove)
    rmSync(folder, { recursive: true, force: true })
  }
  process.on('exit', remove)
  try {
    return { store: { kind: 'sqlite', path: copied(options.path, folder), durability: 'process' }, remove }
  } catch (error) {
    remove()
    throw error
  }
}

/** True if SQLite can use the file as it is: it writes the log and its index beside it. */
export function canWrite(path: string): boolean {
  return [path, `${path}-wal`, `${path}-shm`].every((file) => mayWrite(existsSync(file) ? file : dirname(path)))
}

function mayWrite(path: string): boolean {
  try {
    accessSync(path, constants.W_OK)
    return true
  } catch {
    return false
  }
}

/** Copies a store with its log. Another user's process may be writing it, so the copy counts only if nothing changed. */
export function copied(path: string, folder: string): string {
  if (!existsSync(path)) throw unavailable(`the store's path can't be used: the file ${path} does not exist`)
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
  throw unavailable(`${path} can only be read, and is being written by another process; try again when that has ended`)
}

/** Tells whether a file has changed. */
export function stamp(path: string): string {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false })
  return found === undefined ? '-' : `${found.ino} ${found.size} ${found.mtimeNs}`
}
