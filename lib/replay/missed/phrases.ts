/**
 * What models write of their own accord: phrases that answers of two or more sessions contain although nothing in sight
 * had them. That an answer contains one is no sign that it used hidden text.
 */
import { blocksOf, Calls } from '../blocks.ts'
import { isCall, isSent } from '../recording.ts'
import type { Recording } from '../recording.ts'
import { partsOf, textsOf } from './answer.ts'
import { Scanner } from './probes.ts'
import type { Sink } from './probes.ts'

/** A set of hashes in a fixed space, which may hold one more than were put in, but none less. */
class Sieve {
  readonly #bits: Uint32Array
  readonly #mask: number
  /** How many were put in. */
  size = 0

  /** `bits` is a power of two. */
  constructor(bits: number) {
    this.#bits = new Uint32Array(bits / 32)
    this.#mask = bits - 1
  }

  /** Puts a hash in; whether it was there before. */
  add(high: number, low: number): boolean {
    let known = true
    for (let round = 0; round < 3; round += 1) {
      const bit = (high + Math.imul(round, low | 1)) & this.#mask
      const word = this.#bits[bit >>> 5] as number
      const flag = 1 << (bit & 31)
      if ((word & flag) !== 0) continue
      known = false
      this.#bits[bit >>> 5] = word | flag
    }
    if (!known) this.size += 1
    return known
  }

  /** Whether a hash was put in. */
  has(high: number, low: number): boolean {
    for (let round = 0; round < 3; round += 1) {
      const bit = (high + Math.imul(round, low | 1)) & this.#mask
      if (((this.#bits[bit >>> 5] as number) & (1 << (bit & 31))) === 0) return false
    }
    return true
  }

  /** Takes everything out. */
  clear(): void {
    this.#bits.fill(0)
    this.size = 0
  }
}

/** From so many phrases on no further ones are learned: the space is fixed, whatever the folder. */
const MAX_PHRASES = 24_000_000

/** Learns from sessions, one after the other, in a fixed space. */
export class OwnPhrases {
  readonly #once = new Sieve(1 << 28)
  readonly #twice = new Sieve(1 << 26)
  readonly #inSight = new Sieve(1 << 26)
  readonly #written = new Sieve(1 << 24)
  readonly #scanner = new Scanner()

  /** Whether models write this of their own accord. */
  has(high: number, low: number): boolean {
    return this.#twice.has(high, low)
  }

  /** Learns from a session. */
  async learn(recording: Recording): Promise<void> {
    if (this.#once.size > MAX_PHRASES) return
    this.#inSight.clear()
    this.#written.clear()
    const { cwd } = recording.origin
    const calls = new Calls()
    const see: Sink = {
      quote: (high, low) => void this.#inSight.add(high, low),
      name: (high, low) => void this.#inSight.add(high, low),
    }
    const write = (high: number, low: number): void => {
      if (this.#inSight.has(high, low) || this.#written.add(high, low)) return
      if (this.#once.add(high, low)) this.#twice.add(high, low)
    }
    const answer: Sink = { quote: write, name: write }
    for await (const step of recording.steps(() => {})) {
      if (step.kind === 'compaction') this.#scanner.scan(step.summary, cwd, see)
      if (step.kind !== 'message') continue
      const { message } = step.entry
      calls.add(message)
      if (isCall(message)) {
        for (const { texts } of partsOf(message)) for (const text of texts) this.#scanner.scan(text, cwd, answer)
      }
      if (!isSent(message)) continue
      for (const block of blocksOf(step.entry, calls)) {
        for (const text of textsOf(block)) this.#scanner.scan(text, cwd, see)
      }
    }
  }
}
