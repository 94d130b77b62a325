/** Messages of the host that belong together: their content, and what is sent instead of them. */
import { itemsOf, placeOf } from './edit.ts'
import { fingerprint, isEqual, keep, likeness } from './identity.ts'
import type { Likeness } from './identity.ts'
import { isPointed, isReference, pointedText } from '../lines/index.ts'
import { oncePer, resultText, wellFormed } from '../core/index.ts'
import { noteOrigin } from './origins.ts'
import type { EngineMessage } from '../core/index.ts'
import type { PartEdit } from './driver/edits.ts'
import type { Reading, Shape } from './shape.ts'

/** A part of a message; the engine knows it by its key. */
export interface Part {
  key: string
  message: EngineMessage
  edit: PartEdit | undefined
  /** The earlier result that it points to, as a host does that shows a file once. */
  target?: Part
}

/** Messages of the host that belong together. */
export interface Unit {
  shape: Shape
  /** The host's own messages, as of the last call. */
  raw: object[]
  /** A copy of their content. */
  kept: readonly unknown[]
  parts: readonly Part[]
  /** The forms that were sent instead of them, latest last. Some hosts return one at the next call. */
  forms: (readonly unknown[])[]
  /** The messages that are sent instead of them now. */
  written: readonly object[] | undefined
  /** Messages with notices, which are sent after them. */
  notices: object[]
  /** True if they are notices that the host has returned, and not part of the conversation. */
  isOurs: boolean
}

/**
 * Reads messages into units, starting at `from`. `isOurs` returns whether a message is a notice of ours, `sizeOf` how many of the
 * messages that may be one answer are; `unchanged` has the units that need not be read, by the index of their first message.
 */
export function* read(
  messages: readonly object[],
  from: number,
  shape: Shape,
  key: () => string,
  isOurs: (message: object) => boolean,
  sizeOf?: (messages: readonly object[]) => number,
  unchanged?: ReadonlyMap<number, Unit>,
): Generator<Unit> {
  for (let at = from; at < messages.length;) {
    const known = unchanged?.get(at)
    if (known !== undefined) {
      yield known
      at += known.raw.length
      continue
    }
    const first = messages[at] as object
    const isNotice = isOurs(first)
    const { size, parts } = isNotice ? { size: 1, parts: [noticeOf(shape, first)] } : reading(shape, messages, at, sizeOf)
    const raw = messages.slice(at, at + size)
    yield {
      shape,
      raw,
      kept: raw.map((message) => keep(contentOf(shape, message))),
      parts: parts.map((message) => ({ key: key(), message: wellFormed(message), edit: undefined })),
      forms: [],
      written: undefined,
      notices: [],
      isOurs: isNotice,
    }
    at += size
  }
}

function reading(shape: Shape, messages: readonly object[], at: number, sizeOf?: (messages: readonly object[]) => number): Reading {
  const whole = shape.read(messages, at)
  const isAnswer = whole.parts.some(({ role }) => role === 'assistant')
  const size = isAnswer && sizeOf !== undefined ? sizeOf(messages.slice(at, at + whole.size)) : whole.size
  return size === whole.size ? whole : shape.read(messages.slice(at, at + size), 0)
}

/** A message with a notice, as the engine gets it: no user has said it. */
export function noticeOf(shape: Shape, message: object): EngineMessage {
  return { role: 'notice', content: shape.read([message], 0).parts.map(resultText).join('\n') }
}

/** A unit for a rebuilt table: without edits and notices. `isRaw`: the messages are the host's own, and not what was sent instead of them. */
export function renewed(unit: Unit, raw: object[], isRaw = raw.every((message, index) => isEqual(unit.kept[index], contentOf(unit.shape, message)))): Unit {
  const parts = unit.parts.map(({ key, message }) => ({ key, message, edit: undefined }))
  return { ...unit, parts, raw: isRaw ? raw : unit.raw, written: undefined, notices: [], forms: [...unit.forms] }
}

