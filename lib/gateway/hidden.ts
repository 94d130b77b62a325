/** Brings back what a form hides: the arguments of a call return together with its output. */
import type { ContextManager, ObjectDocument } from '../../index.js'
import { callsOf, isEqual, isIdOfText, objectsOf, recallTexts, standsFor, withArguments } from '../projection/index.ts'
import type { Projection, RecallInput, Shape } from '../projection/index.ts'
import { callsIn, isFields, resultText, wellFormed } from '../core/index.ts'

/** An open session and its projection. */
interface Opened {
  manager: ContextManager
  projection: Projection
}

/** The requests of a conversation, as a recall asks about them. The conversation may get another one while a call is answered, so it is asked late. */
interface Asked {
  /** This process has seen none of its requests. */
  isOnlyRecord: () => boolean
  /** The messages of the last one as they went out. */
  sent: () => readonly object[]
  /** The results behind the branch of a request on the side, if that was the last one; those of a conversation that continues this one. */
  beside: () => readonly CallResult[]
  shape: Shape
}

/** Answers a call of our tool: texts, or undefined if the session has no such object. */
export async function recallIn(
  { manager, projection }: Opened,
  input: RecallInput,
  { isOnlyRecord, sent, beside, shape }: Asked,
): Promise<string[] | undefined> {
  const name = String(input.id).replace(/@\d+$/, '')
  const document = await manager.get(name)
  if (document === null) return isIdOfText(name) && (await projection.permits(name)) ? recallTexts(manager, input) : undefined
  if (document.type === 'toolcall' && !(await manager.sessionSets()).sessionIndex.includes(document['xt/id'])) return undefined
  if (isOnlyRecord()) projection.allow(document['xt/id'])
  const other = await changedResult(manager, document, beside())
  if (other !== undefined) return withArguments(other.text, other.args)
  const call = await callAsItIs(document, { manager, projection })
  return recallTexts(manager, call === document ? input : { ...input, id: call['xt/id'] }, hiddenArguments(call, sent(), shape))
}

/** A request on the side. */
export interface Beside {
  /** Its results behind the branch. */
  results: () => readonly CallResult[]
  /** Its messages as they went out; absent where there was none. */
  sent?: () => readonly object[]
}

/** A result in a conversation, and the arguments of its call. */
export interface CallResult {
  callId: string
  args: object
  text: string
}

/**
 * The results of a conversation. `common`: those that a request on the side has behind its branch, for calls in front of it; its first
 * `common` messages are those of the conversation. Nothing records them, and the answer with their calls goes out as it did there, with
 * the marks of its arguments.
 */
export function resultsIn(messages: readonly object[], shape: Shape, common?: number): CallResult[] {
  const open = new Map<string, object[]>()
  const found: CallResult[] = []
  for (let at = 0; at < messages.length;) {
    const { size, parts } = shape.read(messages, at)
    for (const part of parts) {
      if (part.role === 'assistant') {
        if (common !== undefined && at >= common) return found
        for (const { id, arguments: args } of callsIn(part)) open.set(id, [...(open.get(id) ?? []), args])
      } else if (part.role === 'toolResult') {
        const { toolCallId: callId = '' } = part
        const args = open.get(callId)?.shift()
        if (args !== undefined && at >= (common ?? 0)) found.push({ callId, args, text: resultText(part) })
      }
    }
    at += size
  }
  return found
}

/** The result that a request has of a recorded call, if its host has changed that. */
async function changedResult(manager: ContextManager, document: ObjectDocument, all: readonly CallResult[]): Promise<CallResult | undefined> {
  if (all.length === 0 || document.type !== 'toolcall') return undefined
  const names = new Set(callsOf(document['xt/id']))
  const same = all.filter(({ callId, args }) => (names.has(callId) || isDerived(callId, names)) && isEqual(wellFormed(args), document['args']))
  for (const { text } of same) if (await standsFor(manager, text, document)) return undefined
  return same[0]
}

/** True if a call and that of a result have no IDs of their own: then each is named by its output, too. */
function isDerived(callId: string, names: ReadonlySet<string>): boolean {
  return DERIVED.test(callId) && [...names].some((name) => DERIVED.test(name))
}

const DERIVED = /^gemini-[0-9a-f]{20}$/

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
    const calls = parts.flatMap(callsIn)
    if (calls.some(({ id, arguments: own }) => names.has(id) && isEqual(wellFormed(own), args))) return undefined
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
