/**
 * The cache, the window and the prices that a session is replayed with: those that it had when it was recorded, as far as the
 * record tells them and the user does not say otherwise.
 */
import { HOUR_WRITE, readName, rulesOf, UNKNOWN_PRICES } from '../models/index.ts'
import { CACHES, keptRules, withNamed } from './cache.ts'
import { ChosenLifetimes } from './chosen.ts'
import type { CacheRules } from './cache.ts'
import { costOf, knownPrices, ratioPrices } from '../recordings/index.ts'
import type { PaidCall, Prices } from '../recordings/index.ts'
import { isOnPlan } from './plan-calls.ts'
import type { RecordedCall } from './record.ts'
import type { ReplayOptions } from './report.ts'
import type { Sized } from './sizes.ts'
import type { Survey } from './survey.ts'

/** Prices assumed for an unknown model: a fresh input token costs 1. */
const UNKNOWN = ratioPrices(UNKNOWN_PRICES.cacheRead, UNKNOWN_PRICES.cacheWrite)

/** The name of a model at Anthropic itself; other providers have their own names, or their own words in it. */
const OWN_NAME = /^(?:anthropic\/)?claude-[\w.-]+$/

const FIVE_MINUTES_MS = 5 * 60_000

/** The conditions under which one session is replayed. */
export class Regime {
  readonly cache: CacheRules
  /** The context window in tokens. */
  readonly window: number
  /** The window stands in the record, or is assumed. */
  readonly isWindowKnown: boolean
  /** The losses are those of the record. */
  readonly hasLosses: boolean
  /** The cache keeps everything but what the record lost. */
  readonly isKept: boolean
  /** The sizes of messages and the system part by the provider's counts, where these count. */
  readonly sized: Sized
  readonly #options: ReplayOptions
  readonly #survey: Survey
  readonly #isOwnLifetime: boolean
  /** The share of written tokens that were written for an hour, at the latest call that wrote any. */
  #hourShare: number

  constructor(options: ReplayOptions, survey: Survey) {
    this.#options = options
    this.#survey = survey
    const { record } = survey
    // The gateway's counts are those of other requests than the agent's own, which its file has.
    const use = record.isKnown && !survey.isThroughGateway ? options.record : undefined
    const rules = use?.cache === true ? withNamed(rulesByModel(survey.models[0] ?? ''), options.namedRules ?? {}) : options.cache
    this.#isOwnLifetime = use?.lifetime === true
    const lifetimeMs = this.#isOwnLifetime ? (record.lifetimeMs ?? rules.lifetimeMs) : options.cache.lifetimeMs
    this.cache = { ...rules, lifetimeMs }
    this.isWindowKnown = options.record?.window === true && record.window !== undefined
    this.window = options.record?.window === true ? (record.window ?? options.window) : options.window
    this.hasLosses = use?.losses === true
    this.isKept = this.hasLosses && this.#isOwnLifetime
    const { sizes, unitsPerToken, isScaled } = survey
    this.sized = use !== undefined && isScaled !== true ? sizes.sized(unitsPerToken) : { factors: new Map(), systemTokens: undefined, clearings: new Map() }
    this.#hourShare = record.lifetimeMs !== undefined && record.lifetimeMs > FIVE_MINUTES_MS ? 1 : 0
  }

