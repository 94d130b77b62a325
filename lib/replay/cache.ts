/**
 * A provider's prompt cache: it keeps the prefixes of recent requests and compares bytes.
 *
 * Two kinds exist. OpenAI's, and most others, reuse any common prefix from a minimum length on, in steps of some
 * tokens. Anthropic's stores a prefix only where a request sets a breakpoint (Pi: after the system part and after the
 * last block) and looks for one at most 20 blocks before each breakpoint.
 */
import type { Block } from './blocks.ts'

/** How a provider caches. */
export interface CacheRules {
  /** For the report. */
  name: string
  /** How many blocks before a breakpoint are checked; undefined for providers that reuse any common prefix. */
  lookback: number | undefined
  /** The shortest prefix that is cached, in tokens. */
  minimum: number
  /** If blocks may be split, a cached prefix is a multiple of this many tokens (1: exact to the token). */
  granularity: number
  /** How long a prefix is kept after its last use, in milliseconds. */
  lifetimeMs: number
}

/** The rules that can be chosen by name. */
export const CACHES: Readonly<Record<'plain' | 'anthropic' | 'openai', CacheRules>> = {
  /** Any common prefix, to the token: what an ideal provider could do. */
  plain: { name: 'plain', lookback: undefined, minimum: 0, granularity: 1, lifetimeMs: 300_000 },
  /** platform.claude.com, "Prompt caching", with Pi's breakpoints. */
  anthropic: { name: 'anthropic', lookback: 20, minimum: 1024, granularity: 1, lifetimeMs: 300_000 },
  /** platform.openai.com, "Prompt caching". */
  openai: { name: 'openai', lookback: undefined, minimum: 1024, granularity: 128, lifetimeMs: 300_000 },
}

/** A request that the provider may still know. */
interface Known {
  blocks: readonly Block[]
  /** Ends of stored prefixes in blocks, with the time until which each is kept. */
  ends: Map<number, number>
}

/** The most requests that are kept, whatever their lifetime: older ones are prefixes of newer ones, or lost. */
const MAX_KNOWN = 48

/** A prompt cache over one series of requests to one model. */
export class PromptCache {
  readonly #rules: CacheRules
  readonly #unitsPerToken: number
  #known: Known[] = []
  #model: string | undefined

  constructor(rules: CacheRules, unitsPerToken: number) {
    this.#rules = rules
    this.#unitsPerToken = unitsPerToken
  }

  /**
   * Sends a request and returns how many of its tokens were in the cache. `fixedBlocks` is the number of blocks in the
   * system part, which has its own breakpoint.
   */
  send(blocks: readonly Block[], fixedBlocks: number, model: string, at: number): number {
    if (model !== this.#model) this.#known = []
    this.#model = model
    this.#known = this.#known.filter((known) => {
      for (const [end, until] of known.ends) if (until < at) known.ends.delete(end)
      return known.ends.size > 0
    })
    return this.#rules.lookback === undefined
      ? this.#sendPlain(blocks, at)
      : this.#sendMarked(blocks, fixedBlocks, at, this.#rules.lookback)
  }

  #sendPlain(blocks: readonly Block[], at: number): number {
    let best = 0
    let extended: Known | undefined
    for (const known of this.#known) {
      const common = commonBlocks(known.blocks, blocks)
      const units = unitsBefore(blocks, common) + commonInside(known.blocks[common], blocks[common])
      if (units > best) best = units
      if (common === known.blocks.length) extended = known
    }
    if (extended !== undefined) this.#known = this.#known.filter((known) => known !== extended)
    this.#keep({ blocks: [...blocks], ends: new Map([[blocks.length, at + this.#rules.lifetimeMs]]) })
    const { granularity } = this.#rules
    return this.#enough(Math.floor(best / this.#unitsPerToken / granularity) * granularity)
  }

  #sendMarked(blocks: readonly Block[], fixedBlocks: number, at: number, lookback: number): number {
    const until = at + this.#rules.lifetimeMs
    const marks = [fixedBlocks, blocks.length]
    let best = 0
    let extended: Known | undefined
    for (const known of this.#known) {
      const common = commonBlocks(known.blocks, blocks)
      for (const end of known.ends.keys()) {
        if (end > common || !marks.some((mark) => end <= mark && mark - end <= lookback)) continue
        known.ends.set(end, until)
        if (end > best) best = end
      }
      if (common === known.blocks.length) extended = known
    }
    const ends = new Map(marks.map((mark) => [mark, until]))
    if (extended !== undefined) {
      for (const [end, kept] of extended.ends) if (!ends.has(end)) ends.set(end, kept)
      this.#known = this.#known.filter((known) => known !== extended)
    }
    this.#keep({ blocks: [...blocks], ends })
    return this.#enough(unitsBefore(blocks, best) / this.#unitsPerToken)
  }

  #keep(known: Known): void {
    this.#known.push(known)
    if (this.#known.length > MAX_KNOWN) this.#known.shift()
  }

  #enough(tokens: number): number {
    return tokens < this.#rules.minimum ? 0 : tokens
  }
}

function commonBlocks(left: readonly Block[], right: readonly Block[]): number {
  const limit = Math.min(left.length, right.length)
  let index = 0
  while (index < limit) {
    const a = left[index] as Block
    const b = right[index] as Block
    if (a !== b && a.bytes !== b.bytes) break
    index += 1
  }
  return index
}

/** Units that two blocks which differ have in common at their start; in proportion, as JSON escapes take room. */
function commonInside(left: Block | undefined, right: Block | undefined): number {
  if (left === undefined || right === undefined) return 0
  const limit = Math.min(left.bytes.length, right.bytes.length)
  let index = 0
  while (index < limit && left.bytes.charCodeAt(index) === right.bytes.charCodeAt(index)) index += 1
  return Math.floor((right.units * index) / right.bytes.length)
}

function unitsBefore(blocks: readonly Block[], end: number): number {
  let units = 0
  for (let index = 0; index < end; index += 1) units += (blocks[index] as Block).units
  return units
}
