/** Shapes of messages: how they are told apart, read for the engine, and written back. */
import { withText, withTexts } from './driver/edits.ts'
import type { PartEdit } from './driver/edits.ts'
import type { EngineMessage } from '../core/index.ts'

/** Some of the host's messages, read for the engine. */
export interface Reading {
  /** The number of the host's messages that belong together. */
  size: number
  /** The engine's messages for them, in order. */
  parts: readonly EngineMessage[]
}

/** One shape. It never changes the messages that it gets. */
export interface Shape {
  /** Its name in {@link ProjectionOptions.shape} and in errors. */
  readonly name: string
  /**
   * `own`: only this shape has such messages. `shared`: other shapes have them too and would read them in the same way.
   * `undefined`: the message is not of this shape.
   */
  judge(message: object): 'own' | 'shared' | undefined
  /** An answer may be several messages, and nothing stands between it and the next one. */
  readonly isInMessages?: true
  /** Each message is read by itself, whatever stands beside it. So one that has not changed need not be read again. */
  readonly isAlone?: true
  /** Reads the message at index `at` and those after it that belong to it. */
  read(messages: readonly object[], at: number): Reading
  /** Applies edits, by part number, to the messages of one reading; the rest stays as it is. Empty if everything is dropped. */
  write(messages: readonly object[], edits: ReadonlyMap<number, PartEdit>): object[]
  /** Makes a message with a notice for the model. */
  notice(text: string, timestamp: number): object
  /**
   * True if the messages end within a turn of the model in which nothing that was sent may change and nothing may be
   * added. Without it: such turns do not exist.
   */
  isHeld?(messages: readonly object[]): boolean
  /** True if the messages end with an answer that the model continues, so that nothing may be added behind it. */
  isPaused?(messages: readonly object[]): boolean
  /** The part of a message that counts as its content, if not all of it does. */
  content?(message: object): unknown
}

/** The mark of what a user says in the same message as these results. Without their calls, two messages of the user would be neighbours. */
export function joinedTo(results: readonly EngineMessage[]): Pick<EngineMessage, 'joined'> {
  return results.length > 0 ? { joined: true } : {}
}

/** True if nothing in a conversation may change now, and nothing may be added to it. */
export function isHeld(conversation: { shape: Shape | undefined; messages: readonly object[] } | undefined): boolean {
  return conversation?.shape?.isHeld?.(conversation.messages) === true
}

/**
 * True if nothing may be added at the end of a conversation, such as a notice. `wantsAnswer`: the model's provider wants an answer
 * behind results.
 */
export function isClosed(conversation: { shape: Shape | undefined; messages: readonly object[] } | undefined, wantsAnswer: boolean): boolean {
  const isPaused = conversation?.shape?.isPaused?.(conversation.messages) === true
  return isPaused || isHeld(conversation) || (wantsAnswer && endsWithResult(conversation?.messages ?? []))
}

/** True if the last message is a result, apart from the system's. */
export function endsWithResult(messages: readonly object[]): boolean {
  const role = (message: object): unknown => (message as { role?: unknown }).role
  return role(messages.findLast((message) => !OF_SYSTEM.has(role(message))) ?? {}) === 'tool'
}

const OF_SYSTEM: ReadonlySet<unknown> = new Set(['system', 'developer'])

/** The edit, if it is of the kind `message`. */
export function messageEdit(edit: PartEdit | undefined): (PartEdit & { kind: 'message' }) | undefined {
  return edit?.kind === 'message' ? edit : undefined
}

/** The arguments that replace the calls' own, by position. */
export function argumentsBy(edit: PartEdit | undefined): ReadonlyMap<number, object> {
  return new Map(messageEdit(edit)?.calls.map((call) => [call.position, call.args]))
}

/** The edited text of a content that is one text. */
export function shortenedText(text: string, edit: PartEdit | undefined): string {
  return withText(text, messageEdit(edit)?.texts ?? [])
}

/** Applies an edit's texts to blocks. `numberOf` returns a block's number, if it has one. */
export function shortened<T extends object>(
  blocks: readonly T[],
  edit: PartEdit | undefined,
  edited?: (block: T, text: string) => T,
  numberOf?: (block: T, place: number) => number | undefined,
): T[] {
  return withTexts(blocks, messageEdit(edit)?.texts ?? [], edited, numberOf)
}
