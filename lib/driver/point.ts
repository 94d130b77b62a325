/** Points: the engine's state at a place of the host's conversation, kept by the host, to return to. */

import type { Prefix, Prompts } from './ledger.ts'

/** A state of the engine, with its switches and sums. */
export interface Point {
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
  /** What was saved on the branch so far, in fresh input tokens. */
  saved?: number
  /** The same in dollars, as far as the models' prices were known. */
  dollars?: number
  /** The branch's last answered call. */
  last?: Prompts
  /** What has happened to that call's prefix since; absent: nothing. */
  prefix?: Prefix
  /** By how many characters results of this turn would be longer without us, by message. */
  born?: Record<string, number>
}

/** Returns whether data from a host is a point. */
export function isPoint(data: unknown): data is Point {
  const point = data as Partial<Point> | null | undefined
  const times: unknown = point?.times
  const isPlaced = times === undefined || (Array.isArray(times) && times.length === 2)
  return typeof point?.session === 'string' && Number.isSafeInteger(point.tx) && isPlaced
}
