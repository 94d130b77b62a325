/** The lifetimes of all conversations of a gateway, and where they may be chosen: at Anthropic's own API, with a key that pays by the token. */
import type { IncomingHttpHeaders } from 'node:http'
import type { ProjectedModel } from '../../projection/index.ts'
import { askedIn, isEqual, lifetimeEdit, spliced } from '../../projection/index.ts'
import type { Usage } from '../answer.ts'
import type { LifetimeOwner } from '../conversation-options.ts'
import { textOf } from '../body.ts'
import type { ModelRequest } from '../request.ts'
import { binds, ConversationLifetimes, slackOf } from '../../models/index.ts'
import type { Chosen, LastChoice, LifetimeOption } from '../../models/index.ts'

/** The settings by which a gateway chooses. */
export interface LifetimesOptions {
  option: LifetimeOption
  /** True if an address is Anthropic's own API: others refuse a lifetime, or take it for theirs. */
  isAnthropic: (target: URL) => boolean
  modelOf: (request: ModelRequest) => ProjectedModel
  now: () => number
}

/** Chooses the lifetimes of conversations. */
export class Lifetimes {
  readonly #options: LifetimesOptions
  readonly #ofConversations = new WeakMap<LifetimeOwner, { rule: ConversationLifetimes; choice: LastChoice | undefined }>()
  /** The savings that bills have, in fresh tokens. */
  readonly #noted = new WeakMap<LifetimeOwner, number>()
  readonly #open = new WeakSet<ModelRequest>()

  constructor(options: LifetimesOptions) {
    this.#options = options
  }

  /** Notes where a request goes and who pays. */
  take(request: ModelRequest, target: URL, headers: IncomingHttpHeaders): void {
    const { option, isAnthropic } = this.#options
    if (option === 'client' || request.api !== 'messages' || !isAnthropic(target)) return
    if (option === 'auto' && !paysByToken(headers)) return
    this.#open.add(request)
  }

