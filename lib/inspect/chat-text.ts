/** A recorded conversation as text: what the user and the model said, and each call with the short name of its output. */
import type { ObjectDocument } from '../../index.js'
import { callsOf } from '../projection/index.ts'
import { shortName, subject } from '../ui/index.ts'

/** A turn of the record, as far as it is shown. */
interface Turn {
  user?: unknown
  assistant?: { content?: unknown }[]
  toolcall_ids?: string[]
}

/** The text; empty for a conversation that has not begun. */
export function chatText(document: ObjectDocument): string {
  const turns = (document['turns'] ?? []) as Turn[]
  const objects = new Map(turns.flatMap(({ toolcall_ids: ids = [] }) => ids.flatMap((id) => callsOf(id).map((call) => [call, id] as const))))
  const parts = turns.flatMap(({ user, assistant = [] }) => [
    ...partsOf('user', user, objects),
    ...assistant.flatMap(({ content }) => partsOf('model', content, objects)),
  ])
  return parts.map((part) => `${part}\n`).join('\n')
}

function partsOf(speaker: string, content: unknown, objects: ReadonlyMap<string, string>): string[] {
  if (typeof content === 'string') return content === '' ? [] : [`${speaker}: ${content}`]
  if (!Array.isArray(content)) return []
  return (content as Record<string, unknown>[]).flatMap((block): string[] => {
    const { type, text, id, name, arguments: args } = block
    if (type === 'text' && typeof text === 'string' && text !== '') return [`${speaker}: ${text}`]
    if (type !== 'toolCall') return []
    const object = objects.get(String(id))
    return [`call: ${String(name)} ${subject(args)}`.trimEnd() + (object === undefined ? '' : ` -> ${shortName(object)}`)]
  })
}
