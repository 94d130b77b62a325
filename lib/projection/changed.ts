/** The calls that a host has changed: their arguments differ from the recorded ones. */
import type { ContextManager, ObjectDocument } from '../../index.js'
import { callsIn, handed, isFields, recordable } from '../core/index.ts'
import type { EngineMessage, ToolCallBlock } from '../core/index.ts'
import { callInMark } from '../lines/index.ts'
import { isEqual } from './identity.ts'
import { isErasedForm } from './recorded.ts'
import type { Unit } from './unit.ts'

/** The record's text in place of a secret, with the line breaks that were in it. */
const REDACTED = /\[redacted: [^\]\n]*\]\n*/

/**
 * The calls in these units whose arguments the host may have changed: any of them, because the host has changed the answers since
 * the last request. `isResumed`: those of which the record has other arguments, because no request of this process came before.
 */
export async function changedCalls(manager: ContextManager, units: readonly Unit[], isResumed: boolean): Promise<ReadonlySet<ToolCallBlock>> {
  const answers = units.flatMap(({ parts }) => parts.flatMap(({ message }) => (message.role === 'assistant' ? [message] : [])))
  if (!isResumed) return new Set(answers.flatMap(callsIn))
  const recorded = await recordedCalls(manager)
  const isChanged = ({ id, name, arguments: args }: ToolCallBlock): boolean => {
    const known = recorded.get(id)?.filter((one) => one.name === name)
    return known !== undefined && known.length > 0 && !known.some((one) => isEqual(one.args, stored(args)))
  }
  return new Set(answers.flatMap((answer) => changedIn(answer, isChanged)))
}

/** The calls of an answer that are changed in the form in which they are recorded. */
function changedIn(answer: EngineMessage, isChanged: (call: ToolCallBlock) => boolean): ToolCallBlock[] {
  const inRecord = callsIn(recordable(handed(answer)))
  return callsIn(answer).filter((_, place) => isChanged(inRecord[place] as ToolCallBlock))
}

/** The calls of the answers in the record, by their IDs. */
async function recordedCalls(manager: ContextManager): Promise<ReadonlyMap<string, { name: unknown; args: unknown }[]>> {
  const chat = await manager.get(`chat:${manager.sessionId}`)
  const turns = (chat?.['turns'] ?? []) as { assistant: { content?: unknown }[] }[]
  const found = new Map<string, { name: unknown; args: unknown }[]>()
  for (const block of turns.flatMap(({ assistant }) => assistant.flatMap(({ content }): unknown[] => (Array.isArray(content) ? content : [])))) {
    if (!isFields(block) || block['type'] !== 'toolCall') continue
    const id = String(block['id'])
    const one = { name: block['name'], args: block['arguments'] }
    const others = found.get(id)
    if (others === undefined) found.set(id, [one])
    else others.push(one)
  }
  return found
}

/**
 * True if a call was recorded with these arguments: with the same, apart from what was forgotten or kept out of the
 * record, or with those of which we have sent this short form.
 */
export async function hasArguments(manager: ContextManager, document: ObjectDocument, args: object): Promise<boolean> {
  const names = new Set<string>()
  if (!isFormOf(document['args'], stored(args), document['redacted'] !== undefined, names)) return false
  for (const name of names) if ((await manager.get(name))?.['xt/id'] !== document['xt/id']) return false
  return true
}

/** The same for a value in them. `names` gets the names of the calls that marks in it bring back. */
function isFormOf(kept: unknown, now: unknown, isRedacted: boolean, names: Set<string>): boolean {
  if (typeof kept === 'string' && typeof now === 'string') {
    const name = kept === now ? undefined : callInMark(now)
    if (name !== undefined) names.add(name)
    return name !== undefined || isErasedForm(kept, now) || (isRedacted && isErasedForm(kept, now, REDACTED))
  }
  // A value that was nested too deeply was recorded as its JSON text.
  if (typeof kept === 'string' && typeof now === 'object') return kept === JSON.stringify(now)
  if (typeof kept !== 'object' || typeof now !== 'object' || kept === null || now === null) return kept === now
  const [old, other] = [Object.entries(kept), new Map(Object.entries(now).filter(([, value]) => value !== undefined))]
  const isLike = ([name, value]: [string, unknown]): boolean => {
    const one = other.get(name)
    return other.has(name) && ((name === 'path' && isBelow(value, one)) || isFormOf(value, one, isRedacted, names))
  }
  return old.length === other.size && old.every(isLike)
}

/** True if a path is another one without the directory in which the agent works. */
function isBelow(whole: unknown, path: unknown): boolean {
  return typeof whole === 'string' && typeof path === 'string' && path !== '' && whole.endsWith(`/${path}`)
}

/** A value as the store has it: in a text, a lone surrogate has become a replacement character. */
function stored(value: unknown): unknown {
  if (typeof value === 'string') return /\p{Surrogate}/u.test(value) ? Buffer.from(value, 'utf8').toString('utf8') : value
  if (Array.isArray(value)) return value.map(stored)
  if (!isFields(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, stored(one)]))
}
