/** The blocks of a session's entries, computed once. */
import { blocksOf, Calls } from '../blocks.ts'
import type { Block } from '../blocks.ts'
import { isSent } from '../recording.ts'
import type { Entry } from '../recording.ts'

/** Blocks of entries, shared by the policies of one session. */
export class BlockCache {
  readonly #blocks = new WeakMap<Entry, Block[]>()
  readonly calls = new Calls()

  of(entry: Entry): Block[] {
    let blocks = this.#blocks.get(entry)
    if (blocks === undefined) {
      this.calls.add(entry.message)
      blocks = isSent(entry.message) ? blocksOf(entry, this.calls) : []
      this.#blocks.set(entry, blocks)
    }
    return blocks
  }
}
