/**
 * The sizes of recorded messages as the provider counted them. A line through all counts of a session says how many
 * characters make a token on the whole; what came between two calls is known better, by the difference of their prompts.
 * It includes what recordings do not show, such as hidden reasoning and the host's reminders.
 */

/** How much larger or smaller than by the session's scale a message is taken to be, at most. */
const [LEAST, MOST] = [0.2, 5]

/** The messages between two calls. */
interface Interval {
  keys: readonly string[]
  /** UTF-16 units of what is sent of them. */
  units: number
  /** Tokens by which the prompt grew; undefined if that says nothing of these messages. */
  grown: number | undefined
}

/** What sizes a session's parts have. */
export interface Sized {
  /** By message, how many times its size by the session's scale; 1 for those that are not here. */
  factors: ReadonlyMap<string, number>
  /** Tokens of the system prompt and the tool declarations; undefined if the first call has no count. */
  systemTokens: number | undefined
}

/** Measures messages between the calls of a recording. */
export class Sizes {
  readonly #intervals: Interval[] = []
  #keys: string[] = []
  #units = 0
  #isChanged = false
  /** Tokens of the latest prompt; undefined before the first call and behind one without a count. */
  #prompt: number | undefined
  #first: { tokens: number; units: number } | undefined
  #calls = 0

  /** A message came; so many units of it are sent. */
  add(key: string, units: number): void {
    this.#keys.push(key)
    this.#units += units
  }

  /** Earlier messages changed, so that the next prompt does not tell the size of the newest ones. */
  change(): void {
    this.#isChanged = true
  }

  /** A call was made, with so many tokens; 0 if they were not counted. */
  call(prompt: number): void {
    if (this.#calls === 0 && prompt > 0 && !this.#isChanged) this.#first = { tokens: prompt, units: this.#units }
    else {
      const grown = this.#prompt === undefined || prompt === 0 || this.#isChanged ? undefined : prompt - this.#prompt
      this.#intervals.push({ keys: this.#keys, units: this.#units, grown })
    }
    this.#calls += 1
    this.#prompt = prompt > 0 ? prompt : undefined
    this.#keys = []
    this.#units = 0
    this.#isChanged = false
  }

  /** The sizes, given the session's scale. */
  sized(unitsPerToken: number): Sized {
    const factors = new Map<string, number>()
    // What is too much for the messages of one interval counts in the next one.
    let rest = 0
    for (const { keys, units, grown } of this.#intervals) {
      if (grown === undefined) rest = 0
      else if (units === 0) rest += grown
      else {
        const usual = units / unitsPerToken
        const factor = Math.min(MOST, Math.max(LEAST, (grown + rest) / usual))
        for (const key of keys) factors.set(key, factor)
        rest += grown - factor * usual
      }
    }
    const first = this.#first
    return { factors, systemTokens: first === undefined ? undefined : Math.max(0, Math.round(first.tokens - first.units / unitsPerToken)) }
  }
}
