/** What a host gives a driver, and what it learns from it. */
import type { IncomingMessage, ModelCall, Plan } from '../../index.js'
import type { Point } from './point.ts'
import type { RecallTools } from './tools.ts'

/** A new message, under the key by which host and engine know it. */
export interface Keyed extends IncomingMessage {
  /** Records something before the message is handed over, for instance a result in another form. */
  record?: () => Promise<unknown>
  /** The messages before it must be handed over before `record` runs. */
  apart?: boolean
}

/** What a host shows that it did not show at the last hand-over. */
export type News =
  /** Messages were added at the end. */
  | { is: 'new'; messages: readonly Keyed[] }
  /** What was handed over is no longer what the host shows: after a compaction, or after somebody's edit. */
  | { is: 'changed' }
  /** The host is on another branch of its conversation. */
  | { is: 'elsewhere' }

/** Everything that a host shows. */
export interface Visible {
  /** The messages with the edits in force, the oldest first. */
  messages: IncomingMessage[]
  /** How many of them, from the start, are in the record. */
  recorded: number
  /** Messages that are neither shown nor in the record, the oldest first; they are recorded first. */
  lost?: IncomingMessage[]
}

/** A place of the host's conversation that has a point. */
export interface Landmark {
  point: Point
}

/** What changes from call to call. */
export interface Moment {
  /** The next call starts a user's turn. */
  atUserTurn: boolean
  /** Rolls may happen now. */
  rolls: boolean
}

/**
 * The moments of a hand-over: before a prompt is stored (`prompt`), before a model call (`call`), at the end of a turn
 * (`end`), and any other (`aside`). Rolls happen at the end of a turn, and before calls that start a user's turn or whose
 * cache is dead.
 */
export type When = 'prompt' | 'call' | 'end' | 'aside'

/** A host, as a driver sees it. Its methods are called one after the other. */
export interface Port<L extends Landmark = Landmark> {
  /** Returns what is new since the last hand-over that {@link Port.accepted} ended. */
  news(): News | Promise<News>
  /**
   * Returns everything that is shown. `known` says what the record has of it: everything up to the last hand-over
   * (`kept`), or up to a landmark, or nothing.
   */
  visible(known: 'kept' | L | undefined): Visible | Promise<Visible>
  /**
   * The landmarks of the current branch, the last one first. A host without them finds out in {@link Port.visible} what the
   * record has.
   */
  landmarks?(): Iterable<L>
  /** The engine has returned to the state at a landmark. */
  cameBack?(landmark: L): void
  /** The engine has accepted what {@link Port.news} or {@link Port.visible} returned last. */
  accepted(): void
  /** Describes the next model call. */
  call(moment: Moment): ModelCall
  /** Returns whether a roll may happen at a moment: whether the host can apply it, and the model bring text back. */
  mayRoll(when: When): boolean
  /** The engine has made a plan; its edits are the caller's to apply. */
  planned?(plan: Plan): void
  /**
   * A message could not be recorded in any form; `sentence` says why. Without this method, such a hand-over rejects with
   * `INVALID_ARGUMENT`.
   */
  leftOut?(sentence: string): void
  /** The tools that the model gets once they are worth their price; absent if it has them from the start or never. */
  tools?: RecallTools
}
