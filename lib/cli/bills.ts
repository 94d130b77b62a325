/** The cost of Pi's sessions and the savings on them, by session ID. */
import { existsSync } from 'node:fs'
import { basename } from 'node:path'
import { openRecording, piSessionFolder, sessionFiles } from '../recordings/index.ts'
import { chargesOf, Sums } from '../usage/index.ts'
import type { Sum } from '../usage/index.ts'

/** Session files of Pi's own folder. */
export class Bills {
  /** By session ID. */
  readonly #files = new Map<string, string>()

  private constructor() {}

  /** Finds the files; none is read yet. */
  static async find(folder = piSessionFolder()): Promise<Bills> {
    const bills = new Bills()
    if (!existsSync(folder)) return bills
    for await (const file of sessionFiles(folder, () => {})) {
      const id = /_([^_]+)\.jsonl$/.exec(basename(file))?.[1]
      if (id !== undefined) bills.#files.set(id, file)
    }
    return bills
  }

  /** Pi's file of a session. */
  fileOf(session: string): string | undefined {
    return this.#files.get(session)
  }

  /** Returns what a session cost; undefined if Pi has no file of it, or none that can be read. */
  async of(session: string): Promise<Sum | undefined> {
    const file = this.#files.get(session)
    if (file === undefined) return undefined
    const sums = new Sums('session')
    try {
      for await (const charge of chargesOf(await openRecording(file), new Set())) sums.add(charge)
    } catch {
      return undefined
    }
    return sums.total()
  }
}
