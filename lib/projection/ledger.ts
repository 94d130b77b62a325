/**
 * The messages of the host's last call, stored so that comparing them with the current ones is cheap if nothing has
 * changed. Messages of the same structure share one description of it, and all values are in one list that is read from
 * start to end. Texts are compared by reference first, so changes in place are noticed, and an unchanged text is not read.
 */
import { guarded, isEqual, keep, opaque } from './identity.ts'

/** The structure of a content; undefined for a plain value. */
interface Structure {
  readonly id: number
  /** The fields of an object in their order; undefined for an array. */
  readonly names: readonly string[] | undefined
  readonly children: readonly (Structure | undefined)[]
}

/** Bytes, dates and URLs: compared as a whole. */
const OPAQUE: Structure = { id: 1, names: undefined, children: [] }

/** Every message of the host, with the number of its unit. */
export class HostMessages {
  readonly #known = new Map<string, Structure>()
  readonly #structures: (Structure | undefined)[] = []
  readonly #starts: number[] = []
  readonly #units: number[] = []
  readonly #objects: object[] = []
  readonly #values: unknown[] = []

  /** The number of messages. */
  get length(): number {
    return this.#structures.length
  }

  /** The unit of a message. */
  unitAt(at: number): number {
    return this.#units[at] as number
  }

  /** Adds a message with its content. Throws `INVALID_ARGUMENT` if it contains itself. */
  add(message: object, content: unknown, unit: number): void {
    const start = this.#values.length
    const structure = guarded(() => this.#structureOf(content))
    this.#structures.push(structure)
    this.#starts.push(start)
    this.#units.push(unit)
    this.#objects.push(message)
  }

  /** Drops the messages of this unit and all later ones. Returns how many messages are left. */
  cut(unit: number): number {
    let at = this.length
    while (at > 0 && (this.#units[at - 1] as number) >= unit) at -= 1
    if (at < this.length) this.#values.length = this.#starts[at] as number
    for (const list of [this.#structures, this.#starts, this.#units, this.#objects]) list.length = at
    return at
  }

  /**
   * Counts the messages from the start whose content is unchanged. Calls `replaced` for each of them that is now another
   * object, with the earlier one. `contentOf` returns the part of a message that counts; default: all of it.
   */
  follow(messages: readonly object[], contentOf: ((message: object) => unknown) | undefined, replaced: (at: number, before: object) => void): number {
    const count = Math.min(this.length, messages.length)
    try {
      for (let at = 0; at < count; at += 1) {
        const message = messages[at] as object
        const content = contentOf === undefined ? message : contentOf(message)
        if (this.#match(content, this.#structures[at], this.#starts[at] as number) < 0) return at
        const before = this.#objects[at] as object
        if (before === message) continue
        this.#objects[at] = message
        replaced(at, before)
      }
      return count
    } catch (error) {
      // A message now contains itself; the comparison that follows reports it.
      if (error instanceof RangeError) return 0
      throw error
    }
  }

  /** Compares a value with the list along its structure. Returns the position after its values, or a negative number if they differ. */
  #match(value: unknown, structure: Structure | undefined, at: number): number {
    if (structure === undefined) return this.#isValue(value, at) ? at + 1 : -1
    if (typeof value !== 'object' || value === null) return -1
    if (structure === OPAQUE) return isEqual(this.#values[at], value) ? at + 1 : -1
    const { names, children } = structure
    if (names === undefined) {
      if (!Array.isArray(value) || value.length !== children.length) return -1
      for (let index = 0; index < children.length && at >= 0; index += 1) at = this.#match(value[index], children[index], at)
      return at
    }
    let index = 0
    for (const name in value) {
      if (names[index] !== name) return -1
      const one = (value as Record<string, unknown>)[name]
      const child = children[index]
      if (child === undefined) {
        if (!this.#isValue(one, at)) return -1
        at += 1
      } else {
        at = this.#match(one, child, at)
        if (at < 0) return at
      }
      index += 1
    }
    // A date has no fields, either.
    return index === names.length && (index > 0 || opaque(value) === undefined) ? at : -1
  }

  #isValue(value: unknown, at: number): boolean {
    const noted = this.#values[at]
    // `Object.is` does not read a text that is identical by reference; `===` does.
    return Object.is(value, noted) || value === noted
  }

  #structureOf(value: unknown): Structure | undefined {
    if (typeof value !== 'object' || value === null) {
      this.#values.push(value)
      return undefined
    }
    if (Array.isArray(value))
      return this.#interned(
        undefined,
        value.map((one) => this.#structureOf(one)),
      )
    if (Object.getPrototypeOf(value) !== Object.prototype && opaque(value) !== undefined) {
      this.#values.push(keep(value))
      return OPAQUE
    }
    const names: string[] = []
    const children: (Structure | undefined)[] = []
    for (const name in value) {
      names.push(name)
      children.push(this.#structureOf((value as Record<string, unknown>)[name]))
    }
    return this.#interned(names, children)
  }

  #interned(names: readonly string[] | undefined, children: readonly (Structure | undefined)[]): Structure {
    const parts = children.map((child) => child?.id ?? 0)
    const key = names === undefined ? `[${parts.join()}]` : JSON.stringify([names, parts])
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const made = { id: this.#known.size + 2, names, children }
    this.#known.set(key, made)
    return made
  }
}
