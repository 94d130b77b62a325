/** What a shape of messages is: how they are told apart, read for the engine, and written back. */
import type { CollapsedCall } from '../../index.js'
import type { EngineMessage } from './message.ts'

/** What is shown in place of a part of a message: another text of a result, or other arguments of an answer's calls. */
export type PartEdit =
  | { kind: 'result'; text: string }
  | { kind: 'arguments'; calls: readonly Pick<CollapsedCall, 'position' | 'args'>[] }

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
  /** The messages of one reading with edits, by the number of the part. All else stays as it is. */
  write(messages: readonly object[], edits: ReadonlyMap<number, PartEdit>): object[]
  /** A message with words for the model. */
  notice(text: string, timestamp: number): object
  /** What of a message is its content, where that is not all of it. */
  content?(message: object): unknown
}
