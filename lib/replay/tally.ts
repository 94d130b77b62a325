/** The sums over the requests of one policy. */
import type { RollReceipt } from '../../index.js'
import { factorAt, LIFETIME_WRITE } from '../models/index.ts'
import { unitsOf } from '../recordings/index.ts'
import type { ReplayBlock } from '../recordings/index.ts'
import { BoundReasoning } from './bound-reasoning.ts'
import type { ChosenLifetimes } from './chosen.ts'
import type { RecordedCall } from './record.ts'
import { PromptCache } from './cache.ts'
import type { MissedUses } from './missed/uses.ts'
import type { PolicyName, PolicyMoment, Request, Setting } from './policies/policy.ts'

/** Figures of one policy over one session. Tokens are the provider's, derived from the session's own usage. */
export interface TallyFigures {
  /** The cost of all prompts, plus the answers of calls that are not in the recording (summaries, re-reads). */
  cost: number
  /** `cost` over that of policy `pi`. */
  costVsPi: number
  /**
   * `cost` over what the session cost without the context manager: the cost of policy `recorded`, or that of `pi` where the
   * context manager ran when it was recorded or `recorded` was left out.
   */
  costVsPlain?: number
  /** Share of the prompt tokens that came from the cache. */
  cacheHit: number
  tokensSent: number
  peakTokens: number
  /** Summaries that replaced part of the conversation. */
  compactions: number
  /** Rolls that the context manager executed. */
  rolls: number
  /** Blocks of reasoning that the rolls took along although they were not stale, because the provider binds them. */
  reasoningLost: number
  /** Those of them that belonged to the turn in which the roll happened. */
  reasoningLostRunning: number
  /** Requests that a provider would refuse that binds reasoning to everything before it. */
  refused: number
  /** Files that had to be read once more because an edit's text was no longer in sight. */
  rereads: number
  /** The cost of those reads; part of `cost`. */
  rereadCost: number
  /** Reads that were answered with where their lines still are, or with what has changed in them. */
  answeredReads: number
  /** Requests that were longer than the model's window: in reality they would have failed. */
  overWindow: number
  /**
   * Missed uses of tool text per 100 calls: text of an output or of arguments that the policy no longer showed and the
   * recorded agent quoted or named. NaN for `bound`, which has no requests.
   */
  missed: number
  /** The strong ones: with three quotes or three names. */
  missedStrong: number
  /** Those of the strong ones that probably harm: more than a line, which neither the next result nor another read brought back. */
  missedHarm: number
  /** The cost of fetching the text of each strong missed use, own words included; not part of `cost`. */
  fetchCost: number
  /** `cost` and `fetchCost` over the cost of policy `pi`. */
  costVsPiFetched: number
  /** All missed uses; undefined for `bound`. */
  missedUses?: MissedUses
}

/** The figures that follow from one policy's requests alone. */
export type OwnFigures = Omit<
  TallyFigures,
  'costVsPi' | 'costVsPlain' | 'missed' | 'missedStrong' | 'missedHarm' | 'fetchCost' | 'costVsPiFetched' | 'missedUses'
>

/** A roll and the call before which it happened. */
export interface RollRecord extends RollReceipt {
  call: number
}

/** Tokens that were sent, by what they were. */
export type ByLabel = Record<string, number>

/** One value for each call, for the picture. */
export interface Series {
  tokens: number[]
  cost: number[]
  /** The part of `cost` that reading text again has cost. */
  again?: number[]
}

/** Sums up the requests of one policy. */
export class Tally {
  readonly name: PolicyName
  readonly series: Series & { again: number[] } = { tokens: [], cost: [], again: [] }
  readonly rolls: RollRecord[] = []
  readonly byLabel: ByLabel = {}
  /** Files that had to be read once more. */
  rereads = 0
  readonly #setting: Setting
  readonly #cache: PromptCache
  readonly #chosen: ChosenLifetimes | undefined
  readonly #reasoning = new BoundReasoning()
  #cost = 0
  #cached = 0
  #sent = 0
  #peak = 0
  #compactions = 0
  #rereadCost = 0
  #overWindow = 0
  #calls = 0
  /** Tokens of the latest request that were written to the cache or read from it, where the others were not. */
  #written = Infinity

