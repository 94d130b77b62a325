/** Ends everything that the rig starts: processes, servers, folders. Free of any test framework. */

const pending: (() => unknown)[] = []
const atExit = new Set<() => void>()

process.on('exit', () => {
  for (const step of atExit) {
    try {
      step()
    } catch {
      // The process is ending; the next step must still run.
    }
  }
})

/** Registers what {@link cleanUp} has to do; the last registered runs first. */
export function onCleanUp(step: () => unknown): void {
  pending.push(step)
}

/** Registers a synchronous step for the end of this process, in case {@link cleanUp} is not called. */
export function onExit(step: () => void): () => void {
  atExit.add(step)
  return () => atExit.delete(step)
}

/**
 * Ends everything that was started since the last call. Every step runs, whatever the others do; then the first
 * failure is thrown. Meant for `afterEach(cleanUp)`.
 */
export async function cleanUp(): Promise<void> {
  let failure: unknown
  for (let step = pending.pop(); step !== undefined; step = pending.pop()) {
    try {
      await step()
    } catch (error) {
      failure ??= error
    }
  }
  if (failure !== undefined) throw failure
}

/** `promise`, or a rejection with `explain()` after `timeoutMs` milliseconds. */
export async function deadline<T>(promise: Promise<T>, timeoutMs: number, explain: () => string): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`after ${timeoutMs / 1000} s: ${explain()}`)), timeoutMs)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
