/**
 * The amounts billed, call by call, in a file of this user for each store, beside it: `usage` sums them up, and compares the
 * sessions that were held out with the others. No text of a conversation is in it.
 */
import { appendFile, mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { StoreOptions } from '../../index.js'
import type { GivenPrices } from '../models/index.ts'
import type { Usage } from './answer.ts'
import type { GatewayBreak } from './break.ts'
import { besideStore } from './form-files.ts'

/** One call. */
export interface BilledCall {
  /** Milliseconds since the epoch. */
  at: number
  /** The host's session, without subagents and later conversations in it. */
  session: string
  /** The folder that the agent worked in; empty if it is not known. */
  folder: string
  model: string
  /** Undefined for a call whose bill is not known: its answer has no figures, or could not be read. */
  billed?: Usage
  /** Estimate of what the host's own request would have been billed. Undefined together with the bill. */
  plain?: Usage
  /** Estimate of the request for a summary that the host itself would have made before this call; absent: none. */
  summary?: Usage
  /** A figure of the answer was missing, could not be true, or contradicted another one. */
  isDoubtful?: true
  /** The prices that the user gave for the model; absent: none. */
  prices?: GivenPrices
  isHeldOut: boolean
  /** The call was made with a plan at a flat rate: what counts is tokens. */
  isPlan?: true
  /** The cache lifetime that was asked for in place of the host's own, and the fresh tokens that this saved since the call before. */
  lifetime?: { why: string; savedTokens: number }
  /** The part that the provider had read before and had to read again, with the reason; undefined if nothing. */
  broken?: GatewayBreak
}

/** The file of a store. */
export function billsFile(options: StoreOptions): string {
  return `${besideStore(options, 'gateway-bills')}.jsonl`
}

/** Writes calls to a file. Several processes may write to one: a line is one write. */
export class GatewayBills {
  readonly #path: string
  readonly #onTrouble: (error: unknown) => void
  #waiting = ''
  #writing: Promise<void> | undefined

  /** `onTrouble` gets the system's error where calls can't be noted. */
  constructor(path: string, onTrouble: (error: unknown) => void) {
    this.#path = path
    this.#onTrouble = onTrouble
  }

  /** Notes a call. A file that can't be written costs this figure and nothing else. */
  add(call: BilledCall): void {
    this.#waiting += `${JSON.stringify(call)}\n`
    this.#writing ??= this.#write()
  }

  /** Resolves when all is written. */
  async flush(): Promise<void> {
    await this.#writing
  }

  async #write(): Promise<void> {
    while (this.#waiting !== '') {
      const lines = this.#waiting
      this.#waiting = ''
      const write = (): Promise<void> => appendFile(this.#path, lines, { mode: 0o600 })
      // Lines that can't be written are lost; their requests have been answered.
      await write()
        .catch(async () => {
          await mkdir(dirname(this.#path), { recursive: true, mode: 0o700 })
          await write()
        })
        .catch(this.#onTrouble)
    }
    this.#writing = undefined
  }
}

/** The host's session that a session of ours belongs to: `claude-code:ID` for `claude-code:ID:AGENT` and `claude-code:ID~2`. */
export function hostSession(id: string): string {
  return id.split(':').slice(0, 2).join(':').replace(/~\d+$/, '')
}
