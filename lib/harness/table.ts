/**
 * The table from message identity to the edit in force. It holds the host's conversation as it was last handed over, what
 * each message was to the engine, and what is sent in its place. It changes only when a call has succeeded.
 */
import type { Edit } from '../../index.js'
import { fingerprint, isEqual, keep, likeness } from './identity.ts'
import type { Kept } from './identity.ts'
import type { EngineMessage } from './message.ts'
import { resultText } from './message.ts'
import { saidBy } from './recorded.ts'
import type { PartEdit, Shape } from './shape.ts'

/** A part of a message: what the engine knows by a key of its own. */
export interface Part {
  key: string
  message: EngineMessage
  edit: PartEdit | undefined
}

/** Messages of the host that are read together. */
export interface Unit {
  shape: Shape
  /** The host's messages in their own words, as they were handed over last. */
  raw: object[]
  /** What their content was. */
  kept: readonly Kept[]
  parts: readonly Part[]
  /** What was sent in their place, the latest last: a host that carries it forward hands it over the next time. */
  forms: (readonly unknown[])[]
  /** What is sent in their place now. */
  written: readonly object[] | undefined
  /** Words of ours that are sent after them. */
  notices: { text: string; message: object }[]
  /** They are words of ours that a host has carried forward, and no part of the conversation. */
  isOurs: boolean
}

/** How far a conversation is the one that the table holds. */
export interface Match {
  /** So many units are the same, from the start on. */
  units: number
  /** The place of the first message behind them. */
  next: number
}

/** One conversation. */
export class Table {
  readonly units: Unit[]
  readonly #parts = new Map<string, { unit: Unit; part: Part }>()
  readonly #results = new Map<string, Set<string>>()

  constructor(units: readonly Unit[] = []) {
    this.units = []
    this.add(units)
  }

  /** Takes units over at the end. */
  add(units: readonly Unit[]): void {
    for (const unit of units) {
      this.units.push(unit)
      for (const part of unit.parts) {
        this.#parts.set(part.key, { unit, part })
        const { role, toolCallId = '' } = part.message
        if (role !== 'toolResult') continue
        const texts = this.#results.get(toolCallId)
        if (texts === undefined) this.#results.set(toolCallId, new Set([resultText(part.message)]))
        else texts.add(resultText(part.message))
      }
    }
  }

  /** The texts that the host has for the results of a call. */
  results(callId: string): ReadonlySet<string> {
    return this.#results.get(callId) ?? new Set()
  }

  /** Compares a conversation with the one held, and takes over its objects, which may have other cache markers. */
  follow(messages: readonly object[]): Match {
    let next = 0
    for (let number = 0; number < this.units.length; number += 1) {
      const unit = this.units[number] as Unit
      if (!isSame(unit, messages, next)) return { units: number, next }
      next += unit.raw.length
      if (unit.notices.length === 0) continue
      for (const notice of unit.notices) {
        if (next < messages.length && isEqual(notice.message, messages[next])) next += 1
      }
    }
    return { units: this.units.length, next }
  }

  /** Puts a plan's edits in force. */
  apply(edits: readonly Edit[]): void {
    for (const edit of edits) {
      const found = this.#parts.get(edit.key)
      if (found === undefined) continue
      found.part.edit = partEdit(edit)
      found.unit.written = undefined
    }
  }

  /** What to send. */
  output(): object[] {
    const out: object[] = []
    for (const unit of this.units) {
      if (unit.parts.every((part) => part.edit === undefined)) out.push(...unit.raw)
      else out.push(...(unit.written ?? write(unit)))
      for (const { message } of unit.notices) out.push(message)
    }
    return out
  }

  /** Units under the hash of each of their wordings, in their order. */
  byFingerprint(from: number): Map<string, Unit[]> {
    const found = new Map<string, Unit[]>()
    for (const unit of this.units.slice(from)) {
      for (const wording of [wordsOf(unit), ...unit.forms]) {
        const hash = fingerprint(wording)
        const list = found.get(hash)
        if (list === undefined) found.set(hash, [unit])
        else if (!list.includes(unit)) list.push(unit)
      }
    }
    return found
  }
}

