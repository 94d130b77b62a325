/**
 * The lifetimes of the cache that the context manager chooses in a session, and what its requests find and cost with them. The
 * recorded session shows what its own lifetime kept and lost; what is written for a shorter one is gone when that is over, and
 * the system part that is written for an hour outlives what had expired after five minutes.
 */
import { ConversationLifetimes, LIFETIME_MS, LIFETIME_WRITE, slackOf } from '../models/index.ts'
import type { Asked, CacheLifetime, Chosen, Written } from '../models/index.ts'
import type { CacheRules, KeptFor } from './cache.ts'
import type { PolicyMoment } from './policies/policy.ts'
import type { RecordedCall } from './record.ts'

/** The state on which a choice depends, besides the moment. */
export interface ChoiceState {
  /** The model loses reasoning if something before it changes. */
  isBound: boolean
  /** Tokens of system prompt and tools. */
  systemTokens: number
  /** The costs so far of the context manager and of the client's own requests, in the unit of the prices for one token. */
  costs: { billed: number; plain: number }
}

/** The lifetimes that one policy asks for. */
export class ChosenLifetimes {
  /** The reasons of the choices, with the number of calls of each. */
  readonly reasons = new Map<string, number>()
  readonly #rule = new ConversationLifetimes('auto')
  readonly #asked: Asked
  readonly #client: CacheLifetime
  /** The record tells what was lost, and the client's own lifetime no more than that. */
  readonly #isRecorded: boolean
  #choice: Chosen | undefined
  /** The head was on an hour when it was last written. */
  #wasHour = false
  #isFirst = true

  private constructor(client: CacheLifetime, isRecorded: boolean) {
    this.#client = client
    this.#asked = { head: client, conversation: client }
    this.#isRecorded = isRecorded
  }

  /** The choices for a session on this cache; undefined if its provider offers none, or the lifetime is neither of its two. */
  static of({ name, lifetimeMs }: Pick<CacheRules, 'name' | 'lifetimeMs'>, isRecorded: boolean): ChosenLifetimes | undefined {
    if (!name.startsWith('anthropic')) return undefined
    const client = (['5m', '1h'] as const).find((one) => LIFETIME_MS[one] === lifetimeMs)
    return client === undefined ? undefined : new ChosenLifetimes(client, isRecorded)
  }

  /** Chooses for the next call. Returns the moment of the call at the price and the lifetime of what is written for the conversation. */
  next(moment: PolicyMoment, { isBound, systemTokens, costs }: ChoiceState): PolicyMoment {
    const { at, prices, isRepeated } = moment
    const inFresh = (cost: number): number => (prices.input > 0 ? cost / (prices.input / 1_000_000) : 0)
    const slackTokens = slackOf({ billed: inFresh(costs.billed), plain: inFresh(costs.plain) })
    const read = prices.input > 0 ? prices.cacheRead / prices.input : 0.1
    this.#wasHour = this.#choice?.head === '1h'
    // A marker on earlier messages is one that the client would have set: agents mark the end.
    this.#choice = this.#rule.next({ at, asked: this.#asked, isNew: this.#isFirst, isBound, systemTokens, read, slackTokens }) ?? this.#choice
    this.#isFirst = false
    const { why, conversation } = this.#choice ?? { why: '', conversation: this.#client }
    if (isRepeated !== true) this.reasons.set(why, (this.reasons.get(why) ?? 0) + 1)
    return { ...moment, prices: { ...prices, cacheWrite: LIFETIME_WRITE[conversation] * prices.input }, lifetimeMs: LIFETIME_MS[conversation] }
  }

  /** The times for which the latest choice keeps what is written, in a cache that forgets nothing else where the session is recorded. */
  kept(headBlocks: number): KeptFor {
    const { head, conversation } = this.#choice ?? { head: this.#client, conversation: this.#client }
    const msOf = (lifetime: CacheLifetime): number => (this.#isRecorded && (lifetime === this.#client || lifetime === '1h') ? Infinity : LIFETIME_MS[lifetime])
    return { head: { ms: msOf(head), blocks: headBlocks }, restMs: msOf(conversation) }
  }

  /** The tokens that are left of the head where a recorded call had lost it only because its five minutes were over. */
  spared({ lost, pauseMs }: RecordedCall, found: number, systemTokens: number): number {
    const hasExpired = lost > 0 && pauseMs > LIFETIME_MS['5m'] && pauseMs <= LIFETIME_MS['1h']
    return this.#client === '5m' && this.#wasHour && hasExpired ? Math.min(found, systemTokens) : 0
  }

  /** Tokens of those that a request writes which are written for an hour; the system part has `systemTokens`, and `from` tokens were cached. */
  hourOf(from: number, written: number, systemTokens: number): number {
    if (this.#choice?.conversation === '1h') return written
    return this.#choice?.head === '1h' ? Math.min(written, Math.max(0, systemTokens - from)) : 0
  }

  /** Takes what a request has read and written. */
  answered(written: Written): void {
    this.#rule.answered(written)
  }
}
