/**
 * Identity of messages: two messages are the same if their whole content is. We keep a copy of the structure and share the
 * texts with the host. ledger.ts detects that something has changed; this file finds out what.
 */
import { createHash } from 'node:crypto'
import { fieldOf, invalid, setField } from '../core/index.ts'

/** The likeness of a message to the copy kept of it. `marked`: only its cache markers differ. */
export type Likeness = 'same' | 'marked' | 'different'

/** Fields that hosts move from message to message between calls; they are not content. */
const MARKERS: ReadonlySet<string> = new Set(['cache_control', 'cacheControl', 'cachePoint', 'promptCacheBreakpoint'])

type Node = Record<string, unknown>

/** True if a field of this name is a cache marker. */
export function isMarker(name: string): boolean {
  return MARKERS.has(name)
}

/** Copies the structure of a content. Throws `INVALID_ARGUMENT` if it contains itself. */
export function keep(value: unknown): unknown {
  return guarded(() => copy(value))
}

/** Compares the copy with the current content. */
export function likeness(kept: unknown, now: unknown): Likeness {
  return guarded(() => compare(kept, now))
}

/** The hash of a content, ignoring cache markers and the order of fields. */
export function fingerprint(value: unknown): string {
  const hash = createHash('sha256')
  guarded(() => feed(value, (text) => hash.update(text)))
  return hash.digest('base64')
}

/** True if two values have the same content. Undefined fields count as absent. */
export function isEqual(left: unknown, right: unknown): boolean {
  return guarded(() => compare(left, right)) !== 'different'
}

/** Runs a recursive walk; a stack overflow becomes `INVALID_ARGUMENT`. */
export function guarded<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw invalid('a message contains itself or is nested too deeply', error)
  }
}

/** The content of objects that don't have it in their fields: bytes, dates, URLs. Undefined for all others. */
export function opaque(value: object): string | Uint8Array | undefined {
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
  if (value instanceof ArrayBuffer) return new Uint8Array(value)
  if (value instanceof Date) return `date ${value.getTime()}`
  return value instanceof URL ? value.href : undefined
}

function copy(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(copy)
  const bytes = opaque(value)
  if (value instanceof Date) return new Date(value)
  if (value instanceof URL) return new URL(value)
  if (bytes instanceof Uint8Array) return bytes.slice()
  const kept: Node = {}
  for (const name in value) setField(kept, name, copy((value as Node)[name]))
  return kept
}

function compare(kept: unknown, now: unknown): Likeness {
  if (kept === now) return 'same'
  if (typeof kept !== 'object' || typeof now !== 'object' || kept === null || now === null) {
    return Object.is(kept, now) ? 'same' : 'different'
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
    const one = fieldOf(kept, name)
    const other = now[name]
    if (one === other && typeof one !== 'object') continue
    const like = compare(one, other)
    if (like === 'same') continue
    if (like === 'different' && !isMarkerChange(name, one, other)) return like
    result = 'marked'
  }
  for (const name in kept) {
    if (kept[name] === undefined || fieldOf(now, name) !== undefined) continue
    if (!isMarkerChange(name, kept[name], undefined)) return 'different'
    result = 'marked'
  }
  return result
}

/**
 * True if two different values of a field differ only in cache markers, or one is absent and the other holds
 * nothing else.
 */
function isMarkerChange(name: string, kept: unknown, now: unknown): boolean {
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
