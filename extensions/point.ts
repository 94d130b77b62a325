/** Points: entries on Pi's branch that name the engine's state at that place. They are never sent to a model. */
import type { SessionEntry } from '@earendil-works/pi-coding-agent'
import { isPoint } from '../lib/driver/port.ts'
import type { Point } from '../lib/driver/port.ts'

export type { Point } from '../lib/driver/port.ts'

/** The type of these entries. */
export const POINT = 'pi-context-manager'

/** The points of a branch with their positions, the last one first. */
export function* points(branch: readonly SessionEntry[]): Generator<{ index: number; point: Point }> {
  for (let index = branch.length - 1; index >= 0; index -= 1) {
    const entry = branch[index]
    if (entry?.type === 'custom' && entry.customType === POINT && isPoint(entry.data)) {
      yield { index, point: entry.data }
    }
  }
}
