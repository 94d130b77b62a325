/**
 * The table from message identity to the edit in force. It holds the host's conversation as of the last call, what the
 * engine got for each message, and what is sent instead of it. It changes only if a call succeeds.
 */
import { createHash } from 'node:crypto'
import type { ContextManager, Edit } from '../../index.js'
import type { PartEdit } from './driver/edits.ts'
import { isEqual, keep } from './identity.ts'
import { HostMessages } from './ledger.ts'
import type { EngineMessage } from '../core/index.ts'
import { folderOf, resultText } from '../core/index.ts'
import { inPieces } from './pieces.ts'
import { Pointers } from './pointers.ts'
import { contentOf, formAt, isEdited, likenessOf, nameOfForm, sizeAt, write } from './unit.ts'
import type { Part, Unit } from './unit.ts'

/** The part of a conversation that matches the table. */
export interface Match {
  /** The number of units from the start that are the same. */
  units: number
  /** The index of the first message after them. */
  next: number
}

/** One conversation. */
export class Table {
  readonly units: Unit[]
  readonly #parts = new Map<string, { unit: number; part: Part }>()
  readonly #results = new Map<string, Map<string, EngineMessage[]>>()
  /** The host's messages of the last call, for the units compared so far. */
  readonly #ledger = new HostMessages()
  /** The first message of each unit in the ledger. */
  readonly #firsts: number[] = []
  /** The messages sent for the first units, and where each unit starts among them. */
  readonly #sent: object[] = []
  readonly #places: number[] = []
  readonly #pointers: Pointers
  /** The units with results that point to a part. */
  readonly #pointing = new Map<Part, Unit[]>()
  #isCarried = false

  /**
   * True if the host returns the messages that were sent, not the original ones. Dropped messages are then missing.
   */
  get isCarried(): boolean {
    return this.#isCarried
  }

  constructor(manager: ContextManager) {
    this.units = []
    this.#pointers = new Pointers(folderOf(manager))
  }

