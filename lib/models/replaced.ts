/** Messages that were replaced between two model calls: by what, as far as the session shows it, and how users are told. */
import { headerOf, isBegun, isReference } from '../lines/index.ts'

/** The cause of a message's replacement. `other`: another extension. `unknown`: the session does not show it. */
export type EditOrigin = 'roll' | 'undo' | 'other' | 'unknown'

/** Contents of one message, as a transcript has them; undefined if it has none. Null: the message was left out. */
export interface ReplacedMessage {
  /** As it was written. */
  original: unknown
  /** As the call before had it. */
  before: unknown
  /** As it is now. */
  now: unknown
}

/**
 * What has replaced messages, by nothing but their contents. A message that is as the call before had it was not replaced. One
 * that was left out counts as rolled where others were rolled with it.
 */
export function originsOf(messages: readonly ReplacedMessage[]): EditOrigin[] {
  const replaced = messages.filter(({ before, now }) => !isSame(before, now))
  const origins = replaced.map(originOf)
  return origins.map((origin, at) => (origin === 'unknown' && replaced[at]?.now === null && origins.includes('roll') ? 'roll' : origin))
}

/** Sentences that each say who replaced how many messages, and by what. */
export function replacedSentences(origins: readonly EditOrigin[]): string[] {
  const sentence = (origin: EditOrigin, who: string, what: (messages: string, were: string) => string): string[] => {
    const count = origins.filter((one) => one === origin).length
    return count === 0 ? [] : [`${who}: ${what(`${count} ${count === 1 ? 'message' : 'messages'}`, count === 1 ? 'was' : 'were')}.`]
  }
  return [
    ...sentence('roll', OURSELVES, (messages, were) => `${messages} ${were} replaced by a roll`),
    ...sentence('undo', OURSELVES, (messages, were) => `${messages} ${were} brought back by an undo`),
    ...sentence('other', 'Another extension', (messages) => `it replaced ${messages} of the conversation`),
    ...sentence('unknown', 'Not known', (messages, were) => `${messages} ${were} replaced, and the session does not show why`),
  ]
}

const OURSELVES = 'We, the context manager'

/** True if two contents are the same bytes for the model. */
export function isSame(left: unknown, right: unknown): boolean {
  return JSON.stringify(left) === JSON.stringify(right)
}

function originOf({ original, now }: ReplacedMessage): EditOrigin {
  if (original !== undefined && isSame(original, now)) return 'undo'
  return looksRolled(now) ? 'roll' : 'unknown'
}

/** True if a content has what a roll leaves. */
function looksRolled(content: unknown): boolean {
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : Array.isArray(content) ? (content as { type?: string; text?: string }[]) : []
  const isLeft = (text: string): boolean => isReference(text) || headerOf(text) !== undefined || isBegun(text)
  return blocks.some(({ type, text }) => type === 'toolCall' || (type === 'text' && text !== undefined && isLeft(text)))
}
