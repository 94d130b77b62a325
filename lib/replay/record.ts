/**
 * What the record says about the provider's cache: how much of each request it had, how long it was asked to keep it, and
 * where it lost what it should have had. With it, every policy is priced on the cache that the user really had.
 */
import { HOUR_WRITE, LONG_WINDOW, USUAL_WINDOW } from '../models/index.ts'
import { isCall } from '../recordings/index.ts'
import type { RecordedUsage, Step } from '../recordings/index.ts'

/** The parts of the record that count. Without it, or for a session without complete counts, the options count alone. */
export interface RecordUse {
  /** The rules of the provider whose model answered, instead of those in the options. */
  cache: boolean
  /** The lifetime that was asked for when the session was recorded. */
  lifetime: boolean
  /** The context window that the session had. */
  window: boolean
  /** Every policy loses its cache where the recorded session did. */
  losses: boolean
}

/** One model call as the provider counted it, in tokens. */
export interface RecordedCall {
  /** Neither read from the cache nor written to it. */
  input: number
  read: number
  written: number
  /** Those of `written` that were written for an hour. */
  hour: number
  /** Tokens of the prompt that the provider had before this call and did not find any more; 0 for none. */
  lost: number
  /** Fewer tokens, which it did not find at the end of what it had: it caches in blocks. */
  short: number
  /** Since the call before it. */
  pauseMs: number
  /** The first call of the session. */
  isFirst?: true
}

/** The state before a call: the pause is the time since the call before it. */
export interface Before {
  at: number
  /** The newest message is a prompt, and not the result of a tool. */
  isPrompt: boolean
  model: string
  /** The recorded program changed earlier messages: it summarized, went back, or showed another form of one. */
  isChanged: boolean
  /** Tokens of the request before that are still at the beginning of this one, after a change; undefined where that is not known. */
  keptTokens?: number
}

/** Why the provider did not have what it had before. */
export type LossCause = 'expired' | 'model' | 'unknown'

/** A loss of the cache. */
export interface Loss {
  /** The number of the call, counted from 0. */
  call: number
  /** It came with a prompt, or with results of tools. */
  after: 'prompt' | 'results'
  /** Since the call before it. */
  pauseMs: number
  tokens: number
  /** Dollars, or units of the session's prices, that writing these tokens cost more than reading them. */
  cost: number
  cause: LossCause
}

/** The smallest loss, in tokens that had been sent and were not read; providers cache in blocks and by breakpoints. */
const LEAST_LOSS = 5000

/** The share of calls that may lack counts: the last one of a session that was broken off, or one that the user stopped. */
const MOST_UNCOUNTED = 0.1

/** The share of a beginning that may differ from its size by the texts. */
const UNSURE = 0.1

const MINUTE_MS = 60_000

/** The lifetimes of a prefix that was written for five minutes, and for an hour. */
const [FIVE_MINUTES_MS, HOUR_MS] = [5 * MINUTE_MS, 60 * MINUTE_MS]

/** The last call of a model. */
interface LastCall {
  prompt: number
  /** Tokens of it that were not written to the cache. */
  unwritten: number
  at: number
  model: string
  /** Its prompt was written for an hour. */
  isLong: boolean
  /** The program has changed earlier messages since. */
  isChanged: boolean
}

/** Follows the calls of a session. */
export class CacheRecord {
  readonly losses: Loss[] = []
  #calls = 0
  #uncounted = 0
  /** The last call of each model. Each has its own cache. */
  readonly #models = new Map<string, LastCall>()
  #last: string | undefined
  #written = 0
  #hour = 0
  #largest = 0
  #window: number | undefined
  #read = 0

