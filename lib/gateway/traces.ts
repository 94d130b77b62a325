/**
 * Hashes that a form keeps of a conversation's answers, outputs and prompts. With them, a later process tells a conversation whose host
 * has changed something early from another one, without its messages.
 */
import { createHash } from 'node:crypto'
import { fingerprint } from '../projection/index.ts'
import { isFields, oncePer, resultText } from '../core/index.ts'
import type { EngineMessage, Fields } from '../core/index.ts'
import { placeholderOf } from '../tools/index.ts'
import { commonLength } from './prefix.ts'
import type { Api } from './request.ts'
import { shapeOf } from './shape.ts'

/**
 * The traces of a conversation: entry n is that of its message n - 1, entry 0 is empty. An entry is a list with blanks between its
 * elements, each a letter for its kind and a hash.
 */
export type Traces = readonly string[]

/** An answer or a call, a line that a user has said, an output: the hash of its call's ID, and that of the two together. */
type Kind = 'a' | 'l' | 'o'

/** The largest number of lines that are kept of one message. */
const MOST_LINES = 64

/** The number of characters of a hash that are kept: a wrong match needs another conversation with 72 bits in common. */
const KEPT = 12

/** Stands for a text that a host writes in place of an output. */
const CLEARED = '-'

/** Reads the traces of a conversation that grows. The cost depends on what is new since the last time. */
export class TracesSoFar {
  readonly #api: Api
  readonly #isNamed: boolean
  #messages: readonly object[] = []
  #traces: string[] = ['']

  /** `isNamed`: its host names sessions. Then outputs are not compared, and otherwise nothing else. */
  constructor(api: Api, isNamed: boolean) {
    this.#api = api
    this.#isNamed = isNamed
  }

  of(messages: readonly object[]): Traces {
    const before = this.#messages
    const common = before === messages ? messages.length : commonLength(before, messages)
    const own = this.#traces.slice(0, common + 1)
    for (let at = common; at < messages.length; at += 1) own.push(this.#isNamed ? wordsOf(messages[at] as object) : outputs(this.#api, messages, at))
    this.#messages = messages
    this.#traces = own
    return own
  }
}

/** The elements of one kind in some traces, in their order. */
export function tracesOf(kind: Kind, traces: Traces): string[] {
  return traces.flatMap((entry) => (entry === '' ? [] : entry.split(' '))).flatMap((one) => (one.startsWith(kind) ? [one.slice(1)] : []))
}

/** The outputs of calls in some traces: by the hash of the call's ID that of the text, or {@link CLEARED}. */
export function outputsIn(traces: Traces): Map<string, string> {
  return new Map(tracesOf('o', traces).map((one) => [one.slice(0, KEPT), one.slice(KEPT)]))
}

/** False if no call is the same, or one has another output: then it is another chat that begins alike. */
export function hasOutputs(before: Traces, now: Traces): boolean {
  const [known, own] = [outputsIn(before), outputsIn(now)]
  const same = [...known].filter(([id]) => own.has(id))
  return (known.size === 0 || same.length > 0) && same.every(([id, text]) => text === CLEARED || own.get(id) === CLEARED || own.get(id) === text)
}

/** The entry of a message, which is read once. */
const wordsOf = oncePer<object, string>(words)

/** The texts and calls of the model in a message, and the lines of a user's text. A host may have left out reasoning. */
function words(message: object): string {
  const { role, content } = message as Fields
  const lines = role === 'user' && typeof content === 'string' ? linesOf(content) : []
  return [...answersIn(message).map((one) => `a${hashOf(one)}`), ...lines.map((line) => `l${hashOf(line)}`)].join(' ')
}

function answersIn(message: object): string[] {
  const { role, type, content, parts, tool_calls: calls } = message as Fields
  if (role === 'model' && Array.isArray(parts)) return [fingerprint({ parts: parts.filter((part) => !isFields(part) || part['thought'] !== true) })]
  if (role !== 'assistant' && !(typeof type === 'string' && type.endsWith('_call'))) return []
  // Goose merges the answers of a turn into one.
  if (Array.isArray(calls) && !Array.isArray(content))
    return [...(content ? [fingerprint({ content })] : []), ...calls.map((call) => fingerprint(call as object))]
  if (!Array.isArray(content)) return [fingerprint(message)]
  const said = content.filter((block) => !isFields(block) || (block['type'] !== 'thinking' && block['type'] !== 'redacted_thinking'))
  return said.length === 0 ? [] : [fingerprint({ ...message, content: said })]
}

function linesOf(text: string): string[] {
  return text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .slice(0, MOST_LINES)
}

function outputs(api: Api, messages: readonly object[], at: number): string {
  const results = shapeOf(api)
    .read(messages, at)
    .parts.filter((part) => part.role === 'toolResult')
  return results.map((part) => `o${outputOf(part)}`).join(' ')
}

function outputOf(part: EngineMessage): string {
  const { toolCallId: id = '' } = part
  const text = resultText(part)
  return `${hashOf(id)}${placeholderOf(text) === undefined ? hashOf(JSON.stringify([id, text])) : CLEARED}`
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, KEPT)
}
