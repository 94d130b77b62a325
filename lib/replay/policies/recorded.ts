/** The requests as the recorded program sent them, with its own summaries, steps back and clearings. */
import { keysShown, unitsOf } from '../../recordings/index.ts'
import type { BranchStep, EditStep, Message, RecordedEntry, ReplayBlock } from '../../recordings/index.ts'
import { summaryKey } from '../sizes.ts'
import { Append } from './conversation.ts'
import type { PolicyMoment, PolicyName, Request } from './policy.ts'

/** The text in place of a cleared output. */
const CLEARED = [{ type: 'text', text: '[Old tool result content cleared]' }]

/** The policy `recorded`. */
export class Recorded extends Append {
  override readonly name: PolicyName = 'recorded'
  #summary: RecordedEntry | undefined
  /** Messages that are shown in another form; undefined for those that are left out. */
  readonly #edits = new Map<string, RecordedEntry | undefined>()

  override branch(path: readonly RecordedEntry[], step: BranchStep = { kind: 'branch', keys: path.map(({ key }) => key), at: 0 }): void {
    const shown = new Set(keysShown(step))
    super.branch(
      path.filter(({ key }) => shown.has(key)),
      step,
    )
    this.#summary = step.compaction === undefined ? undefined : this.#summaryOf(step.compaction.summary)
    this.#edits.clear()
    for (const [key, content] of step.edits ?? []) this.edited({ key, content })
  }

  compacted(summary: string, firstKept: string | undefined): void {
    const from = firstKept === undefined ? this.entries.length : this.entries.findIndex(({ key }) => key === firstKept)
    this.entries = this.entries.slice(Math.max(0, from))
    this.#summary = this.#summaryOf(summary)
  }

  edited({ key, content }: Pick<EditStep, 'key' | 'content'>): void {
    const entry = this.entries.find((one) => one.key === key)
    if (entry === undefined) return
    this.#edits.set(key, content === null ? undefined : { ...entry, message: { ...entry.message, content } as Message })
  }

  /** The program cleared old outputs, the oldest first, until `tokens` tokens were left. */
  cleared(tokens: number): void {
    let excess = unitsOf(this.blocks) - tokens * this.setting.unitsPerToken
    for (const entry of this.entries) {
      if (excess <= 0) return
      if (entry.message.role !== 'toolResult' || this.#edits.has(entry.key)) continue
      const before = unitsOf(this.cache.of(entry))
      this.edited({ key: entry.key, content: CLEARED })
      excess -= before - unitsOf(this.cache.of(this.#edits.get(entry.key) ?? entry))
    }
  }

  override request(_moment: PolicyMoment): Request {
    return { blocks: this.blocks, fixed: 1 }
  }

  /** The blocks that would be sent now. */
  get blocks(): ReplayBlock[] {
    const messages = this.entries.flatMap((entry) => (this.#edits.has(entry.key) ? (this.#edits.get(entry.key) ?? []) : entry))
    const all = this.#summary === undefined ? messages : [this.#summary, ...messages]
    return [this.system, ...all.flatMap((entry): ReplayBlock[] => this.cache.of(entry))]
  }

  #summaryOf(summary: string): RecordedEntry {
    return { key: summaryKey(summary), message: { role: 'compactionSummary', summary }, at: 0 }
  }
}
