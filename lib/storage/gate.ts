/** Lets many tasks run at once, or one alone. */
export class Gate {
  #closed: Promise<void> | undefined
  readonly #passing = new Set<Promise<unknown>>()

  /** Runs alongside others, but not while {@link Gate.alone} keeps the gate closed. */
  async pass<T>(work: () => Promise<T>): Promise<T> {
    while (this.#closed !== undefined) await this.#closed
    const passing = work()
    this.#passing.add(passing)
    try {
      return await passing
    } finally {
      this.#passing.delete(passing)
    }
  }

  /** Runs alone: after everything that began before the call, and before everything requested after it. */
  alone<T>(work: () => Promise<T>): Promise<T> {
    const before = this.#closed
    const turn = (async () => {
      await before
      await Promise.allSettled(this.#passing)
      return await work()
    })()
    const opened = () => {
      if (this.#closed === closed) this.#closed = undefined
    }
    const closed: Promise<void> = turn.then(opened, opened)
    this.#closed = closed
    return turn
  }
}

/** Returns a function that runs tasks, at most `most` of them at once, in the order of the calls. */
export function atMost(most: number): <T>(task: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = []
  let running = 0
  return async (task) => {
    if (running < most) running += 1
    else await new Promise<void>((resolve) => waiting.push(resolve))
    try {
      return await task()
    } finally {
      const next = waiting.shift()
      if (next === undefined) running -= 1
      else next()
    }
  }
}
