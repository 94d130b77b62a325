/** pi-ai's messages, which are the engine's own shape. */
import type { Fields, EngineMessage } from '../message.ts'
import { isFields } from '../message.ts'
import { argumentsBy, shortened, shortenedText } from '../shape.ts'
import type { PartEdit, Shape } from '../shape.ts'

const BLOCKS: ReadonlySet<string> = new Set(['text', 'thinking', 'image', 'toolCall'])

export const pi: Shape = {
  name: 'pi',

  judge(message) {
    const { role, content, type, parts } = message as Fields
    if (typeof role !== 'string' || role === '' || type !== undefined || parts !== undefined) return undefined
    if (role === 'tool' || role === 'developer' || role === 'function') return undefined
    if ('tool_calls' in message || 'tool_call_id' in message) return undefined
    // pi-agent-core and applications add messages with their own roles.
    if (!['user', 'assistant', 'system', 'toolResult'].includes(role)) {
      return 'timestamp' in message || 'summary' in message || 'customType' in message ? 'own' : undefined
    }
    if (Array.isArray(content) && !content.every(isBlock)) return undefined
    if (content !== undefined && typeof content !== 'string' && !Array.isArray(content)) return undefined
    if (content === undefined && role !== 'system') return undefined
    const isOwn = role === 'toolResult' || 'timestamp' in message || (Array.isArray(content) && content.some((one) => one['type'] === 'toolCall'))
    return isOwn ? 'own' : 'shared'
  },

  read(messages, at) {
    return { size: 1, parts: [messages[at] as EngineMessage] }
  },

  write([message], edits) {
    const edit = edits.get(0)
    if (edit?.kind === 'gone') return []
    return [edit === undefined ? (message as object) : edited(message as Fields, edit)]
  },

  notice(text, timestamp) {
    return { role: 'user', content: [{ type: 'text', text }], timestamp }
  },
}

function isBlock(block: unknown): block is Fields {
  if (!isFields(block) || !BLOCKS.has(String(block['type']))) return false
  if (block['type'] === 'toolCall') return isFields(block['arguments']) || block['arguments'] === undefined
  return block['type'] !== 'image' || !('source' in block || 'image' in block)
}

function edited(message: Fields, edit: PartEdit): object {
  const content = message['content']
  if (edit.kind === 'result') {
    const others = Array.isArray(content) ? content.filter((block) => (block as Fields)?.['type'] !== 'text') : []
    return { ...message, content: [{ type: 'text', text: edit.text }, ...others] }
  }
  if (!Array.isArray(content)) return typeof content === 'string' ? { ...message, content: shortenedText(content, edit) } : message
  const collapsed = argumentsBy(edit)
  let position = -1
  const blocks = (content as Fields[]).map((block) => {
    if (block?.['type'] !== 'toolCall') return block
    position += 1
    const args = collapsed.get(position)
    return args === undefined ? block : { ...block, arguments: args }
  })
  return { ...message, content: shortened(blocks, edit) }
}
