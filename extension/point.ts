/** Points: entries on Pi's branch that name the engine's state at that place. They are never sent to a model. */
import type { SessionEntry } from '@earendil-works/pi-coding-agent'

/** The type of these entries. */
export const POINT = 'pi-context-manager'

/** A state of the engine, with its switches and sums. */
export interface Point {
  /** The session that recorded it; for a fork, the parent's. */
  session: string
  /** The transaction after which the session was in this state. */
  tx: number
  /** Valid times of the session and its chat, to find the state in a store that they were moved to. */
  times?: [string, string]
  /** The person had switched rolls off. */
  off?: true
  /** The model had been told how to bring back collapsed outputs. */
  taught?: true
  /** What rolls had saved, in fresh input tokens. */
  saved?: number
  /** What each later call saves, in fresh input tokens. */
  gain?: number
}

/** The points of a branch with their positions, the last one first. */
export function* points(branch: readonly SessionEntry[]): Generator<{ index: number; point: Point }> {
  for (let index = branch.length - 1; index >= 0; index -= 1) {
    const entry = branch[index]
    if (entry?.type === 'custom' && entry.customType === POINT && isPoint(entry.data)) {
      yield { index, point: entry.data }
    }
  }
}

function isPoint(data: unknown): data is Point {
  const point = data as Partial<Point> | null | undefined
  const times: unknown = point?.times
  const placed = times === undefined || (Array.isArray(times) && times.length === 2)
  return typeof point?.session === 'string' && Number.isSafeInteger(point.tx) && placed
}
