/** The quotes and names that one policy's requests show: how often each occurs in the newest one. */
import type { ReplayBlock } from '../../recordings/index.ts'

/** Follows the requests of one policy. The time per request depends on what has changed since the previous one. */
export class Shown {
  readonly #idsOf: (block: ReplayBlock) => Uint32Array
  readonly #count: Uint32Array
  #blocks: readonly ReplayBlock[] = []
  #ids: Uint32Array[] = []

  /** `size` is the size of the vocabulary; `idsOf` finds the quotes and names of a block. */
  constructor(size: number, idsOf: (block: ReplayBlock) => Uint32Array) {
    this.#count = new Uint32Array(size)
    this.#idsOf = idsOf
  }

  /** Takes in the next request. */
  set(blocks: readonly ReplayBlock[]): void {
    const old = this.#blocks
    const oldIds = this.#ids
    let same = 0
    const limit = Math.min(old.length, blocks.length)
    while (same < limit && old[same] === blocks[same]) same += 1
    // Blocks that were moved or rebuilt with the same bytes are not searched again.
    const known = new Map<string, Uint32Array>()
    for (let index = same; index < old.length; index += 1) {
      const ids = oldIds[index] as Uint32Array
      known.set((old[index] as ReplayBlock).bytes, ids)
      for (const id of ids) (this.#count[id] as number) -= 1
    }
    const ids = oldIds.slice(0, same)
    for (let index = same; index < blocks.length; index += 1) {
      const block = blocks[index] as ReplayBlock
      const own = known.get(block.bytes) ?? this.#idsOf(block)
      for (const id of own) (this.#count[id] as number) += 1
      ids.push(own)
    }
    this.#blocks = blocks
    this.#ids = ids
  }

  /** True if a quote or name occurs in the newest request. */
  has(id: number): boolean {
    return (this.#count[id] as number) > 0
  }
}
