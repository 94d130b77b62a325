/** Objects of tool calls: which of them stands for a result that a host has in its conversation. */
import type { ContextManager, ObjectDocument } from '../../index.js'

/** More different outputs under one call ID are not looked through. */
const MAX_SAME_CALL_ID = 1000

/** The objects that are recorded under a call's ID, as the engine numbers them. */
export async function* objectsOf(manager: ContextManager, callId: string): AsyncGenerator<ObjectDocument> {
  const base = callId === '' || /^(toolcall|file|chat|system_prompt|session):/.test(callId) ? `toolcall:${callId}` : callId
  for (let number = 1; number <= MAX_SAME_CALL_ID; number += 1) {
    const document = await manager.get(number === 1 ? base : `${base}~${number}`)
    if (document === null || document.type !== 'toolcall') return
    yield document
  }
}

/** The names under which an object's call may stand in a conversation. */
export function callsOf(id: string): string[] {
  const plain = id.startsWith('toolcall:') ? [id, id.slice('toolcall:'.length)] : [id]
  return plain.flatMap((one) => [one, one.replace(/~\d+$/, '')])
}

/** The name in a line of ours at a text's beginning: its header, or the reference that took its place. */
export function namedBy(text: string): string | undefined {
  return /^(?:toolcall_ref )?id=([0-9a-f]{8,})(?:[ \n]|$)/.exec(text)?.[1]
}

/** Whether a text stands for an object: as its whole content, or under a line of ours that names it. */
export async function standsFor(manager: ContextManager, text: string, document: ObjectDocument): Promise<boolean> {
  if (document.content === text) return true
  const name = namedBy(text)
  return name !== undefined && (await manager.get(name))?.['xt/id'] === document['xt/id']
}
