/** Files and folders that the system does not let this user read. */
import { accessSync, constants, statSync } from 'node:fs'

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
