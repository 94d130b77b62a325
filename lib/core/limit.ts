/** Time limits: a host never waits for us without end, and can abort. */

import { invalid } from './errors.ts'
import { shown } from './options.ts'

/** The longest wait of a model call for the file trackers, in milliseconds. */
export const LOOK_MS = 100

/** The longest time of a timer, in milliseconds: almost 25 days. Longer ones end at once. */
const LONGEST_MS = 2 ** 31 - 1

/** Resolves like `work`; rejects after `limitMs` milliseconds, when `late` is called first. */
export async function within<T>(limitMs: number, work: Promise<T>, late: () => void = () => {}): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const end = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => {
        late()
        reject(new Error(`it took longer than ${limitMs / 1000} s`))
      },
      Math.min(limitMs, LONGEST_MS),
    )
    timer.unref()
  })
  try {
    return await Promise.race([work, end])
  } finally {
    clearTimeout(timer)
  }
}

/** The signal, if it is one, also of another realm. Throws `INVALID_ARGUMENT`. */
export function checkedSignal(signal: AbortSignal | undefined): AbortSignal | undefined {
  if (signal === undefined || typeof (signal as AbortSignal | null)?.throwIfAborted === 'function') return signal
  throw invalid(`control.signal is an AbortSignal, not ${shown(signal)}`)
}

/** Opening that can be aborted: waits for it, or rejects with the signal's reason. */
export async function abortable<T extends { close(): Promise<unknown> }>(opening: Promise<T>, signal: AbortSignal): Promise<T> {
  let abort = () => {}
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
  })
  try {
    return await Promise.race([opening, aborted])
  } catch (error) {
    // An instance opened too late is closed again; its own failure no longer matters.
    opening.then((instance) => instance.close()).catch(() => {})
    throw error
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
