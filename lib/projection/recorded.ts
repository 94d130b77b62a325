/** Finds out how much of a conversation is in the session's record, by comparing messages. */
import type { ContextManager } from '../../index.js'
import { callsOf } from './results.ts'
import { fingerprint, isEqual } from './identity.ts'
import type { EngineMessage } from '../core/index.ts'
import { isFields, wellFormed } from '../core/index.ts'
import { inPieces } from './pieces.ts'

/** A message of the user or the model. */
export interface TurnMessage {
  role: 'user' | 'assistant'
  /** The part of its content that is compared. */
  words: unknown
  /** The calls in it; in the record, those of its turn. */
  calls: readonly string[]
  /** In the record: all of it was forgotten, and its text is unknown. */
  isErased?: true
}

/** The text that stands in the record for one that was forgotten. */
const ERASED = '[erased]'

/** The messages in the session's record, in their order. */
export async function recordOf(manager: ContextManager, txId?: number): Promise<TurnMessage[]> {
  const id = `chat:${manager.sessionId}`
  const chat = await (txId === undefined ? manager.get(id) : manager.getAsOf(id, { txId }))
  const turns = (chat?.['turns'] ?? []) as { user: unknown; assistant: { content?: unknown }[]; toolcall_ids?: string[] }[]
  const messages = turns.flatMap((turn) => {
    const calls = turn.toolcall_ids ?? []
    return [
      // If the model begins the conversation, its first turn has no user message.
      ...(turn.user === null || turn.user === undefined ? [] : [{ role: 'user' as const, content: turn.user, calls }]),
      ...turn.assistant.map(({ content }) => ({ role: 'assistant' as const, content: content ?? null, calls })),
    ]
  })
  return inPieces(messages, ({ role, content, calls }) => ({
    role,
    words: comparable(content),
    calls,
    ...(isErased(content) ? { isErased: true as const } : {}),
  }))
}

/** An entry of a session's record beside its messages: a roll, or what the model or its host has said and when. */
interface RecordEntry {
  /** Notices at a place, in lines. */
  said?: { place?: unknown; lines?: unknown }
  /** The notices that one line represents. */
  listed?: unknown
  /** Texts that the host has put into the past of its conversation, and the first call of the answer that each is in. */
  inserted?: readonly string[]
  of?: readonly (string | null)[]
}

/** The entries of the session's record beside its messages, in their order. */
export async function entriesOf(manager: ContextManager): Promise<RecordEntry[]> {
  const chat = await manager.get(`chat:${manager.sessionId}`)
  const turns = (chat?.['turns'] ?? []) as { rolls?: RecordEntry[] }[]
  return turns.flatMap(({ rolls }) => rolls ?? [])
}

/** When the record was last written, which a process does with each request; undefined if that can't be read. */
export async function recordedMs(manager: ContextManager): Promise<number | undefined> {
  const ms = Date.parse((await manager.pointTimes())[1])
  return Number.isNaN(ms) ? undefined : ms
}

/** The message as it is compared with the record; undefined for results and other roles. */
export function turnMessage({ role, content }: EngineMessage): TurnMessage | undefined {
  return role === 'user' || role === 'assistant' ? { role, words: comparable(content ?? null), calls: callsIn(content) } : undefined
}

/**
 * The record, with the words of this conversation where its own were forgotten. That it is the same conversation shows in
 * what was not forgotten, or in the calls of a turn, whose IDs stay; without either, what was forgotten is like nothing.
 */
export function remembering(record: readonly TurnMessage[], messages: readonly TurnMessage[]): readonly TurnMessage[] {
  const calls = new Set(messages.flatMap((one) => one.calls))
  let isSame = false
  const remembered = record.map((one, at) => {
    const other = messages[at]
    if (other === undefined || one.role !== other.role) return one
    const isLike = one.isErased === true || isForgottenForm(one.words, other.words)
    isSame ||= one.isErased === true ? one.calls.some((id) => callsOf(id).some((call) => calls.has(call))) : isLike
    return isLike ? other : one
  })
  return isSame ? remembered : record
}

/** True if a content may have become the kept one because texts in it were forgotten; also if it is the same. */
export function isForgottenForm(kept: unknown, now: unknown): boolean {
  if (typeof kept === 'string' && typeof now === 'string') return isErasedForm(kept, now)
  if (typeof kept !== 'object' || typeof now !== 'object' || kept === null || now === null) return kept === now
  const [old, other] = [Object.entries(kept), new Map(Object.entries(now))]
  return old.length === other.size && old.every(([name, value]) => other.has(name) && isForgottenForm(value, other.get(name)))
}

