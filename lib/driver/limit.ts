/** Time limits: a host never waits for us without end. */

/** Resolves like `work`; rejects after `limitMs` milliseconds, when `late` is called first. */
export async function within<T>(limitMs: number, work: Promise<T>, late: () => void = () => {}): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const end = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      late()
      reject(new Error(`it took longer than ${limitMs / 1000} s`))
    }, limitMs)
    timer.unref()
  })
  try {
    return await Promise.race([work, end])
  } finally {
    clearTimeout(timer)
  }
}
