/** Paths of this machine as users write them, and with all links followed. */
import { realpathSync } from 'node:fs'
import { homedir, userInfo } from 'node:os'
import { isAbsolute, join, relative, resolve, sep } from 'node:path'

/** The user's home directory. Where `HOME` is empty or relative, it is that of the account, as if `HOME` were not set. */
export function homeFolder(): string {
  const home = homedir()
  return isAbsolute(home) ? home : userInfo().homedir
}

/** The path with the user's folder in place of `~`. */
export function expandHome(path: string): string {
  return path === '~' || path.startsWith('~/') || path.startsWith(`~${sep}`) ? join(homeFolder(), path.slice(1)) : path
}

/** The path without links. One that is missing, such as a deleted project, keeps its name. */
export function realOf(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return resolve(path)
  }
}

/** True if a path is a folder or in it, links followed where they exist. */
export function isWithin(folder: string, path: string): boolean {
  const between = relative(realOf(folder), realOf(path))
  return between === '' || (!isAbsolute(between) && between.split(/[\\/]/)[0] !== '..')
}
