/** The blocks of a session's entries, computed once. */
import { blocksOf, Calls } from '../blocks.ts'
import type { ReplayBlock } from '../blocks.ts'
import { isSent } from '../recording.ts'
import type { RecordedEntry } from '../recording.ts'

/** Blocks of entries, shared by the policies of one session. */
export class BlockCache {
  readonly #blocks = new WeakMap<RecordedEntry, ReplayBlock[]>()
  readonly calls = new Calls()

  of(entry: RecordedEntry): ReplayBlock[] {
    let blocks = this.#blocks.get(entry)
    if (blocks === undefined) {
      this.calls.add(entry.message)
      blocks = isSent(entry.message) ? blocksOf(entry, this.calls) : []
      this.#blocks.set(entry, blocks)
    }
    return blocks
  }
}
