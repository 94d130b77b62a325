/** Files and folders that may be missing, or that the system does not let this user see. */
import { accessSync, constants, statSync } from 'node:fs'
import type { Stats } from 'node:fs'

/** True if there is a file or a folder. Throws the system's error if that can't be seen. */
export function isThere(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined
  } catch (error) {
    // The path leads through a file.
    if ((error as NodeJS.ErrnoException).code === 'ENOTDIR') return false
    throw error
  }
}

/** The state of a file or a folder; undefined if it is missing, or can't be seen. */
export function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch {
    return undefined
  }
}

/** The system's refusal to let this user read a file, or list a folder and open what is in it; undefined if there is none. */
export function denial(path: string): string | undefined {
  try {
    const isFolder = statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
    accessSync(path, isFolder ? constants.R_OK | constants.X_OK : constants.R_OK)
    return undefined
  } catch (error) {
    return isDenial(error) ? 'permission denied' : undefined
  }
}

/** True if an error of the system says that this user may not do it. */
export function isDenial(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException
  return code === 'EACCES' || code === 'EPERM'
}
