/** What a session's requests take and what was saved against plain Pi, for the user. */
import type { Plan } from '../index.js'
import type { Point } from './point.ts'

/** The figures of the last plan, and the sums so far. */
export class Figures {
  /** Estimated tokens of the next request. */
  contextTokens = 0
  /** The part of them that a roll could remove. */
  staleTokens = 0
  /**
   * Savings so far against plain Pi, in fresh input tokens: from rolls, excerpts and answered reads, minus the cost
   * of rolls and of our tools.
   */
  saved = 0
  /** How much each further call adds to `saved`. */
  gain = 0
  /** Tokens kept out of this turn's results. */
  #spared = 0

  /** Takes over what a plan says. */
  planned({ contextTokens, staleTokens, receipt }: Plan): void {
    this.contextTokens = contextTokens
    this.staleTokens = staleTokens
    if (receipt === undefined) return
    this.saved -= receipt.cost
    this.gain += receipt.gain
  }

  /** Counts characters that plain Pi would send in the next and all later requests, and that we don't. */
  spare(characters: number): void {
    this.#spared += characters / 4
  }

  /**
   * What was spared saves its writing once, at the next call, and its reading at each call after that. Prices are relative
   * to fresh input.
   */
  countSpared({ read, write }: { read: number; write: number }): void {
    this.saved += this.#spared * (write - read)
    this.gain += this.#spared * read
    this.#spared = 0
  }

  /** Continues with the sums of a point on the branch. */
  takeOver({ saved = 0, gain = 0 }: Point): void {
    this.saved = saved
    this.gain = gain
  }
}
