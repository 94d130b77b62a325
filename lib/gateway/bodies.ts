/**
 * Parses bodies. An agent sends its conversation again and again with some messages more: those that a body has in common with an
 * earlier one, byte for byte, are the same objects, and are neither decoded nor parsed a second time. The same holds for those behind a
 * message that the agent has changed.
 */
import { isUtf8 } from 'node:buffer'
import { textOf } from './body.ts'
import { isFields } from '../core/index.ts'
import { listIn } from '../projection/index.ts'
import type { ListPlace } from '../projection/index.ts'

/** A body that was parsed. */
export interface ParsedBody {
  /** The body, without codings. */
  bytes: Buffer
  value: unknown
  /** Its field that mostly is a long list. */
  name: string
  /** The place of this list in the bytes; undefined if it was not looked for. */
  place: ListPlace | undefined
}

/** The number of bodies that are known at a time, the latest last. */
const MOST = 16

/** The bytes of all of them together. */
const MOST_BYTES = 16 * 1024 * 1024

/** In smaller bodies there is too little to save, in bytes. */
const LEAST = 16 * 1024

/** A body that others may continue. */
interface Known extends Omit<ParsedBody, 'value'> {
  list: readonly unknown[]
}

/** The bodies that came last. */
export class Bodies {
  #known: Known[] = []

  /** Parses a body. Throws as `JSON.parse` does. */
  parsed(bytes: Buffer, name: string): ParsedBody {
    // Bytes that are not UTF-8 are sent as the text that they decode to, with an edit or without.
    if (bytes.length < LEAST || !isUtf8(bytes)) return { bytes, value: JSON.parse(textOf(bytes)), name, place: undefined }
    const all = this.#known.filter((one) => one.name === name)
    const known = all.findLast((one) => isSame(one.bytes, bytes, one.bytes.length >> 1)) ?? all.findLast((one) => isChanged(one, bytes))
    const body = (known === undefined ? undefined : continued(known, bytes)) ?? { bytes, value: JSON.parse(textOf(bytes)) as unknown, name, place: undefined }
    const list = isFields(body.value) ? body.value[name] : undefined
    if (Array.isArray(list)) this.#keep({ bytes, name, place: body.place, list }, known)
    return body
  }

  #keep(one: Known, before: Known | undefined): void {
    this.#known = [...this.#known.filter((other) => other !== before).slice(1 - MOST), one]
    let size = 0
    const first = this.#known.findLastIndex(({ bytes }) => (size += bytes.length) > MOST_BYTES)
    if (first >= 0) this.#known = this.#known.slice(first + 1)
  }
}

/** A body that has elements of a known one: the first ones, and a row behind one that was changed; undefined if that can't be told. */
function continued(known: Known, bytes: Buffer): ParsedBody | undefined {
  const { list, name } = known
  const place = placeOf(known)
  if (place === undefined || place.elements.length !== list.length) return undefined
  const count = commonElements(known.bytes, bytes, place)
  const last = place.elements[count - 1]
  if (last === undefined ? !isSame(known.bytes, bytes, place.start) : !isFields(list[count - 1])) return undefined
  const behind = last === undefined ? '' : behindIn(bytes, last.end)
  if (behind === undefined) return undefined
  // The same body without the elements that are known.
  const from = (last?.end ?? place.start) + behind.length
  const rows = rowsIn(known, bytes, place, { count, from })
  if (last === undefined && rows.length === 0) return undefined
  const parts = [
    bytes.subarray(0, place.start),
    ...rows.map((row, n) => bytes.subarray(rows[n - 1]?.to ?? from, row.from)),
    bytes.subarray(rows.at(-1)?.to ?? from),
  ]
  const rest = Buffer.concat(parts)
  const value = parsedOr(rest)
  const others = listIn(rest.toString('latin1'), name)
  const own = isFields(value) ? value[name] : undefined
  if (!isFields(value) || !Array.isArray(own) || others?.start !== place.start || others.elements.length !== own.length) return undefined
  const values: (readonly unknown[])[] = [list.slice(0, count)]
  const elements: Span[][] = [place.elements.slice(0, count)]
  /** The part of the rest that was taken, in elements and in bytes, and by how much these bytes lie before their place in the body. */
  let [taken, join, moved] = [0, place.start, from - place.start]
  const take = (until: number): void => {
    values.push(own.slice(taken, until))
    elements.push(others.elements.slice(taken, until).map((element) => shifted(element, moved)))
    taken = until
  }
  for (const [n, row] of rows.entries()) {
    join += (parts[n + 1] as Buffer).length
    const until = others.elements.filter(({ end }) => end <= join).length
    // The row stands between elements of the list: what comes before it is the same in both, and there no other bracket is open.
    const hasPlace = (others.elements[until]?.start ?? others.end) >= join
    if (!hasPlace || (row.from < row.at && until === taken)) return undefined
    take(until)
    values.push(list.slice(row.first, row.end))
    const by = row.at - (place.elements[row.first] as Span).start
    elements.push(place.elements.slice(row.first, row.end).map((element) => shifted(element, by)))
    moved += row.to - row.from
  }
  take(own.length)
  value[name] = values.flat()
  return { bytes, value, name, place: { start: place.start, end: others.end + moved, elements: elements.flat() } }
}

