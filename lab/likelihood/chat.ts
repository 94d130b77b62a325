/**
 * Requests and answers as the measuring model reads them: ChatML, with calls and results in the form that Qwen2.5 was
 * trained on. Thinking stands in front of the text, as a model would write it.
 */
import type { ReplayBlock } from '../../lib/recordings/index.ts'

/** The kind of a piece of an answer. */
export type Part = 'thinking' | 'text' | 'calls'

/** A piece of an answer. */
export interface Piece {
  part: Part
  text: string
}

/** The system text of every arm, so that no arm is favoured by its tools' descriptions. */
const SYSTEM = 'You are a coding agent. You work in a shell with the tool bash.'

const END = '<|im_end|>\n'

interface Content {
  type?: string
  text?: string
  thinking?: string
  name?: string
  input?: unknown
  content?: string | { type?: string; text?: string }[]
}

/** Renders a request up to the point where the answer begins. */
export function requestText(blocks: readonly ReplayBlock[]): string {
  let text = `<|im_start|>system\n${SYSTEM}`
  let last = 'system'
  for (const block of blocks) {
    const [role, content] = JSON.parse(block.bytes) as [string, Content | string]
    if (role === 'system') continue
    if (role !== last) text += `${END}<|im_start|>${role}\n`
    last = role
    text += typeof content === 'string' ? content : textOf(content)
  }
  return `${text}${END}<|im_start|>assistant\n`
}

/** Returns the pieces of an answer in their order. */
export function answerPieces(blocks: readonly ReplayBlock[]): Piece[] {
  return blocks.flatMap((block) => {
    const [, content] = JSON.parse(block.bytes) as [string, Content]
    const text = textOf(content)
    return text.trim() === '' ? [] : [{ part: PARTS[content.type ?? ''] ?? 'text', text }]
  })
}

const PARTS: Record<string, Part> = { thinking: 'thinking', tool_use: 'calls' }

function textOf(content: Content): string {
  switch (content.type) {
    case 'thinking':
      return `${content.thinking ?? ''}\n\n`
    case 'tool_use':
      return `<tool_call>\n${JSON.stringify({ name: content.name, arguments: content.input })}\n</tool_call>\n`
    case 'tool_result': {
      const { content: inner = '' } = content
      const texts = typeof inner === 'string' ? [inner] : inner.map((one) => one.text ?? '')
      return `<tool_response>\n${texts.join('\n')}\n</tool_response>\n`
    }
    default:
      return `${content.text ?? ''}\n`
  }
}
