/** pi-ai's messages, which are the engine's own shape. */
import { editedContent } from '../driver/edits.ts'
import type { Fields, EngineMessage } from '../../core/index.ts'
import { isFields } from '../../core/index.ts'
import type { Shape } from '../shape.ts'

const BLOCKS: ReadonlySet<string> = new Set(['text', 'thinking', 'image', 'toolCall'])

export const pi: Shape = {
  name: 'pi',
  isAlone: true,

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
    const content = edit === undefined ? undefined : editedContent(edit, message as EngineMessage)
    if (content === null) return []
    return [content === undefined ? (message as object) : { ...message, content }]
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
