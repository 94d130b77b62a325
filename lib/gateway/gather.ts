/** Bytes that come in pieces, in one buffer: what is held depends on the bytes and not on how many pieces they came in. */

/** Grows as pieces come. Each byte is copied a bounded number of times. */
export class Gathered {
  readonly #expected: number
  #bytes: Buffer = EMPTY
  #size = 0

  /** `expected`: the bytes that have been announced. Up to a limit, there is room for them from the first piece on. */
  constructor(expected = 0) {
    this.#expected = Math.min(expected, MOST_EXPECTED)
  }

  /** The number of bytes. */
  get size(): number {
    return this.#size
  }

  /** Adds a piece. */
  add(piece: Buffer): void {
    const size = this.#size + piece.length
    if (size > this.#bytes.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(size, 2 * this.#bytes.length, this.#expected, LEAST))
      this.#bytes.copy(grown, 0, 0, this.#size)
      this.#bytes = grown
    }
    piece.copy(this.#bytes, this.#size)
    this.#size = size
  }

  /** All bytes, in the buffer itself: valid until the next change. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#size)
  }

  /** Leaves only the last bytes. */
  keepLast(count: number): void {
    if (count >= this.#size) return
    this.#bytes.copyWithin(0, this.#size - count, this.#size)
    this.#size = count
    if (this.#bytes.length > 4 * Math.max(count, LEAST)) this.#bytes = Buffer.from(this.bytes)
  }
}

const EMPTY = Buffer.alloc(0)

/** A client that announces more bytes than this has to send them first. */
const MOST_EXPECTED = 4 * 1024 * 1024

/** The least size of a buffer. */
const LEAST = 4096
