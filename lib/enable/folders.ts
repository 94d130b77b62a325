/**
 * Folders that are made for a file of ours, and removed with it. A mark in the innermost one names the outermost one that was
 * made, so that an empty folder of the user's is not taken for ours.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, sep } from 'node:path'

const MARK = '.made-by-pi-context-manager'

/** Makes the folders that a file needs, and marks them. Throws the system's error. */
export function makeFolders(file: string): void {
  const folder = dirname(file)
  const outermost = mkdirSync(folder, { recursive: true, mode: 0o700 })
  if (outermost !== undefined) writeFileSync(join(folder, MARK), outermost, { flag: 'wx', mode: 0o600 })
}

/** Removes the folders that were made for a file, once there is nothing else in them. Throws the system's error. */
export function dropFolders(file: string): void {
  const folder = dirname(file)
  const mark = join(folder, MARK)
  if (!existsSync(mark)) return
  // In fish, each agent has a file of ours in one folder.
  if (readdirSync(folder).some((name) => name !== MARK && name.includes('pi-context-manager'))) return
  const outermost = readFileSync(mark, 'utf8')
  rmSync(mark)
  for (let at = folder; at === outermost || at.startsWith(outermost + sep); at = dirname(at)) {
    if (readdirSync(at).length > 0) return
    rmdirSync(at)
  }
}
