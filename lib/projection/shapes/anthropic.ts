/**
 * Anthropic's messages. Calls are `tool_use` blocks of an answer; results are `tool_result` blocks of the user message after
 * it, several in one message for parallel calls.
 */
import type { Block, EngineMessage, Fields } from '../../core/index.ts'
import { isFields, textOf } from '../../core/index.ts'
import { argumentsBy, joinedTo, shortened, shortenedText } from '../shape.ts'
import { inOrderOf } from '../driver/edits.ts'
import type { PartEdit } from '../driver/edits.ts'
import type { Shape } from '../shape.ts'
import { opaque, pictured } from '../opaque.ts'

/** Blocks that only this shape has. */
const OWN: ReadonlySet<string> = new Set(['tool_use', 'tool_result', 'redacted_thinking', 'document', 'search_result', 'server_tool_use', 'container_upload'])

export const anthropic: Shape = {
  name: 'anthropic',
  isAlone: true,

  judge(message) {
    const { role, content, type } = message as Fields
    if ((role !== 'user' && role !== 'assistant' && role !== 'system') || 'timestamp' in message) return undefined
    if ('tool_calls' in message || (type !== undefined && type !== 'message')) return undefined
    if (typeof content === 'string') return 'shared'
    if (!Array.isArray(content) || !content.every(isBlock)) return undefined
    return content.some(isOwn) ? 'own' : 'shared'
  },

  read(messages, at) {
    const message = messages[at] as Fields
    const content = message['content']
    if (!Array.isArray(content)) return { size: 1, parts: [message as EngineMessage] }
    const blocks = content as Fields[]
    if (message['role'] === 'assistant') return { size: 1, parts: [answer(message, blocks)] }
    const parts: EngineMessage[] = blocks.filter(isResult).map(result)
    const rest = blocks.filter((block) => !isResult(block))
    if (rest.length > 0 || parts.length === 0) parts.push({ role: String(message['role']), content: rest.map(blockOf), ...joinedTo(parts) })
    return { size: 1, parts }
  },

  write([message], edits) {
    const { role, content } = message as Fields
    if (edits.size === 0) return [message as object]
    if (!Array.isArray(content)) {
      const edit = edits.get(0)
      return edit?.kind === 'gone' ? [] : [{ ...message, content: shortenedText(textOf(content), edit) }]
    }
    const blocks = content as Fields[]
    if (role === 'assistant') {
      const edit = edits.get(0)
      return edit?.kind === 'gone' ? [] : [{ ...message, content: shortened(withArguments(blocks, edit), edit) }]
    }
    const left = answered(blocks, edits)
    return left.length === 0 ? [] : [{ ...message, content: left }]
  },

  notice(text) {
    return { role: 'user', content: [{ type: 'text', text }] }
  },

  isPaused(messages) {
    return (messages.at(-1) as Fields | undefined)?.['role'] === 'assistant'
  },

  // While a call that the provider runs is open, a word behind the results would end the turn without its result.
  isHeld(messages) {
    const answered = new Set<unknown>()
    for (let at = messages.length - 1; at >= 0; at -= 1) {
      const { role, content } = messages[at] as Fields
      const blocks = Array.isArray(content) ? (content as Fields[]) : []
      if (role === 'assistant') {
        for (const block of blocks) if (isServerResult(block)) answered.add(block['tool_use_id'])
        if (blocks.some((block) => SERVER_CALLS.has(String(block['type'])) && !answered.has(block['id']))) return true
      } else if (role === 'user' && (blocks.length === 0 || !blocks.every(isResult))) return false
    }
    return false
  },
}

function isBlock(block: unknown): block is Fields {
  if (!isFields(block)) return false
  const type = block['type']
  if (type === 'text') return typeof block['text'] === 'string'
  if (type === 'image') return isFields(block['source'])
  if (type === 'thinking') return typeof block['thinking'] === 'string'
  return OWN.has(String(type)) || String(type).endsWith('_tool_result')
}

