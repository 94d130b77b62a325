/** Messages as the engine reads them: pi-ai's user, assistant and tool result messages. */
import { invalid } from '../errors.ts'

/** A value's fields, where only some of them are looked at. */
export type Fields = Record<string, unknown>

/** A block of text, an image, or a tool call. Other blocks are carried along and counted as nothing. */
export type Block =
  | { type: 'text'; text: string }
  /** Its signature is what a provider has signed or encrypted it with: whether it may leave depends on the provider. */
  | { type: 'thinking'; thinking: string; thinkingSignature?: string }
  | { type: 'image' }
  | ToolCallBlock
  | { type: string }

/** A call of an answer. */
export interface ToolCallBlock {
  type: 'toolCall'
  id: string
  name: string
  /** As the model gave them; so they are recorded. */
  arguments: object
  /** The same in the words that the engine looks for (`path`, `content`, `oldText`, `newText`), where the host has others. */
  engineArguments?: object
  thoughtSignature?: string
}

/** A message for the engine. Every other role than these three is text that always stays. */
export interface EngineMessage {
  role: string
  content: string | readonly Block[]
  /** When it was made, in milliseconds since the epoch. */
  timestamp?: number
  /** Of an answer: the provider's interface, by pi-ai's name, where it decides what of the answer may leave. */
  api?: string
  /** Of a tool result. */
  toolCallId?: string
  /** Of a tool result; found by its call where the host's message does not say it. */
  toolName?: string
  /** Of a tool result. */
  isError?: boolean
  /**
   * Of a tool result: the lines of a file as they are, where the host numbers or frames what it shows of it. The engine
   * compares them with the file's versions; recorded is the whole result.
   */
  lines?: string
  [field: string]: unknown
}

/** The deepest nesting that the engine records. The engine counts the message itself, too, so this leaves some room. */
const MAX_DEPTH = 90

/** Whether a value is an object with fields. */
export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A field's text; empty where it is none. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** The arguments that a provider has as JSON text. What is no JSON object has none that could collapse. */
export function argumentsOf(text: unknown): object {
  if (isFields(text)) return text
  try {
    const parsed: unknown = JSON.parse(textOf(text))
    return isFields(parsed) ? parsed : {}
  } catch {
    return {}
  }
}

/** The text of a tool result as the engine reads it. */
export function resultText({ content }: EngineMessage): string {
  if (typeof content === 'string') return content
  return content.flatMap((block) => (block.type === 'text' && 'text' in block ? [block.text] : [])).join('\n')
}

/**
 * A message that the engine can record: what is nested too deeply stands in it as JSON text. The calls that it
 * concerns keep their arguments, so nothing that was flattened here is ever sent.
 *
 * Throws `INVALID_ARGUMENT` for a message that contains itself.
 */
export function recordable(message: EngineMessage): EngineMessage {
  if (!isDeeper(message, MAX_DEPTH)) return message
  const flat = flatten(message, MAX_DEPTH) as EngineMessage
  if (!Array.isArray(flat.content)) return flat
  const content = flat.content.map((block: Block) =>
    block.type === 'toolCall' ? { ...block, thoughtSignature: 'nested too deeply to be shortened' } : block,
  )
  return { ...flat, content }
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (levels === 0) return true
  for (const one of Object.values(value)) if (isDeeper(one, levels - 1)) return true
  return false
}

function flatten(value: unknown, levels: number): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (levels === 0) {
    try {
      return JSON.stringify(value)
    } catch (error) {
      throw invalid('a message contains itself or is nested too deeply to be written as JSON', error)
    }
  }
  if (Array.isArray(value)) return value.map((one) => flatten(one, levels - 1))
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, flatten(one, levels - 1)]))
}
