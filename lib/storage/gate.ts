/** Lets many works pass at once, or one work alone. */
export class Gate {
  #closed: Promise<void> | undefined
  readonly #passing = new Set<Promise<unknown>>()

  /** Runs beside others, but not while {@link Gate.alone} has the gate closed. */
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

  /** Runs alone: after all that has begun before the call, and before all that is asked for after it. */
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
