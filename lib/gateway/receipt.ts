/** Receipts of rolls in conversations of which others have sent the beginning. */
import type { RollReceipt } from '../../index.js'

/** The receipt of a roll, for what it has changed in the messages as they were sent before. */
export function actualReceipt(receipt: RollReceipt, before: readonly object[], after: readonly object[]): RollReceipt {
  const stays = new Set(after.map((message) => JSON.stringify(message)))
  const size = (messages: readonly object[]): number => messages.reduce((sum, message) => sum + JSON.stringify(message).length, 0)
  const removedTokens = Math.min(receipt.removedTokens, Math.max(0, Math.round((size(before) - size(after)) / 4)))
  const gain = (receipt.gain * removedTokens) / Math.max(1, receipt.removedTokens)
  const items = Math.min(receipt.items, before.filter((message) => !stays.has(JSON.stringify(message))).length)
  const { paysBackAfterCalls: _, ...rest } = receipt
  return { ...rest, items, removedTokens, gain, ...(gain > 0 ? { paysBackAfterCalls: receipt.cost / gain } : {}) }
}
