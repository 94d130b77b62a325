/**
 * Which requests a provider would refuse that checks reasoning against what comes before it, as the strictest does: each block
 * of reasoning is bound to everything in the request that led to it except reasoning, and to the block of reasoning before it,
 * unless that and all earlier ones have left.
 */
import type { ReplayBlock } from '../recordings/index.ts'

/** The content that came before a block of reasoning when it was written. */
interface Origin {
  /** A hash of everything but reasoning, in two parts. */
  readonly high: number
  readonly low: number
  /** The block of reasoning before it. */
  readonly before: string | undefined
}

const NOTHING: Origin = { high: 0, low: 0, before: undefined }

/** Follows the requests of one policy. */
export class BoundReasoning {
  readonly #origins = new Map<string, Origin>()
  readonly #hashes = new WeakMap<ReplayBlock, Hash>()
  /** The content that the next reasoning is bound to: all of the last request. */
  #last = NOTHING
  /** Requests in which reasoning stood behind something else than when it was written. */
  refused = 0

  /** A request is sent. */
  send(blocks: readonly ReplayBlock[]): void {
    let now = NOTHING
    let fits = true
    for (const block of blocks) {
      const origin = block.thinking === undefined ? undefined : this.#origins.get(nameOf(block))
      if (origin !== undefined) {
        const { high, low, before } = now
        fits &&= origin.high === high && origin.low === low && (before === undefined || before === origin.before)
      }
      now = this.#after(now, block)
    }
    if (!fits) this.refused += 1
    this.#last = now
  }

  /** The answer to the last request has come, with these blocks. */
  answered(blocks: readonly ReplayBlock[]): void {
    let now = this.#last
    for (const block of blocks) {
      if (block.thinking !== undefined) this.#origins.set(nameOf(block), now)
      now = this.#after(now, block)
    }
  }

  #after(origin: Origin, block: ReplayBlock): Origin {
    if (block.thinking !== undefined) return { ...origin, before: nameOf(block) }
    let hash = this.#hashes.get(block)
    if (hash === undefined) this.#hashes.set(block, (hash = hashOf(block.bytes)))
    const high = Math.imul(origin.high ^ hash.high, 0x9e3779b1)
    const low = Math.imul(origin.low ^ hash.low, 0x85ebca6b) ^ (origin.high >>> 15)
    return { high, low: low ^ (low >>> 13), before: origin.before }
  }
}

/** The name of a block. The model's reasoning is sent again as it was, so its message and its bytes tell it from others. */
function nameOf({ key = '', bytes }: ReplayBlock): string {
  return `${key} ${bytes}`
}

interface Hash {
  high: number
  low: number
}

function hashOf(bytes: string): Hash {
  let [high, low] = [0x811c9dc5, 0x1b873593]
  for (let at = 0; at < bytes.length; at += 1) {
    const code = bytes.charCodeAt(at)
    high = Math.imul(high ^ code, 0x01000193)
    low = Math.imul(low ^ code, 0x85ebca6b) ^ (low >>> 13)
  }
  return { high, low }
}