type Span = ListPlace['elements'][number]

function shifted({ start, end }: Span, by: number): Span {
  return { start: start + by, end: end + by }
}

function parsedOr(bytes: Buffer): unknown {
  try {
    return JSON.parse(textOf(bytes))
  } catch {
    // The whole body says what is wrong with it.
    return undefined
  }
}

/** A row of known elements in another body: which ones, where it begins there, and the bytes that are left out with it. */
interface Row {
  first: number
  end: number
  at: number
  from: number
  to: number
}

/** The number of elements that an agent may have changed beside each other, and the number of places where it may have. */
const MOST_CHANGED = 4
const MOST_ROWS = 8

/** The rows behind the first `count` elements. */
function rowsIn(known: Known, bytes: Buffer, place: ListPlace, { count, from }: { count: number; from: number }): Row[] {
  const rows: Row[] = []
  for (let [end, at] = [count, from]; rows.length < MOST_ROWS;) {
    const row = rowIn(known, bytes, place, { count: end, from: at })
    if (row === undefined) break
    rows.push(row)
    ;[end, at] = [row.end, row.to]
  }
  return rows
}

/** The elements behind changed ones that a body has, from the first after the `count` that it begins with; undefined if it has none. */
function rowIn(known: Known, bytes: Buffer, { elements }: ListPlace, { count, from }: { count: number; from: number }): Row | undefined {
  for (let first = count + 1; first <= count + MOST_CHANGED; first += 1) {
    const { start, end } = elements[first] ?? { start: 0, end: 0 }
    // In a text, the first quote of such an element would have a backslash.
    if (end === 0 || known.bytes[start] !== OPEN || known.bytes[start + 1] !== QUOTE) continue
    const at = bytes.indexOf(known.bytes.subarray(start, end), from)
    if (at < 0) continue
    const rest = { start: 0, end: 0, elements: elements.slice(first).map((one) => ({ start: one.start - start, end: one.end - start })) }
    const size = commonElements(known.bytes.subarray(start), bytes.subarray(at), rest)
    const stop = at + (rest.elements[size - 1]?.end ?? 0)
    const behind = behindIn(bytes, stop)
    if (size === 0 || behind === undefined || !isFields(known.list[first + size - 1])) continue
    const isLast = !behind.includes(',')
    // The last element has no comma behind it, so that the one before the row leaves with it.
    const before = isLast ? (BEFORE.exec(bytes.toString('latin1', Math.max(from, at - LONGEST_GAP), at))?.[0].length ?? 0) : 0
    if (isLast && before === 0 && at > from) continue
    return { first, end: first + size, at, from: at - before, to: stop + (isLast ? 0 : behind.length) }
  }
  return undefined
}

const [OPEN, QUOTE] = [0x7b, 0x22]

/** True if a body may be a known one in which something early was changed: what stands before its list is the same, and it has an element from the inside. */
function isChanged(known: Known, bytes: Buffer): boolean {
  const place = placeOf(known)
  if (place === undefined || !isSame(known.bytes, bytes, place.start)) return false
  const inner = [1, 2, 3].flatMap((quarter) => place.elements[(place.elements.length * quarter) >> 2] ?? [])
  return inner.some(({ start, end }) => bytes.includes(known.bytes.subarray(start, end)))
}

/** The place of a known body's list. In UTF-8, no byte of another character is that of a bracket or a quote, so that it is found in the Latin-1. */
function placeOf(known: Known): ListPlace | undefined {
  return (known.place ??= listIn(known.bytes.toString('latin1'), known.name))
}

/** The text between a known element that ends here and what is parsed; undefined if that is something else. */
function behindIn(bytes: Buffer, end: number): string | undefined {
  return BEHIND.exec(bytes.toString('latin1', end, end + LONGEST_GAP))?.[0]
}

/** The number of elements up to whose end two bodies are the same. Mostly it is all of them but for the last few, whose cache markers move. */
function commonElements(known: Buffer, bytes: Buffer, { elements }: ListPlace): number {
  const isCommon = (count: number): boolean => isSame(known, bytes, elements[count - 1]?.end ?? 0)
  let [common, different] = [0, elements.length + 1]
  for (let step = 1, count = elements.length; count > 0; count = elements.length - step, step *= 2) {
    if (isCommon(count)) {
      common = count
      break
    }
    different = count
  }
  while (different - common > 1) {
    const middle = (common + different) >> 1
    if (isCommon(middle)) common = middle
    else different = middle
  }
  return common
}

/** True if two bodies have their first bytes in common. */
function isSame(one: Buffer, other: Buffer, length: number): boolean {
  return other.length >= length && one.subarray(0, length).equals(other.subarray(0, length))
}

/** The characters between a known element and what is parsed: a comma with another element behind it, or nothing before the end of the list. */
const BEHIND = /^[ \t\r\n]*(?:,[ \t\r\n]*(?=[^\] \t\r\n,])|(?=\]))/

/** The comma before an element. */
const BEFORE = /,[ \t\r\n]*$/

/** The bytes that are looked at for it. */
const LONGEST_GAP = 64
