/**
 * What was billed, beside what the same requests would have cost without edits. The second figure is an estimate: the
 * provider's rules for its cache are applied to what the host has written, and its tokens are counted as the provider has
 * counted those that went out.
 */
import type { RollReceipt } from '../index.ts'
import type { Usage } from './answer.ts'
import type { Conversation } from './conversation.ts'
import type { Outcome } from './exchange.ts'
import type { Sender } from './identity.ts'
import type { ModelRequest } from './request.ts'
import { commonLength } from './prefix.ts'

/** One request that has ended. */
export interface Entry {
  request: ModelRequest
  sender: Sender
  conversation: Conversation | undefined
  isAside: boolean
  isHeldOut: boolean
  isEdited: boolean
  /** Bytes of the host's body, and of what went out instead. */
  plainBytes: number
  sentBytes: number
  outcome: Outcome
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
  /** Blocks of reasoning that the provider says it has dropped. */
  dropped: number
  rolls: RollReceipt[]
  /** Milliseconds since the epoch. */
  lastAt: number
}

interface State extends SessionSums {
  /** The host's messages in the last request, and the bytes of its body. */
  lastPlain: { messages: readonly object[]; bytes: number }
}

const NOTHING: Usage = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0 }

/** The sums of all sessions that have gone through a gateway. */
export class Ledger {
  readonly #sessions = new Map<string, State>()
  readonly #listeners = new Set<(session: string) => void>()
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
  }

  /** All sums, the latest used last. */
  get sessions(): readonly SessionSums[] {
    return [...this.#sessions.values()].toSorted((one, other) => one.lastAt - other.lastAt)
  }

  /** Calls a listener after each request. Returns a function that stops it. */
  listen(listener: (session: string) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** A roll of a session. */
  rolled(session: string, receipt: RollReceipt): void {
    this.#sessions.get(session)?.rolls.push(receipt)
  }

  /** Notes a request that has ended. */
  note(entry: Entry): void {
    const { request, sender, conversation, outcome, isAside } = entry
    const session = conversation?.id ?? sender.session ?? `${sender.host}:`
    const state = this.#state(session, entry)
    state.requests += 1
    state.lastAt = this.#now()
    const { answered, status } = outcome
    if (status !== 200) state.failures += 1
    const usage = answered?.usage
    if (usage !== undefined) {
      state.billed = sum(state.billed, usage)
      state.plain = sum(state.plain, entry.isEdited ? plainUsage(entry, usage, state.lastPlain) : usage)
    }
    state.dropped += (answered?.transformations ?? []).filter(({ type }) => type === 'thinking_dropped').length
    if (!isAside) state.lastPlain = { messages: request.messages, bytes: entry.plainBytes }
    for (const listener of this.#listeners) listener(session)
  }

  #state(session: string, { sender, request, isHeldOut }: Entry): State {
    let state = this.#sessions.get(session)
    if (state === undefined) {
      state = { session, host: sender.host, model: request.model, isHeldOut, requests: 0, failures: 0, billed: NOTHING, plain: NOTHING, dropped: 0, rolls: [], lastAt: 0, lastPlain: { messages: [], bytes: 0 } }
      this.#sessions.set(session, state)
    }
    state.model = request.model
    return state
  }
}

/** What the host's own request would have been billed: its size in proportion, its cached part by what it repeats. */
function plainUsage({ request, plainBytes, sentBytes }: Entry, usage: Usage, before: State['lastPlain']): Usage {
  const all = usage.input + usage.cacheRead + usage.cacheWrite
  const tokens = Math.round((all * plainBytes) / Math.max(1, sentBytes))
  const share = before.messages.length === 0 ? 0 : commonLength(before.messages, request.messages) / before.messages.length
  // A cache that has gone cold would have been cold for the host, too.
  const repeated = usage.cacheRead === 0 ? 0 : Math.min(plainBytes, before.bytes * share)
  const cacheRead = Math.round((tokens * repeated) / Math.max(1, plainBytes))
  const fresh = tokens - cacheRead
  const input = usage.cacheWrite > 0 ? Math.min(usage.input, fresh) : fresh
  return { input, cacheRead, cacheWrite: fresh - input, output: usage.output }
}

function sum(one: Usage, other: Usage): Usage {
  return { input: one.input + other.input, cacheRead: one.cacheRead + other.cacheRead, cacheWrite: one.cacheWrite + other.cacheWrite, output: one.output + other.output }
}
