/**
 * Which lifetimes a conversation asks for. An hour costs .75 of a fresh token more to write than five minutes, and spares
 * 1.25 - r after a pause of five minutes to an hour. The system prompt and the tools survive every pause, so they belong on
 * an hour; a conversation is rewritten by rolls, and belongs on five minutes (docs/economics.md).
 *
 * A lifetime changes only where what it is for is written anew: a prefix that another lifetime has written stays there.
 */
import { HOUR_WRITE } from './prices.ts'

/** The lifetime of a written prefix after its last use: Anthropic's two choices. */
export type CacheLifetime = '5m' | '1h'

/** The longest lifetime that markers ask for, by their part of a request; undefined without a marker. */
export interface Asked {
  /** In tools and system. */
  head: CacheLifetime | undefined
  /** In the messages, or for the whole request. */
  conversation: CacheLifetime | undefined
}

/** The lifetimes to ask for. */
export interface Choice {
  head: CacheLifetime
  conversation: CacheLifetime
  /** Markers on this number of first messages keep the hour with which the messages were written. */
  hourUntil: number
}

/** The lifetimes that a conversation's last request asked for, and the option by which they were chosen. */
export interface LastChoice extends Choice {
  option: LifetimeOption
}

/** The lifetimes that another process has asked for a conversation. */
export interface TakenChoice {
  choice: LastChoice
  /** When its last request went out, in milliseconds since the epoch, and the number of its messages. */
  at: number
  messages: number
}

/** `client`: leave the client's markers alone. `auto`: by this rule. The others: the same for all markers. */
export type LifetimeOption = 'auto' | 'client' | CacheLifetime

/** All of them, for messages about options. */
export const LIFETIME_OPTIONS: readonly LifetimeOption[] = ['auto', 'client', '5m', '1h']

/** A request that is about to be made. */
export interface LifetimeMoment {
  /** Milliseconds since the epoch. */
  at: number
  asked: Asked
  /** Nothing of the conversation has been sent before. */
  isNew: boolean
  /** Its model loses reasoning if something before it changes. */
  isBound: boolean
  /** Tokens of system prompt and tools. */
  systemTokens: number
  /** Price of a cached token, in fresh ones. */
  read: number
  /** The rolls' savings so far that the bound leaves over, in fresh tokens. */
  slackTokens: number
}

/** Tokens that an answer says were written, by lifetime, and those of the whole request. */
export interface Written {
  fiveMinutes: number
  hour: number
  prompt: number
  /** Tokens that were read from the cache. */
  read: number
}

/** A choice, with a sentence for people. */
export interface Chosen extends Choice {
  why: string
}

/** The time for which the provider keeps what is written with each lifetime, in milliseconds. */
export const LIFETIME_MS: Readonly<Record<CacheLifetime, number>> = { '5m': 5 * 60_000, '1h': 60 * 60_000 }

/** The price of a token that is written for each lifetime, in fresh tokens. */
export const LIFETIME_WRITE: Readonly<Record<CacheLifetime, number>> = { '5m': 1.25, '1h': HOUR_WRITE }

/** The amount by which a roll may cost more than rolls have saved: fresh tokens, and a share of the client's own cost (docs/economics.md). */
const [SLACK_TOKENS, SLACK_SHARE] = [5_000, 0.03]

const [FIVE_MINUTES_MS, HOUR_MS] = [LIFETIME_MS['5m'], LIFETIME_MS['1h']]

/** The price of writing for an hour above that of five minutes, in fresh tokens. */
const HOUR_PREMIUM = LIFETIME_WRITE['1h'] - LIFETIME_WRITE['5m']

/** The price of writing for five minutes, in fresh tokens. */
const SHORT_WRITE = LIFETIME_WRITE['5m']

/** The share of pauses of five minutes to an hour that a conversation on an hour outlives: a quarter is lost nevertheless (`cache-odds.ts`). */
const PAUSE_KEPT = 0.75

/** The share of the last prompt's conversation from which on an answer counts as having found it. */
const FOUND = 0.5

