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
  /** The place of the next carriage return in the piece; -1 if there is none. */
  #return = -1
  /** The last piece has ended with a carriage return. */
  #isReturned = false

  /** `isSplit`: false if all that comes is one line. */
  constructor(take: (line: StreamLine) => void, isSplit: boolean) {
    this.#take = take
    this.#isSplit = isSplit
  }

  /** Takes the next bytes. */
  write(piece: Buffer): void {
    let from = 0
    // A carriage return at the end of the last piece may belong to this line feed: both are one end.
    if (this.#isReturned && piece[0] === NEWLINE) from = 1
    if (piece.length > 0) this.#isReturned = false
    this.#return = this.#isSplit ? piece.indexOf(RETURN) : -1
    for (let end = this.#endIn(piece, from); end >= 0; end = this.#endIn(piece, from)) {
      this.#finish(piece.subarray(from, end))
      from = end + 1
      if (piece[end] !== RETURN) continue
      if (from === piece.length) this.#isReturned = true
      else if (piece[from] === NEWLINE) from += 1
    }
    if (from < piece.length) this.#hold(from === 0 ? piece : piece.subarray(from))
  }

  /** Hands over what has come since the last end of a line, if anything has. */
  end(): void {
    if (this.#held.size > 0) this.#finish(EMPTY)
  }

  /** The end of the line in a piece: a line feed, a carriage return, or both; -1 if it is not there. */
  #endIn(piece: Buffer, from: number): number {
    if (!this.#isSplit) return -1
    if (this.#return >= 0 && this.#return < from) this.#return = piece.indexOf(RETURN, from)
    // Each byte is looked at once, also where one of the two never comes.
    const next = this.#return < 0 ? piece.indexOf(NEWLINE, from) : piece.subarray(from, this.#return).indexOf(NEWLINE)
    if (this.#return < 0) return next
    return next < 0 ? this.#return : from + next
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
const RETURN = 13
const EMPTY = Buffer.alloc(0)
