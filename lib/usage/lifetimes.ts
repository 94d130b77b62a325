/** The lifetimes of the cache that a gateway has chosen: for how many calls, why, and what that saved. */
import type { Charge } from './charges.ts'

/** The sums of the choices. */
export interface LifetimeChoices {
  /** Calls with a choice. */
  calls: number
  /** Dollars saved against the agents' own lifetimes, as far as prices are known; a part of all that was saved. Below zero if it cost more. */
  saved: number
  /** The same in fresh input tokens, for all models. */
  savedTokens: number
  /** The reasons, those of most calls first. */
  reasons: { why: string; calls: number }[]
}

/** Adds up choices. */
export class LifetimeSums {
  readonly #reasons = new Map<string, number>()
  readonly #sum = { calls: 0, saved: 0, savedTokens: 0 }

  /** Adds a call; one without a choice adds nothing. */
  add({ lifetime }: Pick<Charge, 'lifetime'>): void {
    if (lifetime === undefined) return
    const { why, saved, savedTokens } = lifetime
    this.#sum.calls += 1
    this.#sum.saved += saved
    this.#sum.savedTokens += savedTokens
    this.#reasons.set(why, (this.#reasons.get(why) ?? 0) + 1)
  }

  /** The sums; undefined without a choice. */
  get sums(): LifetimeChoices | undefined {
    if (this.#sum.calls === 0) return undefined
    const reasons = [...this.#reasons].map(([why, calls]) => ({ why, calls })).toSorted((one, other) => other.calls - one.calls)
    return { ...this.#sum, reasons }
  }
}
