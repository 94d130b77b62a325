/**
 * Phrases that models write on their own: those in answers of two or more sessions although nothing in sight contained
 * them. An answer that contains one did not necessarily use hidden text.
 */
import { blocksOf, Calls, isCall, isSent, openRecording } from '../../recordings/index.ts'
import type { Recording } from '../../recordings/index.ts'
import { partsOf, textsOf } from './answer.ts'
import { Scanner } from './probes.ts'
import type { Sink } from './probes.ts'

/** A set of hashes of fixed size (a Bloom filter): it may report a hash that was never added, but never misses one. */
class Sieve {
  readonly #bits: Uint32Array
  readonly #mask: number
  /** The number of added phrases. */
  size = 0

  /** `bits` is a power of two. */
  constructor(bits: number) {
    this.#bits = new Uint32Array(bits / 32)
    this.#mask = bits - 1
  }

  /** Adds a hash; returns whether it was there before. */
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

  /** True if a hash was added. */
  has(high: number, low: number): boolean {
    for (let round = 0; round < 3; round += 1) {
      const bit = (high + Math.imul(round, low | 1)) & this.#mask
      if (((this.#bits[bit >>> 5] as number) & (1 << (bit & 31))) === 0) return false
    }
    return true
  }

  /** Removes everything. */
  clear(): void {
    this.#bits.fill(0)
    this.size = 0
  }
}

/** Beyond this many phrases, no more are learned: the size is fixed, no matter how large the folder is. */
const MAX_PHRASES = 24_000_000

/** Learns from sessions, one after the other, in fixed memory. */
export class OwnPhrases {
  readonly #once = new Sieve(1 << 28)
  readonly #twice = new Sieve(1 << 26)
  readonly #shown = new Sieve(1 << 26)
  readonly #written = new Sieve(1 << 24)
  readonly #scanner = new Scanner()

  /** True if models write this on their own. */
  has(high: number, low: number): boolean {
    return this.#twice.has(high, low)
  }

  /** Learns from a session. */
  async learn(recording: Pick<Recording, 'origin' | 'steps'>): Promise<void> {
    if (this.#once.size > MAX_PHRASES) return
    this.#shown.clear()
    this.#written.clear()
    const { cwd } = recording.origin
    const calls = new Calls()
    const see: Sink = {
      quote: (high, low) => void this.#shown.add(high, low),
      name: (high, low) => void this.#shown.add(high, low),
    }
    const write = (high: number, low: number): void => {
      if (this.#shown.has(high, low) || this.#written.add(high, low)) return
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

/** The phrases of all these files together. `progress` gets the index of each file before it is read. */
export async function phrasesOf(files: readonly string[], progress?: (index: number) => void): Promise<OwnPhrases> {
  const phrases = new OwnPhrases()
  for (const [index, file] of files.entries()) {
    progress?.(index)
    try {
      await phrases.learn(await openRecording(file))
    } catch {
      // Problems with a file are reported when it is replayed.
    }
  }
  return phrases
}
