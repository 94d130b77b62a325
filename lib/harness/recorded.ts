/** How far a conversation stands in the session's record: what was said is compared, word by word. */
import type { ContextManager } from '../../index.js'
import { isEqual } from './identity.ts'
import type { EngineMessage, Fields } from './message.ts'
import { isFields } from './message.ts'
import { inPieces } from './pieces.ts'

/** Something that was said: by the user, or by the model. */
export interface Said {
  role: 'user' | 'assistant'
  /** What of its content is compared. */
  words: unknown
}

/** What the session's record says, in its order. */
export async function recordOf(manager: ContextManager, txId?: number): Promise<Said[]> {
  const id = `chat:${manager.sessionId}`
  const chat = await (txId === undefined ? manager.get(id) : manager.getAsOf(id, { txId }))
  const turns = (chat?.['turns'] ?? []) as { user: unknown; assistant: { content?: unknown }[] }[]
  const said = turns.flatMap((turn) => [
    // A conversation that the model begins has a turn without a user's message.
    ...(turn.user === null || turn.user === undefined ? [] : [{ role: 'user' as const, content: turn.user }]),
    ...turn.assistant.map(({ content }) => ({ role: 'assistant' as const, content: content ?? null })),
  ])
  return inPieces(said, ({ role, content }) => ({ role, words: comparable(content) }))
}

/** A message as something said; undefined for results and all else. */
export function saidBy({ role, content }: EngineMessage): Said | undefined {
  return role === 'user' || role === 'assistant' ? { role, words: comparable(content ?? null) } : undefined
}

/**
 * How many of `said` stand in the record, from the first on: all up to the record's last entry. A host may have taken
 * out what was said long ago, so where they do not begin alike the ends decide. Undefined where the record goes on in
 * another way than the conversation does.
 */
export function recordedOf(record: readonly Said[], said: readonly Said[]): number | undefined {
  if (isPrefix(record, said)) return record.length
  if (isPrefix(said, record)) return undefined
  // Where both begin alike, only what comes after that can tell.
  let alike = 0
  while (isSaid(record[alike], said[alike])) alike += 1
  let [best, length] = [0, 0]
  for (let end = said.length; end > alike; end -= 1) {
    let run = 0
    while (run < end - alike && run < record.length - alike && isSaid(record[record.length - 1 - run], said[end - 1 - run])) run += 1
    if (run > length) [best, length] = [end, run]
  }
  if (length >= 2) return best
  // One prompt can be the same by chance, and so can an answer to the same beginning.
  return length === 1 && said[best - 1]?.role === 'assistant' && alike === 0 ? best : undefined
}

/** Whether one is how the other begins. */
export function isPrefix(record: readonly Said[], said: readonly Said[]): boolean {
  return record.length <= said.length && record.every((one, index) => isSaid(one, said[index]))
}

/** The newest transaction at which the record was how this conversation begins; 0 where there is none. */
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

/** Texts, reasoning without its signature, and calls by name and ID: their arguments may be those that we have shortened. */
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

/** The store keeps Unicode text: half a surrogate pair has become a replacement character there. */
function wellFormed(block: Fields): Fields {
  const { text } = block
  if (typeof text !== 'string' || !/\p{Surrogate}/u.test(text)) return block
  return { ...block, text: Buffer.from(text, 'utf8').toString('utf8') }
}
