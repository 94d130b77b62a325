/**
 * What a host's own requests would have been billed without us, with the compactions that the host would have made. It sees
 * the token counts of shorter requests, so it compacts later than alone, or never.
 */
import { isFields } from '../core/index.ts'
import type { Fields } from '../core/index.ts'
import { firstKept } from '../models/index.ts'
import type { CompactionRule } from '../models/index.ts'
import { geminiField } from '../projection/index.ts'
import type { Usage } from './answer.ts'
import { commonLength } from './prefix.ts'

/** A request that was answered. */
export interface PlainRequest {
  messages: readonly object[]
  /** Tokens of the system prompt and the tools, four characters each. */
  systemTokens: number
  model: string
  /** Bytes of the host's body, and of what went out instead. */
  plainBytes: number
  sentBytes: number
  isEdited: boolean
  /** We have rolled in this request. */
  hasRolled: boolean
  /** The share of what is newly written that the host asks to keep for an hour, 0 to 1. */
  ofHour: number
  /** When it was answered, in milliseconds since the epoch. */
  at: number
  /** The lifetime of a prompt in the provider's cache, in milliseconds. */
  lifetimeMs: number
  /** The provider finds the system part in its cache where everything behind it is new. */
  findsHead: boolean
}

/** The bill of a call without us. */
export interface PlainBill {
  plain: Usage
  /** The request for a summary that the host would have made before it. */
  summary?: Usage
}

/** The share of the last prompt from which on a call counts as having found it in the cache. */
const FOUND = 0.9

interface Last {
  messages: readonly object[]
  count: number
  model: string
  at: number
  /** Tokens of the prompt as sent and without us, and of the answer. */
  own: number
  plain: number
  output: number
  /** Bytes of both. */
  sentBytes: number
  plainBytes: number
}

/** The text that replaces the first messages. */
interface Summary {
  /** The number of messages that it replaces. */
  from: number
  /** By how many bytes it is shorter than those. */
  less: number
}

const WHOLE: Summary = { from: 0, less: 0 }

/** The account of one conversation. */
export class PlainAccount {
  #last: Last | undefined
  #summary = WHOLE
  #wasEdited = false
  /** By how much requests have grown as sent, where the provider has found the one before in its cache. */
  readonly #grown = { tokens: 0, bytes: 0 }

