/**
 * OpenAI's responses items, and those of the OpenAI Agents SDK, which only have other names. An answer is a sequence of
 * separate items for reasoning, text and calls.
 */
import type { Block, EngineMessage, Fields } from '../../core/index.ts'
import { argumentsOf, isFields, textOf } from '../../core/index.ts'
import { argumentsBy, messageEdit, shortened, shortenedText } from '../shape.ts'
import type { PartEdit } from '../driver/edits.ts'
import { opaque, pictured } from '../opaque.ts'
import type { Shape } from '../shape.ts'
import { argumentsText } from '../splice.ts'

const RESULTS: ReadonlySet<string> = new Set(['function_call_output', 'function_call_result', 'custom_tool_call_output'])
const ROLES: ReadonlySet<string> = new Set(['user', 'assistant', 'system', 'developer'])
const CONTENT: ReadonlySet<string> = new Set([
  ...['input_text', 'input_image', 'input_file', 'input_audio', 'output_text', 'refusal', 'summary_text', 'reasoning_text'],
])
/** Further items in the Agents SDK's answers. */
const ANSWERED: ReadonlySet<string> = new Set([...CONTENT, 'audio', 'image'])

export const responses: Shape = {
  name: 'openai-responses',
  isInMessages: true,

  judge(item) {
    const { type, role, content } = item as Fields
    if ('timestamp' in item || 'tool_calls' in item) return undefined
    if (type !== undefined && type !== 'message') return isItem(item as Fields) ? 'own' : undefined
    if (!ROLES.has(String(role))) return undefined
    if (type === undefined && typeof content === 'string') return 'shared'
    if (typeof content === 'string') return 'own'
    if (!Array.isArray(content)) return undefined
    if (content.length === 0) return type === 'message' ? 'own' : 'shared'
    const types = role === 'assistant' ? ANSWERED : CONTENT
    return content.every((part) => isFields(part) && types.has(String(part['type']))) ? 'own' : undefined
  },

  read(items, at) {
    const item = items[at] as Fields
    if (RESULTS.has(String(item['type']))) return { size: 1, parts: [result(item)] }
    if (!isAnswer(item))
      return { size: 1, parts: [{ role: String(item['role'] ?? item['type']), content: isMessage(item) ? blocksOf(item['content']) : [opaque(item)] }] }
    let end = at + 1
    while (end < items.length && isAnswer(items[end] as Fields)) end += 1
    const answer = items.slice(at, end) as Fields[]
    if (end === at + 1 && typeof item['content'] === 'string') return { size: 1, parts: [{ role: 'assistant', content: item['content'] }] }
    const api = answer.some(({ type }) => type === 'reasoning') ? { api: 'openai-responses' } : {}
    return { size: end - at, parts: [{ role: 'assistant', content: answer.flatMap(answered), ...api }] }
  },

  write(items, edits) {
    const edit = edits.get(0)
    if (edit === undefined) return [...items]
    if (edit.kind === 'gone') return []
    if (edit.kind === 'result') return items.map((item) => ({ ...item, output: withText((item as Fields)['output'], edit.text) }))
    return withTexts(withArguments(items as Fields[], edit), edit)
  },

  notice(text) {
    return { role: 'user', content: text }
  },
}

/** All items except messages are recognized by their type, and calls also by an ID. */
function isItem(item: Fields): boolean {
  const type = String(item['type'])
  if (type === 'function_call' || type === 'custom_tool_call' || RESULTS.has(type)) return callId(item) !== undefined
  return (
    type === 'reasoning' ||
    type === 'item_reference' ||
    type === 'compaction' ||
    type === 'unknown' ||
    /_(call|call_output|call_result|call_approval|list_tools|approval_request|approval_response|output)$/.test(type)
  )
}

function callId(item: Fields): string | undefined {
  const id = item['call_id'] ?? item['callId']
  return typeof id === 'string' ? id : undefined
}

function isMessage({ type }: Fields): boolean {
  return type === undefined || type === 'message'
}

/** True if the item is the model's. */
function isAnswer(item: Fields): boolean {
  const { type, role } = item
  if (isMessage(item)) return role === 'assistant'
  return type === 'reasoning' || (String(type).endsWith('_call') && !RESULTS.has(String(type)))
}

