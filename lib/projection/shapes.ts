/**
 * The known shapes, how the shape of a conversation is detected, and shapes whose calls the engine gets under its own names,
 * whatever the host calls its tools and their arguments.
 */
import { callsIn, invalid, isFields } from '../core/index.ts'
import type { PartEdit } from './driver/edits.ts'
import type { Shape } from './shape.ts'
import { modelMessages } from './shapes/ai-sdk.ts'
import { anthropic } from './shapes/anthropic.ts'
import { gemini } from './shapes/gemini.ts'
import { chat } from './shapes/openai-chat.ts'
import { responses } from './shapes/openai-responses.ts'
import { pi } from './shapes/pi.ts'
import { engineCalls, hostArguments } from '../tools/index.ts'
import type { EngineCall, HostCall } from '../tools/index.ts'
import { isEqual } from './identity.ts'
import type { Block, EngineMessage, Fields, ToolCallBlock } from '../core/index.ts'

/** The names of the known shapes. */
export type ShapeName = 'pi' | 'anthropic' | 'openai-chat' | 'openai-responses' | 'ai-sdk' | 'gemini'

const SHAPES: readonly Shape[] = [pi, anthropic, chat, responses, modelMessages, gemini].map((shape) => translated(shape))

/** The shape with this name. */
export function shapeNamed(name: string): Shape {
  const shape = SHAPES.find((one) => one.name === name)
  if (shape === undefined) throw invalid(`shape is one of ${SHAPES.map((one) => one.name).join(', ')}, not "${name}"`)
  return shape
}

/**
 * The shape of a conversation. `known` is the shape that was set or found before. Otherwise it is decided by
 * the first message that only one shape can have; until there is one, the result is undefined, and messages are read as
 * pi-ai's.
 *
 * Throws `INVALID_ARGUMENT` if a message is of no shape, or of another one than the rest.
 */
export function shapeOf(messages: readonly unknown[], from: number, known: Shape | undefined): Shape | undefined {
  let found = known
  let possible = SHAPES
  for (let at = from; at < messages.length; at += 1) {
    const message = messages[at]
    if (!isFields(message)) throw unknown(messages, at)
    if (found !== undefined) {
      if (found.judge(message) === undefined) throw unknown(messages, at, found)
      continue
    }
    const judged = possible.map((shape) => [shape, shape.judge(message)] as const)
    possible = judged.flatMap(([shape, verdict]) => (verdict === undefined ? [] : [shape]))
    if (possible.length === 0) throw unknown(messages, at)
    const own = judged.filter(([, verdict]) => verdict === 'own')
    if (own.length === 1 || possible.length === 1) found = own[0]?.[0] ?? possible[0]
  }
  return found
}

/** The shape in which a conversation is read until its own is known. */
export const UNDECIDED: Shape = SHAPES[0] as Shape

function unknown(messages: readonly unknown[], at: number, shape?: Shape): Error {
  const message = messages[at]
  const kind = (value: unknown): string => (value === null ? 'null' : Array.isArray(value) ? 'an array' : typeof value)
  const role = isFields(message) && typeof message['role'] === 'string' ? ` and the role "${message['role']}"` : ''
  const content = isFields(message) && 'content' in message ? `; its content is ${kind(message['content'])}` : ''
  const what = isFields(message) ? `has the fields ${Object.keys(message).slice(0, 8).join(', ') || '(none)'}${role}${content}` : `is ${kind(message)}`
  const wanted = shape === undefined ? `of a known shape (${SHAPES.map((one) => one.name).join(', ')})` : `of the shape ${shape.name}, as those before it are`
  return invalid(
    `message ${at} of ${messages.length} is not ${wanted}: it ${what}. It was not recorded; if the messages have one of these shapes, set it with the option "shape"`,
  )
}

/** A call of a host, with its ID and the namespace that its tool is in. */
export interface PlacedCall extends HostCall {
  id: string
  namespace: string
}

/** A translation of a message's calls into the form that the engine knows. */
type Translate = (calls: readonly PlacedCall[]) => readonly EngineCall[]

/** The shape with the engine's names. Edited calls return under the host's names. */
export function translated(base: Shape, translate: Translate = engineCalls): Shape {
  return {
    ...base,
    read(messages, at) {
      const { size, parts } = base.read(messages, at)
      return { size, parts: underEngineNames(parts, translate) }
    },
    write(messages, edits) {
      const { parts } = base.read(messages, 0)
      return base.write(messages, new Map([...edits].map(([number, edit]) => [number, underHostNames(edit, parts[number], translate)])))
    },
  }
}

/** The parts of a message with the engine's names. All its calls and the tools of its results are asked about at once. */
function underEngineNames(parts: readonly EngineMessage[], translate: Translate): EngineMessage[] {
  const blocks = translatedBlocks(parts.flatMap(callsIn), translate)
  const results = parts.filter(isNamedResult)
  const tools = engineCalls(results.map(({ toolName = '' }) => ({ name: toolName, args: {} })))
  const toolOf = new Map(results.map((result, at) => [result, tools[at]?.tool]))
  return parts.map((part) => {
    const toolName = toolOf.get(part)
    if (toolName !== undefined) return { ...part, toolName }
    return callsIn(part).length === 0 ? part : { ...part, content: (part.content as readonly Block[]).map((block) => blocks.get(block) ?? block) }
  })
}

/** The blocks of calls under the engine's names, by the host's. A call that has the same in both stays as it is. */
function translatedBlocks(blocks: readonly ToolCallBlock[], translate: Translate): Map<Block, ToolCallBlock> {
  const calls = translate(blocks.map(({ id, name, arguments: args, namespace = '' }) => ({ id, name, args: args as Fields, namespace })))
  return new Map(blocks.map((block, at) => [block, translatedBlock(block, calls[at] as EngineCall)]))
}

function translatedBlock(block: ToolCallBlock, { tool, args }: EngineCall): ToolCallBlock {
  const { namespace = '', ...own } = block
  if (tool !== block.name || !isEqual(args, block.arguments)) return { ...own, name: tool, engineArguments: args }
  return namespace === '' ? block : own
}

/** Translates the arguments of an edit's calls back. `part` is what the base shape reads, with the host's names. */
function underHostNames(edit: PartEdit, part: EngineMessage | undefined, translate: Translate): PartEdit {
  if (edit.kind !== 'message' || edit.calls.length === 0 || part === undefined) return edit
  const calls = callsIn(part)
  const blocks = translatedBlocks(calls, translate)
  return {
    ...edit,
    calls: edit.calls.map((one) => {
      const own = calls[one.position]
      return own === undefined || blocks.get(own) === own ? one : { ...one, args: hostArguments(own.name, own.arguments as Fields, one.args as Fields) }
    }),
  }
}

function isNamedResult({ role, toolName = '' }: EngineMessage): boolean {
  return role === 'toolResult' && toolName !== ''
}
