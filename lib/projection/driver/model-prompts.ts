/** The last prompt of each model that has answered on a branch: another model's answer does not take it out of the cache. */

/** The last prompt of a model, in the tokens that it counts. */
export interface ModelPrompt {
  own: number
  /** As it would have been without us. */
  plain: number
  /** Characters of the request. */
  ownSize: number
  plainSize: number
  /** Something in it has changed since then, so that the cache has it no longer as it is sent. */
  isEdited?: true
}

/** The share of a prompt from which on a call counts as having found it in the cache. */
export const FOUND = 0.9

/** The last prompts by the models' names. */
export class ModelPrompts {
  #prompts = new Map<string, ModelPrompt>()

  /** All of them, to be continued from; undefined for none. */
  get all(): Record<string, ModelPrompt> | undefined {
    return this.#prompts.size === 0 ? undefined : Object.fromEntries(this.#prompts)
  }

  takeOver(given: Readonly<Record<string, ModelPrompt>> = {}): void {
    this.#prompts = new Map(Object.entries(given))
  }

  /** The conversation begins anew also without us: no model finds anything of it. */
  clear(): void {
    this.#prompts.clear()
  }

  /** Something that all of them had has changed in what is sent. */
  touch(): void {
    for (const [name, prompt] of this.#prompts) this.#prompts.set(name, { ...prompt, isEdited: true })
  }

  /** A model has answered. */
  answered(model: string, prompt: ModelPrompt): void {
    this.#prompts.set(model, { ...prompt, plain: Math.round(prompt.plain) })
  }

  /** The last prompt of a model; undefined before its first answer. */
  of(model: string): ModelPrompt | undefined {
    return this.#prompts.get(model)
  }

  /**
   * The tokens of a prompt without us that a model would have read from its cache, after other models have answered. `cacheRead` it has
   * read of ours; `isAlive`: by time, it still has its last prompt.
   */
  found(model: string, cacheRead: number, isAlive: () => boolean): number {
    const before = this.#prompts.get(model)
    if (before === undefined) return cacheRead
    if (cacheRead >= FOUND * before.own) return Math.max(0, cacheRead + before.plain - before.own)
    return before.isEdited === true && isAlive() ? before.plain : cacheRead
  }
}
