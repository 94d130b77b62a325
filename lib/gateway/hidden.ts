/** The part of a call that a form hides: its arguments return together with its output. */
import type { ContextManager, ObjectDocument } from '../../index.js'
import { callsOf, isEqual, objectsOf } from '../projection/index.ts'
import type { Projection, Shape } from '../projection/index.ts'
import { isFields, wellFormed } from '../core/index.ts'

/**
 * The arguments of a recorded call that messages do not show whole. Asked of what was sent: the engine knows only its own form,
 * and the first messages of a conversation may be in the one of another.
 */
export function hiddenArguments(document: ObjectDocument, sent: readonly object[], shape: Shape): object | undefined {
  const args: unknown = document['args']
  if (document.type !== 'toolcall' || !isFields(args) || Object.keys(args).length === 0) return undefined
  const names = new Set(callsOf(document['xt/id']))
  for (let at = 0; at < sent.length;) {
    const { size, parts } = shape.read(sent, at)
    at += size
    for (const { role, content } of parts) {
      if (role !== 'assistant' || typeof content === 'string') continue
      for (const block of content)
        if (block.type === 'toolCall' && 'id' in block && names.has(block.id) && isEqual(wellFormed(block.arguments), args)) return undefined
    }
  }
  return args
}

/**
 * The recorded call that an ID brings back. Where the host has changed the output of a call whose arguments had collapsed, the
 * answer in front of it still goes out with the mark of the old one: that names the call as the host has it now.
 */
export async function callAsItIs(
  document: ObjectDocument,
  { manager, projection }: { manager: ContextManager; projection: Projection },
): Promise<ObjectDocument> {
  const { type, args, ['xt/id']: id } = document
  if (type !== 'toolcall' || (await projection.permits(id))) return document
  const index = new Set((await manager.sessionSets()).sessionIndex)
  for (const callId of callsOf(id)) {
    for await (const other of objectsOf(manager, callId, index)) if (isEqual(other['args'], args) && (await projection.permits(other['xt/id']))) return other
  }
  return document
}