  /** Chooses for the next request of a conversation, before it is projected. `costs` are those of its session, in dollars. */
  choose(conversation: LifetimeOwner, request: ModelRequest, costs: { billed: number; plain: number } | undefined): void {
    if (!this.#open.has(request)) return
    const own = this.#of(conversation)
    const { input, cacheRead, binding } = this.#options.modelOf(request)
    const inFresh = (dollars = 0): number => (input > 0 ? (dollars * 1_000_000) / input : 0)
    const chosen = own.next({
      at: this.#options.now(),
      asked: askedIn(request.body),
      isNew: conversation.raw.length === 0 && !hasAnswer(request),
      isBound: binds(binding),
      systemTokens: request.systemTokens,
      read: input > 0 ? cacheRead / input : 0.1,
      slackTokens: slackOf({ billed: inFresh(costs?.billed), plain: inFresh(costs?.plain) }),
    })
    this.#note(conversation, own, chosen)
    const lifetime = chosen?.conversation ?? own.given
    if (lifetime !== undefined) request.lifetime = lifetime
  }

  /** The choice for the last request of a conversation; undefined: the client's own. */
  of(conversation: LifetimeOwner | undefined): Chosen | undefined {
    return conversation === undefined ? undefined : this.#ofConversations.get(conversation)?.rule.last
  }

  /** The lifetimes that a request was sent with; undefined: the client's own. */
  sentWith(request: ModelRequest, conversation: LifetimeOwner | undefined): Chosen | undefined {
    return this.#open.has(request) ? this.of(conversation) : undefined
  }

  /** The choice in a sentence, and what the choices have saved so far in fresh tokens; undefined if the client's own holds. */
  told(conversation: LifetimeOwner | undefined): { why: string; savedTokens: number } | undefined {
    const chosen = this.of(conversation)
    const own = conversation === undefined ? undefined : this.#ofConversations.get(conversation)?.rule
    return chosen === undefined || own === undefined ? undefined : { why: chosen.why, savedTokens: Math.round(own.savedTokens) }
  }

  /** The choice for a call that has ended, as its bill has it: with what was saved since the one before. Nothing if the client's own holds. */
  noted(conversation: LifetimeOwner | undefined, isAside: boolean): { lifetime?: { why: string; savedTokens: number } } {
    const told = isAside ? undefined : this.told(conversation)
    if (told === undefined || conversation === undefined) return {}
    const before = this.#noted.get(conversation) ?? 0
    this.#noted.set(conversation, told.savedTokens)
    return { lifetime: { why: told.why, savedTokens: told.savedTokens - before } }
  }

  /** A body with the lifetimes of its conversation. */
  applied(request: ModelRequest, { conversation, isAside }: { conversation: LifetimeOwner | undefined; isAside: boolean }, bytes: Buffer): Buffer {
    if (conversation === undefined || this.sentWith(request, conversation) === undefined) return bytes
    const text = textOf(bytes)
    const body = JSON.parse(text) as Record<string, unknown>
    const { rule } = this.#ofConversations.get(conversation) ?? {}
    const { messages } = body
    if (!isAside && rule !== undefined && Array.isArray(messages)) this.#note(conversation, rule, rule.sent(messages, isEqual))
    const chosen = this.of(conversation)
    const edit = chosen === undefined ? undefined : lifetimeEdit(body, chosen)
    return edit === undefined ? bytes : Buffer.from(spliced(text, edit))
  }

  /** Takes what was billed for the last request. Returns a sentence if the provider gives another lifetime than it was asked for. */
  answered(conversation: LifetimeOwner | undefined, request: ModelRequest, usage: Usage | undefined): string | undefined {
    const own = conversation === undefined ? undefined : this.#ofConversations.get(conversation)?.rule
    if (own === undefined || own.given !== undefined || usage === undefined || !this.#open.has(request)) return undefined
    const { input, cacheRead, cacheWrite, cacheWriteHour = 0 } = usage
    own.answered({ fiveMinutes: cacheWrite - cacheWriteHour, hour: cacheWriteHour, prompt: input + cacheRead + cacheWrite, read: cacheRead })
    if (own.given === undefined) return undefined
    return `the provider keeps its cache for ${own.given === '1h' ? 'an hour' : 'five minutes'}, whatever a request asks for; its lifetime is left to the client`
  }

  #note(conversation: LifetimeOwner, rule: ConversationLifetimes, chosen: Chosen | undefined): void {
    const { option } = this.#options
    const choice = chosen === undefined ? undefined : { option, head: chosen.head, conversation: chosen.conversation, hourUntil: chosen.hourUntil }
    conversation.lifetimes = choice
    this.#ofConversations.set(conversation, { rule, choice })
  }

  /** The rule of a conversation; another one if another process has gone on with it. */
  #of(conversation: LifetimeOwner): ConversationLifetimes {
    const own = this.#ofConversations.get(conversation)
    const { lifetimes: choice, earlier = { messages: 0, at: 0 } } = conversation
    if (own !== undefined && own.choice === choice) return own.rule
    const rule = new ConversationLifetimes(this.#options.option, choice === undefined ? undefined : { choice, ...earlier })
    this.#ofConversations.set(conversation, { rule, choice })
    return rule
  }
}

/** True if a request is paid by the token: its key is one of the API, and not the token of a subscription. */
export function paysByToken(headers: IncomingHttpHeaders): boolean {
  const { authorization = '', 'x-api-key': key } = headers
  const bearer = /^Bearer\s+(.+)$/i.exec(authorization)?.[1]
  if (bearer !== undefined) return bearer.startsWith('sk-ant-api')
  return typeof key === 'string' && key !== ''
}

function hasAnswer({ messages }: ModelRequest): boolean {
  return messages.some((message) => (message as { role?: unknown }).role === 'assistant')
}
