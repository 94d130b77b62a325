/** The entries that Pi's session takes outside the end of a turn: edits and messages. */
import type { ExtensionContext, ProjectedSessionEntry } from '@earendil-works/pi-coding-agent'
import type { Replacements } from './branch.ts'
import { NOTICE } from './messages.ts'
import type { PiMessage, Replacement } from './messages.ts'

/** True if messages can be replaced outside the end of a turn. */
export function canEdit(ctx: ExtensionContext): boolean {
  return typeof (ctx.sessionManager as Editable).appendContextEdit === 'function'
}

export function edit(ctx: ExtensionContext, edits: Replacements): void {
  const session = ctx.sessionManager as Editable
  if (edits.size > 0 && session.appendContextEdit === undefined) {
    throw new Error('this version of Pi replaces messages only at the end of a turn')
  }
  for (const [targetId, replacement] of edits) session.appendContextEdit?.(targetId, replacement)
}

/** True if messages can be added outside the end of a turn. */
export function canSay(ctx: ExtensionContext): boolean {
  return typeof (ctx.sessionManager as Editable).appendCustomMessageEntry === 'function'
}

/** Adds a notice to the session. Returns it as a message of the request. */
export function say(ctx: ExtensionContext, content: string): PiMessage {
  ;(ctx.sessionManager as Editable).appendCustomMessageEntry?.(NOTICE, content, true)
  return { role: 'custom', customType: NOTICE, content, display: true, timestamp: Date.now() }
}

/**
 * Applies edits to the messages of a request. Except for the system messages, which stay where they are, they are in the
 * projection's order. If another extension has changed that, they are returned unchanged, and the edits take effect at the
 * next request.
 */
export function withEdits(messages: readonly PiMessage[], projection: readonly ProjectedSessionEntry[], edits: Replacements): PiMessage[] {
  const flat = projection.flatMap((entry) => entry.messages.filter((m) => m.role !== 'system').map((m) => ({ id: entry.sourceEntry.id, role: m.role })))
  const sent = messages.filter((message) => message.role !== 'system')
  if (flat.length !== sent.length || flat.some((one, index) => one.role !== sent[index]?.role)) {
    return [...messages]
  }
  const ids = new Map<PiMessage, string>(sent.map((message, index) => [message, flat[index]?.id ?? '']))
  return messages.flatMap((message) => {
    const replacement = edits.get(ids.get(message) ?? '')
    if (replacement === null) return []
    return [replacement === undefined ? message : ({ ...message, content: replacement.content } as PiMessage)]
  })
}

/** Pi's session object at run time. The type given to extensions lacks these methods. */
interface Editable {
  appendContextEdit?: (targetId: string, replacement: Replacement) => string
  appendCustomMessageEntry?: (customType: string, content: string, display: boolean) => string
}
