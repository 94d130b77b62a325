/** Policies that need no engine: a simple rule derives each request from the conversation. */
import { piCompaction } from '../../models/index.ts'
import { blocksOf, systemBlock, unitsOf } from '../../recordings/index.ts'
import type { BranchStep, RecordedEntry, ReplayBlock } from '../../recordings/index.ts'
import type { BlockCache } from './block-cache.ts'
import { compact, Compactions } from './compaction.ts'
import type { PolicyMoment, Policy, PolicyName, Request, Setting } from './policy.ts'

/** Everything is sent as it came, as an agent without any context management does. */
export class Append implements Policy {
  readonly name: PolicyName = 'append'
  protected readonly setting: Setting
  protected readonly cache: BlockCache
  protected readonly system: ReplayBlock
  protected entries: RecordedEntry[] = []

  constructor(setting: Setting, cache: BlockCache) {
    this.setting = setting
    this.cache = cache
    this.system = systemBlock('', setting.systemTokens * setting.unitsPerToken)
  }

  add(entry: RecordedEntry): void {
    this.entries.push(entry)
  }

  branch(path: readonly RecordedEntry[], _step?: BranchStep): void {
    this.entries = [...path]
  }

  request(_moment: PolicyMoment): Request {
    return { blocks: [this.system, ...this.entries.flatMap((entry) => this.cache.of(entry))], fixed: 1 }
  }
}

/** Pi: as it came, until the window is nearly full; then a summary and the newest 20,000 tokens. */
export class Pi extends Append {
  override readonly name: PolicyName = 'pi'
  readonly #compactions = new Compactions()

  override add(entry: RecordedEntry): void {
    super.add(entry)
    this.#compactions.came(entry)
  }

  override branch(path: readonly RecordedEntry[], step?: BranchStep): void {
    super.branch(this.#compactions.goOn(path), step)
  }

  override request(_moment: PolicyMoment): Request {
    const { setting } = this
    const blocks = this.#blocks()
    if (unitsOf(blocks) / setting.unitsPerToken <= piCompaction(setting.window).limit) return { blocks, fixed: 1 }
    const { summary, count } = this.#compactions
    const done = compact(summary === undefined ? this.entries : [summary, ...this.entries], this.cache, setting, count)
    if (done === undefined) return { blocks, fixed: 1 }
    this.#compactions.made(done)
    this.entries = done.kept
    return { blocks: this.#blocks(), fixed: 1, compaction: done.cost }
  }

  #blocks(): ReplayBlock[] {
    const { summary } = this.#compactions
    const first = summary === undefined ? [] : this.cache.of(summary)
    return [this.system, ...first, ...this.entries.flatMap((entry) => this.cache.of(entry))]
  }
}

/** A policy that replaces some tool results with a line; which ones is decided at each call, or once for good. */
abstract class Hiding extends Append {
  readonly #hidden = new Map<RecordedEntry, ReplayBlock[]>()
  protected abstract readonly line: string

  override request(moment: PolicyMoment): Request {
    const results = this.entries.filter((entry) => entry.message.role === 'toolResult')
    const hidden = this.hidden(results, moment)
    const blocks = this.entries.flatMap((entry) => (hidden.has(entry) ? this.#short(entry) : this.cache.of(entry)))
    return { blocks: [this.system, ...blocks], fixed: 1 }
  }

  protected abstract hidden(results: RecordedEntry[], moment: PolicyMoment): ReadonlySet<RecordedEntry>

  #short(entry: RecordedEntry): ReplayBlock[] {
    let blocks = this.#hidden.get(entry)
    if (blocks === undefined) {
      const { message } = entry
      const short = { ...message, content: [{ type: 'text', text: this.line }] }
      blocks = blocksOf({ key: entry.key, message: short }, this.cache.calls).map(({ path: _, ...block }) => block)
      this.#hidden.set(entry, blocks)
    }
    return blocks
  }
}

/** All but the last ten tool results are masked, at every call (arXiv 2508.21433). */
export class Mask extends Hiding {
  override readonly name: PolicyName = 'mask'
  protected override readonly line = '[Previous output omitted]'

  protected override hidden(results: RecordedEntry[]): ReadonlySet<RecordedEntry> {
    return new Set(results.slice(0, -10))
  }
}

/** Over 100,000 tokens all but the last three tool results are cleared, for good (Anthropic's clear_tool_uses). */
export class Clear extends Hiding {
  override readonly name: PolicyName = 'clear'
  protected override readonly line = '[Old tool result content cleared]'
  readonly #cleared = new Set<RecordedEntry>()

  protected override hidden(results: RecordedEntry[]): ReadonlySet<RecordedEntry> {
    let units = this.system.units
    for (const entry of this.entries) {
      units += this.#cleared.has(entry) ? this.line.length : unitsOf(this.cache.of(entry))
    }
    if (units / this.setting.unitsPerToken > 100_000) for (const entry of results.slice(0, -3)) this.#cleared.add(entry)
    return this.#cleared
  }
}
