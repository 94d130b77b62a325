/**
 * The ledger of a session: what each model call was billed, and what it would have been billed without us, on the same
 * branch, with the same cache. Nothing is predicted: a roll or an undo changes the sums only when the next call has been
 * answered. Sizes are counted in characters. How many tokens a character takes is measured where a request has only grown:
 * what a provider puts around the messages is the same without us, and must not grow with them.
 */

import { factorAt } from '../models/prices.ts'
import type { PriceFactor } from '../models/prices.ts'

/** How large a message is in the request, in characters. */
export interface Size {
  /** As it is sent. */
  own: number
  /** As the host would send it without us; 0 for a message of ours. */
  plain: number
}

/** The tokens of a prompt, as a provider reports them. */
interface PromptUsage {
  /** Neither read from the cache nor written to it. */
  input: number
  cacheRead: number
  cacheWrite: number
  /** Those of the answer. */
  output?: number
}

/** Prices of a million tokens, in dollars. 0 means unknown. */
export interface PromptPrices extends PromptUsage {
  /** Sizes above which the whole prompt costs more. */
  tiers?: readonly PriceFactor[]
  /** The price of the answer to a prompt of so many tokens, where that depends on them. */
  outputAbove?(promptTokens: number): number
}

/** The last answered call of a branch, in tokens. */
export interface Prompts {
  /** The provider's count. */
  own: number
  /** The provider's count as it would have been without us. */
  plain: number
  /** By how much requests have grown so far, where nothing else in them has changed. */
  grown?: { tokens: number; characters: number }
}

/** A change at the beginning of a request: none, an edit of ours, or one that the host would also have made without us. */
export type Prefix = 'kept' | 'edited' | 'rewritten'

/** The share of the last prompt from which on a call counts as having found it in the cache. */
const FOUND = 0.9

/** From so many characters on, growth says what a character takes; before, the last request as a whole does. */
const ENOUGH = 2000

/** The sums of one session's branch. */
export class SavingLedger {
  /** The saving, in fresh input tokens of the models that were called; negative if it was more expensive. */
  saved = 0
  /** The same in dollars, as far as the models' prices are known. */
  dollars = 0
  /** The last answered call. */
  last: Prompts | undefined
  readonly #sizes = new Map<string, Size>()
  #sum: Size = { own: 0, plain: 0 }
  /** The characters of the last answered request; undefined after a start. */
  #answered: number | undefined
  #prefix: Prefix = 'kept'
  #request: (Size & { prefix: Prefix; isAlive: boolean }) | undefined

  /** The change to the last request's prefix since that request. */
  get prefix(): Prefix {
    return this.#prefix
  }

  /** Continues with the sums of a point. */
  takeOver({ saved = 0, dollars = 0, last, prefix = 'kept' }: { saved?: number; dollars?: number; last?: Prompts; prefix?: Prefix }): void {
    this.saved = saved
    this.dollars = dollars
    this.last = last
    this.#prefix = prefix
    this.#request = undefined
    this.#answered = undefined
  }

  /** Everything visible has been read again. */
  reset(sizes: Iterable<readonly [key: string, size: Size]>): void {
    this.#sizes.clear()
    this.#sum = { own: 0, plain: 0 }
    for (const [key, size] of sizes) this.add(key, size)
  }

  /** A message is shown from now on. */
  add(key: string, { own, plain }: Size): void {
    const before = this.#sizes.get(key) ?? { own: 0, plain: 0 }
    this.#sizes.set(key, { own, plain })
    this.#sum.own += own - before.own
    this.#sum.plain += plain - before.plain
  }