  /** Adds units at the end. */
  async add(units: readonly Unit[]): Promise<void> {
    await inPieces(units, (unit) => {
      const number = this.units.push(unit) - 1
      for (const part of unit.parts) {
        this.#parts.set(part.key, { unit: number, part })
        if (part.message.role === 'toolResult') this.#addResult(part.message)
        const target = this.#pointers.note(part)
        if (target === undefined) continue
        part.target = target
        this.#pointing.set(target, [...(this.#pointing.get(target) ?? []), unit])
      }
      // Note the copy, because the host may have changed its own messages meanwhile.
      if (this.#firsts.length === number && unit.notices.length === 0) this.#note(number, unit.raw, unit.kept)
    })
  }

  /** The results of calls with this ID in the host's conversation, by their texts. */
  results(callId: string): ReadonlyMap<string, readonly EngineMessage[]> {
    return this.#results.get(callId) ?? new Map()
  }

  #addResult(result: EngineMessage): void {
    const { toolCallId = '' } = result
    const [texts, text] = [this.#results.get(toolCallId) ?? new Map<string, EngineMessage[]>(), resultText(result)]
    this.#results.set(toolCallId, texts)
    const same = texts.get(text)
    if (same === undefined) texts.set(text, [result])
    else same.push(result)
  }

  /** Compares a conversation with the table's, and takes over its objects, which may have other cache markers. */
  follow(messages: readonly object[]): Match {
    const ledger = this.#ledger
    const content = this.units[0]?.shape.content
    let next = ledger.follow(messages, content, (at, before) => this.#replace(at, before, messages[at] as object))
    let number = this.#firsts.length
    if (next < ledger.length) {
      number = ledger.unitAt(next)
      next = ledger.cut(number)
      this.#firsts.length = number
    }
    for (; number < this.units.length; number += 1) {
      const unit = this.units[number] as Unit
      const size = this.#match(number, messages, next)
      if (size === undefined) return { units: number, next }
      const first = next
      next += size
      for (const notice of unit.notices) {
        if (next < messages.length && isEqual(notice, messages[next])) next += 1
      }
      const given = messages.slice(first, next)
      this.#note(
        number,
        given,
        given.map((message) => contentOf(unit.shape, message)),
      )
    }
    return { units: number, next }
  }

  /**
   * Puts a plan's edits in force. If an answer that the engine drops contains something the engine can't judge (an image,
   * or a block that only its provider understands), it stays, together with its results. `refuses`: its reasoning leaves
   * even then, because the provider would refuse it behind what has changed.
   */
  apply(edits: readonly Edit[], refuses = false): void {
    const staying = this.#staying(edits)
    for (const edit of edits) {
      const found = this.#parts.get(edit.key)
      if (found === undefined) continue
      const stays = edit.kind === 'gone' && staying.has(edit.key)
      if (stays && !(refuses && found.part.message.role === 'assistant')) continue
      found.part.edit = stays ? withoutReasoning(found.part.message) : partEdit(edit)
      const unit = this.units[found.unit] as Unit
      unit.written = undefined
      for (const behind of this.#pointing.get(found.part) ?? []) behind.written = undefined
      this.#unsend(found.unit)
    }
  }

  /** The calls whose results are dropped; a line elsewhere replaces them. */
  left(): string[] {
    const parts = this.units.flatMap((unit) => unit.parts)
    return parts.flatMap(({ edit, message }) => (edit?.kind === 'gone' && message.role === 'toolResult' ? [message.toolCallId ?? ''] : []))
  }

  /** The calls with a result that a later table does not have. */
  callsWithout(later: Table): Set<string> {
    const results = this.units.flatMap(({ parts }) => parts.filter(({ message }) => message.role === 'toolResult'))
    const gone = results.filter(({ message }) => !later.results(message.toolCallId ?? '').has(resultText(message)))
    return new Set(gone.map(({ message }) => message.toolCallId ?? ''))
  }

  /** True if a text in the conversation has this ID, which the engine gives to what it shortens. */
  says(id: string): boolean {
    return this.units.some(({ parts }) => parts.some(({ message }) => textsOf(message).some((text) => saidId(text) === id)))
  }

  /**
   * Adds a message with a notice after the last unit that is not the system's: what the system says among the other messages has
   * to stand before an answer or at the end. Some hosts return the notice at the next call.
   */
  say(notice: object): void {
    const end = this.units.findLastIndex((unit) => !isOfSystem(unit))
    const last = end < 0 ? this.units.length - 1 : end
    this.units[last]?.notices.push(notice)
    this.#unsend(last)
    this.#ledger.cut(last)
    this.#firsts.length = Math.min(this.#firsts.length, last)
  }

  /** The messages to send. Only what has changed since the last call is rebuilt. */
  output(): object[] {
    const [sent, places] = [this.#sent, this.#places]
    for (let number = places.length; number < this.units.length; number += 1) {
      const unit = this.units[number] as Unit
      places.push(sent.length)
      sent.push(...(isEdited(unit) ? (unit.written ?? write(unit)) : unit.raw))
      sent.push(...unit.notices)
    }
    return sent.slice()
  }

  /**
   * A conversation in the form in which the table was last sent, as far as it continues where the table began or was cut off
   * at the front; everything after that as it is. Units that are removed are summarized in the one before them: if one of
   * them is missing, all of these are sent as they are. Changes nothing.
   */
  lastForm(messages: readonly object[]): object[] {
    const first = messages.length === 0 ? -1 : this.units.findIndex((unit) => sizeAt(unit, messages, 0) !== undefined)
    const sent: { at: number; messages: readonly object[] }[] = []
    let [at, number] = [0, first < 0 ? this.units.length : first]
    const isRemoved = (unit: Unit | undefined): boolean => unit !== undefined && isEdited(unit) && (unit.written ?? write(unit)).length === 0
    // The line for a removed unit was in one that was cut off.
    let isFirst = first > 0
    /** The index of the last unit that is sent: the one with the lines of the units after it. */
    let place = 0
    for (; number < this.units.length; number += 1) {
      const unit = this.units[number] as Unit
      const size = sizeAt(unit, messages, at)
      if (size === undefined) break
      isFirst &&= isRemoved(unit)
      if (isFirst || !isRemoved(unit)) place = sent.length
      sent.push({ at, messages: isEdited(unit) && !isFirst ? (unit.written ?? write(unit)) : messages.slice(at, at + size) })
      at += size
      if (unit.notices.length > 0) {
        sent.push({ at, messages: unit.notices })
        for (const notice of unit.notices) if (isEqual(notice, messages[at])) at += 1
      }
    }
    if (isRemoved(this.units[number])) at = sent.splice(place)[0]?.at ?? at
    return [...sent.flatMap((one) => one.messages), ...messages.slice(at)]
  }

  /** Units by the hash of each of their wordings, in order. */
  async byFingerprint(from: number): Promise<Map<string, Unit[]>> {
    const found = new Map<string, Unit[]>()
    await inPieces(this.units.slice(from), (unit) => {
      for (const wording of [unit.kept, ...unit.forms]) {
        const hash = nameOfForm(wording)
        const list = found.get(hash)
        if (list === undefined) found.set(hash, [unit])
        else if (!list.includes(unit)) list.push(unit)
      }
    })
    return found
  }

  /** The number of messages at an index of a conversation that are this unit, in the host's wording or as it was sent. */
  #match(number: number, messages: readonly object[], at: number): number | undefined {
    const unit = this.units[number] as Unit
    const like = likenessOf(unit, messages, at)
    if (like === 'different') {
      const size = formAt(unit, messages, at, this.#isCarried)
      if (size !== undefined && size > 0) this.#isCarried = true
      return size
    }
    if (unit.forms.length > 0) this.#isCarried = false
    const { raw, shape } = unit
    for (let index = 0; index < raw.length; index += 1) this.#take(number, index, messages[at + index] as object)
    if (like === 'marked') {
      unit.kept = raw.map((message) => keep(contentOf(shape, message)))
      unit.written = undefined
      this.#unsend(number)
    }
    return raw.length
  }

  /** The keys of answers and results that stay although the engine drops them. */
  #staying(edits: readonly Edit[]): Set<string> {
    const staying = new Set<string>()
    let step: string[] = []
    let stays = false
    const close = (): void => {
      if (stays) for (const key of step) staying.add(key)
      ;[step, stays] = [[], false]
    }
    const leaving = edits.flatMap(({ kind, key }) => (kind === 'gone' ? [{ key, at: this.#parts.get(key) }] : []))
    leaving.sort((one, other) => (one.at?.unit ?? 0) - (other.at?.unit ?? 0))
    for (const { key, at } of leaving) {
      if (at?.part.message.role === 'assistant') close()
      step.push(key)
      stays ||= at === undefined || !mayLeave(at.part.message)
    }
    close()
    return staying
  }

  /** Notes the host's messages for a unit. */
  #note(number: number, messages: readonly object[], contents: readonly unknown[]): void {
    this.#firsts[number] = this.#ledger.length
    for (const [index, message] of messages.entries()) this.#ledger.add(message, contents[index], number)
  }

  /** A message is now another object with the same content. */
  #replace(at: number, before: object, message: object): void {
    const number = this.#ledger.unitAt(at)
    const index = at - (this.#firsts[number] as number)
    // A message that we sent and the host returned does not replace the host's own.
    if ((this.units[number] as Unit).raw[index] === before) this.#take(number, index, message)
  }

  /** Takes over the host's object for a message of a unit. */
  #take(number: number, index: number, message: object): void {
    const unit = this.units[number] as Unit
    if (unit.raw[index] === message) return
    unit.raw[index] = message
    const place = this.#places[number]
    if (place !== undefined && !isEdited(unit)) this.#sent[place + index] = message
  }

  /** Rebuilds what is sent from this unit on. */
  #unsend(number: number): void {
    const place = this.#places[number]
    if (place === undefined) return
    this.#sent.length = place
    this.#places.length = number
  }
}

/**
 * How many units are recorded, if the host has only removed messages or added some at the end. Undefined if it has changed
 * what was said, or removed the end.
 */
export function undisturbed(old: Table, units: readonly Unit[], seen: ReadonlyMap<Unit, number>): number | undefined {
  const isSaid = ({ parts }: Unit): boolean => parts.some(({ message: { role } }) => role === 'user' || role === 'assistant')
  const lastSaid = old.units.findLastIndex(isSaid)
  const lastSeen = units.findLastIndex((unit) => seen.has(unit))
  let [before, hasLast] = [-1, lastSaid < 0]
  for (const unit of units.slice(0, lastSeen + 1)) {
    const place = seen.get(unit)
    if (place === undefined) {
      if (isSaid(unit)) return undefined
      continue
    }
    if (place < before) return undefined
    before = place
    hasLast ||= place === lastSaid
  }
  return hasLast ? lastSeen + 1 : undefined
}

/** True if a unit is the system's. */
export function isOfSystem({ parts }: Unit): boolean {
  return parts.length > 0 && parts.every(({ message: { role } }) => role === 'system')
}

/** The edit that leaves an answer's reasoning out; undefined if it has none. */
function withoutReasoning({ content }: EngineMessage): PartEdit | undefined {
  const blocks = typeof content === 'string' ? [] : content
  const texts = blocks.flatMap(({ type }, block) => (type === 'thinking' ? [{ block }] : []))
  return texts.length === 0 ? undefined : { kind: 'message', calls: [], texts }
}

function partEdit(edit: Edit): PartEdit | undefined {
  switch (edit.kind) {
    case 'result':
      return edit.text === undefined ? undefined : { kind: 'result', text: edit.text }
    case 'gone':
      return { kind: 'gone', ...(edit.reference === undefined ? {} : { reference: edit.reference }) }
    case 'message':
      return edit.calls.length === 0 && edit.texts.length === 0 ? undefined : { kind: 'message', calls: edit.calls, texts: edit.texts }
  }
}

/** True if a message may be dropped: it has only what the engine can judge. */
export function mayLeave({ role, content }: EngineMessage): boolean {
  if (typeof content === 'string') return true
  return content.every(({ type }) => (role === 'assistant' ? LEAVING.has(type) : type === 'text'))
}

/** The texts of a prompt or an answer. */
export function textsOf({ role, content }: EngineMessage): string[] {
  if (role !== 'assistant' && role !== 'user') return []
  if (typeof content === 'string') return [content]
  return (content ?? []).flatMap((block) => ('text' in block ? [block.text] : 'thinking' in block ? [block.thinking] : []))
}

/** The engine's ID of a text: the beginning of its hash. */
export function saidId(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex').slice(0, SAID_DIGITS)
}

/** Blocks that may be dropped together with their answer; the provider does not need them for the rest. */
const LEAVING: ReadonlySet<string> = new Set([
  'text',
  'thinking',
  'toolCall',
  'redacted_thinking',
  'reasoning',
  'step-start',
  'step-finish',
  'snapshot',
  'patch',
])

/** Hexadecimal digits of such an ID. */
const SAID_DIGITS = 11
