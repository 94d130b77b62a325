/** Finds out how much of a conversation is in the session's record, by comparing what was said. */
import type { ContextManager } from '../../index.js'
import { callsOf } from './call-ids.ts'
import { isEqual } from './identity.ts'
import type { EngineMessage, Fields } from './message.ts'
import { isFields } from './message.ts'
import { inPieces } from './pieces.ts'

/** A message of the user or the model. */
export interface Said {
  role: 'user' | 'assistant'
  /** The part of its content that is compared. */
  words: unknown
  /** The calls in it; in the record, those of its turn. */
  calls: readonly string[]
  /** In the record: all of it was forgotten, and nobody can say what it was. */
  isErased?: true
}

/** What stands in the record for a text that was forgotten. */
const ERASED = '[erased]'

/** The messages in the session's record, in their order. */
export async function recordOf(manager: ContextManager, txId?: number): Promise<Said[]> {
  const id = `chat:${manager.sessionId}`
  const chat = await (txId === undefined ? manager.get(id) : manager.getAsOf(id, { txId }))
  const turns = (chat?.['turns'] ?? []) as { user: unknown; assistant: { content?: unknown }[]; toolcall_ids?: string[] }[]
  const said = turns.flatMap((turn) => {
    const calls = turn.toolcall_ids ?? []
    return [
      // If the model begins the conversation, its first turn has no user message.
      ...(turn.user === null || turn.user === undefined ? [] : [{ role: 'user' as const, content: turn.user, calls }]),
      ...turn.assistant.map(({ content }) => ({ role: 'assistant' as const, content: content ?? null, calls })),
    ]
  })
  return inPieces(said, ({ role, content, calls }) => ({ role, words: comparable(content), calls, ...(isErased(content) ? { isErased: true as const } : {}) }))
}

/** The message as it is compared with the record; undefined for results and other roles. */
export function saidBy({ role, content }: EngineMessage): Said | undefined {
  return role === 'user' || role === 'assistant' ? { role, words: comparable(content ?? null), calls: callsIn(content) } : undefined
}

/**
 * The record, with the words of this conversation where its own were forgotten. That it is the same conversation shows in
 * what was not forgotten, or in the calls of a turn, whose IDs stay; without either, what was forgotten is like nothing.
 */
export function remembering(record: readonly Said[], said: readonly Said[]): readonly Said[] {
  const calls = new Set(said.flatMap((one) => one.calls))
  let isSame = false
  const remembered = record.map((one, at) => {
    const other = said[at]
    if (other === undefined || one.role !== other.role) return one
    const isLike = one.isErased === true || isForgottenForm(one.words, other.words)
    isSame ||= one.isErased === true ? one.calls.some((id) => callsOf(id).some((call) => calls.has(call))) : isLike
    return isLike ? other : one
  })
  return isSame ? remembered : record
}

/** Returns whether a content may have become the kept one because texts in it were forgotten; also if it is the same. */
export function isForgottenForm(kept: unknown, now: unknown): boolean {
  if (typeof kept === 'string' && typeof now === 'string') return kept === now || isWithout(kept.split(ERASED), now)
  if (typeof kept !== 'object' || typeof now !== 'object' || kept === null || now === null) return kept === now
  const [old, other] = [Object.entries(kept), new Map(Object.entries(now))]
  return old.length === other.size && old.every(([name, value]) => other.has(name) && isForgottenForm(value, other.get(name)))
}

/** Returns whether a text consists of these parts, in order, with anything between them. */
function isWithout([first = '', ...parts]: string[], text: string): boolean {
  const last = parts.pop()
  if (last === undefined || !text.startsWith(first) || !text.endsWith(last)) return false
  let at = first.length
  for (const part of parts) {
    const found = text.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return at + last.length <= text.length
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
    if (isPrefix(remembering(await recordOf(manager, middle), said), said)) low = middle
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

/** Returns whether every text in a content was forgotten. */
function isErased(content: unknown): boolean {
  const texts: string[] = []
  const look = (value: unknown): void => {
    if (typeof value === 'string') texts.push(value)
    else if (typeof value === 'object' && value !== null) Object.values(value).forEach(look)
  }
  look(content)
  return texts.includes(ERASED) && texts.every((text) => text === ERASED || BLOCKS.has(text))
}

/** What texts in a content can be that say what a block is. */
const BLOCKS: ReadonlySet<string> = new Set(['text', 'thinking', 'toolCall', 'image'])

function callsIn(content: unknown): string[] {
  const blocks = Array.isArray(content) ? content : []
  return blocks.flatMap((block: unknown) => (isFields(block) && block['type'] === 'toolCall' ? [String(block['id'])] : []))
}