/** True if a text may have become the kept one because something in it was replaced by marks; also if it is the same. */
export function isErasedForm(kept: string, now: string, mark: string | RegExp = ERASED): boolean {
  return kept === now || isWithout(kept.split(mark), now)
}

/** True if a text consists of these parts, in order, with anything between them. */
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
 * How many of the messages are in the record: those up to the record's last entry. A host may have removed old
 * messages, so if the beginnings differ, the ends are compared. Undefined if record and conversation diverge.
 */
export function recordedOf(record: readonly TurnMessage[], messages: readonly TurnMessage[]): number | undefined {
  if (isPrefix(record, messages)) return record.length
  if (isPrefix(messages, record)) return undefined
  // A common beginning proves nothing; compare what follows it.
  const alike = commonOf(record, messages)
  let [best, length] = [0, 0]
  for (let end = messages.length; end > alike; end -= 1) {
    let run = 0
    while (run < end - alike && run < record.length - alike && isSame(record[record.length - 1 - run], messages[end - 1 - run])) run += 1
    if (run > length) [best, length] = [end, run]
  }
  if (length >= 2) return best
  // A single prompt can match by chance, and so can an answer after a common beginning.
  return length === 1 && messages[best - 1]?.role === 'assistant' && alike === 0 ? best : undefined
}

/** The number of equal messages of the record that are looked at for one of the conversation. */
const MOST_EQUAL = 64

/** A part of the record that is a part of the conversation: the ends of both, and its length. */
export interface Run {
  record: number
  messages: number
  length: number
}

/** The longest of them behind their common beginning; the latest if there are several. */
export function longestRun(record: readonly TurnMessage[], messages: readonly TurnMessage[]): Run {
  const alike = commonOf(record, messages)
  const places = new Map<string, number[]>()
  for (let place = alike; place < record.length; place += 1) {
    const name = nameOf(record[place] as TurnMessage)
    const same = places.get(name)
    if (same === undefined) places.set(name, [place])
    else same.push(place)
  }
  let longest: Run = { record: 0, messages: 0, length: 0 }
  /** The lengths of the runs that end with the message before, by their last place in the record. */
  let before = new Map<number, number>()
  for (let at = alike; at < messages.length; at += 1) {
    const runs = new Map<number, number>()
    for (const place of places.get(nameOf(messages[at] as TurnMessage))?.slice(-MOST_EQUAL) ?? []) {
      const length = (before.get(place - 1) ?? 0) + 1
      runs.set(place, length)
      if (length >= longest.length) longest = { record: place + 1, messages: at + 1, length }
    }
    before = runs
  }
  return longest
}

function nameOf({ role, words }: TurnMessage): string {
  return fingerprint([role, words])
}

/** True if the second list starts with the first one. */
export function isPrefix(record: readonly TurnMessage[], messages: readonly TurnMessage[]): boolean {
  return record.length <= messages.length && record.every((one, index) => isSame(one, messages[index]))
}

/** The places of some messages in the record, in this order and as late as possible; undefined if it does not have them all. */
export function placesOf(record: readonly TurnMessage[], messages: readonly TurnMessage[]): number[] | undefined {
  const places: number[] = []
  let place = record.length
  for (const one of messages.toReversed()) {
    place -= 1
    while (place >= 0 && !isSame(record[place], one)) place -= 1
    if (place < 0) return undefined
    places.push(place)
  }
  return places.reverse()
}

/** The largest number of the record's versions that are read to find the point where this branch left the conversation. */
const MOST_READS = 64

/** A transaction, and how many messages the record had then. */
interface Point {
  tx: number
  length: number
  isPrefix: boolean
}

/** The transaction at which the record was the longest prefix of this conversation; 0 if there is none. */
export async function lastCommon(manager: ContextManager, messages: readonly TurnMessage[]): Promise<number> {
  const at = async (tx: number): Promise<Point> => {
    const record = remembering(await recordOf(manager, tx), messages)
    return { tx, length: record.length, isPrefix: isPrefix(record, messages) }
  }
  const newest = await manager.point()
  const record = remembering(await recordOf(manager, newest), messages)
  if (isPrefix(record, messages)) return newest
  const common = commonOf(record, messages)
  // Mostly the two have parted near the end.
  const near = await lastNear(at, newest, common)
  if (near !== undefined) return near.tx
  const found = await lastPrefix(at, { tx: 0, length: 0, isPrefix: true }, newest)
  if (found.length === common) return found.tx
  // The record has gone back before, so that it was a prefix more than once.
  const start = await prefixOnBranch(at, newest, common)
  const other = start === undefined ? found : await lastPrefix(at, start.from, start.to)
  return other.length > found.length ? other.tx : found.tx
}

