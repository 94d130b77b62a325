/**
 * JSON crosses the border to the native half as text, which is many times faster than value by value. Values that are too wide are
 * refused, and values that are too deep become text.
 */
import { invalid } from './errors.ts'
import { setField } from './fields.ts'

/** A few objects that hold each other several times can stand for more values than any memory holds. */
const VALUES_MAX = 4_000_000
/** V8 is slow with very wide objects. As in the native half; lists may be longer. */
const FIELDS_MAX = 100_000
const TOO_WIDE = `an object has more than ${FIELDS_MAX} fields; make a list of them, or a text`
/** Objects that were found to be wider. Listing their names is what takes long, so it is done once. */
const wide = new WeakSet<object>()

/**
 * A value as its JSON text, typed as the value itself, because the signatures of the native half
 * say so. `what` begins the sentence of an error.
 *
 * Throws `INVALID_ARGUMENT` for values that JSON can't write, and for values that are too large.
 */
export function crossing<T>(value: T, what: string): T {
  let count = 0
  const checked = (_name: string, one: unknown): unknown => {
    if ((count += 1) > VALUES_MAX) throw new RangeError(`there are more than ${VALUES_MAX} values`)
    switch (typeof one) {
      case 'function':
      case 'symbol':
        throw new TypeError(`a ${typeof one} is not a JSON value`)
      case 'number':
        if (!Number.isFinite(one)) throw new TypeError(`${one} is not a JSON value`)
        return one
      case 'bigint':
        return integer(one)
      case 'object':
        if (one !== null && !Array.isArray(one) && isWide(one)) throw new RangeError(TOO_WIDE)
        return one
      default:
        return one
    }
  }
  try {
    const text = JSON.stringify(value, checked)
    if (text === undefined) throw new TypeError('undefined is not a JSON value')
    return text as T
  } catch (error) {
    throw invalid(`${what} can't be written as JSON: ${(error as Error).message}`, error)
  }
}

/** The JSON text of data; undefined if it has none. Integers of any size are taken. Throws a TypeError for what contains itself. */
export function jsonText(value: unknown): string | undefined {
  return JSON.stringify(value, (_, one: unknown) => (typeof one === 'bigint' ? integer(one) : one)) as string | undefined
}

/** A large integer as it is recorded: as a number, if that is exact, or else as its digits. */
export function integer(value: bigint): number | string {
  return Number.isSafeInteger(Number(value)) ? Number(value) : String(value)
}

/** The value of a text that the native half gave where its signature has the value's type. */
export function crossed<T>(text: T): T {
  return typeof text === 'string' ? (JSON.parse(text) as T) : text
}

/**
 * A version, or a step to it from the one before: lists that begin with `count` elements of the list in the one
 * before, and fields that are the same there.
 */
type Step<V> = [version: V, lists: [name: string, count: number][], kept: string[]]

/** Fields of a document that its content hash does not cover. */
const UNHASHED = ['xt/id', 'type', 'source', 'identity_hash', 'content_hash', 'source_hash']

/**
 * Reads a history from the texts of its pages. Its documents share what they have in common. The content hash of a growing
 * document covers all of it, so it is computed on the first read of it, by `hash` of the payload in JSON.
 */
export function crossedHistory<V extends { document: object }>(pages: V[], hash: (payload: string) => string): V[] {
  let before: Record<string, unknown> = {}
  return (pages as unknown as string[]).flatMap((page) =>
    (JSON.parse(page) as Step<V>[]).map(([version, lists, kept]) => {
      const document = version.document as Record<string, unknown>
      for (const name of kept) setField(document, name, before[name])
      for (const [name, count] of lists) setField(document, name, (before[name] as unknown[]).slice(0, count).concat(document[name]))
      if (!Object.hasOwn(document, 'content_hash')) hashLater(document, hash)
      before = document
      return version
    }),
  )
}

function hashLater(document: Record<string, unknown>, hash: (payload: string) => string): void {
  const get = (): string => {
    const covered = Object.keys(document).filter((name) => !UNHASHED.includes(name))
    const value = hash(JSON.stringify(Object.fromEntries(covered.map((name) => [name, document[name]]))))
    Object.defineProperty(document, 'content_hash', { value, enumerable: true, configurable: true, writable: true })
    return value
  }
  Object.defineProperty(document, 'content_hash', { get, enumerable: true, configurable: true })
}

/** Throws `INVALID_ARGUMENT` where a value holds an object with more fields than are taken. Ends its count there. */
export function checkWidth(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  if (Array.isArray(value)) for (const one of value) checkWidth(one)
  else if (isWide(value)) throw invalid(TOO_WIDE)
  else for (const name in value) checkWidth((value as Record<string, unknown>)[name])
}

function isWide(value: object): boolean {
  if (wide.has(value)) return true
  let fields = 0
  for (const _ in value) {
    if ((fields += 1) <= FIELDS_MAX) continue
    wide.add(value)
    return true
  }
  return false
}

/** The number of levels that stay of a part of a message; the engine accepts 100, counted from the whole message. */
const LEVELS = 60

/**
 * `value`, with everything below `levels` levels of lists and objects as JSON text, so nothing is lost; the same value if it is
 * not that deep.
 *
 * Throws `INVALID_ARGUMENT` for a value that contains itself.
 */
export function flattened<T>(value: T, levels = LEVELS): T {
  return isDeeper(value, levels) ? (flat(value, levels) as T) : value
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (levels === 0) return true
  if (Array.isArray(value)) return value.some((one) => isDeeper(one, levels - 1))
  for (const name in value) if (isDeeper((value as Record<string, unknown>)[name], levels - 1)) return true
  return false
}

function flat(value: unknown, levels: number): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (levels === 0) {
    try {
      return JSON.stringify(value)
    } catch (error) {
      throw invalid('a message contains itself or is nested too deeply to be written as JSON', error)
    }
  }
  if (Array.isArray(value)) return value.map((one) => flat(one, levels - 1))
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, flat(one, levels - 1)]))
}
