/** What a session's requests take and what was saved against plain Pi, for the user. */
import type { Plan } from '../index.js'
import { Ledger } from '../lib/driver/ledger.ts'

/** The figures of the last plan, and the sums so far. */
export class Figures {
  /** Estimated tokens of the next request. */
  contextTokens = 0
  /** The part of them that a roll could remove. */
  staleTokens = 0
  /** What the calls of the branch were billed, beside plain Pi. */
  readonly ledger = new Ledger()

  /** Takes over what a plan says. */
  planned({ contextTokens, staleTokens }: Plan): void {
    this.contextTokens = contextTokens
    this.staleTokens = staleTokens
  }
}
