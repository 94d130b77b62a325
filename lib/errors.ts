/**
 * Errors of wrong use. Refusals of the engine carry its codes. If an argument has the wrong type and never reaches
 * the engine, the binding throws with its own codes. Here both become one kind.
 *
 * @module
 */
import type { ErrorCode } from '../index.js'

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

/** An error with one of our codes: itself, or `INVALID_ARGUMENT` with the error as its cause. */
export function coded(error: unknown): Error {
  if (error instanceof Error && CODES.has(String((error as { code?: unknown }).code))) return error
  return invalid(error instanceof Error ? error.message : String(error), error)
}

/**
 * Makes the methods of a class reject instead of throwing if an argument has the wrong type. Getters stay as they
 * are.
 */
export function coding(prototype: object): void {
  for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
    if (typeof value !== 'function' || name === 'constructor') continue
    const method = value as (...args: unknown[]) => unknown
    Object.defineProperty(prototype, name, {
      value(this: unknown, ...args: unknown[]): unknown {
        try {
          return method.apply(this, args)
        } catch (error) {
          return Promise.reject(coded(error))
        }
      },
      writable: true,
      configurable: true,
    })
  }
}
