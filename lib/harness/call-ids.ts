/** The IDs of calls: in a conversation, and in the record. */

/** The suffix of an object whose call ID was already in use: a digest, or a number in older stores. */
export const MARK = /~(?:[0-9a-f]{16}|[1-9]\d*)$/

/** The call IDs that an object's call may have in a conversation. */
export function callsOf(id: string): string[] {
  const plain = id.startsWith('toolcall:') ? [id, id.slice('toolcall:'.length)] : [id]
  return [...new Set(plain.flatMap((one) => [one, one.replace(MARK, '')]))]
}
