/** Sentences for the user, each kind once. */

/** Tells each kind of trouble once, with our name in front. */
export class Warnings {
  readonly #told = new Set<string>()
  readonly #receive: ((sentence: string) => void) | undefined
  readonly #code: string | undefined

  /** `receive` gets the sentences. Without it they become process warnings with this `code`; without a code they are dropped. */
  constructor(receive: ((sentence: string) => void) | undefined, code?: string) {
    this.#receive = receive
    this.#code = code
  }

  /** True if a sentence of this kind was told. */
  has(kind: string): boolean {
    return this.#told.has(kind)
  }

  /** Tells a sentence, unless one of its kind was told before. */
  tell(kind: string, sentence: string): void {
    if (this.#told.has(kind)) return
    this.#told.add(kind)
    const warning = `pi-context-manager: ${sentence}`
    if (this.#receive !== undefined) this.#receive(warning)
    else if (this.#code !== undefined) process.emitWarning(warning, { code: this.#code })
  }
}
