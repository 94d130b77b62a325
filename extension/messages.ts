/** Converts Pi's session entries to the engine's messages, and the engine's edits to Pi's replacements. */
import type {
  ContextEditableContent,
  ProjectedSessionEntry,
  SessionEntry,
} from '@earendil-works/pi-coding-agent'
import type { Edit, IncomingMessage } from '../index.js'

/** What the extension needs of Pi's session. */
export interface Branch {
  getLeafId(): string | null
  getEntry(id: string): SessionEntry | undefined
}

/** The new content of an entry, in the form of Pi's `context_edit`. */
export interface Replacement {
  content: ContextEditableContent
}

/** A message as Pi's agent holds it. */
export type PiMessage = ProjectedSessionEntry['messages'][number]

/**
 * The entries after `last` on the current branch, oldest first; all of them if `last` is null, undefined if `last` is
 * not on the branch. Walks from the leaf, so the cost depends on the new entries alone.
 */
export function entriesAfter(branch: Branch, last: string | null): SessionEntry[] | undefined {
  const found: SessionEntry[] = []
  let id = branch.getLeafId()
  while (id !== last) {
    const entry: SessionEntry | undefined = id === null ? undefined : branch.getEntry(id)
    if (entry === undefined) return undefined
    found.push(entry)
    id = entry.parentId
  }
  return found.reverse()
}

/** The message that an entry shows to the model, or undefined if it shows none. */
export function messageOf(entry: SessionEntry): object | undefined {
  switch (entry.type) {
    case 'message':
      return isSent(entry.message) ? entry.message : undefined
    case 'custom_message':
      return { role: 'custom', customType: entry.customType, content: entry.content }
    case 'branch_summary':
      return { role: 'branchSummary', summary: entry.summary }
    default:
      return undefined
  }
}

/** The messages of a whole projection, each under its entry's id. */
export function messagesOf(projection: readonly ProjectedSessionEntry[]): IncomingMessage[] {
  return projection.flatMap(({ sourceEntry, messages }) =>
    messages.filter(isSent).map((message) => ({ key: sourceEntry.id, message })),
  )
}

/** Whether Pi sends a message to the model as part of the conversation. */
function isSent(message: PiMessage): boolean {
  if (message.role === 'system') return false
  return message.role !== 'bashExecution' || message.excludeFromContext !== true
}

/**
 * The replacement that an edit makes of a stored entry; undefined if the edit does not fit the entry. A result keeps
 * its images, an answer keeps everything except the arguments of the named calls.
 */
export function replacementOf(edit: Edit, entry: SessionEntry | undefined): Replacement | undefined {
  if (entry?.type !== 'message') return undefined
  const { message } = entry
  if (edit.kind === 'result') {
    if (message.role !== 'toolResult') return undefined
    if (edit.text === undefined) return { content: message.content }
    const others = message.content.filter((block) => block.type !== 'text')
    return { content: [{ type: 'text', text: edit.text }, ...others] }
  }
  if (message.role !== 'assistant') return undefined
  let position = -1
  const content = message.content.map((block) => {
    if (block.type !== 'toolCall') return block
    position += 1
    const call = edit.calls.find((one) => one.position === position && one.callId === block.id)
    return call === undefined ? block : { ...block, arguments: call.args as typeof block.arguments }
  })
  return { content }
}

/** Whether two replacements show the model exactly the same bytes. */
export function sameReplacement(left: unknown, right: unknown): boolean {
  return JSON.stringify(left) === JSON.stringify(right)
}