  /** Takes the next call; undefined for one without counts. `prices` are those of a million tokens of its model. */
  take(
    usage: RecordedUsage | undefined,
    { at, isPrompt, model, isChanged, keptTokens }: Before,
    prices: { cacheRead: number; input: number; cacheWrite: number },
  ): RecordedCall | undefined {
    const number = this.#calls
    this.#calls += 1
    // A model that is asked for the first time has nothing of what another one had.
    const before = this.#models.get(model) ?? this.#models.get(this.#last ?? '')
    const wasChanged = before?.isChanged === true
    for (const one of this.#models.values()) one.isChanged ||= isChanged
    if (usage === undefined || !(usage.input + usage.cacheRead + usage.cacheWrite > 0)) {
      this.#uncounted += 1
      this.#models.delete(model)
      return undefined
    }
    const { input, cacheRead: read, cacheWrite: written, cacheWriteHour: hour = 0, window } = usage
    const prompt = input + read + written
    const isLong = written > 0 ? 2 * hour > written : (before?.isLong ?? false)
    let [lost, short] = [0, 0]
    if (before !== undefined && !isChanged && !wasChanged) {
      // Unwritten tokens can't be lost. A provider without a price for writing reports no writes, and keeps the prompt.
      const kept = Math.min(prompt, before.prompt - before.unwritten)
      if (kept - read >= LEAST_LOSS) lost = kept - read
      else short = Math.max(0, kept - read)
    } else if (before !== undefined && keptTokens !== undefined && before.model === this.#last && !wasChanged) {
      // The size of the kept part is not counted but follows from the texts, so a little less is not a loss.
      const kept = Math.min(prompt, keptTokens)
      if (kept - read >= Math.max(LEAST_LOSS, UNSURE * kept)) lost = kept - read
    }
    if (before !== undefined && lost > 0) {
      const pauseMs = at - before.at
      const life = before.isLong ? HOUR_MS : FIVE_MINUTES_MS
      const cause = before.model === model ? (pauseMs > life ? 'expired' : 'unknown') : 'model'
      const write = written === 0 ? prices.input : ((written - hour) * prices.cacheWrite + hour * HOUR_WRITE * prices.input) / written
      const cost = (lost * (write - prices.cacheRead)) / 1_000_000
      this.losses.push({ call: number, after: isPrompt ? 'prompt' : 'results', pauseMs, tokens: lost, cost, cause })
    }
    this.#models.set(model, { prompt, unwritten: written > 0 ? input : 0, at, model, isLong, isChanged: false })
    this.#last = model
    this.#written += written
    this.#hour += hour
    this.#read += read
    this.#largest = Math.max(this.#largest, prompt)
    this.#window = window ?? this.#window
    return { input, read, written, hour, lost, short, pauseMs: before === undefined ? 0 : at - before.at, ...(number === 0 && { isFirst: true }) }
  }

  /** True if the provider counted nearly every call and told how much came from its cache. */
  get isKnown(): boolean {
    return this.#calls > 0 && this.#uncounted <= MOST_UNCOUNTED * this.#calls && this.#read > 0
  }

  /** True if the provider counted calls, and in none of them a token that was written to the cache. */
  get isUnwritten(): boolean {
    return this.#calls > this.#uncounted && this.#written === 0
  }

  /** The lifetime that the requests asked for: the most frequent one, where the answers differ. Undefined where none was recorded. */
  get lifetime(): 'hour' | 'five minutes' | 'mixed' | undefined {
    if (this.#written === 0) return undefined
    if (this.#hour === 0) return 'five minutes'
    return this.#hour === this.#written ? 'hour' : 'mixed'
  }

  /** The same in milliseconds. */
  get lifetimeMs(): number | undefined {
    if (this.#written === 0) return undefined
    return 2 * this.#hour > this.#written ? HOUR_MS : FIVE_MINUTES_MS
  }

  /**
   * The model's context window in tokens: as the recorder noted it; a million where a request was larger than an agent with
   * the usual window makes; undefined where nothing tells.
   */
  get window(): number | undefined {
    if (this.#window !== undefined) return this.#window
    return this.#largest > USUAL_LARGEST ? Math.max(LONG_WINDOW, Math.ceil(this.#largest / LONG_WINDOW) * LONG_WINDOW) : undefined
  }
}

/** The largest request in the usual window, in tokens: beyond it, agents summarize. */
const USUAL_LARGEST = 0.95 * USUAL_WINDOW

/** Follows the steps between the calls of a recording. */
export class BetweenCalls {
  #isPrompt = true
  #isChanged = false

  /** Takes a step. Returns what stood before a call, if the step is one in the conversation. */
  take(step: Step): Omit<Before, 'model'> | undefined {
    if (step.kind === 'branch' || step.kind === 'compaction' || step.kind === 'edit') this.#isChanged = true
    if (step.kind !== 'message') return undefined
    const { message, at } = step.entry
    if (!isCall(message)) {
      this.#isPrompt = message.role !== 'toolResult'
      return undefined
    }
    const before = { at, isPrompt: this.#isPrompt, isChanged: this.#isChanged }
    this.#isChanged = false
    return before
  }
}
