/**
 * Errors of wrong use. Refusals of the engine carry its codes. If an argument has the wrong type and never reaches
 * the engine, the binding throws with its own codes. Here both become one kind.
 *
 * @module
 */
import type { ErrorCode } from '../../index.js'

const CODES: ReadonlySet<string> = new Set<ErrorCode>([
  'INVALID_ARGUMENT',
  'UNKNOWN_OBJECT',
  'NOT_CONTENT',
  'NULL_CONTENT',
  'NOT_ACTIVE',
  'CONFLICT',
  'STORE_UNAVAILABLE',
  'STORE_CORRUPT',
  'STORE_NEWER',
  'STORE_FULL',
  'IO',
  'CLOSED',
  'INTERNAL',
])

/** `INVALID_ARGUMENT` with a message. */
export function invalid(message: string, cause?: unknown): Error & { code: ErrorCode } {
  return Object.assign(new TypeError(message, { cause }), { code: 'INVALID_ARGUMENT' as const })
}

/** `STORE_UNAVAILABLE` with a message. */
export function unavailable(message: string): Error & { code: ErrorCode } {
  return Object.assign(new Error(message), { code: 'STORE_UNAVAILABLE' as const })
}

/** A failure as a sentence for people: its message, with its code. */
export function sentenceOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code
  const message = error instanceof Error ? error.message : String(error)
  return typeof code === 'string' && !message.includes(code) ? `${message} (${code})` : message
}

/** An error with one of our codes: itself, or `INVALID_ARGUMENT` with the error as its cause. */
function coded(error: unknown): Error {
  const message = error instanceof Error ? error.message : String(error)
  const sentence = mistakeOf(message)
  if (sentence === message && error instanceof Error && CODES.has(String((error as { code?: unknown }).code))) return error
  return invalid(sentence, error)
}

/** The types of the binding, in the words of JavaScript. */
const TYPES: Record<string, string> = { String: 'a text', bool: 'true or false', f64: 'a number', u32: 'a whole number', i64: 'a whole number' }

/** The binding's words for an argument that it can't take, and the sentence for the caller in their place. */
const MISTAKES: readonly [RegExp, (...found: string[]) => string][] = [
  [
    /^Failed to convert (?:JavaScript value `(?<value>.*)`|napi value(?: \w+)?) into rust type `(?<type>\w+)`(?: on \w+\.(?<field>\w+))?$/s,
    (value = '', type = '', field = 'an argument') => `${field} must be ${TYPES[type] ?? 'of another type'}${value === '' ? '' : `, not ${valueIn(value)}`}`,
  ],
  [/^Missing field `(\w+)`(?: on \w+\.(\w+))?$/, (name = '', within) => `${within === undefined ? '' : `${within}: `}the field "${name}" is missing`],
  [/^Failed to get Array length(?: on \w+\.(\w+))?$/, (field = 'an argument') => `${field} must be an array`],
  [/^Value is none of these types `String`, `TypedArray<u8>`/, () => 'content must be a text or bytes (a Uint8Array)'],
  [
    /^Value is none of these types `String`, `AsOf`/,
    () => 'a time must be a text such as 2026-01-31T12:00:00.000Z, or an object with validTime, txTime or txId',
  ],
  [/^Illegal invocation$/, () => 'a method must be called on its own object: write manager.get(id), or bind the method'],
]

/** The message of a mistake, without the words of the binding. */
function mistakeOf(message: string): string {
  for (const [pattern, sentence] of MISTAKES) {
    const found = pattern.exec(message)
    if (found !== null) return sentence(...(found.slice(1) as string[]))
  }
  return message
}

/** A value as the binding prints it (`Number 5 `), as JavaScript does. */
function valueIn(printed: string): string {
  const [, type = '', value = ''] = /^(\w+) ?(.*)$/s.exec(printed.trim()) ?? []
  if (type === 'Undefined' || type === 'Null') return type.toLowerCase()
  if (type === 'Object') return value.startsWith('[') ? 'an array' : 'an object'
  return value.length > LONGEST ? `a ${type.toLowerCase()}` : value
}

/** A longer value is not repeated. */
const LONGEST = 60

/** Runs a call of the native half. An argument of a wrong type rejects with `INVALID_ARGUMENT` instead of throwing. */
export async function calling<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    throw coded(error)
  }
}
