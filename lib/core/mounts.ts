/** The settings about paths of tools that run inside a sandbox, as Pi and the MCP server take them: `mounts` and `filesystemId`. */
import { isAbsolute, resolve } from 'node:path'
import type { MountMapping } from '../../index.js'
import { expandHome } from './paths.ts'

/** The form of the setting `mounts`, as the end of a sentence. */
export const MOUNTS_WANTED =
  'a list of { "agentPrefix", "canonicalPrefix", "filesystemId" }: the path inside of the sandbox (each one once) and the path on this machine, both absolute, and by choice the filesystem\'s ID (1 to 512 bytes, no control characters, no blanks at its ends)'

/** The form of the ID of a filesystem, as the end of a sentence. */
export const FILESYSTEM_ID_WANTED = 'a text of 1 to 512 bytes without control characters, such as line breaks, and without blanks at its ends'

/** True if a value can be the ID of a filesystem, as `check_filesystem_id` of the core decides it. */
export function isFilesystemId(value: unknown): value is string {
  if (typeof value !== 'string' || value === '' || Buffer.byteLength(value) > 512) return false
  return !/\p{Cc}|^\p{White_Space}|\p{White_Space}$/u.test(value)
}

/** True if a value can be the setting `mounts`. `~` is the user's folder on this machine. */
export function areMounts(value: unknown): value is MountMapping[] {
  return Array.isArray(value) && value.every(isMount) && prefixTwice(value) === undefined
}

/** The reason why mounts of the right form are refused, as a sentence after their name; undefined for others. */
export function mountsRefused(value: unknown): string | undefined {
  const twice = Array.isArray(value) && value.every(isMount) ? prefixTwice(value) : undefined
  return twice === undefined ? undefined : `has two mounts for ${JSON.stringify(twice)} inside of the sandbox; leave one of them out`
}

function prefixTwice(mounts: readonly MountMapping[]): string | undefined {
  const prefixes = mounts.map(({ agentPrefix }) => agentPrefix.replace(/\/+$/, '') || '/')
  return prefixes.find((prefix, at) => prefixes.indexOf(prefix) < at)
}

/** The mounts with absolute paths, the user's folder in place of `~`. */
export function mountsIn(mounts: readonly MountMapping[]): MountMapping[] {
  return mounts.map((mount) => ({ ...mount, canonicalPrefix: resolve(expandHome(mount.canonicalPrefix)) }))
}

function isMount(value: unknown): value is MountMapping {
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
