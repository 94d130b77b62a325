/** Messages in the engine's shape: pi-ai's user, assistant and tool result messages, and what of them is passed to the engine. */
import { flattened } from './json.ts'
import type { IncomingMessage } from '../../index.js'

/** The fields of an object of which only some are used. */
export type Fields = Record<string, unknown>

/** A block of text, reasoning, an image, or a tool call. Other blocks are kept; `characters` is the size that they and images count for. */
export type Block =
  | { type: 'text'; text: string }
  /** With a signature, the provider has signed or encrypted it, and the provider decides whether it may be dropped. */
  | { type: 'thinking'; thinking: string; thinkingSignature?: string }
  | { type: 'image'; characters?: number }
  | ToolCallBlock
  | { type: string; characters?: number }

/** A call of an answer. */
export interface ToolCallBlock {
  type: 'toolCall'
  id: string
  name: string
  /** The namespace in which the host has declared its tool. Shapes leave it out of what the engine gets. */
  namespace?: string
  /** As the model gave them. They are recorded like this. */
  arguments: object
  /** The same under the names that the engine knows (`path`, `content`, `oldText`, `newText`), if the host's differ. */
  engineArguments?: object
  thoughtSignature?: string
}

/** A message for the engine. Text of any other role always stays. */
export interface EngineMessage {
  role: string
  content: string | readonly Block[]
  /** When it was made, in milliseconds since the epoch. */
  timestamp?: number
  /** Answers: pi-ai's name of the provider's API, if that decides which parts may be dropped. */
  api?: string
  /** Tool results: the ID of the call. */
  toolCallId?: string
  /** Tool results: the tool's name; taken from the call if the host's message lacks it. */
  toolName?: string
  /** Tool results: whether the call failed. */
  isError?: boolean
  /**
   * Tool results: the plain lines of a file, if the host's result adds line numbers or other text to them. The engine
   * compares them with the file's versions. The record has the whole result.
   */
  lines?: string
  /** A user's message: the host's message also has the results before it, so that their calls have to stay. */
  joined?: true
  [field: string]: unknown
}

/** The deepest nesting that is recorded as it is. The engine's limit is slightly higher, because it counts the message too. */
const MAX_DEPTH = 90

/** True if a value is an object with fields. */
export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The text of a field, or '' if it is not a string. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** The number of a field, or 0 if it is none. */
export function numberOf(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0
}

/**
 * Parses arguments that a provider sends as JSON text. Anything but a JSON object has no arguments that could collapse, and neither have
 * those with a number that JavaScript does not have: read and written again, it would be another one.
 */
export function argumentsOf(text: unknown): object {
  if (isFields(text)) return text
  try {
    const json = textOf(text)
    const parsed: unknown = MAY_BE_TOO_LARGE.test(json) ? JSON.parse(json, finite) : JSON.parse(json)
    return isFields(parsed) ? parsed : {}
  } catch {
    return {}
  }
}

/** A number of more than 10^99, or a text that looks like one. */
const MAY_BE_TOO_LARGE = /\d{100}|[eE]\+?\d{3}/

function finite(_: string, value: unknown): unknown {
  if (typeof value === 'number' && !Number.isFinite(value)) throw new RangeError('a number is too large')
  return value
}

/** The calls of an answer. */
export function callsIn({ role, content }: EngineMessage): ToolCallBlock[] {
  return role !== 'assistant' || typeof content === 'string' ? [] : (content ?? []).filter(isCall)
}

function isCall(block: Block): block is ToolCallBlock {
  return block.type === 'toolCall' && 'id' in block
}

/** The text of a tool result, as the engine reads it. */
export function resultText({ content }: EngineMessage): string {
  if (typeof content === 'string') return content
  return content.flatMap((block) => (block.type === 'text' && 'text' in block ? [block.text] : [])).join('\n')
}

/**
 * The message in a form that the engine can record: values nested too deeply become JSON text. The calls of such a message
 * keep their arguments, so the flattened form is never sent.
 *
 * Throws `INVALID_ARGUMENT` if a message contains itself.
 */
export function recordable(message: EngineMessage): EngineMessage {
  const flat = flattened(message, MAX_DEPTH)
  if (flat === message) return message
  if (!Array.isArray(flat.content)) return flat
  const content = flat.content.map((block: Block) => (block.type === 'toolCall' ? { ...block, thoughtSignature: 'nested too deeply to be shortened' } : block))
  return { ...flat, content }
}

/** The fields of a message that the engine gets: all of an answer, because its usage is recorded; the content of others. */
export function handed(message: EngineMessage): EngineMessage {
  const { role, content, timestamp, toolCallId, toolName, isError, summary, command, output, lines, joined } = message
  if (role === 'assistant') return typeof content === 'string' || !content.some(isTranslated) ? message : { ...message, content: content.map(call) }
  return defined({ role, content: lines ?? content, timestamp, toolCallId, toolName, isError, summary, command, output, joined }) as EngineMessage
}

/** True if a block is a call whose arguments the engine knows under other names. */
export function isTranslated(block: Block): block is ToolCallBlock & { engineArguments: object } {
  return block.type === 'toolCall' && 'engineArguments' in block
}

function call(block: Block): Block {
  if (!isTranslated(block)) return block
  const { engineArguments, ...rest } = block
  return { ...rest, arguments: engineArguments }
}

function defined(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}

/** A part of a message, and the key by which the engine knows it. */
interface IncomingPart {
  key: string
  message: EngineMessage
}

/** A part of a message in the form that the engine takes. `isUnsent`: it stands in the past, and no request had it. */
export function incoming({ key, message }: IncomingPart, isUnsent = false): IncomingMessage {
  const taken = recordable(handed(message))
  return { key, message: isUnsent ? { ...taken, unsent: true } : taken }
}
