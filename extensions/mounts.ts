/** Paths of an agent whose tools run inside a sandbox, such as a container that mounts the project's folder. */
import { relative } from 'node:path'
import type { MountMapping, OpenOptions } from '../index.js'
import { isWithin, realOf } from '../lib/core/index.ts'

/** A folder of this machine, and where the agent's tools see it. */
export type Mount = MountMapping

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