  /** Lets go of the messages. The next call is compared with nothing. */
  rest(): void {
    if (this.#last !== undefined) this.#last = { ...this.#last, messages: [] }
  }

  /** Notes a request. Returns what the host's own would have been billed. */
  next(request: PlainRequest, usage: Usage, rule: CompactionRule): PlainBill {
    const own = usage.input + usage.cacheRead + usage.cacheWrite
    const { messages } = request
    this.#wasEdited ||= request.isEdited
    // The host has compacted, or begun anew.
    const isAnew = this.#last !== undefined && (messages.length * 2 < this.#last.count || messages.length < this.#summary.from)
    if (isAnew) [this.#last, this.#summary, this.#wasEdited] = [undefined, WHOLE, request.isEdited]
    const last = this.#last?.model === request.model ? this.#last : undefined
    const isFound = last !== undefined && usage.cacheRead >= FOUND * last.own
    if (isFound && own > last.own && request.sentBytes > last.sentBytes) {
      this.#grown.tokens += own - last.own
      this.#grown.bytes += request.sentBytes - last.sentBytes
    }
    const rate = this.#grown.bytes < ENOUGH ? own / Math.max(1, request.sentBytes) : this.#grown.tokens / this.#grown.bytes
    if (this.#last === undefined && this.#wasEdited) this.#seed(request, rate, rule)
    let tokens = this.#tokens(request, own, rate, isFound ? last : undefined)
    let summary: Usage | undefined
    if (this.#wasEdited && rule.window > 0 && isDue(rule, tokens, last)) {
      summary = this.#compact(request, tokens, rate, rule, usage.cacheWrite > 0)
      if (summary !== undefined) tokens = this.#tokens(request, own, rate, undefined)
    }
    if (rule.window > 0 && this.#wasEdited) tokens = Math.min(tokens, Math.max(own, rule.window))
    const cached = last === undefined ? (tokens * usage.cacheRead) / Math.max(1, own) : this.#cached(last, request, usage, rate, summary !== undefined)
    const read = Math.round(Math.min(tokens, cached))
    const all = Math.round(tokens)
    this.#last = {
      messages,
      count: messages.length,
      model: request.model,
      at: request.at,
      own,
      plain: all,
      output: usage.output,
      sentBytes: request.sentBytes,
      plainBytes: request.plainBytes - this.#summary.less,
    }
    if (!this.#wasEdited) return { plain: usage }
    const fresh = all - read
    const input = usage.cacheWrite > 0 ? Math.min(usage.input, fresh) : fresh
    const hour = Math.round((fresh - input) * request.ofHour)
    const plain = { input, cacheRead: read, cacheWrite: fresh - input, ...(hour > 0 && { cacheWriteHour: hour }), output: usage.output }
    return { plain, ...(summary !== undefined && { summary }) }
  }

  /** Returns what a question on the side would have been billed. It has the conversation before it, or nothing of that. */
  aside({ plainBytes, sentBytes }: Pick<PlainRequest, 'plainBytes' | 'sentBytes'>, usage: Usage): PlainBill {
    const own = usage.input + usage.cacheRead + usage.cacheWrite
    const more = Math.max(0, Math.round((own * (plainBytes - (plainBytes > this.#summary.less ? this.#summary.less : 0))) / Math.max(1, sentBytes)) - own)
    return { plain: usage.cacheRead === 0 ? { ...usage, input: usage.input + more } : { ...usage, cacheRead: usage.cacheRead + more } }
  }

  /** The tokens of the host's request. It has grown as ours has, where `before` was found in the cache. */
  #tokens({ plainBytes, sentBytes, model }: PlainRequest, own: number, rate: number, before: Last | undefined): number {
    const bytes = plainBytes - this.#summary.less
    if (before !== undefined) return Math.max(0, before.plain + own - before.own + (bytes - before.plainBytes - (sentBytes - before.sentBytes)) * rate)
    const last = this.#last
    if (last !== undefined && last.model === model) return Math.max(0, last.plain + (bytes - last.plainBytes) * rate)
    return (own * bytes) / Math.max(1, sentBytes)
  }

  /** The number of tokens of the host's request that the provider would have read from its cache. */
  #cached(
    last: Last,
    { messages, at, lifetimeMs, hasRolled, systemTokens, findsHead }: PlainRequest,
    { cacheRead }: Usage,
    rate: number,
    isNew: boolean,
  ): number {
    const isFound = cacheRead >= FOUND * last.own
    const isAlive = isFound || (hasRolled && at - last.at < lifetimeMs)
    if (isNew) return findsHead ? Math.min(isAlive ? Infinity : cacheRead, 4 * systemTokens * rate) : 0
    if (isFound) return Math.max(0, cacheRead + last.plain - last.own)
    if (!hasRolled || !isAlive || last.messages.length === 0) return cacheRead
    return (last.plain * commonLength(last.messages, messages)) / last.messages.length
  }

  /** A gateway that has just been started does not know of earlier compactions. They are where they must have been. */
  #seed({ messages, plainBytes, sentBytes, systemTokens }: PlainRequest, rate: number, rule: CompactionRule): void {
    if (rule.window === 0 || plainBytes * rate <= rule.limit || sentBytes === 0) return
    const sizes = messages.map(bytesOf)
    let held = 4 * systemTokens
    for (let at = 0; at < messages.length; at += 1) {
      held += sizes[at] as number
      if (held * rate <= rule.limit) continue
      const before = this.#summary.less
      this.#cut(messages, sizes, at, rate, rule)
      held -= this.#summary.less - before
    }
  }

  /** Compacts as the host would before this request. Returns the request for the summary; undefined if nothing can leave. */
  #compact({ messages }: PlainRequest, tokens: number, rate: number, rule: CompactionRule, writes: boolean): Usage | undefined {
    const sizes = messages.map(bytesOf)
    let end = messages.length
    while (end > 0 && isUsers(messages[end - 1])) end -= 1
    const { from } = this.#summary
    const asked = this.#cut(messages, sizes, end, rate, rule)
    if (this.#summary.from <= from) return undefined
    const output = rule.summary
    if (rule.asks === 'within') {
      const all = Math.round(Math.min(rule.window, tokens))
      const cacheRead = Math.min(all, this.#last?.plain ?? 0)
      return { input: writes ? 0 : all - cacheRead, cacheRead, cacheWrite: writes ? all - cacheRead : 0, output }
    }
    return { input: Math.round(asked * rate), cacheRead: 0, cacheWrite: 0, output }
  }

  /** Puts a summary in place of what leaves of the first `end` messages. Returns how many bytes leave. */
  #cut(messages: readonly object[], sizes: readonly number[], end: number, rate: number, rule: CompactionRule): number {
    const { from } = this.#summary
    const keep = rule.keep / Math.max(rate, LEAST_RATE)
    const size = (at: number): number => sizes[from + at] as number
    const first =
      rule.stays === 'users' ? end : from + firstKept(end - from, keep, size, (at) => !isUsers(messages[from + at]) && !isAnswer(messages[from + at]))
    if (first <= from) return 0
    const sum = (count: number): number => sizes.slice(0, count).reduce((all, one) => all + one, 0)
    const users = rule.stays === 'users' ? newest(messages.slice(0, first), sizes, keep) : 0
    const gone = sum(first) - sum(from)
    this.#summary = { from: first, less: sum(first) - users - rule.summary / Math.max(rate, LEAST_RATE) }
    return gone
  }
}

/** Above this number of bytes, the growth gives the tokens of a byte; below it, the whole request does. */
const ENOUGH = 2_000

/** No text has fewer tokens for a byte. */
const LEAST_RATE = 0.05

/** True if the host compacts before a request of `tokens` tokens. */
function isDue({ window, limit, counts }: CompactionRule, tokens: number, last: Last | undefined): boolean {
  if (tokens > window) return true
  return counts === 'answer' ? last !== undefined && last.plain + last.output > limit : tokens > limit
}

function bytesOf(message: object): number {
  return Buffer.byteLength(JSON.stringify(message)) + 1
}

/** Bytes of the newest messages of the user, at most `most`. */
function newest(messages: readonly object[], sizes: readonly number[], most: number): number {
  let size = 0
  for (let at = messages.length - 1; at >= 0 && size < most; at -= 1) if (isUsers(messages[at])) size = Math.min(most, size + (sizes[at] as number))
  return size
}

/** True if a message is what a user has said, and no tool's output. */
function isUsers(message: object | undefined): boolean {
  const { role, content, parts } = message as Fields
  const blocks = [content, parts].flatMap((list) => (Array.isArray(list) ? (list as unknown[]) : []))
  return role === 'user' && !blocks.some((block) => isFields(block) && (block['type'] === 'tool_result' || isFields(geminiField(block, 'functionResponse'))))
}

/** True if a message is the model's. */
function isAnswer(message: object | undefined): boolean {
  const { role, type } = message as Fields
  return role === 'assistant' || role === 'model' || (typeof type === 'string' && (type === 'reasoning' || type.endsWith('_call')))
}
