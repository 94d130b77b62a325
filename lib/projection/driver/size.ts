/** Sizes of messages in characters, in pi-ai's form of them. */
import { SUMMARIZED_RESULT } from '../../models/index.ts'
import { IMAGE_CHARACTERS } from '../opaque.ts'
import type { PlainMessage } from './plain.ts'

/** Characters of a message's content. */
export function sizeOf(message: object): number {
  const { content, summary, command, output } = message as Record<string, unknown>
  const parts = Array.isArray(content) ? (content as unknown[]) : [content, summary, command, output]
  return parts.reduce<number>((sum, part) => sum + partSize(part), 0)
}

/** A message as Pi sends it without us. `more`: the characters that it would have besides. */
export function plainMessage(key: string, message: object, more = 0): PlainMessage {
  const { role, content } = message as Record<string, unknown>
  const size = sizeOf(message) + more
  if (role === 'toolResult') return { key, kind: 'result', size, told: Math.min(size, SUMMARIZED_RESULT + 40) + 17 }
  if (role !== 'assistant') return { key, kind: role === 'user' ? 'user' : 'other', size, told: size + 10 }
  const calls = Array.isArray(content) ? content.filter((part) => (part as { type?: unknown }).type === 'toolCall') : []
  const files = calls.flatMap(({ name, arguments: args }) => {
    const path = FILE_TOOLS.has(name) ? (args as { path?: unknown } | null)?.path : undefined
    return typeof path === 'string' ? [path] : []
  })
  return { key, kind: 'answer', size, told: size + (calls.length === 0 ? 15 : 40), ...(files.length > 0 && { files }) }
}

/** The tools whose files Pi lists behind a summary. */
const FILE_TOOLS: ReadonlySet<unknown> = new Set(['read', 'write', 'edit'])

function partSize(part: unknown): number {
  if (typeof part === 'string') return part.length
  if (typeof part !== 'object' || part === null) return 0
  const { type, text, thinking, name, arguments: args, characters } = part as Record<string, unknown>
  if (typeof characters === 'number') return characters
  if (type === 'image') return IMAGE_CHARACTERS
  if (type === 'toolCall') return String(name).length + JSON.stringify(args ?? {}).length
  return partSize(text) + partSize(thinking)
}