/** True if the results of two units with the same words are of calls of the same tools: some formats name the tool in the call alone. */
export function isOfSameTools(one: Unit, other: Unit): boolean {
  return one.parts.every(({ message }, number) => message.toolName === other.parts[number]?.message.toolName)
}

/** The number of first units whose messages are all among the first `count` of the conversation. */
export function unitsWithin(units: readonly Unit[], count: number): number {
  let read = 0
  const next = units.findIndex(({ raw }) => (read += raw.length) > count)
  return next < 0 ? units.length : next
}

/** The content that a unit's messages had. */
export function wordsOf({ kept }: Unit): unknown[] {
  return [...kept]
}

/** A hash of the words of a unit. */
export function nameOf({ kept }: Unit): string {
  return nameOfForm(kept)
}

/** The same of some of its words, which never change. */
export const nameOfForm = oncePer((form: readonly unknown[]): string => fingerprint([...form]))

/** The part of a message that identifies it. */
export function contentOf(shape: Shape, message: object): unknown {
  return shape.content?.(message) ?? message
}

/** The number of messages at an index that are a unit in the host's wording; undefined if they are not. */
export function sizeAt(unit: Unit, messages: readonly object[], at: number): number | undefined {
  return likenessOf(unit, messages, at) === 'different' ? undefined : unit.raw.length
}

/** True if something else is sent instead of a part of a unit. */
export function isEdited(unit: Unit): boolean {
  return unit.parts.some((part) => editIn(part) !== undefined)
}

/** The edit of a part; undefined if it is sent as it is. A pointer to what has collapsed has its reference behind it. */
function editIn({ edit, target, message }: Part): PartEdit | undefined {
  const reference = edit === undefined && target !== undefined ? referenceTo(target) : undefined
  if (reference === undefined) return edit
  const words = resultText(message)
  // A host that keeps what was sent has the reference already.
  return isPointed(words) ? undefined : { kind: 'result', text: pointedText(words, reference) }
}

/** The reference to a result; undefined if that is sent as it is. */
function referenceTo({ edit, message }: Part): string | undefined {
  const text = edit?.kind === 'gone' ? edit.reference : edit?.kind === 'result' ? edit.text : resultText(message)
  return text !== undefined && isReference(text) ? text.split('\n', 1)[0] : undefined
}

/** The likeness of the messages at an index to a unit in the host's wording. */
export function likenessOf({ raw, kept, shape }: Unit, messages: readonly object[], at: number): Likeness {
  if (at + raw.length > messages.length) return 'different'
  let result: Likeness = 'same'
  for (let index = 0; index < raw.length; index += 1) {
    const like = likeness(kept[index], contentOf(shape, messages[at + index] as object))
    if (like === 'different') return like
    if (like === 'marked') result = like
  }
  return result
}

/** The number of messages at an index that were sent instead of a unit; the latest form is tried first. */
export function formAt({ forms, shape }: Unit, messages: readonly object[], at: number, isCarried: boolean): number | undefined {
  const form = forms.findLast(
    (one) =>
      (one.length > 0 ? at + one.length <= messages.length : isCarried) &&
      one.every((part, index) => isEqual(part, contentOf(shape, messages[at + index] as object))),
  )
  return form?.length
}

/** Returns the messages to send instead of a unit, by its edits, and notes them as one of its forms. */
export function write(unit: Unit): readonly object[] {
  const edits = new Map<number, PartEdit>()
  for (const [number, part] of unit.parts.entries()) {
    const edit = editIn(part)
    if (edit !== undefined) edits.set(number, edit)
  }
  const written = unit.shape.write(unit.raw, edits)
  const form = written.map((message) => keep(contentOf(unit.shape, message)))
  if (!unit.forms.some((one) => isEqual(one, form))) unit.forms.push(form)
  unit.written = written
  noteOrigins(unit.raw, written)
  return written
}

function noteOrigins(raw: readonly object[], written: readonly object[]): void {
  const places = raw.length === 1 ? written.map(() => 0) : itemsOf(raw, written).map(placeOf)
  for (const [number, message] of written.entries()) {
    const at = places[number]
    if (at !== undefined) noteOrigin(message, raw, at)
  }
}
