/** A cache of texts by name with a limit in bytes; the least recently used text leaves first. */
export class OutputCache {
  readonly #capacity: number
  readonly #threshold: number
  /** In the order of their last use. */
  readonly #texts = new Map<string, string>()
  #bytes = 0

  /** At most `capacity` bytes of texts that are shorter than `threshold` bytes. */
  constructor(capacity: number, threshold: number) {
    this.#capacity = capacity
    this.#threshold = threshold
  }

  /** Stores a text. True if it fits. */
  put(name: string, text: string): boolean {
    this.remove(name)
    const size = sizeOf(name, text)
    if (Buffer.byteLength(text) >= this.#threshold || size > this.#capacity) return false
    for (const oldest of this.#texts.keys()) {
      if (this.#bytes + size <= this.#capacity) break
      this.remove(oldest)
    }
    this.#texts.set(name, text)
    this.#bytes += size
    return true
  }

  /** The text of a name, or null. */
  get(name: string): string | null {
    const text = this.#texts.get(name)
    if (text === undefined) return null
    this.#texts.delete(name)
    this.#texts.set(name, text)
    return text
  }

  /** Drops one text. */
  remove(name: string): void {
    const text = this.#texts.get(name)
    if (text === undefined) return
    this.#texts.delete(name)
    this.#bytes -= sizeOf(name, text)
  }

  /** Drops all texts. */
  clear(): void {
    this.#texts.clear()
    this.#bytes = 0
  }

  /** Bytes of all names and texts. */
  get bytes(): number {
    return this.#bytes
  }
}

function sizeOf(name: string, text: string): number {
  return Buffer.byteLength(name) + Buffer.byteLength(text)
}
