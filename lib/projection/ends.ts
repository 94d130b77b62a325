/**
 * Where an answer ends and the next one begins. In some shapes an answer is a list of messages with nothing between it and the next
 * one; what was handed over, and what is recorded, says where the first one ended.
 */
import { handed, recordable, wellFormed } from '../core/index.ts'
import { fingerprint } from './identity.ts'
import { turnMessage } from './recorded.ts'
import type { TurnMessage } from './recorded.ts'
import type { Shape } from './shape.ts'
import { contentOf, wordsOf } from './unit.ts'
import type { Unit } from './unit.ts'

/** Returns how many of some messages are the first answer in them. */
export type SizeOf = (messages: readonly object[]) => number

/**
 * Reads answers as they were handed over: in these units, or as they are recorded where there are none. Undefined for shapes whose
 * messages are whole answers.
 */
export function sizeIn(units: readonly Unit[], record: readonly TurnMessage[], shape: Shape | undefined): SizeOf | undefined {
  if (shape?.isInMessages !== true) return undefined
  let ends: Ends | undefined
  if (units.length > 0) {
    return (messages) => (ends ??= new Ends(units.flatMap((unit) => [wordsOf(unit), ...unit.forms]))).sizeOf(messages.map((one) => [contentOf(shape, one)]))
  }
  const wordsIn = (message: object): readonly unknown[] =>
    shape.read([message], 0).parts.flatMap((part) => (turnMessage(recordable(handed(wellFormed(part))))?.words as unknown[] | undefined) ?? [])
  return (messages) => (ends ??= new Ends(record.flatMap(({ role, words }) => (role === 'assistant' ? [words as unknown[]] : [])))).sizeOf(messages.map(wordsIn))
}

/** The answers known to be whole, each as the names of its pieces in order. */
class Ends {
  readonly #known = new Map<string, (readonly string[])[]>()

  /** `answers`: the pieces of each answer. Pieces with the same content have the same name. */
  constructor(answers: Iterable<readonly unknown[]>) {
    for (const pieces of answers) {
      const [first, ...others] = pieces.map(fingerprint)
      if (first === undefined) continue
      const like = this.#known.get(first)
      if (like === undefined) this.#known.set(first, [[first, ...others]])
      else like.push([first, ...others])
    }
  }

  /**
   * The number of messages that are one answer, at the beginning of some messages that may be several answers. `messages` has the
   * pieces of each.
   */
  sizeOf(messages: readonly (readonly unknown[])[]): number {
    if (this.#known.size === 0 || messages.length < 2) return messages.length
    const names = messages.map((pieces) => pieces.map(fingerprint))
    // Messages before a known answer are another one.
    for (let from = 0; from < names.length; from += 1) {
      const size = this.#longestAt(names, from)
      if (size > 0) return from === 0 ? size : from
    }
    return messages.length
  }

  /** The number of messages of the longest known answer that begins at an index; 0 if none does. */
  #longestAt(messages: readonly (readonly string[])[], from: number): number {
    const ends = new Map<number, number>()
    let length = 0
    for (let at = from; at < messages.length; at += 1) ends.set((length += messages[at]?.length ?? 0), at + 1 - from)
    const names = messages.slice(from).flat()
    const known = messages[from]?.length === 0 ? [] : (this.#known.get(names[0] ?? '') ?? [])
    return Math.max(0, ...known.map((one) => (one.every((name, at) => names[at] === name) ? (ends.get(one.length) ?? 0) : 0)))
  }
}
