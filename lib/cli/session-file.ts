/** Session files by the names of their sessions. */
import { existsSync } from 'node:fs'
import { agentFolders, filesOfSession } from '../usage/index.ts'
import { ambiguous } from './objects.ts'

/**
 * The paths that arguments stand for: files and folders as they are, and the agents' own files of sessions that are named as
 * "sessions", "usage" and "replay" show them. Anything else stays as it is. Throws {@link UsageError} for a name of several.
 */
export async function pathsNamed(given: readonly string[]): Promise<string[]> {
  const paths: string[] = []
  for (const one of given) paths.push(existsSync(one) ? one : ((await sessionFile(one)) ?? one))
  return paths
}

async function sessionFile(name: string): Promise<string | undefined> {
  // A path names no session.
  if (/[/\\]/.test(name)) return undefined
  const found = await filesOfSession(agentFolders(), name)
  if (found.size > 1 && !found.has(name)) throw ambiguous(name, [...found.keys()])
  return found.get(name) ?? [...found.values()][0]
}
