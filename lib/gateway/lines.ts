/**
 * The lines of an answer as they come: each byte is read once, and the held text has a limit. If a line exceeds it,
 * only its end is kept: formats have their figures there.
 */
import { Gathered } from './gather.ts'

/** The longest line that is kept whole, in bytes. */
export const LONGEST_LINE = 8 * 1024 * 1024

/** The size of the kept end of a longer line, in bytes. */
export const KEPT_END = 64 * 1024

/** One line, without its end. */
export interface StreamLine {
  /** Valid only while it is handed over. */
  bytes: Buffer
  /** False if these are only its last bytes. */
  isWhole: boolean
  /** Its first bytes, at most {@link KEPT_BEGINNING}. */
  beginning: string
}

/** The size of the kept beginning of a line, in bytes. */
const KEPT_BEGINNING = 8

/** Cuts bytes into lines. */
export class Lines {
  readonly #take: (line: StreamLine) => void
  readonly #isSplit: boolean
  #held = new Gathered()
  #beginning = ''
  #isWhole = true

  /** `isSplit`: false if all that comes is one line. */
  constructor(take: (line: StreamLine) => void, isSplit: boolean) {
    this.#take = take
    this.#isSplit = isSplit
  }

  /** Takes the next bytes. */
  write(piece: Buffer): void {
    let from = 0
    for (let end = this.#endIn(piece, 0); end >= 0; end = this.#endIn(piece, from)) {
      this.#finish(piece.subarray(from, end))
      from = end + 1
    }
    if (from < piece.length) this.#hold(from === 0 ? piece : piece.subarray(from))
  }

  /** Hands over what has come since the last end of a line, if anything has. */
  end(): void {
    if (this.#held.size > 0) this.#finish(EMPTY)
  }

  #endIn(piece: Buffer, from: number): number {
    return this.#isSplit ? piece.indexOf(NEWLINE, from) : -1
  }

  #hold(piece: Buffer): void {
    if (this.#beginning.length < KEPT_BEGINNING) this.#beginning += piece.toString('latin1', 0, KEPT_BEGINNING - this.#beginning.length)
    if (this.#isWhole && this.#held.size + piece.length > LONGEST_LINE) {
      this.#isWhole = false
      this.#held.keepLast(KEPT_END)
    }
    this.#held.add(this.#isWhole || piece.length <= KEPT_END ? piece : piece.subarray(-KEPT_END))
    // Moving the end to the front pays only once there is as much again.
    if (!this.#isWhole && this.#held.size > 2 * KEPT_END) this.#held.keepLast(KEPT_END)
  }

  #finish(last: Buffer): void {
    if (this.#held.size === 0 && last.length <= LONGEST_LINE) {
      this.#take({ bytes: last, isWhole: true, beginning: last.toString('latin1', 0, KEPT_BEGINNING) })
      return
    }
    this.#hold(last)
    this.#take({ bytes: this.#isWhole ? this.#held.bytes : this.#held.bytes.subarray(-KEPT_END), isWhole: this.#isWhole, beginning: this.#beginning })
    if (this.#held.size > KEPT_END || !this.#isWhole) this.#held = new Gathered()
    else this.#held.keepLast(0)
    this.#beginning = ''
    this.#isWhole = true
  }
}

const NEWLINE = 10
const EMPTY = Buffer.alloc(0)
