/** The cost of the sessions of Pi and of the gateway, and the savings on them, by session ID. */
import { openRecording, piSessionFolder } from '../recordings/index.ts'
import { chargesOf, gatewayCharges, Sums } from '../usage/index.ts'
import type { Sum } from '../usage/index.ts'
import { piFiles } from './hosts.ts'

/** Session files of Pi's own folder, and the gateway's notes of its calls. */
export class Bills {
  /** By session ID. */
  readonly #files: ReadonlyMap<string, string>
  /** Sums of the gateway's sessions, by ID. */
  readonly #noted = new Map<string, Sums>()

  private constructor(files: ReadonlyMap<string, string>) {
    this.#files = files
  }

  /** Finds the files of Pi, of which none is read yet, and reads the gateway's notes. */
  static async find(notes: string | undefined, folder = piSessionFolder()): Promise<Bills> {
    const bills = new Bills(await piFiles(folder))
    if (notes !== undefined) {
      for await (const charge of gatewayCharges(notes)) {
        const sums = bills.#noted.get(charge.session) ?? new Sums('session')
        bills.#noted.set(charge.session, sums)
        sums.add(charge)
      }
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
