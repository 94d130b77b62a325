/**
 * Gemini's contents. Calls are `functionCall` parts of an answer; their results are `functionResponse` parts of the user's
 * content after it. An ID is optional: without one, a call is named by what it asks and what it got.
 */
import { createHash } from 'node:crypto'
import type { Block, EngineMessage, Fields } from '../../core/index.ts'
import { isFields, jsonText, textOf } from '../../core/index.ts'
import { argumentsBy, joinedTo, shortened } from '../shape.ts'
import { inOrderOf } from '../driver/edits.ts'
import type { PartEdit } from '../driver/edits.ts'
import { opaque, pictured } from '../opaque.ts'
import type { Shape } from '../shape.ts'
import { geminiField, geminiName } from './gemini-fields.ts'
import type { GeminiField } from './gemini-fields.ts'

/** The names of the parts that we know. */
const KNOWN: readonly GeminiField[] = [
  'text',
  'functionCall',
  'functionResponse',
  'inlineData',
  'fileData',
  'executableCode',
  'codeExecutionResult',
  'toolCall',
  'toolResponse',
]

export const gemini: Shape = {
  name: 'gemini',

  judge(message) {
    const { role = 'user', parts } = message as Fields
    if (role !== 'user' && role !== 'model' && role !== 'function') return undefined
    return Array.isArray(parts) && parts.every(isPart) ? 'own' : undefined
  },

  read(messages, at) {
    const message = messages[at] as Fields
    const parts = partsOf(message)
    if (message['role'] === 'model') return { size: 1, parts: [answer(parts, partsOf(messages[at + 1]))] }
    const calls = idsOf(partsOf(messages[at - 1]), parts)
    const read: EngineMessage[] = responsesIn(parts).map((response, number) => result(response, calls[number] ?? ''))
    const rest = parts.filter((part) => !isResponse(part))
    if (rest.length > 0 || read.length === 0) read.push({ role: 'user', content: rest.map(blockOf), ...joinedTo(read) })
    return { size: 1, parts: read }
  },

  write([message], edits) {
    if (edits.size === 0) return [message as object]
    const { role } = message as Fields
    const parts = partsOf(message)
    const left = role === 'model' ? answered(parts, edits.get(0)) : told(parts, edits)
    return left.length === 0 ? [] : [{ ...message, parts: left }]
  },

  notice(text) {
    return { role: 'user', parts: [{ text }] }
  },

  // Gemini checks the signatures of the calls since the user last spoke, in a content without results: a word of ours would end that
  // turn. One that has results and text, as when a user speaks while tools run, does not.
  isHeld: (messages) => partsOf(messages.at(-1)).some(isResponse),

  content: (message) => (message as Fields)['parts'],
}

function isPart(part: unknown): part is Fields {
  return isFields(part) && [...KNOWN, 'thoughtSignature' as const].some((name) => geminiName(part, name) in part)
}

function partsOf(message: unknown): Fields[] {
  return isFields(message) && Array.isArray(message['parts']) ? message['parts'].filter(isFields) : []
}

function isResponse(part: Fields): boolean {
  return isFields(geminiField(part, 'functionResponse'))
}

function responsesIn(parts: readonly Fields[]): Fields[] {
  return parts.map((part) => geminiField(part, 'functionResponse')).filter(isFields)
}

function callsIn(parts: readonly Fields[]): Fields[] {
  return parts.map((part) => geminiField(part, 'functionCall')).filter(isFields)
}

/** The IDs of the results that `after` has, in order: their own, or those of the calls that they answer. */
function idsOf(before: readonly Fields[], after: readonly Fields[]): string[] {
  const calls = callsIn(before)
  const responses = responsesIn(after)
  const taken = new Set<Fields>()
  return responses.map((response) => {
    const own = textOf(response['id'])
    if (own !== '') return own
    const call = calls.find((one) => !taken.has(one) && textOf(one['name']) === textOf(response['name']) && textOf(one['id']) === '')
    if (call === undefined) return derivedId(response, response)
    taken.add(call)
    return derivedId(call, response)
  })
}

