/** Brings back what a form hides: the arguments of a call return together with its output. */
import type { ContextManager, ObjectDocument } from '../../index.js'
import { callsOf, isEqual, isIdOfText, objectsOf, recallTexts } from '../projection/index.ts'
import type { Projection, RecallInput, Shape } from '../projection/index.ts'
import { isFields, wellFormed } from '../core/index.ts'

/** An open session and its projection. */
interface Opened {
  manager: ContextManager
  projection: Projection
}

/**
 * Answers a call of our tool: texts, or undefined if the session has no such object. The conversation may get a request meanwhile, so it is
 * asked late: whether this process has seen none of its requests (`isOnlyRecord`), and the messages of the last one as they went out.
 */
export async function recallIn(
  { manager, projection }: Opened,
  input: RecallInput,
  { isOnlyRecord, sent, shape }: { isOnlyRecord: () => boolean; sent: () => readonly object[]; shape: Shape },
): Promise<string[] | undefined> {
  const name = String(input.id).replace(/@\d+$/, '')
  const document = await manager.get(name)
  if (document === null) return isIdOfText(name) && (await projection.permits(name)) ? recallTexts(manager, input) : undefined
  if (document.type === 'toolcall' && !(await manager.sessionSets()).sessionIndex.includes(document['xt/id'])) return undefined
  if (isOnlyRecord()) projection.allow(document['xt/id'])
  const call = await callAsItIs(document, { manager, projection })
  return recallTexts(manager, call === document ? input : { ...input, id: call['xt/id'] }, hiddenArguments(call, sent(), shape))
}

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
async function callAsItIs(document: ObjectDocument, { manager, projection }: Opened): Promise<ObjectDocument> {
  const { type, args, ['xt/id']: id } = document
  if (type !== 'toolcall' || (await projection.permits(id))) return document
  const index = new Set((await manager.sessionSets()).sessionIndex)
  for (const callId of callsOf(id)) {
    for await (const other of objectsOf(manager, callId, index)) if (isEqual(other['args'], args) && (await projection.permits(other['xt/id']))) return other
  }
  return document
}
