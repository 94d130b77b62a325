/** Messages in Anthropic's format as the blocks that replay's meter counts. */
import { systemBlock } from '../../lib/recordings/index.ts'
import type { ReplayBlock } from '../../lib/recordings/index.ts'

type Fields = Record<string, any>

/** The size of an image, as replay counts it, in UTF-16 units. */
const IMAGE_UNITS = 4800

/** The blocks of a request: the system part, of a known size, and those of its messages. Cache markers are no content. */
export function blocksIn(messages: readonly { role: string; content: unknown }[], systemUnits: number): ReplayBlock[] {
  const own = messages.flatMap(({ role, content }) => {
    const blocks = (typeof content === 'string' ? [{ type: 'text', text: content }] : content) as Fields[]
    return blocks.map((block): ReplayBlock => {
      const bytes = JSON.stringify([role, block], (name, value: unknown) => (name === 'cache_control' ? undefined : value))
      return { bytes, units: unitsOf(block), label: String(block['type']), texts: [] }
    })
  })
  return [systemBlock('', systemUnits), ...own]
}

function unitsOf(block: Fields): number {
  switch (block['type']) {
    case 'text':
      return block['text'].length
    case 'thinking':
      return block['thinking'].length
    case 'tool_use':
      return block['name'].length + JSON.stringify(block['input']).length
    case 'tool_result':
      return typeof block['content'] === 'string'
        ? block['content'].length
        : (block['content'] ?? []).reduce((sum: number, one: Fields) => sum + unitsOf(one), 0)
    default:
      return IMAGE_UNITS
  }
}