  /** The rules by which the recorded cache is replayed: it keeps everything but what the record lost. Undefined: those of {@link cache}. */
  get kept(): CacheRules | undefined {
    return this.isKept ? keptRules(this.cache, this.#options.namedRules) : undefined
  }

  /** Choices of the cache's lifetime, where there are any: at Anthropic itself, whose models have their plain names there, and not on a plan. */
  chosenLifetimes(): ChosenLifetimes | undefined {
    const { record, models } = this.#survey
    const isOffered = !isOnPlan(this.#survey) && models.every((model) => OWN_NAME.test(model)) && (!this.isKept || record.lifetime !== undefined)
    return isOffered ? ChosenLifetimes.of(this.cache, this.isKept) : undefined
  }

  /** The prices of the next call, the cache's lifetime in the price of a written token. */
  prices(model: string, call: RecordedCall | undefined): Prices {
    return this.#withGiven(this.#own(model, call))
  }

  #own(model: string, call: RecordedCall | undefined): Prices {
    const own = this.#usual(model)
    if (this.#isOwnLifetime && call !== undefined && call.written > 0) this.#hourShare = call.hour / call.written
    const { write, kind, lifetimeMs } = this.cache
    if (this.#isUnwritten(model)) return { ...own, cacheWrite: own.input }
    if (write !== undefined) return { ...own, cacheWrite: write * own.input }
    if (this.#isOwnLifetime) return { ...own, cacheWrite: this.#hourShare * HOUR_WRITE * own.input + (1 - this.#hourShare) * own.cacheWrite }
    return this.#options.record !== undefined && kind === 'breakpoints' && lifetimeMs > FIVE_MINUTES_MS ? { ...own, cacheWrite: HOUR_WRITE * own.input } : own
  }

  /**
   * The prices of the recorded counts of a call, given those of its moment. Counts tell themselves which of the written tokens were
   * written for an hour, so these prices have no hour in them.
   */
  pricesOfCounts(model: string, prices: Prices): Prices {
    return this.#isOwnLifetime && this.cache.write === undefined ? this.usual(model) : prices
  }

  /**
   * The provider caches by itself, and its counts tell of no written token, so that the bill has none either. Recorders may leave them
   * out: Codex's earlier versions do.
   */
  #isUnwritten(model: string): boolean {
    return this.#options.record?.cache === true && this.#survey.record.isUnwritten && rulesOf(model).cache.kind !== 'breakpoints'
  }

  /** The record of a call's cache, if it counts. A cache that lives longer than the recorded one does not lose what had expired. */
  recordOf(call: RecordedCall | undefined): RecordedCall | undefined {
    if (call === undefined || !this.hasLosses) return undefined
    const recorded = this.#survey.record.lifetimeMs ?? 0
    const isSaved = !this.#isOwnLifetime && call.pauseMs > recorded && call.pauseMs <= this.cache.lifetimeMs
    // Under a price that the user gave for written tokens, every token that is not cached counts as written.
    const input = this.isWriteGiven ? 0 : call.input
    return { ...call, input, lost: isSaved ? 0 : call.lost }
  }

  /** The cost of a call with its answer, in `unit`: what was paid, where that is in dollars. `prompt` is the cost without the answer. */
  billOf(call: Pick<PaidCall, 'usage' | 'model'>, prompt: number, prices: Prices): number {
    const bill = this.unit === 'USD' ? costOf(call, this.#options.models) : undefined
    return bill ?? prompt + ((call.usage?.output ?? 0) * prices.output) / 1_000_000
  }

  /** The user has said what a written token costs. */
  get isWriteGiven(): boolean {
    return this.#options.prices !== undefined && this.#options.openPrice !== 'write'
  }

  /** Dollars, or fresh input tokens where the price of a model is not known. */
  get unit(): 'USD' | 'input tokens' {
    if (this.#options.prices !== undefined) return 'input tokens'
    const isKnown = this.#survey.models.every((model) => this.#survey.prices.has(model) || knownPrices(model, this.#options.models) !== undefined)
    return isKnown ? 'USD' : 'input tokens'
  }

  /** The prices of a model, with the usual price of a written token. */
  usual(model: string): Prices {
    return this.#withGiven(this.#usual(model))
  }

  /** The prices that the user gave, with the model's own where no option names one; without any, the model's. */
  #withGiven(own: Prices): Prices {
    const { prices: given = own, openPrice: open } = this.#options
    if (open === undefined) return given
    const [name, part] = open === 'read' ? (['cacheRead', own.cacheRead] as const) : (['cacheWrite', own.cacheWrite] as const)
    return { ...given, [name]: (given.input * part) / own.input }
  }

  #usual(model: string): Prices {
    const known = knownPrices(model, this.#options.models)
    return { ...known, ...(this.#survey.prices.get(model) ?? known ?? UNKNOWN) }
  }
}

/** The cache of the provider whose model it is. */
function rulesByModel(model: string): CacheRules {
  const { kind } = rulesOf(model).cache
  if (kind === 'breakpoints') return CACHES.anthropic
  if (kind === 'endings') return CACHES.openai
  return readName(model).family === 'gpt' ? CACHES['openai-5.5'] : CACHES.plain
}
