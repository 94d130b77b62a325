/** Paths of an agent whose tools run inside a sandbox, such as a container that mounts the project's folder. */
import { realpathSync } from 'node:fs'
import { isAbsolute, relative, resolve } from 'node:path'
import type { MountMapping, OpenOptions } from '../index.js'

/** A folder of this machine, and where the agent's tools see it. */
export type Mount = MountMapping

/** The form of the setting `mounts`, as the end of a sentence. */
export const MOUNTS_WANTED =
  'a list of { "agentPrefix", "canonicalPrefix", "filesystemId" }: the path inside of the sandbox, the path on this machine, both absolute, and by choice the filesystem\'s ID (1 to 512 bytes, no control characters, no blanks at its ends)'

/** The form of the ID of a filesystem, as the end of a sentence. */
export const FILESYSTEM_ID_WANTED = 'a text of 1 to 512 bytes without control characters, such as line breaks, and without blanks at its ends'

/** True if a value can be the ID of a filesystem, as `check_filesystem_id` of the core decides it. */
export function isFilesystemId(value: unknown): value is string {
  if (typeof value !== 'string' || value === '' || Buffer.byteLength(value) > 512) return false
  return !/\p{Cc}|^\p{White_Space}|\p{White_Space}$/u.test(value)
}

/** True if a value can be the setting `mounts`. `~` is the user's folder on this machine. */
export function areMounts(value: unknown): boolean {
  if (!Array.isArray(value) || !value.every(isMount)) return false
  return new Set(value.map(({ agentPrefix }) => agentPrefix.replace(/\/+$/, ''))).size === value.length
}

/** The mounts with absolute paths; `expand` puts the user's folder in place of `~`. */
export function mountsIn(mounts: readonly Mount[], expand: (path: string) => string): Mount[] {
  return mounts.map((mount) => ({ ...mount, canonicalPrefix: resolve(expand(mount.canonicalPrefix)) }))
}

/** True if a path is a folder or in it, links followed where they exist. */
export function isWithin(folder: string, path: string): boolean {
  const between = relative(realOf(folder), realOf(path))
  return between === '' || (!isAbsolute(between) && between.split(/[\\/]/)[0] !== '..')
}

/**
 * The options of a session about paths. Without mounts the agent sees this machine. With mounts its working directory is where
 * it sees Pi's, and its home directory is not known.
 */
export function pathsOf(
  cwd: string,
  home: string,
  { mounts, filesystemId }: { mounts: readonly Mount[]; filesystemId: string | undefined },
): Pick<OpenOptions, 'cwd' | 'home' | 'mounts' | 'filesystemId'> {
  const own = filesystemId === undefined ? {} : { filesystemId }
  if (mounts.length === 0) return { cwd, home, ...own }
  return { cwd: seenAs(cwd, mounts), mounts: [...mounts], ...own }
}

/** The path under which the agent sees a folder of this machine; the same path if no mount has it. */
function seenAs(path: string, mounts: readonly Mount[]): string {
  const [nearest] = mounts
    .filter(({ canonicalPrefix }) => isWithin(canonicalPrefix, path))
    .toSorted((left, right) => right.canonicalPrefix.length - left.canonicalPrefix.length)
  if (nearest === undefined) return path
  const below = relative(realOf(nearest.canonicalPrefix), realOf(path)).replaceAll('\\', '/')
  return below === '' ? nearest.agentPrefix : `${nearest.agentPrefix.replace(/\/+$/, '')}/${below}`
}

function realOf(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return resolve(path)
  }
}

function isMount(value: unknown): value is Mount {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const { agentPrefix, canonicalPrefix, filesystemId, ...others } = value as Record<string, unknown>
  const isText = (one: unknown): one is string => typeof one === 'string'
  return (
    isText(agentPrefix) &&
    agentPrefix.startsWith('/') &&
    isText(canonicalPrefix) &&
    (isAbsolute(canonicalPrefix) || /^~(?:[\\/]|$)/.test(canonicalPrefix)) &&
    (filesystemId === undefined || isFilesystemId(filesystemId)) &&
    Object.keys(others).length === 0
  )
}
