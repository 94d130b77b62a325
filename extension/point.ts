/** Points: entries on Pi's branch that say what the engine's state was there. They are never sent to a model. */
import type { SessionEntry } from '@earendil-works/pi-coding-agent'

/** The type of these entries. */
export const POINT = 'pi-context-manager'

/** A state of the engine, and the switches and sums that go with it. */
export interface Point {
  /** The session that recorded it: for a fork its parent's. */
  session: string
  /** The transaction after which the session was in this state. */
  tx: number
  /** Valid times of the session and its chat, by which the state is found in a store that they were moved to. */
  times?: [string, string]
  /** The person had switched rolls off. */
  off?: true
  /** The model had been told how it has back what collapsed. */
  taught?: true
  /** What rolls had saved, in fresh input tokens. */
  saved?: number
  /** What each later call saves, in fresh input tokens. */
  gain?: number
}

/** The last point of a branch, and where on it; undefined where there is none. */
export function lastPoint(branch: readonly SessionEntry[]): { index: number; point: Point } | undefined {
  for (let index = branch.length - 1; index >= 0; index -= 1) {
    const entry = branch[index]
    if (entry?.type === 'custom' && entry.customType === POINT && isPoint(entry.data)) {
      return { index, point: entry.data }
    }
  }
  return undefined
}

function isPoint(data: unknown): data is Point {
  const point = data as Partial<Point> | null | undefined
  const times: unknown = point?.times
  const placed = times === undefined || (Array.isArray(times) && times.length === 2)
  return typeof point?.session === 'string' && Number.isSafeInteger(point.tx) && placed
}
