/** The account of the provider's cache in a session: finds and losses with their causes and costs, and the odds of the next find. */
import { addLoss, CacheOdds, lossCost, noLoss } from '../models/index.ts'
import type { CacheCounts, CataloguePrices, LossSum, NextCall } from '../models/index.ts'
import { hasUser } from './beginning.ts'
import { breakOf } from './break.ts'
import type { GatewayBreak, SentBefore } from './break.ts'
import { headChanges } from './changes.ts'
import { commonLength } from './prefix.ts'
import type { ModelRequest } from './request.ts'
import { UNKNOWN_MODEL } from './saving.ts'
import { shapeOf } from './shape.ts'

/** The cache of one session. */
export class CacheAccount {
  /** The losses, by cause. */
  readonly losses: Partial<Record<GatewayBreak['by'], LossSum>> = {}
  readonly #odds = new CacheOdds()
  readonly #pricesOf: (model: string) => CataloguePrices | undefined
  #before: SentBefore | undefined

  /** `pricesOf` gives a model's prices, undefined if they are not known. */
  constructor(pricesOf: (model: string) => CataloguePrices | undefined) {
    this.#pricesOf = pricesOf
  }

  /** Calls that found what the call before them had sent, and calls that did not although nothing explains it. */
  get counts(): CacheCounts {
    return this.#odds.counts
  }

  /**
   * How likely the provider still has the last request, from 0 to 1, if its lifetime is not over; 0 if the host has changed what
   * stands before the messages, or kept only the first `common` of many. 1 if nothing is known.
   */
  kept(request: ModelRequest, next: { at: number; isPrompt: boolean; common: number }): number {
    return this.#before === undefined ? 1 : this.#odds.kept(nextOf(this.#before, request, next))
  }

  /** Takes a request that was answered. Returns what it had to read again; undefined if nothing. */
  note(now: SentBefore, isAside: boolean): GatewayBreak | undefined {
    const before = this.#before
    const broken = before === undefined ? undefined : breakOf(before, now)
    if (broken !== undefined) this.#add(broken, now)
    if (isAside) return broken
    this.#follow(before, now)
    this.#before = now
    return broken
  }

  /** Lets go of the last request. The next one is compared with nothing. */
  rest(): void {
    this.#before = undefined
  }

  #follow(before: SentBefore | undefined, now: SentBefore): void {
    const { request, usage, at, roll, lifetimeMs } = now
    const { input, cacheRead: cached, cacheWrite: written } = usage
    const sent = before?.request.messages ?? []
    const common = commonLength(sent, request.messages)
    const isPrompt = hasUser(shapeOf(request.api), request.messages, common)
    const next = nextOf(before ?? now, request, { at, isPrompt, common })
    const isChanged = roll !== undefined || common < sent.length
    this.#odds.answered({
      ...next,
      prompt: input + cached + written,
      cached,
      written,
      systemTokens: request.systemTokens,
      isChanged,
      lifetimeMs: before?.lifetimeMs ?? lifetimeMs,
    })
  }

  #add({ by, tokens }: GatewayBreak, { request, usage }: SentBefore): void {
    addLoss((this.losses[by] ??= noLoss()), { tokens, cost: lossCost(this.#pricesOf(request.model) ?? UNKNOWN_MODEL, tokens, usage) })
  }
}

const SMALL_PART = 4

/** True if so few of a request's messages are as they were that the cached part is not worth a price: fewer than one in four. */
export function isSmallPart(common: number, sent: number): boolean {
  return SMALL_PART * common < sent
}

function nextOf({ request: before }: SentBefore, request: ModelRequest, { at, isPrompt, common }: { at: number; isPrompt: boolean; common: number }): NextCall {
  const isElsewhere = isSmallPart(common, before.messages.length) || headChanges(before, request).length > 0
  return { at, isPrompt, model: request.model, isElsewhere }
}
