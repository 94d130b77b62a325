/**
 * What a message is: its whole content. A copy of its structure is kept and compared at each call; texts are shared with
 * the host and compared by reference first, so that the comparison costs next to nothing where nothing has changed, and
 * still notices an object that was changed in place.
 */
import { createHash } from 'node:crypto'
import { invalid } from '../errors.ts'

/** How a message stands to the copy that was kept of it. `marked`: only its cache markers differ. */
export type Likeness = 'same' | 'marked' | 'different'

/** Fields that hosts move along from call to call, and that say nothing about the content. */
const MARKERS: ReadonlySet<string> = new Set(['cache_control', 'cacheControl', 'cachePoint', 'promptCacheBreakpoint'])

type Node = Record<string, unknown>

/** What is kept of a content: a copy of its structure, and the same as one list, which is compared more quickly. */
export interface Kept {
  readonly content: unknown
  readonly list: readonly unknown[]
}

/** Keeps what a content is now. Throws `INVALID_ARGUMENT` for one that contains itself. */
export function keep(value: unknown): Kept {
  return guarded(() => {
    const list: unknown[] = []
    flatten(value, list)
    return { content: copy(value), list }
  })
}

/** Compares what was kept with what is there now. */
export function likeness(kept: Kept, now: unknown): Likeness {
  try {
    if (follow(now, kept.list, 0) === kept.list.length) return 'same'
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
  }
  return guarded(() => compare(kept.content, now))
}

/** The hash of a whole content, without cache markers and independent of the order of fields. */
export function fingerprint(value: unknown): string {
  const hash = createHash('sha256')
  guarded(() => feed(value, (text) => hash.update(text)))
  return hash.digest('base64')
}

/** Whether two values have the same content; fields that are undefined count as absent. */
export function isEqual(left: unknown, right: unknown): boolean {
  return guarded(() => compare(left, right)) !== 'different'
}

function guarded<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw invalid('a message contains itself or is nested too deeply', error)
  }
}

/** Bytes, dates, addresses: objects whose content is not in their fields. */
function opaque(value: object): string | Uint8Array | undefined {
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
  if (value instanceof ArrayBuffer) return new Uint8Array(value)
  return value instanceof Date || value instanceof URL ? String(value) : undefined
}

function copy(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(copy)
  const bytes = opaque(value)
  if (bytes !== undefined) return typeof bytes === 'string' ? value : bytes.slice()
  const kept: Node = {}
  for (const name in value) kept[name] = copy((value as Node)[name])
  return kept
}

/** Where an array begins, and an object begins and ends in the list: no content is equal to them. */
const ARRAY = Symbol('array')
const BEGIN = Symbol('begin')
const END = Symbol('end')

/** Writes a value as a list: an array as its length and its elements, an object as names and values. */
function flatten(value: unknown, list: unknown[]): void {
  if (typeof value !== 'object' || value === null) list.push(value)
  else if (Array.isArray(value)) {
    list.push(ARRAY, value.length)
    for (const one of value) flatten(one, list)
  } else if (Object.getPrototypeOf(value) !== Object.prototype && opaque(value) !== undefined) {
    // Bytes and dates always take the longer way: the list ends here for them.
    list.push(undefined, END)
  } else {
    list.push(BEGIN)
    for (const name in value) {
      list.push(name)
      flatten((value as Node)[name], list)
    }
    list.push(END)
  }
}

/** Walks a value along its list. Returns the place behind it, or a negative number where something differs. */
function follow(value: unknown, list: readonly unknown[], at: number): number {
  if (typeof value !== 'object' || value === null) return list[at] === value ? at + 1 : -1
  if (Array.isArray(value)) {
    if (list[at] !== ARRAY || list[at + 1] !== value.length) return -1
    at += 2
    for (let index = 0; index < value.length && at > 0; index += 1) at = follow(value[index], list, at)
    return at
  }
  if (list[at] !== BEGIN) return -1
  at += 1
  for (const name in value) {
    if (list[at] !== name) return -1
    const one = (value as Node)[name]
    if (typeof one !== 'object') {
      if (list[at + 1] !== one) return -1
      at += 2
    } else {
      at = follow(one, list, at + 1)
      if (at < 0) return at
    }
  }
  // Dates and bytes have no fields of their own, or numbered ones.
  return list[at] === END ? at + 1 : -1
}

function compare(kept: unknown, now: unknown): Likeness {
  if (typeof kept !== 'object' || typeof now !== 'object' || kept === null || now === null) {
    return kept === now || Object.is(kept, now) ? 'same' : 'different'
  }
  if (Array.isArray(kept)) return Array.isArray(now) ? compareLists(kept, now) : 'different'
  if (Array.isArray(now)) return 'different'
  if (Object.getPrototypeOf(now) !== Object.prototype || Object.getPrototypeOf(kept) !== Object.prototype) {
    const [one, other] = [opaque(kept), opaque(now)]
    if (one !== undefined || other !== undefined) return isSameOpaque(one, other) ? 'same' : 'different'
  }
  return compareFields(kept as Node, now as Node)
}

function compareLists(kept: readonly unknown[], now: readonly unknown[]): Likeness {
  if (kept.length !== now.length) return 'different'
  let result: Likeness = 'same'
  for (let index = 0; index < kept.length; index += 1) {
    const one = compare(kept[index], now[index])
    if (one === 'different') return one
    if (one === 'marked') result = one
  }
  return result
}

function compareFields(kept: Node, now: Node): Likeness {
  let result: Likeness = 'same'
  for (const name in now) {
    const one = kept[name]
    const other = now[name]
    if (one === other && typeof one !== 'object') continue
    const like = compare(one, other)
    if (like === 'same') continue
    if (like === 'different' && !isMarker(name, one, other)) return like
    result = 'marked'
  }
  for (const name in kept) {
    if (now[name] !== undefined || kept[name] === undefined) continue
    if (!isMarker(name, kept[name], undefined)) return 'different'
    result = 'marked'
  }
  return result
}

/** Whether two different values of a field differ in cache markers only, be it that one of them holds nothing else. */
function isMarker(name: string, kept: unknown, now: unknown): boolean {
  if (MARKERS.has(name)) return true
  return (kept === undefined && holdsMarkers(now)) || (now === undefined && holdsMarkers(kept))
}

function holdsMarkers(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const entries = Object.entries(value)
  return entries.length > 0 && entries.every(([name, one]) => MARKERS.has(name) || holdsMarkers(one))
}

function isSameOpaque(one: string | Uint8Array | undefined, other: string | Uint8Array | undefined): boolean {
  if (typeof one === 'string' || typeof other === 'string') return one === other
  return one !== undefined && other !== undefined && Buffer.compare(one, other) === 0
}

function feed(value: unknown, out: (text: string | Uint8Array) => void): void {
  if (typeof value !== 'object' || value === null) {
    out(typeof value === 'string' ? `s${value.length}:${value}` : `${typeof value}:${String(value)};`)
    return
  }
  if (Array.isArray(value)) {
    out(`[${value.length}:`)
    for (const one of value) feed(one, out)
    return
  }
  const bytes = opaque(value)
  if (bytes !== undefined) {
    out(`b${bytes.length}:`)
    out(bytes)
    return
  }
  out('{')
  for (const name of Object.keys(value).sort()) {
    const one = (value as Node)[name]
    if (one === undefined || MARKERS.has(name) || holdsMarkers(one)) continue
    out(`s${name.length}:${name}`)
    feed(one, out)
  }
  out('}')
}
