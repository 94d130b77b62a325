/**
 * A provider's prompt cache: it keeps the prefixes of recent requests and compares bytes. Three kinds exist:
 *
 * - Most reuse any common prefix from a minimum length on, some in steps of some tokens.
 * - Anthropic stores a prefix only where a request sets a breakpoint (Pi: after the system part and after the last block) and
 *   looks for one at most 20 positions before each breakpoint. A run of calls, or of results, is one position.
 * - OpenAI, from GPT-5.6 on, stores a prefix where the newest user message or group of outputs ends, and looks for one at the
 *   20 such endings before it. The system part itself has no mark.
 */
import { cacheNamed, HOUR_WRITE } from '../models/index.ts'
import type { CacheKind, ModelCache } from '../models/index.ts'
import type { ReplayBlock } from '../recordings/index.ts'

/** A provider's rules of caching. */
export interface CacheRules {
  /** For the report. */
  name: string
  kind: CacheKind
  /** The distance at which an earlier end is found: positions before a breakpoint, or endings. Undefined: any common prefix is found. */
  lookback: number | undefined
  /** The shortest prefix that is cached, in tokens. */
  minimum: number
  /** A cached prefix is a multiple of this many tokens (1: exact to the token, where blocks may be split). */
  granularity: number
  /** The lifetime of a prefix after its last use, in milliseconds. */
  lifetimeMs: number
  /**
   * A request that only continues an earlier one finds all of that, however far back it ends: the record tells what was lost, and
   * agents set more breakpoints than Pi does.
   */
  findsAll?: boolean
  /** The cost of writing a token, in fresh input tokens, where it differs from the model's usual price. */
  write?: number
}

/** The parts of a cache's rules that a user names. */
export type NamedRules = Partial<Pick<CacheRules, 'lookback' | 'minimum' | 'granularity'>>

/** Rules with the parts that a user names. A cache that looks back has breakpoints. */
export function withNamed(rules: CacheRules, named: NamedRules): CacheRules {
  return { ...rules, ...named, kind: named.lookback !== undefined && rules.kind === 'prefix' ? 'breakpoints' : rules.kind }
}

/** The same rules for a cache that keeps everything but what the record lost, where the user names nothing else. */
export function keptRules(rules: CacheRules, { lookback, granularity = 1 }: NamedRules = {}): CacheRules {
  return { ...rules, lifetimeMs: Infinity, granularity, findsAll: lookback === undefined }
}

/** For how long a request asks to keep what it writes: the blocks of the system part, and all others. */
export interface KeptFor {
  head: { ms: number; blocks: number }
  restMs: number
}

const MINUTE_MS = 60_000
const [ANTHROPIC, OPENAI, PREFIX] = [cacheNamed('anthropic-older'), cacheNamed('openai'), cacheNamed('prefix')]

/** The rules of a row in models.toml, to the token. */
function ruled({ kind, lookback, minimumTokens: minimum, lifetimeMs }: ModelCache): Omit<CacheRules, 'name'> {
  return { kind, lookback, minimum, granularity: 1, lifetimeMs }
}

/** The rules that can be chosen by name. */
export const CACHES = {
  /** Any common prefix, to the token: what an ideal provider could do. */
  plain: { name: 'plain', kind: 'prefix', lookback: undefined, minimum: 0, granularity: 1, lifetimeMs: 5 * MINUTE_MS },
  /** platform.claude.com, "Prompt caching", with Pi's breakpoints. */
  anthropic: { name: 'anthropic', ...ruled(ANTHROPIC) },
  /** The same with breakpoints of an hour, which cost twice a fresh token to write. */
  'anthropic-1h': { name: 'anthropic-1h', ...ruled(ANTHROPIC), lifetimeMs: ANTHROPIC.long?.lifetimeMs ?? 0, write: HOUR_WRITE },
  /** platform.openai.com, "Prompt caching", from GPT-5.6 on. */
  openai: { name: 'openai', ...ruled(OPENAI), write: 1.25 },
  /** The same for GPT-5.5 and older models, in steps of 128 tokens. */
  'openai-5.5': { name: 'openai-5.5', ...ruled(PREFIX), granularity: 128 },
} as const satisfies Readonly<Record<string, CacheRules>>

/** A request that the provider may still know. */
interface Known {
  blocks: readonly ReplayBlock[]
  /** Ends of stored prefixes in blocks. */
  ends: Map<number, Kept>
}

/** The time for which a prefix stays after a use, in milliseconds, and until when that is now. */
interface Kept {
  ms: number
  until: number
}

/** The most requests that are kept, whatever their lifetime: older ones are prefixes of newer ones, or lost. */
const MAX_KNOWN = 48

/** A prompt cache over one series of requests. Each model has its own. */
export class PromptCache {
  readonly #rules: CacheRules
  readonly #unitsPerToken: number
  /** The known requests of each model, and those of the model that was asked last. */
  readonly #models = new Map<string, Known[]>()
  #known: Known[] = []

  constructor(rules: CacheRules, unitsPerToken: number) {
    this.#rules = rules
    this.#unitsPerToken = unitsPerToken
  }

