/** Pi's session files, by the IDs of their sessions. */
import { piFiles } from './hosts.ts'
import { ambiguous } from './objects.ts'

/** The file of the session that has this ID, or an ID that begins so; undefined if there is none. Throws {@link UsageError}. */
export async function piSessionFile(given: string): Promise<string | undefined> {
  const found = new Map(given === '' ? [] : [...(await piFiles())].filter(([id]) => id.startsWith(given)))
  if (found.size > 1 && !found.has(given)) throw ambiguous(given, [...found.keys()])
  return found.get(given) ?? [...found.values()][0]
}
