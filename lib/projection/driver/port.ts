/** The port between a host and a driver: what is new and visible, points to return to, and tools that bring text back. */
import type { IncomingMessage, ModelCall, Plan } from '../../../index.js'
import { UNKNOWN_PRICES } from '../../models/index.ts'
import type { BranchSums } from './ledger.ts'

/** A new message, under the key by which host and engine know it. */
export interface Keyed extends IncomingMessage {
  /** Records something before the message is handed over, for instance a result in another form. */
  record?: () => Promise<unknown>
  /** The messages before it must be handed over before `record` runs. */
  apart?: boolean
}

/** A change in what a host shows since the last hand-over. */
export type News =
  /** Messages were added at the end. */
  | { is: 'new'; messages: readonly Keyed[] }
  /** The host no longer shows what was handed over: after a compaction, or after an edit by another program. */
  | { is: 'changed' }
  /** The host is on another branch of its conversation. */
  | { is: 'elsewhere' }

/** Everything that a host shows. */
export interface Visible {
  /** The messages with the edits in force, the oldest first. */
  messages: IncomingMessage[]
  /** The number of them, from the start, that are in the record. */
  recorded: number
  /** Messages that are neither shown nor in the record, the oldest first; they are recorded first. */
  lost?: IncomingMessage[]
}

/** A place of the host's conversation that has a point. */
export interface Landmark {
  point: Point
}

/** The circumstances that change from call to call. */
export interface Moment {
  /** The next call starts a user's turn. */
  atUserTurn: boolean
  /** The next call comes with a prompt: it starts a user's turn, or the turn is over. */
  isPrompt: boolean
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
  /** The look at the disk that the host has begun for this hand-over; undefined if there is none. */
  looked?(): Promise<unknown> | undefined
  /** True if a roll may happen at a moment: whether the host can apply it, and the model bring text back. */
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

/** A state of the engine, with its switches and sums. */
export interface Point extends BranchSums {
  /** The session that recorded it; for a fork, the parent's. */
  session: string
  /** The transaction after which the session was in this state. */
  tx: number
  /** Valid times of the session and its chat, to find the state in a store that they were moved to; RFC 3339. */
  times?: [string, string]
  /** The user had switched rolls off. */
  off?: true
  /** The model had been told how to bring back what has left its request. */
  taught?: true
  /** By how many characters results of this turn would be longer without us, by message. */
  born?: Record<string, number>
}

/** True if data from a host is a point. */
export function isPoint(data: unknown): data is Point {
  const point = data as Partial<Point> | null | undefined
  const times: unknown = point?.times
  const isPlaced = times === undefined || (Array.isArray(times) && times.length === 2)
  return typeof point?.session === 'string' && Number.isSafeInteger(point.tx) && isPlaced
}

/** The sentence that the model is told once, when text has left its request and it has no tools to bring it back. */
export const HOW_TO_READ = 'Shortened outputs, calls and texts are kept whole: read with path "id=..." shows one again, with offset and limit a part of it.'

/** The share of a session's cost so far that the tools may cost. */
const WORTH = 0.01

/** The tools of a host that can give them to the model in the middle of a session. */
export interface RecallTools {
  /** Estimated tokens of their declarations. */
  readonly tokens: number
  /** True if the model has them. */
  given(): boolean
  /** True if the next call's provider takes new tools in mid-conversation, with the cached prompt still valid. */
  appends(): boolean
  /** True if a change of the tools would cost the model its reasoning, so that they must not be given. */
  bound?(): boolean
  /** Gives them to the model from the next call on. `price` is what that costs once, in fresh input tokens. */
  give(price: number): void
}

/** Returns what the tools cost once, in fresh input tokens; undefined while that is too much for the session. */
export function worthOf(tools: Pick<RecallTools, 'tokens' | 'appends'>, { rewriteCost, spent }: Plan): number | undefined {
  // A tool's declaration stands at the very start of the prompt, and everything after it is written again.
  const price = (tools.appends() ? 0 : rewriteCost) + tools.tokens * UNKNOWN_PRICES.cacheWrite
  return price > WORTH * spent ? undefined : price
}
