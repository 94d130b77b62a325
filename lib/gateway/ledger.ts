/**
 * The billed cost of requests, beside what the same requests would have cost without edits. The second figure is an
 * estimate: the provider's rules for its cache are applied to what the host has written, and its tokens are counted as
 * the provider has counted those that went out.
 */
import type { RollReceipt } from '../../index.js'
import { isFields } from '../core/index.ts'
import type { Usage } from './answer.ts'
import type { Conversation } from './conversation.ts'
import type { Outcome } from './exchange.ts'
import type { Sender } from './identity.ts'
import { firstPrompt } from './request.ts'
import type { ModelRequest } from './request.ts'
import type { GatewayBreak } from './break.ts'
import { CacheAccount } from './cache-account.ts'
import { compactionOf, LIFETIME_MS, livesOf, LONG_WINDOW, pricesWith } from '../models/index.ts'
import type { CataloguePrices, Choice } from '../models/index.ts'
import { askedIn } from '../projection/index.ts'
import { PlainAccount } from './plain.ts'
import type { CacheReach } from './plain-cache.ts'
import type { PlainBill } from './plain.ts'
import { answerCost, inputCost, plainCost, summaryCost } from './saving.ts'

/** One request that has ended. */
export interface LedgerEntry {
  request: ModelRequest
  sender: Sender
  conversation: Conversation | undefined
  isAside: boolean
  isHeldOut: boolean
  isEdited: boolean
  /** Bytes of the host's body, and of what went out instead. */
  plainBytes: number
  sentBytes: number
  /** The model's window in tokens, 0 if it is not known, and how long its provider keeps a prompt for the host, in milliseconds. */
  window: number
  /** The way in which its provider finds earlier prompts in its cache. */
  reach: CacheReach
  lifetimeMs: number
  outcome: Outcome
  /** The cache lifetime asked of the provider, with its savings in fresh tokens; undefined: as the client asks. */
  lifetime?: { why: string; savedTokens: number } | undefined
  /** The lifetimes of the parts of this request; undefined: as the client asks. */
  chosen?: Pick<Choice, 'head' | 'conversation'> | undefined
}

/** One model call, for people. Tokens, unless said otherwise. */
export interface Call {
  /** Counted from 1 in its session. */
  number: number
  /** When it ended, in milliseconds since the epoch. */
  at: number
  model: string
  /** The provider's status; 0 if there was no answer. */
  status: number
  isAborted: boolean
  isEdited: boolean
  isAside: boolean
  /** Milliseconds until the answer's head. */
  headMs: number
  /** As billed, and as the host's own request would have been; undefined if the answer does not say. */
  billed: Usage | undefined
  plain: Usage | undefined
  /** The cost with its answer, in dollars if `isPriced`, else in millions of fresh input tokens. */
  cost: number
  isPriced: boolean
  /** The receipt of the roll in this request. */
  roll: RollReceipt | undefined
  /** Why the provider had to read again what it had read before; undefined if it had not. */
  broken: GatewayBreak | undefined
}

/** Sums of a session. Tokens, unless said otherwise. */
export interface SessionSums {
  session: string
  host: string
  model: string
  isHeldOut: boolean
  requests: number
  /** Answers other than 200. */
  failures: number
  billed: Usage
  /** Estimate of what the host's own requests would have been billed. */
  plain: Usage
  /** Both without the answers, call by call, at the prices of the model that was called. */
  cost: { billed: number; plain: number }
  /** The cost of the answers, in the same unit. */
  answers: number
  /** The prices of all models that were called are known, so that costs are in dollars. */
  isPriced: boolean
  /** All calls were made with a plan at a flat rate: what counts is tokens. */
  isPlan: boolean
  /** The cache lifetime asked of the provider, with its savings in fresh tokens; undefined: as the client asks. */
  lifetime: { why: string; savedTokens: number } | undefined
  /** The account of the cache: the number of finds, and the losses by cause. */
  cache: CacheAccount
  /** Blocks of reasoning that the provider says it has dropped. */
  dropped: number
  rolls: RollReceipt[]
  /** The latest calls, at most {@link MOST_CALLS}. */
  calls: Call[]
  /** The first words of the user. */
  prompt: string
  /** The folder that the agent works in; empty if it is not known. */
  folder: string
  /** Milliseconds since the epoch. */
  lastAt: number
}

