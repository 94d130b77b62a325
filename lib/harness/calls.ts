/** Calls of a conversation: their IDs there and in the record, and which of them the harness recorded itself. */

/**
 * The calls that the harness recorded before passing on their results. Such a result may be shorter in the conversation than in
 * the record, because the harness truncated it after recording all of it.
 */
const born = new WeakMap<object, Set<string>>()

/** Notes that the harness called `receive` or `recordToolcall` for a call. */
export function noteBirth(manager: object, callId: unknown): void {
  if (typeof callId !== 'string') return
  const calls = born.get(manager)
  if (calls === undefined) born.set(manager, new Set([callId]))
  else calls.add(callId)
}

/** Returns whether the harness recorded a call itself. */
export function wasBorn(manager: object, callId: string): boolean {
  return born.get(manager)?.has(callId) ?? false
}

/** From now on, the conversation decides what the call's result is. */
export function forgetBirth(manager: object, callId: string): void {
  born.get(manager)?.delete(callId)
}

/** The suffix of an object whose call ID was already in use: a digest, or a number in older stores. */
export const MARK = /~(?:[0-9a-f]{16}|[1-9]\d*)$/

/** The call IDs that an object's call may have in a conversation. */
export function callsOf(id: string): string[] {
  const plain = id.startsWith('toolcall:') ? [id, id.slice('toolcall:'.length)] : [id]
  return [...new Set(plain.flatMap((one) => [one, one.replace(MARK, '')]))]
}