/** Reads messages into units, from `from` on. `ours` says which of them are words of ours that the host carries. */
export function read(
  messages: readonly object[],
  from: number,
  shape: Shape,
  key: () => string,
  ours: (message: object) => string | undefined,
): Unit[] {
  const units: Unit[] = []
  for (let at = from; at < messages.length; ) {
    const notice = ours(messages[at] as object)
    const { size, parts } = notice === undefined ? shape.read(messages, at) : { size: 1, parts: [{ role: 'notice', content: notice }] }
    const raw = messages.slice(at, at + size)
    units.push({
      shape,
      raw,
      kept: raw.map((message) => keep(contentOf(shape, message))),
      parts: parts.map((message) => ({ key: key(), message, edit: undefined })),
      forms: [],
      written: undefined,
      notices: [],
      isOurs: notice !== undefined,
    })
    at += size
  }
  return units
}

/** A unit as it stands in a conversation that is read anew: nothing is in force yet, and no words of ours follow it. */
export function renewed(unit: Unit, raw: object[]): Unit {
  const isRaw = raw.every((message, index) => isEqual(unit.kept[index]?.content, contentOf(unit.shape, message)))
  const parts = unit.parts.map(({ key, message }) => ({ key, message, edit: undefined }))
  return { ...unit, parts, raw: isRaw ? raw : unit.raw, written: undefined, notices: [], forms: [...unit.forms] }
}

/**
 * How many units are recorded, where the host has only taken something out or added at the end. Undefined where it has
 * said something else than before, or has taken back the end.
 */
export function undisturbed(old: Table, units: readonly Unit[], seen: ReadonlyMap<Unit, number>): number | undefined {
  const isSaid = ({ parts }: Unit): boolean => parts.some(({ message }) => saidBy(message) !== undefined)
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

/** The content that a unit's messages had. */
export function wordsOf({ kept }: Unit): unknown[] {
  return kept.map((one) => one.content)
}

/** What identity is made of. */
export function contentOf(shape: Shape, message: object): unknown {
  return shape.content?.(message) ?? message
}

function isSame(unit: Unit, messages: readonly object[], at: number): boolean {
  const { raw, kept, shape } = unit
  if (at + raw.length > messages.length) return false
  let isMarked = false
  for (let index = 0; index < raw.length; index += 1) {
    const message = messages[at + index] as object
    const like = likeness(kept[index] as Kept, contentOf(shape, message))
    if (like === 'different') return index === 0 && unit.forms.length > 0 && isForm(unit, messages, at)
    if (like === 'marked') isMarked = true
  }
  for (let index = 0; index < raw.length; index += 1) {
    const message = messages[at + index] as object
    if (raw[index] !== message) raw[index] = message
  }
  if (isMarked) {
    unit.kept = raw.map((message) => keep(contentOf(shape, message)))
    unit.written = undefined
  }
  return true
}

function isForm(unit: Unit, messages: readonly object[], at: number): boolean {
  return unit.forms.some((form) =>
    form.every((one, index) => isEqual(one, contentOf(unit.shape, messages[at + index] as object))),
  )
}

function write(unit: Unit): readonly object[] {
  const edits = new Map<number, PartEdit>()
  for (const [number, { edit }] of unit.parts.entries()) if (edit !== undefined) edits.set(number, edit)
  const written = unit.shape.write(unit.raw, edits)
  const form = written.map((message) => keep(contentOf(unit.shape, message)).content)
  if (!unit.forms.some((one) => isEqual(one, form))) unit.forms.push(form)
  unit.written = written
  return written
}

function partEdit(edit: Edit): PartEdit | undefined {
  if (edit.kind === 'result') return edit.text === undefined ? undefined : { kind: 'result', text: edit.text }
  return edit.calls.length === 0 ? undefined : { kind: 'arguments', calls: edit.calls }
}
