/** Finds the object of a tool result in the host's conversation. */
import type { ContextManager, ObjectDocument } from '../../index.js'
import { headerOf, referenceOf } from '../lines/index.ts'
import { placeholderOf } from '../tools/index.ts'
import { resultText, wasBorn } from '../core/index.ts'
import { hasArguments } from './changed.ts'
import { callsOf, MARK } from './results.ts'
import type { EngineMessage } from '../core/index.ts'
import { isForgottenForm } from './recorded.ts'

/** The session's objects that are recorded under a call ID. `index` contains the IDs of all its objects. */
export async function* objectsOf(manager: ContextManager, callId: string, index: ReadonlySet<string>): AsyncGenerator<ObjectDocument> {
  for (const id of [callId, `toolcall:${callId}`, ...(marked(index).get(callId) ?? [])]) {
    if (!index.has(id)) continue
    const document = await manager.get(id)
    if (document?.type === 'toolcall') yield document
  }
}

/** The object of a result. */
export async function objectFor(manager: ContextManager, message: EngineMessage, index: ReadonlySet<string>): Promise<string | undefined> {
  for await (const document of objectsOf(manager, message.toolCallId ?? '', index)) {
    if (await standsFor(manager, resultText(message), document)) return document['xt/id']
  }
  return undefined
}

/**
 * How the record has a result: as it is, under the same call ID but with another text, or not at all. `args` are the arguments
 * of its call where these were changed: with others, it is another call.
 */
export type Standing = 'recorded' | 'reworded' | 'unknown'

export async function standingOf(manager: ContextManager, message: EngineMessage, index: ReadonlySet<string>, args?: object): Promise<Standing> {
  const { role, toolCallId = '', toolName = '' } = message
  if (role !== 'toolResult' || wasBorn(manager, toolCallId)) return 'recorded'
  const text = resultText(message)
  // The record has nothing of a result that points to another one.
  if (placeholderOf(text) === 'unchanged') return 'recorded'
  let standing: Standing = 'unknown'
  for await (const document of objectsOf(manager, toolCallId, index)) {
    const isItsTool = args === undefined || toolName === '' || document['tool'] === toolName
    if (isItsTool && (await standsFor(manager, text, document)) && (args === undefined || (await hasArguments(manager, document, args)))) return 'recorded'
    standing = 'reworded'
  }
  return standing
}

/**
 * True if a call was recorded once more because the host has changed its arguments. `now` are those that the calls with
 * this ID and this output have in the conversation; a host may have recorded a call with others than the model gave.
 */
export async function isReplaced(
  manager: ContextManager,
  document: ObjectDocument,
  callId: string,
  text: string,
  now: readonly (object | undefined)[],
): Promise<boolean> {
  for (const args of now) if (args === undefined || (await hasArguments(manager, document, args))) return false
  const index = new Set((await manager.sessionSets()).sessionIndex)
  for await (const other of objectsOf(manager, callId, index)) {
    if (other['xt/id'] === document['xt/id'] || !(await standsFor(manager, text, other))) continue
    for (const args of now) if (args !== undefined && (await hasArguments(manager, other, args))) return true
  }
  return false
}

/** Removes from the pool and the active set the objects of calls that may not be brought back. */
export async function withdraw(manager: ContextManager, calls: ReadonlySet<string>, permits: (id: string) => Promise<boolean>): Promise<void> {
  if (calls.size === 0) return
  const { metadataPool, activeSet, pinnedSet, sessionIndex } = await manager.sessionSets()
  const index = new Set(sessionIndex)
  const shown = new Set([...metadataPool, ...activeSet, ...pinnedSet])
  for (const callId of calls) {
    for await (const document of objectsOf(manager, callId, index)) {
      const id = document['xt/id']
      if (!shown.has(id) || (await permits(id))) continue
      await manager.unpin(id)
      await manager.demote(id)
    }
  }
}

const markedOf = new WeakMap<ReadonlySet<string>, Map<string, string[]>>()

/** The IDs with a suffix, by the call ID before it. */
function marked(index: ReadonlySet<string>): Map<string, string[]> {
  let found = markedOf.get(index)
  if (found !== undefined) return found
  found = new Map()
  for (const id of index) {
    if (!MARK.test(id)) continue
    for (const callId of callsOf(id).slice(1)) found.set(callId, [...(found.get(callId) ?? []), id])
  }
  markedOf.set(index, found)
  return found
}

/**
 * True if a text represents an object: it is its whole content as it was recorded, starts with our line that names it,
 * or is the text that a host writes where it has cleared an output. A forgotten output is represented by any text that the
 * host still has of the call.
 */
export async function standsFor(manager: ContextManager, text: string, document: ObjectDocument): Promise<boolean> {
  const { content } = document
  if (placeholderOf(text) === 'cleared') return document.type === 'toolcall'
  if (content === null ? isForgotten(document) : isForgottenForm(content, text)) return true
  if (document['redacted'] !== undefined && (await asRedacted(text)) === document.content) return true
  const name = referenceOf(text)?.id ?? headerOf(text)?.id
  return name !== undefined && (await manager.get(name))?.['xt/id'] === document['xt/id']
}

/** A finished call has a content, unless it was forgotten. */
function isForgotten(document: ObjectDocument): boolean {
  return document.type === 'toolcall' && document['status'] !== undefined
}

/** A text as `redact` stores it. Importing the addon fails where there is none, and the host continues without it. */
async function asRedacted(text: string): Promise<string | undefined> {
  const { native } = await import('../native/index.ts')
  return (await native.redactedText(text)) ?? undefined
}