/** The last transaction at which the record was a prefix of `common` messages, looked for from the end back in ever longer steps. */
async function lastNear(at: (tx: number) => Promise<Point>, newest: number, common: number): Promise<Point | undefined> {
  let high = newest
  for (let step = 1; step <= NEAR && step < newest; step *= 2) {
    const point = await at(newest - step)
    if (!point.isPrefix) {
      high = newest - step
      continue
    }
    const found = await lastPrefix(at, point, high - 1)
    return found.length === common ? found : undefined
  }
  return undefined
}

/** The number of transactions at the end in which a branch is looked for first. */
const NEAR = 64

/** The last of some transactions at which the record was a prefix, if it only grew meanwhile. */
async function lastPrefix(at: (tx: number) => Promise<Point>, from: Point, to: number): Promise<Point> {
  let [found, high] = [from, to]
  while (found.tx < high) {
    const middle = await at(Math.ceil((found.tx + high) / 2))
    if (middle.isPrefix) found = middle
    else high = middle.tx - 1
  }
  return found
}

/**
 * The newest transaction found at which the record, which has `common` messages of the conversation now, was a prefix of it,
 * and a later one at which it no longer was. Goes back from the end by as many transactions as there are messages too many.
 */
async function prefixOnBranch(at: (tx: number) => Promise<Point>, newest: number, common: number): Promise<{ from: Point; to: number } | undefined> {
  let last = await at(newest)
  let step = Math.max(last.length - common, 1)
  for (let reads = 0; reads < MOST_READS && step > 0 && last.tx > 0; reads += 1) {
    const point = await at(Math.max(last.tx - step, 0))
    if (point.isPrefix) return { from: point, to: last.tx }
    if (point.length <= common) {
      // That is another branch: this one began in between.
      step = Math.floor(step / 2)
      continue
    }
    // Transactions of other sessions change nothing here.
    step = point.length === last.length ? 2 * step : point.length - common
    last = point
  }
  return undefined
}

/** The number of messages that two lists have in common at their beginnings. */
export function commonOf(record: readonly TurnMessage[], messages: readonly TurnMessage[]): number {
  const different = record.findIndex((one, index) => !isSame(one, messages[index]))
  return different < 0 ? record.length : different
}

function isSame(one: TurnMessage | undefined, other: TurnMessage | undefined): boolean {
  if (one?.role !== other?.role) return false
  return isEqual(one?.words, other?.words)
}

/**
 * Returns what is compared: texts without blanks at their ends, which some hosts take away when they resume; reasoning without
 * signatures; calls by name and ID, because we may have shortened their arguments.
 */
function comparable(content: unknown): unknown {
  if (typeof content === 'string') return comparable([{ type: 'text', text: content }])
  if (!Array.isArray(content)) return []
  return content.flatMap((block: unknown) => {
    if (!isFields(block)) return [block]
    if (block['type'] === 'toolCall') return [{ id: block['id'], name: block['name'] }]
    if (block['type'] === 'thinking') return [{ thinking: block['thinking'] }]
    const { type, text, ...rest } = wellFormed(block)
    if (type !== 'text' || typeof text !== 'string') return [{ type, text, ...rest }]
    return text.trim() === '' ? [] : [{ type, text: text.trim(), ...rest }]
  })
}

/** True if every text in a content was forgotten. */
function isErased(content: unknown): boolean {
  const texts: string[] = []
  const look = (value: unknown): void => {
    if (typeof value === 'string') texts.push(value)
    else if (typeof value === 'object' && value !== null) Object.values(value).forEach(look)
  }
  look(content)
  return texts.includes(ERASED) && texts.every((text) => text === ERASED || BLOCKS.has(text))
}

/** The texts in a content that can say what a block is. */
const BLOCKS: ReadonlySet<string> = new Set(['text', 'thinking', 'toolCall', 'image'])

function callsIn(content: unknown): string[] {
  const blocks = Array.isArray(content) ? content : []
  return blocks.flatMap((block: unknown) => (isFields(block) && block['type'] === 'toolCall' ? [String(block['id'])] : []))
}
