/**
 * What a host's own requests would have been billed without us, with the compactions that the host would have made. It sees
 * the token counts of shorter requests, so it compacts later than alone, or never.
 */
import { firstKept, leftApart, tokensLeft } from '../models/index.ts'
import type { CompactionRule } from '../models/index.ts'
import type { Usage } from './answer.ts'
import { isAnswer, marksIn, PlainCache, sizeOf } from './plain-cache.ts'
import { billed, promptOf } from './plain-bill.ts'
import { earlierOf, hasOtherHead } from './plain-request.ts'
import type { Last, PlainRequest } from './plain-request.ts'
import { isDue, newest, sum, WHOLE } from './plain-summary.ts'
import { commonLength, hasMost } from './prefix.ts'
import { isUsers } from './request.ts'

/** The bill of a call without us. */
export interface PlainBill {
  plain: Usage
  /** The request for a summary that the host would have made before it. */
  summary?: Usage
}

/** The share of the last prompt from which on a call counts as having found it in the cache. */
const FOUND = 0.9

/** The last request of a conversation, and what the provider would have of it. */
interface Branch {
  last: Last
  cache: PlainCache
}

/** A model that the host calls. Each has a separate cache, and counts tokens differently. */
interface Called {
  /** Its last request. */
  branch: Branch | undefined
  /** We have rolled since, in a request to another model. */
  isBehindRoll: boolean
  /** By how much requests to it have grown as sent, where the growth was measured. */
  readonly grown: { tokens: number; bytes: number }
  /** The last request to it in which nothing was edited. */
  whole: { tokens: number; bytes: number }
}

/** A request, the number of messages that a later one has in common with it, and the account that it is in. */
interface Before {
  branch: Branch | undefined
  common: number
  account: PlainAccount
}

/** The account of one conversation. */
export class PlainAccount {
  #branch: Branch | undefined
  /** The last question on the side. If the next request continues it, the host had gone back. */
  #beside: Branch | undefined
  #summary = WHOLE
  #wasEdited = false
  /** The models by name, the latest called last. */
  readonly #models = new Map<string, Called>()
  /** The provider keeps requests that have no markers; the shortest prompt so far, in tokens. */
  #isAutomatic = false
  #least = Infinity

