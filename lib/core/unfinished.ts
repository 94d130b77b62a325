/**
 * Texts of a store that are on the disk only while a command works: temporary folders, and files that are not complete
 * yet. They are removed when the command ends, by a signal too. `doctor` finds what a killed process left behind.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { statOf } from './denial.ts'
import { isRunning, UNFINISHED } from './private-file.ts'

/** The names of temporary folders: whose they are, then anything. */
const FOLDER = /^pi-context-manager-(\d+)-/

/** In a temporary folder: the path that a file will have when it is complete. */
const TARGET = 'target'

/** Removals to carry out if the process is told to end. */
const pending = new Set<() => void>()

/** Provides a folder that only the user can read, and removes it afterwards. */
export async function withFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), `pi-context-manager-${process.pid}-`))
  const remove = (): void => rmSync(folder, { recursive: true, force: true })
  pending.add(remove)
  try {
    return await work(folder)
  } finally {
    pending.delete(remove)
    remove()
  }
}

/**
 * Does work that creates a file under an unfinished name beside `path`. If the process is told to end meanwhile, the
 * unfinished file is removed; if it is killed, {@link leftovers} finds it.
 */
export function whileUnfinished<T>(path: string, work: () => Promise<T>): Promise<T> {
  return withFolder(async (folder) => {
    writeFileSync(join(folder, TARGET), path, { mode: 0o600 })
    const remove = (): void => partsIn(dirname(path)).forEach((part) => part.process === process.pid && rmSync(part.path, { force: true }))
    pending.add(remove)
    try {
      return await work()
    } finally {
      pending.delete(remove)
    }
  })
}

/** Removes everything unfinished of this process. */
export function removeUnfinished(): void {
  for (const remove of pending) {
    try {
      remove()
    } catch {
      // The others still have to go, and `doctor` names what stays.
    }
  }
  pending.clear()
}

/** A file or folder that an interrupted command left behind. */
export interface Leftover {
  path: string
  /** Bytes of the file, or of all files in the folder. */
  bytes: number
}

/**
 * Returns what processes that no longer exist left in the temporary folder, in these folders, and beside files they
 * wrote.
 */
export function leftovers(folders: readonly string[]): Leftover[] {
  const temporary = tmpdir()
  const beside = new Set(folders)
  const found: Leftover[] = []
  for (const name of names(temporary)) {
    const owner = FOLDER.exec(name)?.[1]
    if (owner === undefined || isRunning(Number(owner))) continue
    const path = join(temporary, name)
    const target = targetIn(path)
    if (target !== undefined) beside.add(dirname(target))
    const bytes = names(path).reduce((sum, file) => sum + (file === TARGET ? 0 : sizeOf(join(path, file))), 0)
    if (bytes > 0) found.push({ path, bytes })
  }
  for (const folder of beside) {
    for (const part of partsIn(folder)) {
      if (!isRunning(part.process)) found.push({ path: part.path, bytes: sizeOf(part.path) })
    }
  }
  return found
}

function partsIn(folder: string): { path: string; process: number }[] {
  return names(folder).flatMap((name) => {
    const owner = UNFINISHED.exec(name)?.[1]
    return owner === undefined ? [] : [{ path: join(folder, name), process: Number(owner) }]
  })
}

/** A folder that can't be read has nothing that we wrote. */
function names(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

function targetIn(folder: string): string | undefined {
  try {
    return readFileSync(join(folder, TARGET), 'utf8')
  } catch {
    return undefined
  }
}

function sizeOf(path: string): number {
  return statOf(path)?.size ?? 0
}
