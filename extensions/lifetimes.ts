/**
 * The lifetimes for which Pi's own requests ask Anthropic to keep what it caches, by the rule of the gateway. Only markers that Pi
 * has set change, only in requests to Anthropic's own API, and by default only where a key pays by the token.
 */
import type { ExtensionContext } from '@earendil-works/pi-coding-agent'
import { isAnthropicApi, ConversationLifetimes, slackOf } from '../lib/models/index.ts'
import type { LifetimeOption } from '../lib/models/index.ts'
import { askedIn, withLifetimes } from '../lib/projection/index.ts'
import type { PromptUsage } from '../lib/projection/index.ts'

/** The circumstances on which a choice depends, besides the request. */
interface Circumstance {
  /** When the request was prepared, in milliseconds since the epoch. */
  at: number
  /** When Pi last refreshed the prompt in the cache; undefined if it has not since the last answer. */
  warmedMs: number | undefined
  /** The branch has no answer. */
  isNew: boolean
  /** The model loses reasoning if something before it changes. */
  isBound: boolean
  systemTokens: number
  /** The saving on this branch so far, in fresh tokens. */
  savedTokens: number
}

/** The lifetimes of one session. */
export class SessionLifetimes {
  readonly #option: LifetimeOption
  readonly #rule: ConversationLifetimes
  /** A request with a choice is not answered yet. */
  #isAsked = false

  constructor(option: LifetimeOption) {
    this.#option = option
    this.#rule = new ConversationLifetimes(option)
  }

  /** The payload with the lifetimes that are chosen for it; undefined if it stays as it is. */
  changed(payload: unknown, ctx: ExtensionContext, { at, warmedMs, savedTokens, ...moment }: Circumstance): object | undefined {
    const { model } = ctx
    this.#isAsked = false
    if (!isObject(payload) || model === undefined || !this.#applies(ctx, model)) return undefined
    if (warmedMs !== undefined) this.#rule.refreshed(warmedMs)
    const { input, cacheRead } = model.cost
    const read = input > 0 ? cacheRead / input : 0.1
    const { messages } = payload as { messages?: unknown }
    const choice = this.#rule.next(
      { ...moment, at, asked: askedIn(payload), read, slackTokens: slackOf({ billed: 0, plain: savedTokens }) },
      Array.isArray(messages) ? messages.length : 0,
    )
    this.#isAsked = choice !== undefined
    return choice === undefined ? undefined : withLifetimes(payload, choice)
  }

  /** Takes what the answer says. Nothing follows from one that does not tell lifetimes apart. */
  answered({ input, cacheRead: read, cacheWrite, cacheWrite1h: hour }: PromptUsage): void {
    if (this.#isAsked && hour !== undefined) this.#rule.answered({ fiveMinutes: Math.max(0, cacheWrite - hour), hour, prompt: input + read + cacheWrite, read })
    this.#isAsked = false
  }

  #applies(ctx: ExtensionContext, model: NonNullable<ExtensionContext['model']>): boolean {
    if (this.#option === 'client' || model.api !== 'anthropic-messages' || !URL.canParse(model.baseUrl) || !isAnthropicApi(new URL(model.baseUrl))) return false
    return this.#option !== 'auto' || !ctx.modelRegistry.isUsingOAuth(model)
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