  /** Lets go of the messages. The next call is compared with nothing. */
  rest(): void {
    if (this.#branch !== undefined) this.#branch = { last: { ...this.#branch.last, messages: [], head: undefined }, cache: new PlainCache() }
    this.#beside = undefined
    this.#forget()
  }

  /**
   * Notes a request. Returns what the host's own would have been billed. `others` are the accounts of the host's other conversations: where
   * it names none, one that goes back may count as another one.
   */
  next(given: PlainRequest, usage: Usage, rule: CompactionRule, others: () => readonly PlainAccount[] = () => []): PlainBill {
    const own = promptOf(usage)
    const reaching = this.#reaching(given, usage)
    const { messages, model } = reaching
    const { branch, common: most, account } = this.#before(reaching, others)
    ;[this.#branch, this.#beside, this.#summary] = [branch, undefined, account.#summary]
    this.#wasEdited ||= reaching.isEdited || account.#wasEdited
    // The host has compacted, or begun anew, and has not only gone back.
    const isOther = branch !== undefined && messages.length * 2 < branch.last.count && most * 2 < messages.length
    if (isOther || messages.length < this.#summary.from) {
      ;[this.#branch, this.#summary, this.#wasEdited] = [undefined, WHOLE, reaching.isEdited]
      this.#forget()
    }
    const called = this.#called(model)
    const isSame = this.#branch?.last.model === model
    const { last, cache: kept = new PlainCache() } = (isSame ? this.#branch : called.branch) ?? {}
    const common = isSame || last === undefined ? most : commonLength(last.messages, messages)
    const request = { ...reaching, hasRolled: reaching.hasRolled || (!isSame && called.isBehindRoll) }
    const isFound = last !== undefined && usage.cacheRead >= FOUND * last.own
    // The host itself has changed what stands before all messages: its own request would have found as much as ours.
    const isLost = last !== undefined && !isFound && hasOtherHead(request, last)
    const cache = isLost ? new PlainCache() : kept
    if (
      last !== undefined &&
      own > last.own &&
      request.sentBytes > last.sentBytes &&
      (isFound || (!request.hasRolled && hasMost(last.messages, messages, common)))
    ) {
      called.grown.tokens += own - last.own
      called.grown.bytes += request.sentBytes - last.sentBytes
    }
    if (!reaching.isEdited && called.grown.bytes < ENOUGH) called.whole = { tokens: own, bytes: sum(messages.map(sizeOf)) + 4 * reaching.systemTokens }
    const rate = this.#rate(request, own)
    if (this.#branch === undefined && this.#wasEdited) this.#seed(request, rate, rule)
    let { tokens, off } = this.#tokens(request, own, rate, last)
    let summary: Usage | undefined
    if (this.#wasEdited && rule.window > 0 && isDue(rule, tokens, this.#branch?.last)) {
      summary = this.#compact(request, tokens, rate, rule, usage.cacheWrite > 0)
      if (summary !== undefined) ({ tokens, off } = this.#tokens(request, own, rate, last))
    }
    const isNew = summary !== undefined
    const isOnly = last !== undefined && !others().some((other) => (other.#branch?.last.at ?? 0) > last.at)
    if (rule.window > 0 && this.#wasEdited) tokens = Math.min(tokens, Math.max(own, rule.window))
    const earlier = isNew ? undefined : earlierOf(request, last)
    const cached =
      last === undefined || earlier !== undefined
        ? this.#foundFirst({ ...request, ...(earlier !== undefined && { earlier }) }, usage, tokens, rate)
        : isLost
          ? usage.cacheRead
          : this.#cached({ last, cache }, request, usage, { rate, isNew, isOnly, common })
    this.#branch = this.#answered(isNew ? new PlainCache() : cache, last, request, usage, { rate, tokens, off, common: isNew ? 0 : common })
    if (isNew) this.#forget()
    if (reaching.hasRolled) for (const other of this.#models.values()) other.isBehindRoll = true
    ;[called.branch, called.isBehindRoll] = [this.#branch, false]
    if (!this.#wasEdited) return { plain: usage }
    return { plain: billed(request, usage, tokens, cached), ...(summary !== undefined && { summary }) }
  }

  /** Returns what a question on the side would have been billed. It has the conversation before it, or nothing of that. */
  aside(given: PlainRequest, usage: Usage, rule: CompactionRule): PlainBill {
    const own = promptOf(usage)
    const request = this.#reaching(given, usage)
    const { messages, model, plainBytes, sentBytes } = request
    const { branch, common } = this.#before(request)
    if (branch === undefined || branch.last.model !== model || common * 2 <= messages.length) {
      if (!request.isEdited) return { plain: usage }
      const more = Math.max(0, Math.round((own * (plainBytes - (plainBytes > this.#summary.less ? this.#summary.less : 0))) / Math.max(1, sentBytes)) - own)
      return { plain: usage.cacheRead === 0 ? { ...usage, input: usage.input + more } : { ...usage, cacheRead: usage.cacheRead + more } }
    }
    const { last, cache } = branch
    const rate = this.#rate(request, own)
    const grown = this.#tokens(request, own, rate, last)
    const tokens = rule.window > 0 ? Math.min(grown.tokens, Math.max(own, rule.window)) : grown.tokens
    const cached = this.#cached(branch, request, usage, { rate, isNew: false, isOnly: false, common })
    this.#beside = this.#answered(cache.fork(), last, request, usage, { rate, tokens, off: grown.off, common })
    return { plain: this.#wasEdited || request.isEdited ? billed(request, usage, tokens, cached) : usage }
  }

  /** The account of a model. */
  #called(model: string): Called {
    const called = this.#models.get(model) ?? { branch: undefined, isBehindRoll: false, grown: { tokens: 0, bytes: 0 }, whole: { tokens: 0, bytes: 0 } }
    this.#models.delete(model)
    this.#models.set(model, called)
    for (const name of [...this.#models.keys()].slice(0, -MOST_MODELS)) this.#models.delete(name)
    return called
  }

  /** Lets go of the last requests of all models: they have nothing in common with the next one. */
  #forget(): void {
    for (const called of this.#models.values()) called.branch = undefined
  }

  /** A request with the reach of its provider. Others than Anthropic take its format and need no markers: they find more than the common head of all requests. */
  #reaching(request: PlainRequest, usage: Usage): PlainRequest {
    const isBare = request.reach.kind === 'breakpoints' && marksIn(request).length === 0
    this.#isAutomatic ||= isBare && usage.cacheRead > Math.min(this.#least, 2 * request.systemTokens + MOST_AROUND)
    this.#least = Math.min(this.#least, promptOf(usage) || Infinity)
    return isBare && this.#isAutomatic ? { ...request, reach: { kind: 'prefix', lookback: 0 } } : request
  }

  /** The request before this one: the last one, the question on the side that this one continues, or one of another conversation. */
  #before({ messages, model, systemTokens }: PlainRequest, others: () => readonly PlainAccount[] = () => []): Before {
    let found: Before = { branch: undefined, common: 0, account: this }
    const look = (branch: Branch | undefined, account: PlainAccount, above = -1): void => {
      const common = branch === undefined ? 0 : commonLength(branch.last.messages, messages)
      if (common > above && (found.branch === undefined || common > found.common)) found = { branch, common, account }
    }
    look(this.#branch, this)
    look(this.#beside, this)
    const { branch, common } = found
    // The usual case: a step more of the same conversation.
    if (branch !== undefined && common === branch.last.messages.length && (common === 0 || messages.length - common <= MOST_NEW)) return found
    for (const other of others()) {
      for (const one of [other.#branch, other.#beside]) {
        if (one?.last.model === model && one.last.systemTokens === systemTokens) look(one, other, messages.length / 2)
      }
    }
    if (found.account === this || found.branch === undefined) return found
    return { ...found, branch: { last: found.branch.last, cache: found.branch.cache.fork() } }
  }

  #answered(
    cache: PlainCache,
    before: Last | undefined,
    request: PlainRequest,
    usage: Usage,
    { rate, tokens, off, common }: { rate: number; tokens: number; off: number; common: number },
  ): Branch {
    const { messages, model, at, chosen, sentBytes, systemTokens, head } = request
    const plain = Math.round(tokens)
    cache.sent({ ...request, rate }, before?.messages ?? [], common, plain)
    const plainBytes = request.plainBytes - this.#summary.less
    return {
      cache,
      last: {
        messages,
        count: messages.length,
        model,
        systemTokens,
        head,
        at,
        chosen,
        own: promptOf(usage),
        plain,
        off,
        output: usage.output,
        sentBytes,
        plainBytes,
      },
    }
  }

  /** Tokens of a byte. What is left of an edited request has more around its texts than what was removed. */
  #rate({ model, sentBytes }: PlainRequest, own: number): number {
    const { grown, whole } = this.#models.get(model) ?? {}
    const { tokens, bytes } = [grown, whole].find((one) => one !== undefined && one.bytes >= ENOUGH) ?? { tokens: own, bytes: Math.max(1, sentBytes) }
    return tokens / bytes
  }

  /**
   * The tokens of the host's request: those of ours, of the host's last one, or of that one grown as ours has, and by how much it differs. The
   * one counts from which the fewest bytes are estimated; `off` is the number of these, all together.
   */
  #tokens({ plainBytes, sentBytes }: PlainRequest, own: number, rate: number, last: Last | undefined): { tokens: number; off: number } {
    const bytes = plainBytes - this.#summary.less
    if (last === undefined) return { tokens: (own * bytes) / Math.max(1, sentBytes), off: Math.abs(bytes - sentBytes) }
    const near = [
      { tokens: last.plain + own - last.own, by: bytes - last.plainBytes - (sentBytes - last.sentBytes), off: last.off },
      { tokens: last.plain, by: bytes - last.plainBytes, off: last.off },
      { tokens: own, by: bytes - sentBytes, off: 0 },
    ].reduce((one, other) => (other.off + Math.abs(other.by) < one.off + Math.abs(one.by) ? other : one))
    return { tokens: Math.max(0, near.tokens + near.by * rate), off: near.off + Math.abs(near.by) }
  }

  /** The tokens that the provider would have found of the first request that is known. Where we have rolled in it, its bill says nothing of the host's own. */
  #foundFirst({ messages, systemTokens, at, chosen, lifetimeMs, hasRolled, earlier }: PlainRequest, usage: Usage, tokens: number, rate: number): number {
    const own = promptOf(usage)
    if (earlier === undefined) return (tokens * usage.cacheRead) / Math.max(1, own)
    const pauseMs = at - earlier.at
    const fresh = rate * sum(messages.slice(earlier.messages).map(sizeOf))
    const left = (chosen === undefined ? undefined : leftApart(chosen, pauseMs)) ?? (hasRolled && pauseMs < lifetimeMs ? 'all' : 'as ours')
    if (left !== 'as ours') return tokensLeft(left, 4 * systemTokens * rate, () => Math.max(0, tokens - fresh))
    return usage.cacheRead >= FOUND * (own - fresh) ? tokens - (own - usage.cacheRead) : usage.cacheRead
  }

  /** The number of tokens of the host's request that the provider would have read from its cache. */
  #cached(
    { last, cache }: Branch,
    request: PlainRequest,
    { cacheRead }: Usage,
    { rate, isNew, isOnly, common }: { rate: number; isNew: boolean; isOnly: boolean; common: number },
  ): number {
    const { lifetimeMs, hasRolled, systemTokens, reach } = request
    const head = 4 * systemTokens * rate
    const apart = last.chosen === undefined ? undefined : leftApart(last.chosen, request.at - last.at)
    if (apart !== undefined && !(apart === 'all' && isNew)) {
      return tokensLeft(apart, head, () => Math.max(head, cache.found({ ...request, rate }, last.messages, common)))
    }
    const isFound = cacheRead >= FOUND * last.own
    // Most providers keep a prompt for longer than they promise. If no other conversation can have used it, a find shows that it is still there.
    const isKept = reach.kind !== 'breakpoints' && cacheRead > 0 && isOnly
    const at = isKept ? last.at : request.at
    const isAlive = isFound || (hasRolled && at - last.at < lifetimeMs)
    if (isNew) return reach.kind === 'endings' ? 0 : Math.min(isAlive || apart === 'all' ? Infinity : cacheRead, head)
    const hasAll = common === last.messages.length
    if (hasAll && isFound) return Math.max(0, cacheRead + last.plain - last.own)
    if ((hasAll && !hasRolled) || last.messages.length === 0) return cacheRead
    // A part of the common prefix would have been found, unless all of it was lost.
    if (!hasRolled && cacheRead === 0 && reach.kind === 'prefix') return 0
    const found = cache.found({ ...request, rate, at }, last.messages, common)
    // OpenAI counts what it has found in such steps.
    // A shorter request has its beginning nearer to its end, within the reach of a provider that looks back over endings.
    const least = reach.kind === 'endings' && request.isEdited ? 0 : cacheRead
    return Math.max(least, reach.kind === 'prefix' && cacheRead % STEP === 0 ? STEP * Math.floor(found / STEP) : found)
  }

  /** A gateway that has just been started does not know of earlier compactions. They are where they must have been. */
  #seed({ messages, plainBytes, sentBytes, systemTokens }: PlainRequest, rate: number, rule: CompactionRule): void {
    if (rule.window === 0 || plainBytes * rate <= rule.limit || sentBytes === 0) return
    const sizes = messages.map(sizeOf)
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
    const sizes = messages.map(sizeOf)
    let end = messages.length
    while (end > 0 && isUsers(messages[end - 1])) end -= 1
    const { from } = this.#summary
    const asked = this.#cut(messages, sizes, end, rate, rule)
    if (this.#summary.from <= from) return undefined
    const output = rule.summary
    if (rule.asks === 'within') {
      const all = Math.round(Math.min(rule.window, tokens))
      const cacheRead = Math.min(all, this.#branch?.last.plain ?? 0)
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
    const users = rule.stays === 'users' ? newest(messages.slice(0, first), sizes, keep) : 0
    const [before, gone] = [sum(sizes.slice(0, first)), sum(sizes.slice(from, first))]
    this.#summary = { from: first, less: before - users - rule.summary / Math.max(rate, LEAST_RATE) }
    return gone
  }
}

const STEP = 128

/** The most tokens that a provider itself puts before a conversation. */
const MOST_AROUND = 1_000

/** The most messages of a usual step. */
const MOST_NEW = 6

/** The number of models of which an account knows something. */
const MOST_MODELS = 8

/** Above this number of bytes, the growth gives the tokens of a byte; below it, the whole request does. */
const ENOUGH = 2_000

/** No text has fewer tokens for a byte. */
const LEAST_RATE = 0.05
