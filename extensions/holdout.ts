/** Sessions that are left plain, so that the saving can be measured on the user's own bills. */
import type { SessionEntry } from '@earendil-works/pi-coding-agent'
import { isPlainSide } from '../lib/core/index.ts'
import { POINT } from './messages.ts'

/** The type of the entry that marks a plain session. It is never sent to a model. */
export const HOLDOUT = 'pi-context-manager-holdout'

/**
 * True for a session that is left plain. The ID decides, so a session stays what it was when it is resumed. One that was
 * begun with the context manager stays with it.
 */
export function isHeldOut(sessionId: string, share: number, entries: readonly SessionEntry[]): boolean {
  if (share <= 0 || entries.some((entry) => entry.type === 'custom' && entry.customType === POINT)) return false
  return isPlainSide('pi', sessionId, share)
}

/** True if the session has its mark. */
export function isMarked(entries: readonly SessionEntry[]): boolean {
  return entries.some((entry) => entry.type === 'custom' && entry.customType === HOLDOUT)
}
