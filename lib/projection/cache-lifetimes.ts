/**
 * The lifetimes for which a host's own requests ask Anthropic to keep what it caches, by the rule of the gateway. Only markers that
 * the host has set change, only in requests to Anthropic's own API, and by default only where a key pays by the token.
 */
import { isFields } from '../core/index.ts'
import { binds, ConversationLifetimes, isAnthropicApi, LIFETIME_MS, livesOf, slackOf } from '../models/index.ts'
import type { ApartLives, LifetimeOption } from '../models/index.ts'
import { askedIn, withLifetimes } from './cache-markers.ts'
import { isEqual } from './identity.ts'
import type { ProjectedModel } from './options.ts'

/** A request that is about to be sent. */
export interface CachedRequest {
  /** Its address, or the base of it. */
  url: string
  /** True if a key pays for it by the token; false for a plan at a flat rate. */
  paysByToken: boolean
  /** The model's prices, and what its provider does with reasoning, as `modelNamed` gives them. */
  model: Pick<ProjectedModel, 'input' | 'cacheRead' | 'binding'>
  /** True if nothing of this conversation has been sent before, by no process. */
  isNew: boolean
  /** Estimated tokens of system prompt and tools. */
  systemTokens: number
  /** The saving of the context manager in this conversation so far, in fresh input tokens. Default 0. */
  savedTokens?: number
  /** When it is sent, in milliseconds since the epoch. Default: now. */
  at?: number
  /** When the host last refreshed the conversation in the cache, in milliseconds since the epoch; default: it has not. */
  warmedAt?: number | undefined
}

/** The tokens of a prompt, as the answer counts them. */
export interface CachedUsage {
  /** Neither read from the cache nor written to it. */
  input: number
  cacheRead: number
  cacheWrite: number
  /** Those of `cacheWrite` that were written for an hour; undefined if the answer does not tell. */
  cacheWriteHour?: number | undefined
}

/** The lifetimes of one conversation. */
export class CacheLifetimes {
  readonly #option: LifetimeOption
  readonly #rule: ConversationLifetimes
  /** A request with a choice is not answered yet. */
  #isAsked = false
  #lives: (ApartLives & { at: number }) | undefined

  /** `auto` (default): by the rule, where a key pays by the token; `client`: as the host asks; `5m`, `1h`: always this long. */
  constructor(option: LifetimeOption = 'auto') {
    this.#option = option
    this.#rule = new ConversationLifetimes(option)
  }

  /**
   * The choice of the last request, in words, and an estimate of what the choices have saved so far against the host's own markers, in
   * fresh input tokens. Undefined: as the host asks.
   */
  get chosen(): { why: string; savedTokens: number } | undefined {
    const choice = this.#rule.last
    return choice === undefined ? undefined : { why: choice.why, savedTokens: this.#rule.savedTokens }
  }

  /** For how many milliseconds the last request asks to keep the conversation: `cacheTtlMs` of the model. Undefined: as the host asks. */
  get conversationMs(): number | undefined {
    const choice = this.#rule.last
    return choice === undefined ? undefined : LIFETIME_MS[choice.conversation]
  }

  /** For how long the last request is kept as the host asks (`own`), and as it was sent. Undefined: as the host asks. `at`: when it was sent, in milliseconds since the epoch. */
  get lives(): (ApartLives & { at: number }) | undefined {
    return this.#lives
  }

  /** A body in Anthropic's format with the lifetimes that are chosen for it; the same object if it stays as it is. */
  applied<T>(body: T, { url, paysByToken, model, isNew, systemTokens, savedTokens = 0, at = Date.now(), warmedAt }: CachedRequest): T {
    this.#isAsked = false
    this.#lives = undefined
    if (this.#option === 'client' || (this.#option === 'auto' && !paysByToken) || !URL.canParse(url) || !isAnthropicApi(new URL(url)) || !isFields(body))
      return body
    if (warmedAt !== undefined) this.#rule.refreshed(warmedAt)
    const { input, cacheRead, binding } = model
    const moment = {
      at,
      asked: askedIn(body),
      isNew,
      isBound: binds(binding),
      systemTokens,
      read: input > 0 ? cacheRead / input : 0.1,
      slackTokens: slackOf({ billed: 0, plain: savedTokens }),
    }
    const messages = body['messages']
    let choice = this.#rule.next(moment)
    if (choice !== undefined && Array.isArray(messages)) choice = this.#rule.sent(messages, isEqual)
    this.#isAsked = choice !== undefined
    if (choice !== undefined) this.#lives = { own: livesOf(moment.asked), sent: livesOf(choice), at }
    return choice === undefined ? body : ((withLifetimes(body, choice) as T | undefined) ?? body)
  }

  /** Takes what the answer says. If its provider gives another lifetime than it was asked for, it is asked no more. */
  answered({ input, cacheRead: read, cacheWrite, cacheWriteHour: hour }: CachedUsage): void {
    if (this.#isAsked && hour !== undefined) this.#rule.answered({ fiveMinutes: Math.max(0, cacheWrite - hour), hour, prompt: input + read + cacheWrite, read })
    this.#isAsked = false
  }
}
