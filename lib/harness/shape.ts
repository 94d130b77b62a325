/** What a shape of messages is: how they are told apart, read for the engine, and written back. */
import type { CollapsedCall } from '../../index.js'
import type { EngineMessage } from './message.ts'

/** A block of a message that is shortened or, without a text, left out. */
export interface TextEdit {
  /** The block, counted from 0 among those of the part as the engine was given it; 0 for a content that is one text. */
  block: number
  text?: string
}

/** Arguments that stand in place of a call's own. */
export type CallEdit = Pick<CollapsedCall, 'position' | 'args'>

/** What is shown in place of a part of a message. */
export type PartEdit =
  /** Another text of a result. */
  | { kind: 'result'; text: string }
  /** Other arguments of an answer's calls; texts of an answer or a user's message, shortened or left out. */
  | { kind: 'message'; calls: readonly CallEdit[]; texts: readonly TextEdit[] }
  /** Nothing: the part is left out. */
  | { kind: 'gone' }

/** Some of a host's messages, read for the engine. */
export interface Reading {
  /** How many of the host's messages belong together. */
  size: number
  /** What they are to the engine, in their order. */
  parts: readonly EngineMessage[]
}

/** One shape. It never changes a message that it is given. */
export interface Shape {
  /** Its name in {@link ProjectionOptions.shape} and in errors. */
  readonly name: string
  /**
   * `own`: only this shape has such messages. `shared`: others could have it, too, and would read it in the same way.
   * `undefined`: it is not of this shape.
   */
  judge(message: object): 'own' | 'shared' | undefined
  /** Reads the message at `at`, together with those after it that belong to it. */
  read(messages: readonly object[], at: number): Reading
  /** The messages of one reading with edits, by the number of the part. All else stays as it is. None where all is left out. */
  write(messages: readonly object[], edits: ReadonlyMap<number, PartEdit>): object[]
  /** A message with words for the model. */
  notice(text: string, timestamp: number): object
  /** What of a message is its content, where that is not all of it. */
  content?(message: object): unknown
}

/** The edit of a message, if it is one. */
export function messageEdit(edit: PartEdit | undefined): (PartEdit & { kind: 'message' }) | undefined {
  return edit?.kind === 'message' ? edit : undefined
}

/** The arguments that take the place of calls' own, by the calls' positions. */
export function argumentsBy(edit: PartEdit | undefined): ReadonlyMap<number, object> {
  return new Map(messageEdit(edit)?.calls.map((call) => [call.position, call.args]))
}

/** The text of a content that is one text. */
export function shortenedText(text: string, edit: PartEdit | undefined): string {
  const found = messageEdit(edit)?.texts.find(({ block }) => block === 0)
  return found === undefined ? text : (found.text ?? '')
}

/** Blocks with their texts as an edit has them. `numberOf` gives a block its number, where it has one. */
export function shortened<T extends object>(
  blocks: readonly T[],
  edit: PartEdit | undefined,
  withText: (block: T, text: string) => T = (block, text) => ({ ...block, text }),
  numberOf: (block: T, place: number) => number | undefined = (_, place) => place,
): T[] {
  const texts = new Map(messageEdit(edit)?.texts.map((one) => [one.block, one]))
  if (texts.size === 0) return [...blocks]
  return blocks.flatMap((block, place) => {
    const number = numberOf(block, place)
    const found = number === undefined ? undefined : texts.get(number)
    if (found === undefined) return [block]
    return found.text === undefined ? [] : [withText(block, found.text)]
  })
}
