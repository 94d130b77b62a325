/** The working directories of open sessions. */
import { shared } from './shared.ts'

const folders = shared('folders', () => new WeakMap<object, string>())

/** Notes the folder against which a session resolves relative paths. */
export function noteFolder(manager: object, cwd: string): void {
  folders.set(manager, cwd)
}

/** The folder of a session's relative paths; that of the process for a session that was opened otherwise. */
export function folderOf(manager: object): string {
  return folders.get(manager) ?? process.cwd()
}
