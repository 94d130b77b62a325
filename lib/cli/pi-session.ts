/** Pi's session files, by the IDs of their sessions. */
import { existsSync } from 'node:fs'
import { piSessionFolder, sessionFiles } from '../recordings/index.ts'
import { ambiguous } from './objects.ts'

/** The file of the session that has this ID, or an ID that begins so; undefined if there is none. Throws {@link UsageError}. */
export async function piSessionFile(given: string): Promise<string | undefined> {
  const folder = piSessionFolder()
  const found = new Map<string, string>()
  if (given !== '' && existsSync(folder)) {
    for await (const file of sessionFiles(folder, () => {})) {
      // Pi names a file after its time and ID.
      const id = /_([^_/]+)\.jsonl$/.exec(file)?.[1]
      if (id?.startsWith(given) === true) found.set(id, file)
    }
  }
  if (found.size > 1 && !found.has(given)) throw ambiguous(given, [...found.keys()])
  return found.get(given) ?? [...found.values()][0]
}