  /** A message is shown otherwise, or left out (`own` is 0). `isSent`: an earlier request had it. */
  edit(key: string, own: number, isSent: boolean): void {
    this.add(key, { own, plain: this.#sizes.get(key)?.plain ?? own })
    if (isSent) this.touch()
  }

  /** We have changed something before the end of the last request. */
  touch(): void {
    if (this.#prefix === 'kept') this.#prefix = 'edited'
  }

  /** The host itself has rewritten the conversation, as it would have without us. */
  rewritten(): void {
    this.#prefix = 'rewritten'
  }

  /**
   * A request goes out. `system` is what stands before the messages; `isAlive`: the provider has the last prompt in its
   * cache, as far as time and model say.
   */
  sent(system: Size, isAlive: boolean): void {
    const { own, plain } = this.#sum
    this.#request = { own: own + system.own, plain: plain + system.plain, prefix: this.#prefix, isAlive }
  }

  /** The request was answered. */
  answered(usage: PromptUsage, prices: PromptPrices): void {
    const request = this.#request
    this.#request = undefined
    const own = usage.input + usage.cacheRead + usage.cacheWrite
    if (request === undefined || own === 0 || request.own === 0) return
    this.#prefix = 'kept'
    const grown = this.#grownTo(request, own)
    const perCharacter = grown.characters < ENOUGH ? own / request.own : grown.tokens / grown.characters
    const plain = Math.max(0, own + (request.plain - request.own) * perCharacter)
    const read = Math.min(plain, this.#cached(request, usage))
    const { input, cacheRead, cacheWrite, tiers, outputAbove } = known(prices)
    const fresh = usage.input + usage.cacheWrite
    const write = fresh === 0 ? cacheWrite : (usage.input * input + usage.cacheWrite * cacheWrite) / fresh
    const cost = (cached: number, all: number): number => (cached * cacheRead + (all - cached) * write) * factorAt(tiers, all) + (usage.output ?? 0) * outputAbove(all)
    const gained = cost(read, plain) - cost(usage.cacheRead, own)
    this.saved += gained / input
    if (prices.input > 0) this.dollars += gained / 1_000_000
    this.last = { own, plain, ...(grown.characters > 0 && { grown }) }
    this.#answered = request.own
  }

  /** By how much requests have grown, with one that was counted as `tokens`. */
  #grownTo({ own, prefix, isAlive }: Size & { prefix: Prefix; isAlive: boolean }, tokens: number): { tokens: number; characters: number } {
    const { last } = this
    const before = last?.grown ?? { tokens: 0, characters: 0 }
    const [by, characters] = [tokens - (last?.own ?? 0), own - (this.#answered ?? own)]
    // Another model counts in other tokens, and has no cache.
    if (prefix !== 'kept' || !isAlive || by <= 0 || characters <= 0) return before
    return { tokens: before.tokens + by, characters: before.characters + characters }
  }

  /** How many tokens of the prompt without us the provider would have read from its cache. */
  #cached({ prefix, isAlive }: { prefix: Prefix; isAlive: boolean }, { cacheRead }: PromptUsage): number {
    const { last } = this
    if (last === undefined || prefix === 'rewritten') return cacheRead
    if (prefix === 'edited') return isAlive ? last.plain : 0
    return cacheRead >= FOUND * last.own ? cacheRead + last.plain - last.own : cacheRead
  }
}

/** Prices with the usual ratios for what is unknown. */
function known({ input, cacheRead, cacheWrite, tiers = [], outputAbove = () => 0 }: PromptPrices): Required<Omit<PromptPrices, 'output'>> {
  if (!(input > 0)) return { input: 1, cacheRead: 0.1, cacheWrite: 1, tiers, outputAbove: () => 0 }
  return { tiers, outputAbove, input, cacheRead: cacheRead > 0 ? cacheRead : 0.1 * input, cacheWrite: cacheWrite > 0 ? cacheWrite : input }
}

/** The size that Pi counts for an image, in characters. */
const IMAGE_CHARACTERS = 4800

/** Characters of a message's content, in pi-ai's form. */
export function sizeOf(message: object): number {
  const { content, summary, command, output } = message as Record<string, unknown>
  const parts = Array.isArray(content) ? (content as unknown[]) : [content, summary, command, output]
  return parts.reduce<number>((sum, part) => sum + partSize(part), 0)
}

function partSize(part: unknown): number {
  if (typeof part === 'string') return part.length
  if (typeof part !== 'object' || part === null) return 0
  const { type, text, thinking, name, arguments: args } = part as Record<string, unknown>
  if (type === 'image') return IMAGE_CHARACTERS
  if (type === 'toolCall') return String(name).length + JSON.stringify(args ?? {}).length
  return partSize(text) + partSize(thinking)
}