function isOwn(block: Fields): boolean {
  const type = String(block['type'])
  return OWN.has(type) || type.endsWith('_tool_result') || type === 'image' || 'signature' in block || 'cache_control' in block
}

function isResult(block: Fields): boolean {
  return block['type'] === 'tool_result'
}

/** Calls that the provider runs itself. */
const SERVER_CALLS: ReadonlySet<string> = new Set(['server_tool_use', 'mcp_tool_use'])

function isServerResult(block: Fields): boolean {
  return !isResult(block) && String(block['type']).endsWith('tool_result')
}

/** A text with citations stays, because these name places in other blocks or are signed. */
function blockOf(block: Fields): Block {
  if (block['type'] !== 'text') return opaque(block)
  return isCited(block) ? opaque(block, 'cited') : { type: 'text', text: textOf(block['text']) }
}

function isCited({ citations }: Fields): boolean {
  return Array.isArray(citations) && citations.length > 0
}

function answer(message: Fields, blocks: readonly Fields[]): EngineMessage {
  const content = blocks.map((block): Block => {
    if (block['type'] === 'tool_use') {
      const args = isFields(block['input']) ? block['input'] : {}
      return { type: 'toolCall', id: textOf(block['id']), name: textOf(block['name']), arguments: args }
    }
    if (block['type'] === 'thinking') return { type: 'thinking', thinking: textOf(block['thinking']), thinkingSignature: textOf(block['signature']) }
    if (block['type'] === 'redacted_thinking') return { type: 'thinking', thinking: '', thinkingSignature: textOf(block['data']) }
    return blockOf(block)
  })
  // Anthropic accepts answers of earlier turns without their reasoning.
  const api = content.some(({ type }) => type === 'thinking') ? { api: 'anthropic-messages' } : {}
  return { role: 'assistant', content, ...api, ...(message['model'] === undefined ? {} : { model: message['model'] }) }
}

function result(block: Fields): EngineMessage {
  const { content } = block
  const blocks = Array.isArray(content) ? (content as Fields[]).map((one) => (one['type'] === 'text' ? blockOf(one) : pictured(one))) : textOf(content)
  return { role: 'toolResult', toolCallId: textOf(block['tool_use_id']), content: blocks, isError: block['is_error'] === true }
}

/** Replaces a text, in the same form. A cache marker on it stays. */
function withText(content: unknown, text: string): unknown {
  if (!Array.isArray(content)) return text
  const marked = (content as Fields[]).findLast((block) => block['type'] === 'text' && 'cache_control' in block)
  const marker = marked === undefined ? {} : { cache_control: marked['cache_control'] }
  return [{ type: 'text', text, ...marker }, ...(content as Fields[]).filter((block) => block['type'] !== 'text')]
}

/** A user message: its results, then what the user says. */
function answered(blocks: readonly Fields[], edits: ReadonlyMap<number, PartEdit>): Fields[] {
  const own = edits.get(blocks.filter(isResult).length)
  const numbers = new Map(blocks.filter((block) => !isResult(block)).map((block, number) => [block, number]))
  let number = -1
  const whole = blocks.flatMap((block) => {
    if (!isResult(block)) return [block]
    number += 1
    const edit = edits.get(number)
    if (edit?.kind === 'gone') return []
    return edit?.kind === 'result' ? [{ ...block, content: withText(block['content'], edit.text) }] : [block]
  })
  return shortened(whole, own, undefined, (block) => numbers.get(block))
}

function withArguments(blocks: readonly Fields[], edit: PartEdit | undefined): Fields[] {
  const collapsed = argumentsBy(edit)
  let position = -1
  return blocks.map((block) => {
    if (block['type'] !== 'tool_use') return block
    position += 1
    const args = collapsed.get(position)
    return args === undefined ? block : { ...block, input: inOrderOf(block['input'], args) }
  })
}
