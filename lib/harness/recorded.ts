/** Finds out how much of a conversation is in the session's record, by comparing what was said. */
import type { ContextManager } from '../../index.js'
import { isEqual } from './identity.ts'
import type { EngineMessage, Fields } from './message.ts'
import { isFields } from './message.ts'
import { inPieces } from './pieces.ts'

/** A message of the user or the model. */
export interface Said {
  role: 'user' | 'assistant'
  /** The part of its content that is compared. */
  words: unknown
}

/** The messages in the session's record, in their order. */
export async function recordOf(manager: ContextManager, txId?: number): Promise<Said[]> {
  const id = `chat:${manager.sessionId}`
  const chat = await (txId === undefined ? manager.get(id) : manager.getAsOf(id, { txId }))
  const turns = (chat?.['turns'] ?? []) as { user: unknown; assistant: { content?: unknown }[] }[]
  const said = turns.flatMap((turn) => [
    // If the model begins the conversation, its first turn has no user message.
    ...(turn.user === null || turn.user === undefined ? [] : [{ role: 'user' as const, content: turn.user }]),
    ...turn.assistant.map(({ content }) => ({ role: 'assistant' as const, content: content ?? null })),
  ])
  return inPieces(said, ({ role, content }) => ({ role, words: comparable(content) }))
}

/** The message as it is compared with the record; undefined for results and other roles. */
export function saidBy({ role, content }: EngineMessage): Said | undefined {
  return role === 'user' || role === 'assistant' ? { role, words: comparable(content ?? null) } : undefined
}

/**
 * How many messages of `said` are in the record: those up to the record's last entry. A host may have removed old
 * messages, so if the beginnings differ, the ends are compared. Undefined if record and conversation diverge.
 */
export function recordedOf(record: readonly Said[], said: readonly Said[]): number | undefined {
  if (isPrefix(record, said)) return record.length
  if (isPrefix(said, record)) return undefined
  // A common beginning proves nothing; compare what follows it.
  let alike = 0
  while (isSaid(record[alike], said[alike])) alike += 1
  let [best, length] = [0, 0]
  for (let end = said.length; end > alike; end -= 1) {
    let run = 0
    while (run < end - alike && run < record.length - alike && isSaid(record[record.length - 1 - run], said[end - 1 - run])) run += 1
    if (run > length) [best, length] = [end, run]
  }
  if (length >= 2) return best
  // A single prompt can match by chance, and so can an answer after a common beginning.
  return length === 1 && said[best - 1]?.role === 'assistant' && alike === 0 ? best : undefined
}

/** Returns whether the second list starts with the first one. */
export function isPrefix(record: readonly Said[], said: readonly Said[]): boolean {
  return record.length <= said.length && record.every((one, index) => isSaid(one, said[index]))
}

/** The newest transaction at which the record was a prefix of this conversation; 0 if there is none. */
export async function lastCommon(manager: ContextManager, said: readonly Said[]): Promise<number> {
  let [low, high] = [0, await manager.point()]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (isPrefix(await recordOf(manager, middle), said)) low = middle
    else high = middle - 1
  }
  return low
}

function isSaid(one: Said | undefined, other: Said | undefined): boolean {
  if (one?.role !== other?.role) return false
  return isEqual(one?.words, other?.words)
}

/**
 * Returns what is compared: texts, reasoning without signatures, and calls by name and ID, because we may have
 * shortened their arguments.
 */
function comparable(content: unknown): unknown {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }]
  if (!Array.isArray(content)) return []
  return content.flatMap((block: unknown) => {
    if (!isFields(block)) return [block]
    if (block['type'] === 'toolCall') return [{ id: block['id'], name: block['name'] }]
    if (block['type'] === 'thinking') return [{ thinking: block['thinking'] }]
    return [wellFormed(block)]
  })
}

/** In the store, a lone surrogate has become a replacement character. */
function wellFormed(block: Fields): Fields {
  const { text } = block
  if (typeof text !== 'string' || !/\p{Surrogate}/u.test(text)) return block
  return { ...block, text: Buffer.from(text, 'utf8').toString('utf8') }
}
