/**
 * Parses bodies. An agent sends its conversation again and again with some messages more: those that a body has in common with an
 * earlier one, byte for byte, are the same objects, and are neither decoded nor parsed a second time.
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
    const known = this.#known.findLast((one) => one.name === name && isSame(one.bytes, bytes, one.bytes.length >> 1))
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

/** A body that begins as a known one does, up to the end of one of its elements; undefined if that can't be told. */
function continued(known: Known, bytes: Buffer): ParsedBody | undefined {
  const { list, name } = known
  // In UTF-8, no byte of another character is that of a bracket or a quote, so that places in the bytes are found in their Latin-1.
  const place = (known.place ??= listIn(known.bytes.toString('latin1'), name))
  if (place === undefined || place.elements.length !== list.length) return undefined
  const count = commonElements(known.bytes, bytes, place)
  const last = place.elements[count - 1]
  if (last === undefined || !isFields(list[count - 1])) return undefined
  const behind = BEHIND.exec(bytes.toString('latin1', last.end, last.end + LONGEST_GAP))?.[0]
  if (behind === undefined) return undefined
  // The same body without the elements that are known.
  const from = last.end + behind.length
  const rest = Buffer.concat([bytes.subarray(0, place.start), bytes.subarray(from)])
  const value = JSON.parse(textOf(rest)) as unknown
  const others = listIn(rest.toString('latin1'), name)
  const own = isFields(value) ? value[name] : undefined
  if (!isFields(value) || !Array.isArray(own) || others?.start !== place.start || others.elements.length !== own.length) return undefined
  value[name] = [...list.slice(0, count), ...(own as unknown[])]
  const moved = from - place.start
  const elements = [...place.elements.slice(0, count), ...others.elements.map(({ start, end }) => ({ start: start + moved, end: end + moved }))]
  return { bytes, value, name, place: { start: place.start, end: others.end + moved, elements } }
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

/** The bytes that are looked at for it. */
const LONGEST_GAP = 64
