/**
 * Reasoning that a provider has refused. It stays out of every later request: what has left must not come back, or the
 * provider refuses that, too.
 */

/** A block's or item's identity: its signature, or all of it if it has none. Undefined for what is no reasoning. */
function reasoningKey(block: unknown): string | undefined {
  if (typeof block !== 'object' || block === null) return undefined
  const { type, signature, thinkingSignature, data, encrypted_content: encrypted, reasoningContent } = block as Record<string, unknown>
  // Bedrock's Converse.
  if (typeof reasoningContent === 'object' && reasoningContent !== null) {
    const { reasoningText } = reasoningContent as { reasoningText?: { signature?: unknown } }
    return typeof reasoningText?.signature === 'string' ? reasoningText.signature : JSON.stringify(reasoningContent)
  }
  if (type !== 'thinking' && type !== 'redacted_thinking' && type !== 'reasoning') return undefined
  const signed = [signature, thinkingSignature, data, encrypted].find((one) => typeof one === 'string' && one !== '')
  return typeof signed === 'string' ? signed : JSON.stringify(block)
}

/** The reasoning that one conversation withholds. Reads messages of every shape that the product knows. */
export class Withheld {
  readonly #keys = new Set<string>()

  /** Withholds what messages have and later ones no longer do. */
  static between(before: readonly object[], now: readonly object[]): Withheld {
    const [withheld, left] = [new Withheld(), new Withheld()]
    withheld.add(before)
    left.add(now)
    for (const key of left.#keys) withheld.#keys.delete(key)
    return withheld
  }

  /** How many blocks are withheld. */
  get size(): number {
    return this.#keys.size
  }

  /** Withholds all reasoning of a conversation from now on. Returns how many blocks are new. */
  add(messages: readonly object[]): number {
    const before = this.#keys.size
    for (const message of messages) {
      for (const block of [message, ...blocksOf(message)]) {
        const key = reasoningKey(block)
        if (key !== undefined) this.#keys.add(key)
      }
    }
    return this.#keys.size - before
  }

  /** The messages without what is withheld; those that nothing is left of are left out. The given ones stay as they are. */
  without<T extends object>(messages: readonly T[]): T[] {
    if (this.#keys.size === 0) return [...messages]
    return messages.flatMap((message) => {
      if (this.#holds(message)) return []
      const name = LISTS.find((list) => Array.isArray((message as Record<string, unknown>)[list]))
      if (name === undefined) return [message]
      const blocks = blocksOf(message)
      const left = blocks.filter((block) => !this.#holds(block))
      if (left.length === blocks.length) return [message]
      // Some hosts' messages are instances of classes.
      return left.length === 0 ? [] : [Object.assign(Object.create(Object.getPrototypeOf(message)), message, { [name]: left }) as T]
    })
  }

  #holds(block: unknown): boolean {
    const key = reasoningKey(block)
    return key !== undefined && this.#keys.has(key)
  }
}

/** The fields in which messages have their blocks. */
const LISTS = ['content', 'parts'] as const

function blocksOf(message: object): unknown[] {
  const fields = message as Record<string, unknown>
  return LISTS.map((name) => fields[name]).find(Array.isArray) ?? []
}
