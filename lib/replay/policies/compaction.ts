/** Pi's compaction: where it cuts, what it asks the model for, and what that costs. */
import { callsOf, textOf, unitsOf } from '../../recordings/index.ts'
import type { RecordedEntry, Message } from '../../recordings/index.ts'
import { firstKept, INSTRUCTIONS, PI_COMPACTION, SUMMARIZED_RESULT, SUMMARY_TOKENS } from '../../models/index.ts'
import type { BlockCache } from './block-cache.ts'
import type { Compaction, Setting } from './policy.ts'

/** The result of a compaction. */
interface Compacted {
  summary: RecordedEntry
  kept: RecordedEntry[]
  cost: Compaction
}

/** The compactions that a policy has made; which of them applies depends on where the conversation continues. */
export class Compactions {
  /** The number of compactions, on all branches. */
  count = 0
  #newest: Compacted | undefined
  /** The compaction in force when each message arrived. */
  readonly #heldAt = new Map<string, Compacted | undefined>()

  /** The summary that stands before the messages now. */
  get summary(): RecordedEntry | undefined {
    return this.#newest?.summary
  }

  /** A compaction was made. */
  made(done: Compacted): void {
    this.count += 1
    this.#newest = done
  }

  /** A message came. */
  came({ key }: RecordedEntry): void {
    this.#heldAt.set(key, this.#newest)
  }

  /** Continues after the last of these messages; returns those that the compaction in force there has kept. */
  goOn(path: readonly RecordedEntry[]): readonly RecordedEntry[] {
    const last = path.at(-1)
    const newest = last === undefined ? undefined : this.#heldAt.get(last.key)
    this.#newest = newest
    if (newest === undefined) return path
    const kept = new Set(newest.kept.map(({ key }) => key))
    const from = path.findIndex(({ key }) => kept.has(key) || this.#heldAt.get(key) === newest)
    return path.slice(from)
  }
}

/** Compacts a conversation; undefined if nothing could be removed. `count` is the number of earlier compactions. */
export function compact(entries: readonly RecordedEntry[], cache: BlockCache, setting: Setting, count: number): Compacted | undefined {
  const cut = cutOf(entries, cache)
  if (cut <= (entries[0]?.message.role === 'compactionSummary' ? 1 : 0)) return undefined
  const old = entries.slice(0, cut)
  const recorded = setting.summaries[count % Math.max(1, setting.summaries.length)]
  const text = recorded ?? 'x'.repeat(Math.round(SUMMARY_TOKENS * setting.unitsPerToken))
  const at = entries[cut - 1]?.at ?? 0
  const summary = { key: `compaction-${count}`, message: { role: 'compactionSummary', summary: text }, at }
  const asked = INSTRUCTIONS.first + old.reduce((sum, entry) => sum + summarizedUnits(entry.message), 0)
  return {
    summary,
    kept: entries.slice(cut),
    cost: {
      promptTokens: Math.round(asked / setting.unitsPerToken),
      outputTokens: Math.round(text.length / setting.unitsPerToken),
    },
  }
}

/** The first entry that stays. Pi counts four characters for a token. */
function cutOf(entries: readonly RecordedEntry[], cache: BlockCache): number {
  const sizeAt = (at: number): number => Math.ceil(unitsOf(cache.of(entries[at] as RecordedEntry)) / 4)
  return firstKept(entries.length, PI_COMPACTION.keepRecentTokens, sizeAt, (at) => entries[at]?.message.role === 'toolResult')
}

function summarizedUnits(message: Message): number {
  switch (message.role) {
    case 'toolResult':
      return Math.min(SUMMARIZED_RESULT, textOf(message).length)
    case 'assistant': {
      const blocks = Array.isArray(message.content) ? message.content : []
      const prose = blocks.reduce((sum, block) => sum + (block.text ?? block.thinking ?? '').length, 0)
      return prose + callsOf(message).reduce((sum, call) => sum + JSON.stringify(call.arguments ?? {}).length, 0)
    }
    default:
      return textOf(message).length + (message.summary ?? '').length + (message.output ?? '').length
  }
}
