/** Converts Pi's session entries to the engine's messages and points, and the engine's edits to Pi's replacements. */
import type { ContextEditableContent, ContextEditEntry, ProjectedSessionEntry, SessionEntry } from '@earendil-works/pi-coding-agent'
import type { Edit, IncomingMessage } from '../index.js'
import { editedContent, isPoint } from '../lib/projection/index.ts'
import type { Point } from '../lib/projection/index.ts'

/** The type of the messages that carry notices to the model. */
export const NOTICE = 'context-notice'

/** The part of Pi's session that the extension needs. */
export interface SessionTree {
  getLeafId(): string | null
  getEntry(id: string): SessionEntry | undefined
}

/** The new content of an entry, as Pi's `context_edit` has it; null: the message is left out. */
export type Replacement = ContextEditEntry['replacement']

/** A message as Pi's agent holds it. */
export type PiMessage = ProjectedSessionEntry['messages'][number]

/** The entries of the current branch, from the leaf back to its first one. Costs what is read of it. */
export function* entriesBack(branch: SessionTree): Generator<SessionEntry, void> {
  for (let id = branch.getLeafId(); id !== null;) {
    const entry = branch.getEntry(id)
    if (entry === undefined) return
    yield entry
    id = entry.parentId
  }
}

/**
 * The entries after `last` on the current branch, oldest first; all of them if `last` is null, undefined if `last` is
 * not on the branch. Walks from the leaf, so the cost depends on the new entries alone.
 */
export function entriesAfter(branch: SessionTree, last: string | null): SessionEntry[] | undefined {
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
  return projection.flatMap(({ sourceEntry, messages }) => messages.filter(isSent).map((message) => ({ key: sourceEntry.id, message })))
}

/** True if Pi sends a message to the model as part of the conversation. */
function isSent(message: PiMessage): boolean {
  if (message.role === 'system') return false
  return message.role !== 'bashExecution' || message.excludeFromContext !== true
}

/**
 * The replacement that an edit makes of a message as it was handed over; undefined if the edit does not fit the
 * message, null if the message is left out.
 */
export function replacementOf(edit: Edit, message: PiMessage | undefined): Replacement | undefined {
  const content = message === undefined ? undefined : editedContent(edit, message as { role: string; content?: unknown })
  return content === undefined || content === null ? content : { content: content as ContextEditableContent }
}

/** True if two replacements show the model exactly the same bytes. */
export function sameReplacement(left: unknown, right: unknown): boolean {
  return JSON.stringify(left) === JSON.stringify(right)
}

/** The type of the entries that name the engine's state at their place of the branch. They are never sent to a model. */
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
