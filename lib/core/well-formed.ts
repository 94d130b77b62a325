/**
 * Values as they can be stored. A host that cuts a text after a number of characters may cut a surrogate pair in two; UTF-8 has no
 * form of the halves, so the store has U+FFFD in their place, and so has the text that the model gets. JSON has no functions, no
 * symbols, no infinite numbers and no classes: a provider gets what `JSON.stringify` makes of them, and so does the store.
 */
import { setField } from './fields.ts'
import { integer, jsonText } from './json.ts'

/** A half of a pair that stands alone. */
const HALVES = /\p{Surrogate}/gu

/** Deeper values are passed on as they are: the record has them as JSON text. */
const MAX_DEPTH = 200

/**
 * The value as the store has it: with U+FFFD in place of each lone half, in texts and names of fields, and without what JSON does not
 * have; itself if it has nothing of that.
 */
export function wellFormed<T>(value: T): T {
  return replaced(value, new Map(), MAX_DEPTH) as T
}

/** `done` has the objects that were met, with what they became: an object may contain itself. */
function replaced(value: unknown, done: Map<object, unknown>, depth: number): unknown {
  if (typeof value === 'string') return isWellFormed(value) ? value : value.replaceAll(HALVES, '\uFFFD')
  if (typeof value === 'number') return Number.isFinite(value) ? value : null
  if (typeof value === 'bigint') return integer(value)
  if (typeof value === 'function' || typeof value === 'symbol') return undefined
  if (typeof value !== 'object' || value === null || depth === 0 || value instanceof Uint8Array) return value
  if (done.has(value)) return done.get(value)
  done.set(value, value)
  if (!isPlain(value)) {
    const json = inJson(value)
    const plain = json === value ? value : replaced(json, done, depth)
    done.set(value, plain)
    return plain
  }
  const result = Array.isArray(value) ? list(value, done, depth - 1) : fields(value, done, depth - 1)
  done.set(value, result)
  return result
}

function list(value: readonly unknown[], done: Map<object, unknown>, depth: number): readonly unknown[] {
  const items = value.map((item) => replaced(item, done, depth) ?? null)
  return items.every((item, at) => item === value[at]) ? value : items
}

function fields(value: object, done: Map<object, unknown>, depth: number): object {
  const entries = Object.entries(value).map(([name, field]) => [name, field, replaced(name, done, 1) as string, replaced(field, done, depth)] as const)
  if (entries.every(([name, field, newName, newField]) => newName === name && newField === field)) return value
  const result = {}
  for (const [, , name, field] of entries) if (field !== undefined) setField(result, name, field)
  return result
}

/** False for an object of which JSON has another form: one of a class, or one that says so itself. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  const isOfClass = !Array.isArray(value) && prototype !== null && Object.getPrototypeOf(prototype) !== null
  return !isOfClass && typeof (value as { toJSON?: unknown }).toJSON !== 'function'
}

/** An object as JSON has it; undefined if it has none, itself if it contains itself, which is refused later. */
function inJson(value: object): unknown {
  try {
    const text = jsonText(value)
    return text === undefined ? undefined : (JSON.parse(text) as unknown)
  } catch {
    return value
  }
}

function isWellFormed(text: string): boolean {
  const { isWellFormed: native } = text as { isWellFormed?: () => boolean }
  return native === undefined ? !/\p{Surrogate}/u.test(text) : native.call(text)
}
