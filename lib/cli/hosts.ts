/** The agents of sessions: by their IDs, and where these don't say it, by Pi's session files. */
import { existsSync } from 'node:fs'
import { basename } from 'node:path'
import { hostOfSession } from '../core/index.ts'
import type { HostName } from '../core/index.ts'
import { piSessionFolder, sessionFiles } from '../recordings/index.ts'

/** Finds the agent of each session of a store. Pi's folder is listed once, and only where an ID makes it necessary. */
export class Hosts {
  #files: Promise<ReadonlyMap<string, string>> | undefined

  /** The agent of a session. */
  async of(session: string): Promise<HostName> {
    const host = hostOfSession(session)
    if (host !== 'library') return host
    // Pi also takes IDs that its user chooses, and earlier versions made others.
    this.#files ??= piFiles()
    return (await this.#files).has(session) ? 'pi' : host
  }
}

/** Pi's session files by the IDs of their sessions; Pi names a file after its time and ID. */
export async function piFiles(folder = piSessionFolder()): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>()
  if (!existsSync(folder)) return found
  for await (const file of sessionFiles(folder, () => {})) {
    const id = /_([^_]+)\.jsonl$/.exec(basename(file))?.[1]
    if (id !== undefined) found.set(id, file)
  }
  return found
}
