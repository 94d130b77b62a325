/** The quotes and names in a session's answers, as small numbers: nothing else can be a use of hidden text. */

const EMPTY = 0xffffffff

/** Numbers 64-bit hashes from 0 on, in order of arrival. */
export class Vocabulary {
  #slots = new Uint32Array(1 << 12).fill(EMPTY)
  #high = new Uint32Array(1 << 11)
  #low = new Uint32Array(1 << 11)
  #isName = new Uint8Array(1 << 11)
  #size = 0

  /** The number of quotes and names. */
  get size(): number {
    return this.#size
  }

  /** The number of a quote or name; adds it if it is new. */
  add(high: number, low: number, isName: boolean): number {
    if (2 * this.#size >= this.#slots.length) this.#grow()
    const slot = this.#slot(high, low)
    const known = this.#slots[slot] as number
    if (known !== EMPTY) return known
    const id = this.#size
    this.#slots[slot] = id
    this.#high[id] = high
    this.#low[id] = low
    this.#isName[id] = isName ? 1 : 0
    this.#size += 1
    return id
  }

  /** The number of a quote or name; undefined if no answer contains it. */
  find(high: number, low: number): number | undefined {
    const id = this.#slots[this.#slot(high, low)] as number
    return id === EMPTY ? undefined : id
  }

  /** True if a number is a name's. */
  isName(id: number): boolean {
    return this.#isName[id] === 1
  }

  /** The hash behind a number. */
  hash(id: number): [high: number, low: number] {
    return [this.#high[id] as number, this.#low[id] as number]
  }

  #slot(high: number, low: number): number {
    const mask = this.#slots.length - 1
    let slot = (high ^ Math.imul(low, 0x9e3779b1)) & mask
    for (;;) {
      const id = this.#slots[slot] as number
      if (id === EMPTY || (this.#high[id] === high && this.#low[id] === low)) return slot
      slot = (slot + 1) & mask
    }
  }

  #grow(): void {
    const size = 2 * this.#slots.length
    this.#slots = new Uint32Array(size).fill(EMPTY)
    this.#high = grown(this.#high, size / 2)
    this.#low = grown(this.#low, size / 2)
    const names = new Uint8Array(size / 2)
    names.set(this.#isName)
    this.#isName = names
    for (let id = 0; id < this.#size; id += 1) {
      this.#slots[this.#slot(this.#high[id] as number, this.#low[id] as number)] = id
    }
  }
}

/** A copy of an array with room for the given count of numbers. */
export function grown(old: Uint32Array<ArrayBuffer>, size: number): Uint32Array<ArrayBuffer> {
  const made = new Uint32Array(size)
  made.set(old)
  return made
}