  /** `chosen`: the lifetimes for which the policy's requests are written; if undefined, what the moments say. */
  constructor(name: PolicyName, setting: Setting, chosen?: ChosenLifetimes) {
    this.name = name
    this.#chosen = chosen
    this.#setting = setting
    this.#cache = new PromptCache(setting.kept ?? setting.cache, setting.unitsPerToken)
  }

  /** The costs so far. */
  get cost(): number {
    return this.#cost
  }

  /** A call of the recording. */
  send(request: Request, moment: PolicyMoment): void {
    this.#note(request, moment)
    this.#prompt(request, moment)
    if (moment.isRepeated === true) return
    this.#calls += 1
    this.series.cost.push(this.#cost)
    this.series.again.push(this.#rereadCost)
  }

  /** The answer of the recording, with its blocks. */
  answered(blocks: readonly ReplayBlock[]): void {
    this.#reasoning.answered(blocks)
  }

  /** A call that is not in the recording: the agent looks for a text again, and its answer asks for it. */
  sendAgain(request: Request, moment: PolicyMoment, answerTokens: number): void {
    const before = this.#cost
    this.#note(request, moment)
    this.#prompt(request, moment, true)
    if (moment.isRepeated === true) return
    this.#cost += perToken(moment.prices.output) * answerTokens
    this.#rereadCost += this.#cost - before
    this.series.cost[this.series.cost.length - 1] = this.#cost
    this.series.again[this.series.again.length - 1] = this.#rereadCost
  }

  /** The sums. */
  figures(answeredReads = 0): OwnFigures {
    return {
      cost: this.#cost,
      cacheHit: this.#sent === 0 ? 0 : this.#cached / this.#sent,
      tokensSent: Math.round(this.#sent),
      peakTokens: Math.round(this.#peak),
      compactions: this.#compactions,
      rolls: this.rolls.length,
      reasoningLost: this.rolls.reduce((sum, { reasoningLost = 0 }) => sum + reasoningLost, 0),
      reasoningLostRunning: this.rolls.reduce((sum, { reasoningLostRunning = 0 }) => sum + reasoningLostRunning, 0),
      refused: this.#reasoning.refused,
      rereads: this.rereads,
      rereadCost: this.#rereadCost,
      answeredReads,
      overWindow: this.#overWindow,
    }
  }

  #note(request: Request, { prices, isRepeated }: PolicyMoment): void {
    if (isRepeated === true) return
    for (const receipt of request.rolls ?? []) this.rolls.push({ ...receipt, call: this.#calls })
    const { compaction } = request
    if (compaction === undefined) return
    // Pi asks for a summary in a separate request that is not written to the cache.
    this.#compactions += 1
    this.#sent += compaction.promptTokens
    this.#cost += perToken(prices.input) * compaction.promptTokens + perToken(prices.output) * compaction.outputTokens
  }

  #prompt({ blocks, fixed }: Request, { at, model, prices, isRepeated, record }: PolicyMoment, again = false): void {
    const tokens = unitsOf(blocks) / this.#setting.unitsPerToken
    const system = unitsOf(blocks.slice(0, fixed)) / this.#setting.unitsPerToken
    const found = this.#cache.send(blocks, fixed, model, at, this.#chosen?.kept(fixed))
    // A call that is not in the recording comes right after one that is, so nothing was lost before it.
    const own = again ? undefined : record
    const spared = own === undefined ? 0 : (this.#chosen?.spared(own, found, system) ?? 0)
    const cached = Math.min(tokens, own === undefined ? found : Math.max(spared, foundBy(own, Math.min(found, this.#written), system)))
    // Tokens behind the last breakpoint of the recorded request were not written. A provider that writes all by itself counts none.
    const unwritten = Math.min(tokens - cached, own?.input ?? 0)
    this.#written = unwritten > 0 && (own?.written ?? 0) > 0 ? tokens - unwritten : Infinity
    if (isRepeated === true) return
    this.#reasoning.send(blocks)
    const factor = factorAt(prices.steps, tokens)
    const written = tokens - cached - unwritten
    const paid = perToken(prices.cacheRead) * cached + perToken(prices.input) * unwritten + perToken(this.#writing(prices, cached, written, system))
    this.#cost += factor * paid
    this.#sent += tokens
    this.#cached += cached
    this.#peak = Math.max(this.#peak, tokens)
    if (tokens > this.#setting.window) this.#overWindow += 1
    if (!again) this.series.tokens.push(Math.round(tokens))
    this.#label(blocks)
  }

  /** The price of writing tokens, of which `cached` come before. */
  #writing({ input, cacheWrite }: PolicyMoment['prices'], cached: number, written: number, systemTokens: number): number {
    if (this.#chosen === undefined) return cacheWrite * written
    const hour = this.#chosen.hourOf(cached, written, systemTokens)
    this.#chosen.answered({ fiveMinutes: written - hour, hour, prompt: cached + written, read: cached })
    return input * (LIFETIME_WRITE['1h'] * hour + LIFETIME_WRITE['5m'] * (written - hour))
  }

  #label(blocks: readonly ReplayBlock[]): void {
    for (const { label, units } of blocks) {
      this.byLabel[label] = (this.byLabel[label] ?? 0) + units / this.#setting.unitsPerToken
    }
  }
}

/** The part of a request that the provider had, on the cache as it was: a loss in the record is a loss to every request. */
function foundBy({ lost, short, read, isFirst }: RecordedCall, found: number, systemTokens: number): number {
  if (lost > 0) return Math.min(found, read)
  // Another session has written the system part before.
  return isFirst === true ? Math.max(found, Math.min(read, systemTokens)) : Math.max(0, found - short)
}

/**
 * The lower bound for every layout: each token is written once, and only prose (the system part, the user's words, the
 * answers' text) is read again at each call.
 */
export class Bound {
  readonly series: Series = { tokens: [], cost: [] }
  #prose: number
  #fresh: number
  #cost = 0
  #sent = 0
  #cached = 0
  #peak = 0

  constructor(systemTokens: number) {
    this.#prose = 0
    this.#fresh = systemTokens
  }

  /** Something entered the conversation. */
  add(tokens: number, prose: number): void {
    this.#fresh += tokens
    this.#next += prose
  }

  #next = 0

  /** A call was made. */
  call(systemTokens: number, { prices, isRepeated }: Pick<PolicyMoment, 'prices' | 'isRepeated'>): void {
    const read = this.#prose
    this.#prose = (read === 0 ? systemTokens : read) + this.#next
    this.#next = 0
    const fresh = this.#fresh
    this.#fresh = 0
    if (isRepeated === true) return
    this.#cost += perToken(prices.cacheRead) * read + perToken(prices.cacheWrite) * fresh
    this.#sent += read + fresh
    this.#cached += read
    this.#peak = Math.max(this.#peak, read + fresh)
    this.series.tokens.push(Math.round(read + fresh))
    this.series.cost.push(this.#cost)
  }

  /** The sums. */
  figures(): OwnFigures {
    return {
      cost: this.#cost,
      cacheHit: this.#sent === 0 ? 0 : this.#cached / this.#sent,
      tokensSent: Math.round(this.#sent),
      peakTokens: Math.round(this.#peak),
      ...NOTHING,
    }
  }
}

/** The figures of a layout that does nothing. */
const NOTHING = { compactions: 0, rolls: 0, reasoningLost: 0, reasoningLostRunning: 0, refused: 0, rereads: 0, rereadCost: 0, answeredReads: 0, overWindow: 0 }

function perToken(pricePerMillion: number): number {
  return pricePerMillion / 1_000_000
}
