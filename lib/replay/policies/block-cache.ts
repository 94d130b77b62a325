/** The blocks of a session's entries, computed once. */
import { blocksOf, Calls, isSent } from '../../recordings/index.ts'
import type { RecordedEntry, ReplayBlock } from '../../recordings/index.ts'

/** Blocks of entries, shared by the policies of one session. */
export class BlockCache {
  readonly #blocks = new WeakMap<RecordedEntry, ReplayBlock[]>()
  readonly calls = new Calls()
  readonly #sizes: ReadonlyMap<string, number>

  /** `sizes`: by message, how many times as large as by its characters it is. */
  constructor(sizes: ReadonlyMap<string, number> = new Map()) {
    this.#sizes = sizes
  }

  of(entry: RecordedEntry): ReplayBlock[] {
    let blocks = this.#blocks.get(entry)
    if (blocks === undefined) {
      this.calls.add(entry.message)
      blocks = isSent(entry.message) ? this.sized(entry.key, blocksOf(entry, this.calls)) : []
      this.#blocks.set(entry, blocks)
    }
    return blocks
  }

  /** The blocks of a message in whatever form, in the size that the provider counted. */
  sized(key: string, blocks: ReplayBlock[]): ReplayBlock[] {
    const factor = this.#sizes.get(key) ?? 1
    return factor === 1 ? blocks : blocks.map((block) => ({ ...block, units: factor * block.units }))
  }
}
