/** The specification's four sections as messages: for models without a prefix cache, and for harnesses that want them. */
import type { Assembled } from '../../index.js'
import { poolLineOf } from '../lines/index.ts'
import { binds, withoutReasoning } from '../models/index.ts'
import type { Binding } from '../models/index.ts'

/** About how many tokens of pool lines a request shows besides those of active objects. */
const POOL_TOKENS = 2000

/** A message in the shape of pi-ai, as far as this file uses it. */
interface Message {
  role: string
  content?: unknown
  toolCallId?: string
  timestamp?: number
}

/** The state to render, and what the provider does with reasoning behind a change. */
export interface Rendering {
  view: Assembled
  binding: Binding
}

/**
 * The messages of a request in the order of the specification: the metadata pool, the conversation with a `toolcall_ref` line
 * in place of each output, the active content. Most harnesses pass the system prompt separately; if it is the first
 * message, it stays there.
 *
 * Reasoning that its provider binds to what came before it is left out. Results unknown to the view stay as they are. Images stay with their results: the view has only texts.
 */
export function sections(messages: readonly Message[], { view, binding }: Rendering): Message[] {
  const references = new Map<string, unknown[]>()
  for (const message of view.chat as Message[]) {
    if (message.role !== 'toolResult' || message.toolCallId === undefined) continue
    const queue = references.get(message.toolCallId)
    if (queue === undefined) references.set(message.toolCallId, [message.content])
    else queue.push(message.content)
  }
  // A reworded result has two objects, and a removed one still has its own: the latest ones count.
  const wanted = new Map<string, number>()
  for (const { role, toolCallId } of messages) {
    if (role === 'toolResult' && toolCallId !== undefined) wanted.set(toolCallId, (wanted.get(toolCallId) ?? 0) + 1)
  }
  for (const [id, count] of wanted) references.get(id)?.splice(0, Math.max(0, (references.get(id)?.length ?? 0) - count))
  const chat = messages.map((message) => {
    const content = message.toolCallId === undefined ? undefined : references.get(message.toolCallId)?.shift()
    return content === undefined ? message : { ...message, content: [content, unread(message.content)].flat() }
  })
  const first = chat.findIndex((message) => message.role !== 'system')
  const head = first < 0 ? chat.length : first
  const sent = [...chat.slice(0, head), ...section(poolOf(view)), ...chat.slice(head), ...section(view.activeContent)]
  // Each rendering has another beginning, which bound reasoning does not survive.
  return binds(binding) ? withoutReasoning(sent) : sent
}

/** The parts of a result that are no text. */
function unread(content: unknown): unknown[] {
  return Array.isArray(content) ? content.filter((block: { type?: unknown } | null) => block?.type !== 'text') : []
}

/**
 * The pool within its budget, in its own order: the lines of active objects, and the newest of the others.
 * `search_context` finds the rest.
 */
function poolOf({ metadataPool, blocks }: Assembled): string {
  const lines = metadataPool.split('\n')
  const active = new Set(blocks.map((block) => block.id))
  let left = 4 * POOL_TOKENS
  const shown = lines.map(() => false)
  for (let at = lines.length - 1; at >= 0; at -= 1) {
    const line = lines[at] as string
    if (active.has(poolLineOf(line)?.id ?? '')) shown[at] = true
    else if (left > 0) {
      left -= line.length + 1
      shown[at] = left >= 0
    }
  }
  const hidden = shown.filter((one) => !one).length
  const visible = lines.filter((_, at) => shown[at])
  return hidden === 0 ? metadataPool : [...visible, `... ${hidden} more, search_context`].join('\n')
}

function section(text: string): Message[] {
  // A fixed time: equal states must give equal bytes.
  return text === '' ? [] : [{ role: 'user', content: [{ type: 'text', text }], timestamp: 0 }]
}