/** The IDs of calls, in order, given the content that answers them. */
function callIds(parts: readonly Fields[], after: readonly Fields[]): string[] {
  const left = responsesIn(after).filter((response) => textOf(response['id']) === '')
  return callsIn(parts).map((call) => {
    const own = textOf(call['id'])
    if (own !== '') return own
    const place = left.findIndex((response) => textOf(response['name']) === textOf(call['name']))
    const [response] = place < 0 ? [undefined] : left.splice(place, 1)
    return derivedId(call, response)
  })
}

/** An ID that is the same wherever a call and its result stand. */
function derivedId({ name, args }: Fields, response: Fields | undefined): string {
  const said = jsonText([name, args, response?.['response']]) ?? ''
  return `gemini-${createHash('sha256').update(said).digest('hex').slice(0, 20)}`
}

function blockOf(part: Fields): Block {
  if (typeof part['text'] === 'string' && geminiField(part, 'thoughtSignature') === undefined) return { type: 'text', text: part['text'] }
  return isFields(geminiField(part, 'inlineData')) || isFields(geminiField(part, 'fileData')) ? pictured(part) : opaque(part, 'part')
}

function answer(parts: readonly Fields[], after: readonly Fields[]): EngineMessage {
  const ids = callIds(parts, after)
  let number = -1
  const content = parts.map((part): Block => {
    const { thought } = part
    const [call, signature] = [geminiField(part, 'functionCall'), geminiField(part, 'thoughtSignature')]
    if (isFields(call)) {
      number += 1
      const args = isFields(call['args']) ? call['args'] : {}
      const signed = typeof signature === 'string' ? { thoughtSignature: signature } : {}
      return { type: 'toolCall', id: ids[number] ?? '', name: textOf(call['name']), arguments: args, ...signed }
    }
    if (thought === true)
      return { type: 'thinking', thinking: textOf(part['text']), ...(typeof signature === 'string' ? { thinkingSignature: signature } : {}) }
    return blockOf(part)
  })
  return { role: 'assistant', content }
}

function result(response: Fields, id: string): EngineMessage {
  const { response: given, name } = response
  const { output, error } = isFields(given) ? given : {}
  const text = typeof output === 'string' ? output : typeof error === 'string' ? error : (jsonText(given ?? {}) ?? '')
  const pictures = Array.isArray(response['parts']) ? response['parts'].filter(isFields).map(pictured) : []
  return {
    role: 'toolResult',
    toolCallId: id,
    toolName: textOf(name),
    content: [{ type: 'text', text }, ...pictures],
    isError: typeof error === 'string' && typeof output !== 'string',
  }
}

/** A response with another text, in the form that it had. */
function withText(part: Fields, text: string): Fields {
  const response = geminiField(part, 'functionResponse') as Fields
  const given = isFields(response['response']) ? response['response'] : {}
  const name = typeof given['output'] !== 'string' && typeof given['error'] === 'string' ? 'error' : 'output'
  const isText = typeof given[name] === 'string'
  return { ...part, [geminiName(part, 'functionResponse')]: { ...response, response: isText ? { ...given, [name]: text } : { output: text } } }
}

/** A content of the user: its results, then what the user says. */
function told(parts: readonly Fields[], edits: ReadonlyMap<number, PartEdit>): Fields[] {
  const own = edits.get(responsesIn(parts).length)
  const numbers = new Map(parts.filter((part) => !isResponse(part)).map((part, number) => [part, number]))
  let number = -1
  const whole = parts.flatMap((part) => {
    if (!isResponse(part)) return [part]
    number += 1
    const edit = edits.get(number)
    if (edit?.kind === 'gone') return []
    return edit?.kind === 'result' && edit.text !== undefined ? [withText(part, edit.text)] : [part]
  })
  return shortened(whole, own, undefined, (part) => numbers.get(part))
}

function answered(parts: readonly Fields[], edit: PartEdit | undefined): Fields[] {
  if (edit?.kind === 'gone') return []
  const collapsed = argumentsBy(edit)
  let position = -1
  const whole = parts.map((part) => {
    const call = geminiField(part, 'functionCall')
    if (!isFields(call)) return part
    position += 1
    const args = collapsed.get(position)
    return args === undefined ? part : { ...part, [geminiName(part, 'functionCall')]: { ...call, args: inOrderOf(call['args'], args) } }
  })
  return shortened(whole, edit)
}
