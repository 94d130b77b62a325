/**
 * The provider's cache as a host's own requests would have left it: the sizes at which they ended, and until when it keeps them. No
 * text is kept. Where a host goes back in its conversation, or changes what it has sent, the shorter prefixes are still there.
 */
import { isFields, oncePer } from '../core/index.ts'
import type { Fields } from '../core/index.ts'
import type { CacheKind } from '../models/index.ts'
import { commonLength } from './prefix.ts'

/** The way in which a provider finds earlier prompts in its cache. */
export interface CacheReach {
  kind: CacheKind
  /** The distance of its look back: positions for `breakpoints`, endings for `endings`. */
  lookback: number
  /** The shortest prompt that it keeps, in tokens; default 0. */
  minimum?: number
}

/** A request, and the account of its host. */
interface Now {
  messages: readonly object[]
  reach: CacheReach
  /** The whole request has a marker, behind its last block. */
  isMarked: boolean
  at: number
  lifetimeMs: number
  /** Tokens of a byte. */
  rate: number
}

/** A place in a conversation: the number of whole messages before it, and of the next one's blocks in parts of {@link BLOCK}. */
type Place = number

const BLOCK = 1 / 4096

/** The number of ends that are kept. Older ones leave: a host that goes back behind them counts as one that finds nothing. */
const MOST_ENDS = 512

/** The place where an earlier request, or a marked part of it, ended. */
interface End {
  /** Bytes of the messages before it. */
  bytes: number
  /** Tokens of the prompt up to it. */
  tokens: number
  /** Until when the provider keeps it, in milliseconds since the epoch; 0: it has not stored it. */
  until: number
}

/** The cache of one conversation without us. */
export class PlainCache {
  /** Bytes of the first messages: entry n is that of the first n. */
  #bytes: number[] = [0]
  #ends = new Map<Place, End>()
  /** Until when the provider keeps the whole last request. */
  #until = 0

  /** The number of ends that are kept. */
  get size(): number {
    return this.#ends.size
  }

  /** A copy for a conversation beside this one. Its uses prolong the lives of ends in both. */
  fork(): PlainCache {
    const other = new PlainCache()
    other.#bytes = [...this.#bytes]
    other.#ends = new Map(this.#ends)
    other.#until = this.#until
    return other
  }

  /** The host begins anew, so that nothing is found. */
  clear(): void {
    this.#bytes = [0]
    this.#ends.clear()
    this.#until = 0
  }