/** A shorter head may not be cached at all, so that nothing is written for its hour: the largest minimum of a model, in tokens. */
const LEAST_HEAD = 4_096

/** On bound models, a client on an hour stays there until five minutes would have been cheaper by at least this number of fresh tokens. */
const LEAD_TOKENS = 20_000

/** The lifetimes of one conversation. */
export class ConversationLifetimes {
  readonly #option: LifetimeOption
  #last: Last | undefined
  /** The messages of the last request, if a part of them may keep an hour. */
  #messages: readonly unknown[] | undefined
  /** The last request of another process, until it is not the last one any more. */
  #taken: TakenChoice | undefined
  /** When a conversation that was begun elsewhere was first seen here. */
  #joinedAt: number | undefined
  #pauses = 0
  /** By how much five minutes would have been cheaper for the conversation, in fresh tokens. */
  #lead = 0
  /** The pause before the request that is being chosen for. */
  #pause: Last['pause']
  /** The savings of the choices against the client's own markers, in fresh tokens. */
  #saved = 0
  /** The lifetime that the provider gives, whatever the markers ask for. */
  #given: CacheLifetime | undefined

  /** `taken`: another process has begun the conversation. */
  constructor(option: LifetimeOption, taken?: TakenChoice) {
    this.#option = option
    this.#taken = taken
  }

