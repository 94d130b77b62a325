/** Keeps our failures away from Pi: handlers that fail open, and promises with a time limit. */
import type { ExtensionContext } from '@earendil-works/pi-coding-agent'

/**
 * The time limit of a handler, in milliseconds; after that, Pi continues without it.
 *
 * It is that of the store itself, which waits as long for a lock of another process. With less, something would be lost: only the answer
 * of its handler gives a result its header, without which the model has no name for that output; and a plan that comes after its request
 * was sent would change what the reasoning of the running turn is bound to. To wait less only before a model call gains nothing, because
 * the handlers of the results and of the turn's end before it wait for the same lock.
 */
export const HANDLER_LIMIT_MS = 30_000

/** The time after which the user is told that the store is waited for, in milliseconds. */
const LONG_MS = 2_000

/** `promise`. While that takes long, the status line says that the store is waited for. */
export async function toldIfLong<T>(promise: Promise<T>, ctx: ExtensionContext): Promise<T> {
  let isTold = false
  const say = (text: string | undefined): void => {
    try {
      if (ctx.hasUI) ctx.ui.setStatus('context', text)
    } catch {
      // The context of a session that has just been replaced no longer has an interface.
    }
  }
  const timer = setTimeout(() => {
    isTold = true
    say('context: waiting for the store')
  }, LONG_MS)
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    if (isTold) say(undefined)
  }
}

/** `promise`, or a rejection with a sentence after `limitMs` milliseconds. */
export async function bounded<T>(promise: Promise<T>, limitMs: number, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} took longer than ${limitMs / 1000} s`)), limitMs)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Codes of failures that concern one object or one call. The session continues after them. */
const PASSING = new Set(['INVALID_ARGUMENT', 'UNKNOWN_OBJECT', 'NOT_CONTENT', 'NULL_CONTENT', 'NOT_ACTIVE', 'IO'])

/** True if the store and the engine can still be relied on after a failure, as long as it does not repeat. */
export function isPassing(error: unknown): boolean {
  return PASSING.has((error as { code?: string } | null)?.code ?? '')
}

/** From this many failures of one kind in a row, they no longer count as passing. */
const MOST_IN_A_ROW = 3

/** Counts failures of one kind that follow each other without a success. */
export class Failures {
  readonly #counts = new Map<string, number>()

  /** Something went well. */
  success(kind: string): void {
    this.#counts.delete(kind)
  }

  /** Something failed. True if it has failed too often. */
  failure(kind: string): boolean {
    const count = (this.#counts.get(kind) ?? 0) + 1
    this.#counts.set(kind, count)
    return count >= MOST_IN_A_ROW
  }
}

/**
 * Tells the user something: in the interface if there is one, otherwise on standard error, never on standard output.
 */
export function tell(ctx: ExtensionContext, text: string, kind: 'info' | 'warning' | 'error' = 'warning'): void {
  try {
    if (ctx.hasUI) ctx.ui.notify(text, kind)
    else process.stderr.write(`${text}\n`)
  } catch {
    // The context of a session that has just been replaced no longer has an interface.
  }
}