  /** Tokens that a request finds, which has the first `common` messages of `before`. */
  found(now: Now, before: readonly object[], common: number): number {
    const place = commonPlace(before, now.messages, common)
    const { kind, minimum = 0 } = now.reach
    const isKept = kind === 'prefix' && now.at < this.#until
    const all = isKept ? [this.#tokensAt(this.#bytesAt(now.messages, place), now.rate)] : this.#reached(now, place).map(({ tokens }) => tokens)
    return Math.max(0, ...all.filter((tokens) => tokens >= minimum))
  }

  /** Notes a request that was answered. `tokens`: those of its prompt; it has the first `common` messages of `before`. */
  sent(now: Now, before: readonly object[], common: number, tokens: number): void {
    const { messages, reach, at, lifetimeMs, rate } = now
    const place = commonPlace(before, messages, common)
    for (const end of this.#ends.keys()) if (end > place) this.#ends.delete(end)
    this.#bytes.length = Math.min(this.#bytes.length, common + 1)
    for (const message of messages.slice(this.#bytes.length - 1)) this.#bytes.push((this.#bytes.at(-1) as number) + sizeOf(message))
    this.#until = at + lifetimeMs
    for (const end of this.#reached(now, messages.length)) end.until = Math.max(end.until, this.#until)
    // The whole request has been counted; marked parts of it are measured by the counted ones next to them.
    this.#keep(messages.length, { bytes: this.#bytes.at(-1) as number, tokens, until: 0 })
    const stored = reach.kind === 'breakpoints' ? marksIn(now) : reach.kind === 'endings' ? endingsIn(messages, 0) : []
    for (const one of stored) {
      const bytes = this.#bytesAt(messages, one)
      const end = this.#ends.get(one) ?? { bytes, tokens: this.#tokensAt(bytes, rate), until: 0 }
      end.until = Math.max(end.until, this.#until)
      this.#keep(one, end)
    }
  }

  /** The stored ends up to a place that a request looks at. */
  #reached(now: Now, most: Place): End[] {
    const { messages, reach, at } = now
    if (reach.kind === 'prefix') return []
    const spans =
      reach.kind === 'breakpoints'
        ? marksIn(now).map((mark): [Place, Place] => [behind(messages, mark, reach.lookback), mark])
        : endingsIn(messages, reach.lookback).map((end): [Place, Place] => [end, end])
    return [...this.#ends]
      .filter(([place, { until }]) => place <= most && at < until && spans.some(([from, to]) => from <= place && place <= to))
      .map(([, end]) => end)
  }

  #keep(place: Place, end: End): void {
    // The last one is the newest.
    this.#ends.delete(place)
    this.#ends.set(place, end)
    const [oldest] = this.#ends.keys()
    if (this.#ends.size > MOST_ENDS && oldest !== undefined) this.#ends.delete(oldest)
  }

  #bytesAt(messages: readonly object[], place: Place): number {
    const whole = Math.floor(place)
    const blocks = blocksOf(messages[whole]).slice(0, Math.round((place - whole) / BLOCK))
    return blocks.reduce<number>((sum, block) => sum + bytesOf(block), this.#bytes[whole] ?? 0)
  }

  /** The tokens up to a place, between those at the ends next to it. */
  #tokensAt(bytes: number, rate: number): number {
    let [before, after]: (End | undefined)[] = []
    for (const end of this.#ends.values()) {
      if (end.bytes <= bytes && (before === undefined || end.bytes > before.bytes)) before = end
      if (end.bytes >= bytes && (after === undefined || end.bytes < after.bytes)) after = end
    }
    if (before === undefined) return after === undefined ? 0 : Math.max(0, after.tokens - (after.bytes - bytes) * rate)
    if (after === undefined || after.bytes === before.bytes) return before.tokens + (bytes - before.bytes) * rate
    return before.tokens + ((after.tokens - before.tokens) * (bytes - before.bytes)) / (after.bytes - before.bytes)
  }
}

/** The bytes of a message, which are counted once. */
export const sizeOf = oncePer<object, number>(bytesOf)

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value)) + 1
}

function blocksOf(message: unknown): readonly unknown[] {
  const content = (message as Fields | undefined)?.['content']
  return Array.isArray(content) ? content : []
}

/** The place up to which two conversations are the same, whose first `common` messages are. */
function commonPlace(before: readonly object[], now: readonly object[], common: number): Place {
  const [one, other] = [before[common] as Fields | undefined, now[common] as Fields | undefined]
  if (one === undefined || other === undefined || one['role'] !== other['role']) return common
  return common + commonLength(blocksOf(one), blocksOf(other)) * BLOCK
}

/** The places behind the cache markers of a request, the newest first. */
export function marksIn({ messages, isMarked }: Pick<Now, 'messages' | 'isMarked'>): Place[] {
  const marks = isMarked ? [messages.length] : []
  for (let at = messages.length - 1; at >= 0 && marks.length < MOST_MARKS; at -= 1) {
    const blocks = blocksOf(messages[at])
    for (let index = blocks.length - 1; index >= 0; index -= 1) {
      const block = blocks[index]
      if (isFields(block) && isFields(block['cache_control'])) marks.push(index === blocks.length - 1 ? at + 1 : at + (index + 1) * BLOCK)
    }
  }
  return marks
}

/** The number of markers that Anthropic takes. */
const MOST_MARKS = 4

/** The place that lies a number of positions before another one. A run of calls, or of results, is one position. */
function behind(messages: readonly object[], mark: Place, positions: number): Place {
  let left = positions
  for (let at = Math.ceil(mark) - 1; at >= 0; at -= 1) {
    const blocks = blocksOf(messages[at])
    const end = at + 1 > mark ? Math.round((mark - at) / BLOCK) : Math.max(1, blocks.length)
    for (let index = end - 1; index >= 0; index -= 1) {
      const type = typeOf(blocks[index])
      const isRun = index > 0 && type.startsWith('tool_') && typeOf(blocks[index - 1]) === type
      if (!isRun) left -= 1
      if (left === 0) return index === 0 ? at : at + index * BLOCK
    }
  }
  return 0
}

function typeOf(block: unknown): string {
  const type = isFields(block) ? block['type'] : undefined
  return typeof type === 'string' ? type : ''
}

/** The last endings in a conversation, the newest first, and this many before it: where what a user or tools have said is answered. */
function endingsIn(messages: readonly object[], more: number): Place[] {
  const found: Place[] = []
  for (let end = messages.length; end > 0 && found.length <= more; end -= 1) {
    if (!isAnswer(messages[end - 1]) && (end === messages.length || isAnswer(messages[end]))) found.push(end)
  }
  return found
}

/** True if a message is the model's. */
export function isAnswer(message: object | undefined): boolean {
  const { role, type } = message as Fields
  return role === 'assistant' || role === 'model' || (typeof type === 'string' && (type === 'reasoning' || type.endsWith('_call')))
}
