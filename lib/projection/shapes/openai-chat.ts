/** OpenAI's chat completions messages, which many other providers accept. */
import type { Block, EngineMessage, Fields } from '../../core/index.ts'
import { argumentsOf, isFields, textOf } from '../../core/index.ts'
import { argumentsBy, messageEdit, shortened, shortenedText } from '../shape.ts'
import type { PartEdit } from '../driver/edits.ts'
import { opaque, pictured } from '../opaque.ts'
import type { Shape } from '../shape.ts'
import { argumentsText } from '../splice.ts'

const PARTS: ReadonlySet<string> = new Set(['text', 'refusal', 'image_url', 'input_audio', 'file'])

export const chat: Shape = {
  name: 'openai-chat',
  isAlone: true,

  judge(message) {
    const { role, content, type } = message as Fields
    if (type !== undefined || 'timestamp' in message) return undefined
    if (content !== undefined && content !== null && typeof content !== 'string' && !(Array.isArray(content) && content.every(isPart))) {
      return undefined
    }
    switch (role) {
      case 'tool':
        return typeof (message as Fields)['tool_call_id'] === 'string' ? 'own' : undefined
      case 'developer':
      case 'function':
        return 'shared'
      case 'assistant':
        if (Array.isArray((message as Fields)['tool_calls'])) return 'own'
        return content === undefined ? undefined : 'shared'
      case 'user':
      case 'system': {
        if (content === undefined || content === null) return undefined
        const isOwn = Array.isArray(content) && content.some((part: Fields) => ['image_url', 'input_audio'].includes(String(part['type'])))
        return isOwn ? 'own' : 'shared'
      }
      default:
        return undefined
    }
  },

  read(messages, at) {
    const message = messages[at] as Fields
    return { size: 1, parts: [partOf(message)] }
  },

  write([message], edits) {
    const edit = edits.get(0)
    if (edit?.kind === 'gone') return []
    return [edit === undefined ? (message as object) : edited(message as Fields, edit)]
  },

  notice(text) {
    return { role: 'user', content: text }
  },
}

function isPart(part: unknown): boolean {
  return isFields(part) && PARTS.has(String(part['type']))
}

function partOf(message: Fields): EngineMessage {
  const { role, content } = message
  const blocks = blocksOf(content)
  if (role === 'tool') return { role: 'toolResult', toolCallId: textOf(message['tool_call_id']), content: blocks }
  if (role !== 'assistant') return { role: String(role), content: blocks }
  const calls = Array.isArray(message['tool_calls']) ? (message['tool_calls'] as Fields[]) : []
  const own = ownIn(message)
  if (calls.length === 0 && own.length === 0) return { role: 'assistant', content: blocks }
  const prose: readonly Block[] = typeof blocks === 'string' ? (blocks === '' ? [] : [{ type: 'text', text: blocks }]) : blocks
  // A text that is cited stays.
  const said = own.length === 0 ? prose : prose.map((block): Block => (block.type === 'text' ? opaque(block as Fields, 'cited') : block))
  return { role: 'assistant', content: [...said, ...own, ...calls.map(callOf)] }
}

/** The fields of an answer that are no text and no calls: citations, images, speech. */
function ownIn(message: Fields): Block[] {
  const own = Object.entries(message).filter(([name, value]) => OWN.has(name) && value !== null && (!Array.isArray(value) || value.length > 0))
  return own.length === 0 ? [] : [opaque(Object.fromEntries(own), 'own')]
}

const OWN: ReadonlySet<string> = new Set(['annotations', 'audio', 'images'])

function blocksOf(content: unknown): string | readonly Block[] {
  if (!Array.isArray(content)) return textOf(content)
  return (content as Fields[]).map((part): Block => {
    if (part['type'] === 'text') return { type: 'text', text: textOf(part['text']) }
    if (part['type'] === 'refusal') return { type: 'text', text: textOf(part['refusal']) }
    return pictured(part)
  })
}

function callOf(call: Fields): Block {
  const id = textOf(call['id'])
  const called = call['function']
  if (!isFields(called)) {
    const { name, input } = isFields(call['custom']) ? call['custom'] : ({} as Fields)
    return { type: 'toolCall', id, name: textOf(name), arguments: { input: textOf(input) }, thoughtSignature: 'free text' }
  }
  const signature = signatureOf(call)
  return { type: 'toolCall', id, name: textOf(called['name']), arguments: argumentsOf(called['arguments']), ...signature }
}

/** Gemini also signs its calls in this API. */
function signatureOf(call: Fields): { thoughtSignature?: string } {
  const { extra_content: extra } = call
  const google = isFields(extra) ? extra['google'] : undefined
  const signature = isFields(google) ? google['thought_signature'] : undefined
  return typeof signature === 'string' ? { thoughtSignature: signature } : {}
}

function edited(message: Fields, edit: PartEdit): object {
  if (edit.kind === 'result') {
    const { content } = message
    if (!Array.isArray(content)) return { ...message, content: edit.text }
    const parts = content as Fields[]
    const last = parts.findLast((part) => part['type'] === 'text')
    return { ...message, content: [{ ...last, type: 'text', text: edit.text }, ...parts.filter((part) => part['type'] !== 'text')] }
  }
  const collapsed = argumentsBy(edit)
  const calls = (message['tool_calls'] as Fields[] | undefined)?.map((call, position) => {
    const args = collapsed.get(position)
    if (args === undefined || !isFields(call['function'])) return call
    return { ...call, function: { ...call['function'], arguments: argumentsText(call['function']?.['arguments'], args) } }
  })
  const content = (messageEdit(edit)?.texts.length ?? 0) === 0 ? {} : { content: withTexts(message['content'], edit) }
  return { ...message, ...content, ...(calls === undefined ? {} : { tool_calls: calls }) }
}

/** A content of which nothing is left becomes null, as in an answer that only makes calls. */
function withTexts(content: unknown, edit: PartEdit): unknown {
  if (!Array.isArray(content)) return shortenedText(textOf(content), edit) || null
  const left = shortened(content as Fields[], edit, (part, text) => ({ ...part, [part['type'] === 'refusal' ? 'refusal' : 'text']: text }))
  return left.length === 0 ? null : left
}