  /**
   * Sends a request and returns how many of its tokens were in the cache. `fixedBlocks` is the number of blocks in the
   * system part, which has its own breakpoint. `kept`: for how long the request asks, instead of the lifetime in the rules.
   */
  send(blocks: readonly ReplayBlock[], fixedBlocks: number, model: string, at: number, kept?: KeptFor): number {
    this.#known = (this.#models.get(model) ?? []).filter((known) => {
      for (const [end, { until }] of known.ends) if (until < at) known.ends.delete(end)
      return known.ends.size > 0
    })
    const found = this.#find(blocks, fixedBlocks, at, kept)
    this.#models.set(model, this.#known)
    return found
  }

  #find(blocks: readonly ReplayBlock[], fixedBlocks: number, at: number, kept: KeptFor | undefined): number {
    const { kind, lookback, lifetimeMs } = this.#rules
    if (kind === 'prefix' || lookback === undefined) return this.#sendPlain(blocks, at)
    const mark = (end: number): readonly [number, Kept] => {
      const ms = kept === undefined ? lifetimeMs : end <= kept.head.blocks ? kept.head.ms : kept.restMs
      return [end, { ms, until: at + ms }]
    }
    return kind === 'endings'
      ? this.#sendMarked(blocks, [mark(blocks.length)], this.#endings(blocks, lookback), at)
      : this.#sendMarked(blocks, [mark(fixedBlocks), mark(blocks.length)], this.#near(blocks, [fixedBlocks, blocks.length], lookback), at)
  }

  #sendPlain(blocks: readonly ReplayBlock[], at: number): number {
    let best = 0
    let extended: Known | undefined
    for (const known of this.#known) {
      const common = commonBlocks(known.blocks, blocks)
      const units = unitsBefore(blocks, common) + commonInside(known.blocks[common], blocks[common])
      if (units > best) best = units
      if (common === known.blocks.length) extended = known
    }
    if (extended !== undefined) this.#known = this.#known.filter((known) => known !== extended)
    const { granularity, lifetimeMs } = this.#rules
    this.#keep({ blocks: [...blocks], ends: new Map([[blocks.length, { ms: lifetimeMs, until: at + lifetimeMs }]]) })
    return this.#enough(Math.floor(best / this.#unitsPerToken / granularity) * granularity)
  }

  /**
   * Stores the prefixes that end at `marks`, and returns the longest one of an earlier request that `finds` an end. A prefix that is
   * used stays for as long as it was written for, whatever the request asks.
   */
  #sendMarked(blocks: readonly ReplayBlock[], marks: readonly (readonly [number, Kept])[], finds: (end: number) => boolean, at: number): number {
    let best = 0
    let extended: Known | undefined
    for (const known of this.#known) {
      const common = commonBlocks(known.blocks, blocks)
      for (const [end, kept] of known.ends) {
        if (end > common || !finds(end)) continue
        kept.until = at + kept.ms
        if (end > best) best = end
      }
      if (common < known.blocks.length) continue
      extended = known
      if (this.#rules.findsAll === true) best = Math.max(best, ...known.ends.keys())
    }
    const ends = new Map(marks)
    if (extended !== undefined) {
      for (const [end, kept] of extended.ends) ends.set(end, end === best ? { ...kept, until: at + kept.ms } : kept)
      this.#known = this.#known.filter((known) => known !== extended)
    }
    this.#keep({ blocks: [...blocks], ends })
    const tokens = unitsBefore(blocks, best) / this.#unitsPerToken
    const { granularity } = this.#rules
    return this.#enough(granularity > 1 ? Math.floor(tokens / granularity) * granularity : tokens)
  }

  /** True if an end lies at most `lookback` positions before a breakpoint. */
  #near(blocks: readonly ReplayBlock[], marks: readonly number[], lookback: number): (end: number) => boolean {
    const positions = [0]
    for (const [index, { run }] of blocks.entries()) {
      const goesOn = run !== undefined && blocks[index - 1]?.run === run
      positions.push((positions[index] as number) + (goesOn ? 0 : 1))
    }
    const between = (end: number, mark: number): number => (positions[mark] as number) - (positions[end] as number)
    return (end) => marks.some((mark) => end <= mark && between(end, mark) <= lookback)
  }

  /** True if an end is that of the request, or one of the last `lookback` endings before it. */
  #endings(blocks: readonly ReplayBlock[], lookback: number): (end: number) => boolean {
    const found: number[] = []
    for (let end = blocks.length; end > 0 && found.length <= lookback; end -= 1) {
      if (!isAnswer(blocks[end - 1]) && (end === blocks.length || isAnswer(blocks[end]))) found.push(end)
    }
    return (end) => found.includes(end)
  }

  #keep(known: Known): void {
    this.#known.push(known)
    if (this.#known.length > MAX_KNOWN) this.#known.shift()
  }

  #enough(tokens: number): number {
    return tokens < this.#rules.minimum ? 0 : tokens
  }
}

function commonBlocks(left: readonly ReplayBlock[], right: readonly ReplayBlock[]): number {
  const limit = Math.min(left.length, right.length)
  let index = 0
  while (index < limit) {
    const a = left[index] as ReplayBlock
    const b = right[index] as ReplayBlock
    if (a !== b && a.bytes !== b.bytes) break
    index += 1
  }
  return index
}

/** Units that two blocks which differ have in common at their start; in proportion, as JSON escapes take room. */
function commonInside(left: ReplayBlock | undefined, right: ReplayBlock | undefined): number {
  if (left === undefined || right === undefined) return 0
  const limit = Math.min(left.bytes.length, right.bytes.length)
  let index = 0
  while (index < limit && left.bytes.charCodeAt(index) === right.bytes.charCodeAt(index)) index += 1
  return Math.floor((right.units * index) / right.bytes.length)
}

function unitsBefore(blocks: readonly ReplayBlock[], end: number): number {
  let units = 0
  for (let index = 0; index < end; index += 1) units += (blocks[index] as ReplayBlock).units
  return units
}

/** True if a block is the model's. */
function isAnswer(block: ReplayBlock | undefined): boolean {
  return block?.side === 'answer'
}
