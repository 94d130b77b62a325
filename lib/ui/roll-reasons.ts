/** Why text left a request in a roll, in the same words on every page. */
import type { RollReceipt } from '../../index.js'

/** By the reason in the roll's receipt. */
export const ROLL_REASONS: Readonly<Record<RollReceipt['reason'], string>> = {
  free: 'it was free, because the provider no longer had the prompt in its cache',
  pays: 'keeping it had cost as much',
  pressure: 'the window was filling up',
  hard: 'the window was full',
  asked: 'on request',
}