interface State extends SessionSums {
  /** The host's own requests. */
  account: PlainAccount
  /** A roll whose call has not ended. */
  rolling: RollReceipt | undefined
}

/** The number of sessions whose last messages are remembered. */
const MOST_FRESH = 64

/** The number of remembered calls of a session. Sums include all calls. */
export const MOST_CALLS = 1_000

const NOTHING: Usage = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0 }

/** The sums of all sessions that have gone through a gateway. */
export class BillLedger {
  /** The latest used last. */
  readonly #sessions = new Map<string, State>()
  /** The sessions whose last messages are remembered, the latest used last. */
  readonly #fresh = new Set<State>()
  readonly #listeners = new Set<(session: string) => void>()
  /** Rolls in the first request of a session. */
  readonly #early = new Map<string, RollReceipt[]>()
  readonly #now: () => number

  readonly #pricesOf: (model: string) => CataloguePrices | undefined

  /** `pricesOf` gives a model's prices, undefined if they are not known. Default: by its name. */
  constructor(now: () => number, pricesOf: (model: string) => CataloguePrices | undefined = (model) => pricesWith(model)) {
    this.#now = now
    this.#pricesOf = pricesOf
  }

  /** All sums, the latest used last. */
  get sessions(): readonly SessionSums[] {
    return [...this.#sessions.values()]
  }

  /** Calls a listener after each request. Returns a function that stops it. */
  listen(listener: (session: string) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** The costs of a session's calls, with us and without; undefined before the first. */
  costOf(session: string): { billed: number; plain: number } | undefined {
    return this.#sessions.get(session)?.cost
  }

  /** The probability that the provider still has the last request of a session, from 0 to 1 ({@link CacheAccount.kept}). */
  keptOf(session: string, request: ModelRequest, next: { isPrompt: boolean; common: number }): number {
    return this.#sessions.get(session)?.cache.kept(request, { ...next, at: this.#now() }) ?? 1
  }

  /** A roll of a session, in a request that has not ended. */
  rolled(session: string, receipt: RollReceipt): void {
    const state = this.#sessions.get(session)
    if (state === undefined) this.#early.set(session, [...(this.#early.get(session) ?? []), receipt])
    else take(state, [receipt])
  }

  /** Notes a request that has ended. Returns what it was billed, what the host's own would have been, and what broke the cache, if that is known. */
  note(entry: LedgerEntry): ({ billed: Usage; broken?: GatewayBreak } & PlainBill) | undefined {
    const { request, sender, conversation, outcome, isAside } = entry
    const session = conversation?.id ?? sender.session ?? `${sender.host}:`
    const state = this.#state(session, entry)
    state.requests += 1
    state.lastAt = this.#now()
    state.folder = conversation?.folder ?? state.folder
    if (!isAside) state.lifetime = entry.lifetime
    const { answered, status } = outcome
    if (status !== 200) state.failures += 1
    const usage = answered?.usage
    const isDoubtful = answered?.isDoubtful === true
    // From figures that can't be true nothing follows for the host's own request, nor for later ones.
    const bill = usage === undefined ? undefined : isDoubtful ? { plain: usage } : plainBill(entry, usage, state, () => this.#others(state))
    const plain = bill?.plain
    state.billed = sum(state.billed, usage ?? NOTHING)
    state.plain = sum(sum(state.plain, plain ?? NOTHING), bill?.summary ?? NOTHING)
    const prices = this.#pricesOf(request.model)
    const [prompt, answer] = [inputCost(usage ?? NOTHING, prices), answerCost(usage ?? NOTHING, prices)]
    state.cost.billed += prompt
    state.cost.plain += plainCost(plain ?? NOTHING, usage ?? NOTHING, prices) + summaryCost(bill?.summary ?? NOTHING, prices)
    state.answers += answer
    state.isPlan &&= sender.isPlan === true
    state.isPriced &&= usage === undefined || prices !== undefined
    state.dropped += (answered?.transformations ?? []).filter(({ type }) => type === 'thinking_dropped').length
    const now =
      usage === undefined || isDoubtful || conversation === undefined
        ? undefined
        : { request, usage, at: state.lastAt, lifetimeMs: entry.lifetimeMs, roll: state.rolling }
    const broken = now === undefined ? undefined : state.cache.note(now, isAside)
    const { isEdited } = entry
    const { isAborted, headMs } = outcome
    state.calls.push({
      number: state.requests,
      at: state.lastAt,
      model: request.model,
      status,
      isAborted,
      isEdited,
      isAside,
      headMs,
      billed: usage,
      plain,
      cost: prompt + answer,
      isPriced: prices !== undefined,
      roll: isAside ? undefined : state.rolling,
      broken,
    })
    if (state.calls.length > MOST_CALLS) state.calls.shift()
    // A request that failed comes again, in the same form.
    if (!isAside && usage !== undefined && !isDoubtful) state.rolling = undefined
    for (const listener of this.#listeners) listener(session)
    return usage === undefined || bill === undefined ? undefined : { billed: usage, ...bill, ...(broken !== undefined && { broken }) }
  }

  /** The accounts of the other conversations of a session's host, as far as anything can be compared with them. */
  #others({ session, host }: State): PlainAccount[] {
    return [...this.#fresh].filter((one) => one.host === host && one.session !== session).map(({ account }) => account)
  }

  /** Notes that a session is used, and lets go of the messages of the one that is unused for longest. Its next call is compared with nothing. */
  #use(state: State): void {
    this.#sessions.delete(state.session)
    this.#sessions.set(state.session, state)
    this.#fresh.delete(state)
    this.#fresh.add(state)
    const [oldest] = this.#fresh
    if (this.#fresh.size <= MOST_FRESH || oldest === undefined) return
    this.#fresh.delete(oldest)
    oldest.account.rest()
    oldest.cache.rest()
  }

  #state(session: string, { sender, request, isHeldOut }: LedgerEntry): State {
    let state = this.#sessions.get(session)
    if (state === undefined) {
      const sums = {
        requests: 0,
        failures: 0,
        billed: NOTHING,
        plain: NOTHING,
        cost: { billed: 0, plain: 0 },
        answers: 0,
        isPriced: true,
        isPlan: sender.isPlan === true,
        dropped: 0,
        rolls: [],
        calls: [],
        lastAt: 0,
        lifetime: undefined,
      }
      const last = { account: new PlainAccount(), cache: new CacheAccount(this.#pricesOf), rolling: undefined }
      state = { session, host: sender.host, model: request.model, isHeldOut, prompt: firstPrompt(request), folder: '', ...sums, ...last }
      take(state, this.#early.get(session) ?? [])
      this.#early.delete(session)
    }
    this.#use(state)
    state.model = request.model
    return state
  }
}

function take(state: State, receipts: readonly RollReceipt[]): void {
  state.rolls.push(...receipts)
  state.rolling = receipts.at(-1) ?? state.rolling
}

/** Returns what the host's own request would have been billed. */
function plainBill(
  { request, sender, conversation, isAside, isEdited, plainBytes, sentBytes, chosen, window, lifetimeMs, reach }: LedgerEntry,
  usage: Usage,
  { account, host, rolling, lastAt }: State,
  others: () => readonly PlainAccount[],
): PlainBill {
  const { messages, model, systemTokens, body } = request
  const lives = chosen === undefined ? undefined : { own: livesOf(askedIn(body)), sent: livesOf(chosen) }
  // If its lifetimes were left alone, the request that was sent has the host's markers.
  const ofHour = lives === undefined ? (usage.cacheWriteHour ?? 0) / Math.max(1, usage.cacheWrite) : lives.own.messages === LIFETIME_MS['1h'] ? 1 : 0
  const own = {
    messages,
    model,
    systemTokens,
    plainBytes,
    sentBytes,
    isEdited,
    ofHour,
    at: lastAt,
    lifetimeMs: lives?.own.messages ?? lifetimeMs,
    ...(lives !== undefined && { chosen: lives }),
    reach,
    isMarked: isFields(body['cache_control']),
    head: request,
    ...(conversation?.earlier !== undefined && { earlier: conversation.earlier }),
  }
  const rule = compactionOf(host, sender.isLong === true ? Math.max(window, LONG_WINDOW) : window)
  if (isAside) return account.aside({ ...own, hasRolled: false }, usage, rule)
  return account.next({ ...own, hasRolled: rolling !== undefined }, usage, rule, others)
}

function sum(one: Usage, other: Usage): Usage {
  const hour = (one.cacheWriteHour ?? 0) + (other.cacheWriteHour ?? 0)
  const written = { cacheWrite: one.cacheWrite + other.cacheWrite, ...(hour > 0 && { cacheWriteHour: hour }) }
  return { input: one.input + other.input, cacheRead: one.cacheRead + other.cacheRead, ...written, output: one.output + other.output }
}
