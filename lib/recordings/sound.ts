/** Messages of Pi as its files should have them: a value of another kind is left out, and the rest of its message stays. */
import { isFields, textOf } from '../core/index.ts'
import type { ContentBlock, Message } from './recording.ts'

/** A message whose fields have the kinds that {@link Message} names. */
export function soundMessage(message: Message): Message {
  const { content, toolCallId, toolName, ...rest } = message as Record<string, unknown> & Message
  return {
    ...rest,
    ...(content !== undefined && { content: soundContent(content) }),
    ...(message.role === 'toolResult' && { toolCallId: textOf(toolCallId), toolName: textOf(toolName) || UNKNOWN }),
  }
}

/** A text, or blocks that are none but their own kind says what they are. */
export function soundContent(content: unknown): string | ContentBlock[] {
  if (!Array.isArray(content)) return textOf(content)
  return content.flatMap((block: unknown) => (isFields(block) && typeof block['type'] === 'string' ? [soundBlock(block as ContentBlock)] : []))
}

/** True if {@link soundContent} leaves out a part of a content. */
export function hasOddParts(content: unknown): boolean {
  if (!Array.isArray(content)) return content !== undefined && typeof content !== 'string'
  return soundContent(content).length < content.length
}

function soundBlock(block: ContentBlock): ContentBlock {
  switch (block.type) {
    case 'text':
      return { ...block, text: textOf(block.text) }
    case 'thinking':
      return { ...block, thinking: textOf(block.thinking) }
    case 'image':
      return { ...block, data: textOf(block.data) }
    case 'toolCall':
      return { ...block, id: textOf(block.id), name: textOf(block.name) || UNKNOWN, arguments: isFields(block.arguments) ? block.arguments : {} }
    default:
      return block
  }
}

/** The name of a tool that a file does not name. */
const UNKNOWN = 'unknown'