function answered(item: Fields): readonly Block[] {
  const { type } = item
  if (type === 'function_call') {
    const namespace = typeof item['namespace'] === 'string' ? { namespace: item['namespace'] } : {}
    return [{ type: 'toolCall', id: callId(item) ?? '', name: textOf(item['name']), arguments: argumentsOf(item['arguments']), ...namespace }]
  }
  if (type === 'custom_tool_call') {
    const args = { input: textOf(item['input']) }
    return [{ type: 'toolCall', id: callId(item) ?? '', name: textOf(item['name']), arguments: args, thoughtSignature: 'free text' }]
  }
  if (type === 'reasoning') {
    const parts = [item['content'], item['summary']].flatMap((one) => (Array.isArray(one) ? (one as Fields[]) : []))
    // OpenAI requires reasoning together with the call or text after it.
    return [{ type: 'thinking', thinking: parts.map((part) => textOf(part['text'])).join('\n'), thinkingSignature: 'tied to what follows' }]
  }
  // A call that OpenAI runs itself, or one whose output has another form than a function's, stays with what it came with.
  if (!isMessage(item)) return [opaque(item)]
  const content = blocksOf(item['content'])
  return typeof content === 'string' ? (content === '' ? [] : [{ type: 'text', text: content }]) : content
}

function blocksOf(content: unknown): string | readonly Block[] {
  if (!Array.isArray(content)) return textOf(content)
  return (content as Fields[]).map((part): Block => {
    const text = part['text'] ?? part['refusal']
    if (typeof text !== 'string') return pictured(part)
    return isCited(part) ? opaque(part, 'cited') : { type: 'text', text }
  })
}

/** A text stays if it has citations, because these name places in it. */
function isCited({ annotations }: Fields): boolean {
  return Array.isArray(annotations) && annotations.length > 0
}

function result(item: Fields): EngineMessage {
  const { output } = item
  const content = isFields(output) ? blocksOf([output]) : blocksOf(output)
  const name = typeof item['name'] === 'string' ? { toolName: item['name'] } : {}
  return { role: 'toolResult', toolCallId: callId(item) ?? '', content, isError: item['status'] === 'incomplete', ...name }
}

/** Replaces a text, in the same form. */
function withText(output: unknown, text: string): unknown {
  if (isFields(output)) return { ...output, text }
  if (!Array.isArray(output)) return text
  const parts = output as Fields[]
  const last = parts.findLast((part) => typeof part['text'] === 'string')
  return [{ ...last, type: last?.['type'] ?? 'input_text', text }, ...parts.filter((part) => typeof part['text'] !== 'string')]
}

function withArguments(items: readonly Fields[], edit: PartEdit): Fields[] {
  const collapsed = argumentsBy(edit)
  let position = -1
  return items.map((item) => {
    if (item['type'] !== 'function_call' && item['type'] !== 'custom_tool_call') return item
    position += 1
    const args = collapsed.get(position)
    return args === undefined || item['type'] !== 'function_call' ? item : { ...item, arguments: argumentsText(item['arguments'], args) }
  })
}

/** Edits texts of messages. Reasoning is never shortened, but a text may take its place. An item without any text left is dropped. */
function withTexts(items: readonly Fields[], edit: PartEdit): Fields[] {
  if ((messageEdit(edit)?.texts.length ?? 0) === 0) return [...items]
  let first = 0
  return items.flatMap((item) => {
    const { type, content } = item
    const start = first
    first += isAnswer(item) ? answered(item).length : blocksOf(content).length
    if (type === 'reasoning') {
      const text = messageEdit(edit)?.texts.find(({ block }) => block === start)?.text
      return text === undefined ? [item] : [{ type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text }] }]
    }
    if (type !== undefined && type !== 'message') return [item]
    if (typeof content === 'string') {
      const own = messageEdit(edit)?.texts.find(({ block }) => block === start)
      const text = own === undefined ? content : shortenedText(content, { kind: 'message', calls: [], texts: [{ ...own, block: 0 }] })
      return text === '' && own !== undefined ? [] : [{ ...item, content: text }]
    }
    if (!Array.isArray(content)) return [item]
    const withText = (part: Fields, text: string): Fields => ({ ...part, [part['type'] === 'refusal' ? 'refusal' : 'text']: text })
    const left = shortened(content as Fields[], edit, withText, (_, place) => start + place)
    return left.length === 0 && content.length > 0 ? [] : [{ ...item, content: left }]
  })
}
