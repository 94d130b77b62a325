/** What keeps a failure of ours away from Pi: handlers that fail open, and promises that end. */
import type { ExtensionContext } from '@earendil-works/pi-coding-agent'

/** A handler must be through by then, or Pi goes on without it. In milliseconds. */
export const HANDLER_LIMIT_MS = 30_000

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

/** Codes of failures that concern one object or one call; the session goes on after them. */
const PASSING = new Set([
  'INVALID_ARGUMENT',
  'UNKNOWN_OBJECT',
  'NOT_CONTENT',
  'NULL_CONTENT',
  'NOT_ACTIVE',
  'IO',
])

/** Whether the store and the engine can still be relied on after a failure. */
export function isPassing(error: unknown): boolean {
  return PASSING.has((error as { code?: string } | null)?.code ?? '')
}

/** A failure as a sentence with its code. */
export function sentence(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code
  const message = error instanceof Error ? error.message : String(error)
  return typeof code === 'string' && !message.includes(code) ? `${message} (${code})` : message
}

/** Tells the person something: in the interface where there is one, else on standard error, never on standard output. */
export function tell(
  ctx: ExtensionContext,
  text: string,
  kind: 'info' | 'warning' | 'error' = 'warning',
): void {
  try {
    if (ctx.hasUI) ctx.ui.notify(text, kind)
    else process.stderr.write(`${text}\n`)
  } catch {
    // A context of a session that has just been replaced has no interface any more.
  }
}
