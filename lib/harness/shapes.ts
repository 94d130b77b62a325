/** The known shapes, and how the shape of a conversation is detected. */
import { invalid } from '../errors.ts'
import { isFields } from './message.ts'
import type { Shape } from './shape.ts'
import { modelMessages } from './shapes/ai-sdk.ts'
import { anthropic } from './shapes/anthropic.ts'
import { chat } from './shapes/openai-chat.ts'
import { responses } from './shapes/openai-responses.ts'
import { pi } from './shapes/pi.ts'
import { translated } from './translated.ts'

/** The names of the known shapes. */
export type ShapeName = 'pi' | 'anthropic' | 'openai-chat' | 'openai-responses' | 'ai-sdk'

const SHAPES: readonly Shape[] = [pi, anthropic, chat, responses, modelMessages].map((shape) => translated(shape))

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
  const what = isFields(message)
    ? `has the fields ${Object.keys(message).slice(0, 8).join(', ') || '(none)'}${role}${content}`
    : `is ${kind(message)}`
  const wanted =
    shape === undefined
      ? `of a known shape (${SHAPES.map((one) => one.name).join(', ')})`
      : `of the shape ${shape.name}, as those before it are`
  return invalid(`message ${at} of ${messages.length} is not ${wanted}: it ${what}. It was not recorded; if the messages have one of these shapes, set it with the option "shape"`)
}
