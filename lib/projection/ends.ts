/**
 * Where an answer ends and the next one begins. In some shapes an answer is a list of messages with nothing between it and the next
 * one; what was handed over, and what is recorded, says where the first one ended.
 */
import type { ContextManager } from '../../index.js'
import { handed, isFields, recordable, wellFormed } from '../core/index.ts'
import { fingerprint } from './identity.ts'
import { entriesOf, turnMessage } from './recorded.ts'
import type { TurnMessage } from './recorded.ts'
import type { Shape } from './shape.ts'
import { contentOf, wordsOf } from './unit.ts'
import type { Unit } from './unit.ts'

/** Returns how many of some messages are the first answer in them. Gets the answers of a conversation in their order. */
export type SizeOf = (messages: readonly object[]) => number

/**
 * Reads answers as they were handed over: in these units, of which the first `same` are already read. Undefined for shapes whose
 * messages are whole answers.
 */
export function sizeIn(units: readonly Unit[], same: number, shape: Shape | undefined): SizeOf | undefined {
  if (shape?.isInMessages !== true) return undefined
  let ends: Ends | undefined
  const answers = (): Answer[] =>
    units.filter(isAnswer).flatMap((unit, place) => [wordsOf(unit), ...unit.forms].map((pieces) => ({ place, pieces, isCertain: true })))
  const last = units.slice(0, same).filter(isAnswer).length - 1
  return (messages) => (ends ??= new Ends(answers(), last)).sizeOf(messages.map((one) => [contentOf(shape, one)]))
}

/** The same as they are recorded, where there are no units. */
export async function sizeInRecord(manager: ContextManager, record: readonly TurnMessage[], shape: Shape | undefined): Promise<SizeOf | undefined> {
  // Nothing is read a second time where nothing is recorded.
  if (shape?.isInMessages !== true || !record.some(({ role }) => role === 'assistant')) return undefined
  const inserted = await insertedIn(manager)
  let ends: Ends | undefined
  const wordsIn = (message: object): readonly unknown[] =>
    shape.read([message], 0).parts.flatMap((part) => (turnMessage(recordable(handed(wellFormed(part))))?.words as unknown[] | undefined) ?? [])
  const answers = (): Answer[] =>
    record
      .filter(({ role }) => role === 'assistant')
      .map(({ words }, place) => ({ place, pieces: words as unknown[], isCertain: (words as unknown[]).some((one) => !isCall(one)) }))
  return (messages) => (ends ??= new Ends(answers(), -1, inserted)).sizeOf(messages.map(wordsIn))
}

/** The first calls of the answers to which the host's later texts belong, by these texts; null for an answer without calls. */
type Inserted = ReadonlyMap<string, string | null>

/** The texts in the record that the host has put into the past of its conversation. */
async function insertedIn(manager: ContextManager): Promise<Inserted> {
  const entries = await entriesOf(manager)
  // An entry of an earlier version does not name the calls.
  return new Map(entries.flatMap(({ inserted = [], of = [] }) => inserted.slice(0, of.length).map((text, at) => [text, of[at] ?? null])))
}

/** An answer that is known to be whole. */
interface Answer {
  /** Its number among all answers. */
  place: number
  pieces: readonly unknown[]
  /** Another answer does not have these pieces by chance, as one with nothing but a call whose ID is used again. */
  isCertain: boolean
}

interface Known extends Omit<Answer, 'pieces'> {
  names: readonly string[]
}

/** The answers that are known, and the last one that was found. */
class Ends {
  /** By their first piece. */
  readonly #known = new Map<string, Known[]>()
  readonly #inserted: Inserted
  #last: number

  constructor(answers: readonly Answer[], last: number, inserted: Inserted = new Map()) {
    this.#last = last
    this.#inserted = inserted
    for (const { pieces, ...rest } of answers) {
      const names = pieces.map(fingerprint)
      const first = names[0]
      if (first === undefined) continue
      const one = { ...rest, names }
      const like = this.#known.get(first)
      if (like === undefined) this.#known.set(first, [one])
      else like.push(one)
    }
  }

  /** The number of messages that are one answer, at the beginning of some that may be several. `messages` has the pieces of each. */
  sizeOf(messages: readonly (readonly unknown[])[]): number {
    const names = messages.map((pieces) => pieces.map(fingerprint))
    const next = this.#last + 1
    const found = this.#longestAt(names, 0, ({ place }, size) => size === names.length || place === next)
    const certain = found ?? this.#longestAt(names, 0, ({ isCertain }) => isCertain)
    if (certain !== undefined) {
      this.#last = Math.max(this.#last, certain.place)
      return certain.size
    }
    const placed = this.#placed(messages, names)
    if (placed !== undefined) return placed
    // Messages before the answer after next are the next one, which the host has changed.
    const behind = names.findIndex((_, from) => from > 0 && this.#longestAt(names, from, ({ place }) => place === next + 1) !== undefined)
    if (behind < 0) return names.length
    this.#last = next
    return behind
  }

  /** The number of messages in an answer that begins with a text of the host, if the record says which answer that is. */
  #placed(messages: readonly (readonly unknown[])[], names: readonly (readonly string[])[]): number | undefined {
    const calls = messages.map((pieces) => this.#callOf(pieces))
    const [call] = calls
    if (call === undefined) return undefined
    if (call === null) return 1
    const count = calls.findIndex((one) => one !== call)
    const found = count < 0 || !hasCall(messages[count], call) ? undefined : this.#longestAt(names, count, () => true)
    if (found === undefined) return undefined
    this.#last = Math.max(this.#last, found.place)
    return count + found.size
  }

  /** The first call of the answer that a text of the host belongs to; undefined if the record does not say. */
  #callOf(pieces: readonly unknown[]): string | null | undefined {
    const [text, ...others] = pieces
    return others.length === 0 && isFields(text) && typeof text['text'] === 'string' ? this.#inserted.get(text['text']) : undefined
  }

  /** The longest known answer that begins at an index and is wanted, and its size in messages. */
  #longestAt(
    messages: readonly (readonly string[])[],
    from: number,
    isWanted: (one: Known, size: number) => boolean,
  ): { place: number; size: number } | undefined {
    const ends = new Map<number, number>()
    let length = 0
    for (let at = from; at < messages.length; at += 1) ends.set((length += messages[at]?.length ?? 0), at + 1 - from)
    const names = messages.slice(from).flat()
    let longest: { place: number; size: number } | undefined
    for (const one of this.#known.get(names[0] ?? '') ?? []) {
      const size = ends.get(one.names.length)
      if (size === undefined || size < (longest?.size ?? 0) || !one.names.every((name, at) => names[at] === name) || !isWanted(one, size)) continue
      // Of equal ones the first that has not been found yet.
      if (size > (longest?.size ?? 0) || (longest !== undefined && longest.place <= this.#last)) longest = { place: one.place, size }
    }
    return longest
  }
}

function isAnswer({ parts }: Unit): boolean {
  return parts.some(({ message }) => message.role === 'assistant')
}

function hasCall(pieces: readonly unknown[] = [], id: string): boolean {
  return pieces.some((piece) => isCall(piece) && (piece as { id: unknown }).id === id)
}

/** True if a piece is a call, as it is compared with the record: its ID and its name. */
function isCall(piece: unknown): boolean {
  return isFields(piece) && 'id' in piece && 'name' in piece
}
