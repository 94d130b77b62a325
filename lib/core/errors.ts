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
  if (error instanceof Error && CODES.has(String((error as { code?: unknown }).code))) return error
  return invalid(error instanceof Error ? error.message : String(error), error)
}

/** Runs a call of the native half. An argument of a wrong type rejects with `INVALID_ARGUMENT` instead of throwing. */
export async function calling<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    throw coded(error)
  }
}