  /** The lifetimes for a request; undefined: the client's own. {@link sent} follows once its messages are known. */
  next(moment: LifetimeMoment): Chosen | undefined {
    const { asked, at, isNew } = moment
    if (this.#option === 'client' || this.#given !== undefined || (asked.head === undefined && asked.conversation === undefined)) return undefined
    // Without a marker of their own, system and tools live as long as the conversation.
    if (this.#option === 'auto' && this.#last === undefined && asked.head === undefined) return undefined
    const held = this.#held(moment)
    // Prefixes that another process wrote are still cached, with lifetimes that we don't know.
    if (this.#last === undefined && !isNew && !this.#hasExpired(at)) return undefined
    const choice = held ?? (this.#option === 'auto' ? this.#chosen(moment) : fixed(this.#option))
    const isHeadNew = this.#last?.choice.head !== choice.head
    this.#count(moment, choice)
    this.#last = {
      at,
      choice,
      messages: this.#last?.messages ?? 0,
      prompt: this.#last?.prompt ?? 0,
      systemTokens: moment.systemTokens,
      isHeadNew: isHeadNew && asked.head !== undefined,
      isHour: asked.conversation === '1h',
      pause: this.#pause,
    }
    return choice
  }

  /**
   * Takes the messages of a request as they are about to go out, and returns the choice for it: new messages, and all behind one,
   * are written with the lifetime of the conversation.
   */
  sent(messages: readonly unknown[], isSame: (one: unknown, other: unknown) => boolean): Chosen | undefined {
    if (this.#last === undefined) return undefined
    const { choice } = this.#last
    const before = this.#messages
    let { hourUntil } = choice
    if (before !== undefined) hourUntil = commonOf(before, messages, hourUntil, isSame)
    // They are compared only where a part of them keeps an hour.
    const mayKeep = this.#option === 'auto' && choice.head === '1h' && (choice.conversation === '1h' || hourUntil > 0)
    this.#messages = mayKeep ? messages : undefined
    this.#last = { ...this.#last, messages: messages.length, choice: hourUntil === choice.hourUntil ? choice : { ...choice, hourUntil } }
    return this.#last.choice
  }

  /** Goes on from another process. Returns its choice if another option made it: it holds for as long as what was written by it lives. */
  #held({ at, asked, systemTokens }: LifetimeMoment): Chosen | undefined {
    if (this.#taken === undefined) return undefined
    const { choice, messages } = this.#taken
    if (this.#last === undefined) {
      const isHour = asked.conversation === '1h'
      const { head, conversation, hourUntil } = choice
      const why = 'as the process before this one has asked, while that is cached'
      this.#last = {
        at: this.#taken.at,
        choice: { head, conversation, hourUntil, why },
        messages,
        prompt: 0,
        systemTokens,
        isHeadNew: false,
        isHour,
        pause: undefined,
      }
    }
    const isLiving = at - this.#last.at <= Math.max(LIFETIME_MS[choice.head], LIFETIME_MS[choice.conversation])
    if (choice.option === this.#option || !isLiving) this.#taken = undefined
    return this.#taken === undefined ? undefined : this.#last.choice
  }

  /** Estimate of what the choices have saved so far against the client's own markers, in fresh tokens. */
  get savedTokens(): number {
    return this.#saved
  }

  /** The lifetime that the provider gives instead of those it was asked for; undefined while it gives them. */
  get given(): CacheLifetime | undefined {
    return this.#given
  }

  /** The lifetimes of the last request, for one on the side that begins like it. */
  get last(): Chosen | undefined {
    return this.#last?.choice
  }

  /** The host has refreshed the last request in the cache, so that the pause begins anew. */
  refreshed(at: number): void {
    if (this.#last !== undefined) this.#last = { ...this.#last, at: Math.max(at, this.#last.at) }
  }

  /** Takes what an answer says. If the provider gives another lifetime than it was asked for, it is asked no more. */
  answered({ fiveMinutes, hour, prompt, read }: Written): void {
    const last = this.#last
    if (last === undefined || this.#given !== undefined) return
    const { choice, systemTokens, isHeadNew } = last
    this.#lead += HOUR_PREMIUM * Math.max(0, fiveMinutes + hour - (isHeadNew ? systemTokens : 0))
    // An hour that was paid for tells whether it outlived the pause.
    const { pause } = last
    if (pause !== undefined && pause.wasHour) this.#lead += pause.spared * (PAUSE_KEPT - (read - systemTokens >= FOUND * pause.tokens ? 1 : 0))
    if (last.isHour && choice.conversation === '5m') this.#saved += HOUR_PREMIUM * fiveMinutes
    this.#last = { ...last, prompt }
    if (hour > 0 && choice.head === '5m') this.#given = '1h'
    const isAllHour = choice.head === '1h' && choice.conversation === '1h' && choice.hourUntil === 0
    // Another conversation may have written the head, for an hour: then it is read.
    const isHeadShort = isHeadNew && choice.head === '1h' && hour === 0 && fiveMinutes > systemTokens && systemTokens > LEAST_HEAD && 2 * read < systemTokens
    if (fiveMinutes > 0 && (isAllHour || isHeadShort)) this.#given = '5m'
    if (this.#given !== undefined) this.#last = undefined
  }

  /** Counts the savings or losses of the last choice in the pause before this request, and the cost of a new choice. */
  #count({ at, systemTokens, read }: LifetimeMoment, choice: Chosen): void {
    const last = this.#last
    if (last === undefined) return
    const gap = at - last.at
    if (gap > FIVE_MINUTES_MS && gap <= HOUR_MS) {
      const spared = SHORT_WRITE - read
      if (last.isHour && last.choice.conversation === '5m') this.#saved -= spared * Math.max(0, last.prompt - last.systemTokens)
      if (!last.isHour && last.choice.head === '1h') this.#saved += spared * last.systemTokens
    }
    if (!last.isHour && last.choice.head === '5m' && choice.head === '1h') this.#saved -= HOUR_PREMIUM * systemTokens
  }

  #chosen({ at, asked, isBound, systemTokens, read, slackTokens }: LifetimeMoment): Chosen {
    const last = this.#last
    const gap = last === undefined ? undefined : at - last.at
    const isPause = gap !== undefined && gap > FIVE_MINUTES_MS && gap <= HOUR_MS
    this.#pause = undefined
    if (isPause) {
      this.#pauses += 1
      const tokens = Math.max(0, last === undefined ? 0 : last.prompt - systemTokens)
      const spared = (SHORT_WRITE - read) * tokens
      this.#lead -= PAUSE_KEPT * spared
      this.#pause = { tokens, spared, wasHour: last?.choice.conversation === '1h' }
    }
    if (asked.head !== '1h' && asked.conversation !== '1h') {
      if (last?.choice.head === '1h') return { ...last.choice }
      const mayBegin = gap !== undefined && gap > FIVE_MINUTES_MS && this.#pauses > 0 && HOUR_PREMIUM * systemTokens <= slackTokens
      return mayBegin
        ? {
            head: '1h',
            conversation: '5m',
            hourUntil: 0,
            why: 'system and tools are kept for an hour since the first pause; the conversation for five minutes',
          }
        : { head: '5m', conversation: '5m', hourUntil: 0, why: 'five minutes, as the client asks' }
    }
    if (!isBound)
      return {
        head: '1h',
        conversation: '5m',
        hourUntil: 0,
        why: 'system and tools are kept for an hour; the conversation, which rolls rewrite, for five minutes',
      }
    return this.#leading(last, gap, read)
  }

  /**
   * A bound model keeps text until the user speaks, so the hour pays for longer: until five minutes lead by what a pause may cost.
   * Then the conversation is lost, and written for an hour again.
   */
  #leading(last: Last | undefined, gap: number | undefined, read: number): Chosen {
    const exposed = Math.max(0, last === undefined ? 0 : last.prompt - last.systemTokens)
    const enough = Math.max(LEAD_TOKENS, PAUSE_KEPT * (SHORT_WRITE - read + HOUR_PREMIUM) * exposed)
    const isLiving = gap !== undefined && gap <= (last?.choice.conversation === '1h' ? HOUR_MS : FIVE_MINUTES_MS)
    const isShort = this.#lead >= enough || (isLiving && last?.choice.conversation === '5m')
    if (!isShort) return { head: '1h', conversation: '1h', hourUntil: 0, why: 'an hour for all: on this model five minutes have not been cheaper so far' }
    const hourUntil = !isLiving ? 0 : last?.choice.conversation === '1h' ? last.messages : (last?.choice.hourUntil ?? 0)
    return {
      head: '1h',
      conversation: '5m',
      hourUntil,
      why: 'system and tools are kept for an hour; the conversation for five minutes, which are cheaper so far',
    }
  }

  #hasExpired(at: number): boolean {
    this.#joinedAt ??= at
    const since = at - this.#joinedAt
    this.#joinedAt = at
    return since > HOUR_MS
  }
}

/** The last request. */
interface Last {
  at: number
  choice: Chosen
  messages: number
  /** Tokens of the whole request, as the answer says. */
  prompt: number
  systemTokens: number
  /** System and tools were written on this lifetime for the first time. */
  isHeadNew: boolean
  /** The client asked for an hour for the conversation. */
  isHour: boolean
  /** A pause of five minutes to an hour before it: the conversation's tokens then, what an hour could spare, and whether they were on one. */
  pause: { tokens: number; spared: number; wasHour: boolean } | undefined
}

/** The amount that the bound leaves over for the next choice, given the costs so far with us and without, in fresh tokens. */
export function slackOf({ billed, plain }: { billed: number; plain: number }): number {
  return SLACK_TOKENS + (1 + SLACK_SHARE) * plain - billed
}

/** True if an address is Anthropic's own API: others refuse a lifetime, or take it for theirs. */
export function isAnthropicApi({ protocol, hostname }: URL): boolean {
  return protocol === 'https:' && hostname === 'api.anthropic.com'
}

/** The number of first messages, at most `most`, that two requests have in common. */
function commonOf(before: readonly unknown[], now: readonly unknown[], most: number, isSame: (one: unknown, other: unknown) => boolean): number {
  let common = 0
  while (common < Math.min(most, before.length, now.length) && isSame(before[common], now[common])) common += 1
  return common
}

function fixed(lifetime: CacheLifetime): Chosen {
  return { head: lifetime, conversation: lifetime, hourUntil: 0, why: lifetime === '1h' ? 'an hour, as you have set' : 'five minutes, as you have set' }
}
