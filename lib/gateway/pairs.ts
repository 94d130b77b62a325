/** Checks that a form keeps calls and results together: a provider refuses a request in which one of them is missing. */
import type { Shape } from '../projection/index.ts'

/** True if calls and results pair in messages that go out as they do in the host's own. */
export function isPaired(sent: readonly object[], own: readonly object[], shape: Shape): boolean {
  const [before, after] = [openCalls(own, shape), openCalls(sent, shape)]
  if (before === undefined) return true
  return after !== undefined && after.size === before.size && [...after].every(([id, count]) => before.get(id) === count)
}

/** The calls without a result, by ID; undefined if a result comes before its call. */
function openCalls(messages: readonly object[], shape: Shape): Map<string, number> | undefined {
  const open = new Map<string, number>()
  for (let at = 0; at < messages.length;) {
    const { size, parts } = shape.read(messages, at)
    at += size
    for (const { role, content, toolCallId = '' } of parts) {
      if (role === 'toolResult') {
        const count = open.get(toolCallId)
        if (count === undefined) return undefined
        if (count === 1) open.delete(toolCallId)
        else open.set(toolCallId, count - 1)
      } else if (role === 'assistant' && typeof content !== 'string') {
        for (const block of content) if (block.type === 'toolCall' && 'id' in block) open.set(block.id, (open.get(block.id) ?? 0) + 1)
      }
    }
  }
  return open
}
