/** The cost of the sessions of Pi and of the gateway, and the savings on them, by session ID. */
import { existsSync } from 'node:fs'
import { basename } from 'node:path'
import { openRecording, piSessionFolder, sessionFiles } from '../recordings/index.ts'
import { chargesOf, gatewayCharges, Sums } from '../usage/index.ts'
import type { Sum } from '../usage/index.ts'

/** Session files of Pi's own folder, and the gateway's notes of its calls. */
export class Bills {
  /** By session ID. */
  readonly #files = new Map<string, string>()
  /** Sums of the gateway's sessions, by ID. */
  readonly #noted = new Map<string, Sums>()

  private constructor() {}

  /** Finds the files of Pi, of which none is read yet, and reads the gateway's notes. */
  static async find(notes: string | undefined, folder = piSessionFolder()): Promise<Bills> {
    const bills = new Bills()
    if (notes !== undefined) {
      for await (const charge of gatewayCharges(notes)) {
        const sums = bills.#noted.get(charge.session) ?? new Sums('session')
        bills.#noted.set(charge.session, sums)
        sums.add(charge)
      }
    }
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

  /** Returns what a session cost with its subagents; undefined if neither a file of Pi nor the gateway tells. */
  async of(session: string): Promise<Sum | undefined> {
    const file = this.#files.get(session)
    if (file === undefined) return this.#noted.get(session)?.total()
    const sums = new Sums('session')
    try {
      for await (const charge of chargesOf(await openRecording(file), new Set())) sums.add(charge)
    } catch {
      return undefined
    }
    return sums.total()
  }
}
