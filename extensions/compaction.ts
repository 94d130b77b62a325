/** Pi's compaction: avoided if a roll makes enough room without loss; otherwise given the texts behind references. */
import type { ExtensionContext, SessionBeforeCompactEvent, SessionBeforeCompactResult, SessionEntry } from '@earendil-works/pi-coding-agent'
import type { Boundary } from './boundary.ts'
import type { PiMessage } from './messages.ts'
import { isReference } from '../lib/lines/index.ts'

/** Our answer before Pi compacts. */
export async function beforeCompaction(
  boundary: Boundary,
  event: SessionBeforeCompactEvent,
  ctx: ExtensionContext,
): Promise<SessionBeforeCompactResult | undefined> {
  if (event.reason === 'threshold' && boundary.rolls && (await makesRoom(boundary, event, ctx))) {
    return { cancel: true }
  }
  const { messagesToSummarize, turnPrefixMessages } = event.preparation
  const stored = storedResults(event.branchEntries)
  for (const messages of [messagesToSummarize, turnPrefixMessages]) restoreTexts(messages, stored)
  return undefined
}

/** Rolls everything stale. True if the rest fits. Pi asks again if its own count disagrees. */
async function makesRoom(boundary: Boundary, event: SessionBeforeCompactEvent, ctx: ExtensionContext): Promise<boolean> {
  const { tokensBefore, settings } = event.preparation
  const receipt = await boundary.rollNow(ctx)
  if (receipt === undefined || ctx.model === undefined) return false
  return tokensBefore - receipt.removedTokens <= ctx.model.contextWindow - settings.reserveTokens
}

/** The results as they were stored, before any edit. */
function storedResults(entries: readonly SessionEntry[]): Map<string, PiMessage> {
  const found = new Map<string, PiMessage>()
  for (const entry of entries) {
    if (entry.type === 'message' && entry.message.role === 'toolResult') found.set(keyOf(entry.message), entry.message)
  }
  return found
}

/** A summary of references would be empty, so it is made from the texts. Pi cuts long ones itself. */
function restoreTexts(messages: PiMessage[], stored: ReadonlyMap<string, PiMessage>): void {
  for (const [index, message] of messages.entries()) {
    if (message.role !== 'toolResult') continue
    const [block] = message.content
    if (block?.type === 'text' && isReference(block.text)) messages[index] = stored.get(keyOf(message)) ?? message
  }
}

function keyOf(result: { toolCallId: string; timestamp: number }): string {
  return `${result.timestamp} ${result.toolCallId}`
}
