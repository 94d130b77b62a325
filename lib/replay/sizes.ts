/**
 * The sizes of recorded messages as the provider counted them. A line through all counts of a session says how many
 * characters make a token on the whole; what came between two calls is known better, by the difference of their prompts.
 * It includes what recordings do not show, such as hidden reasoning and the host's reminders.
 */

/** The limits of a message's assumed size relative to the session's scale. */
const [LEAST, MOST] = [0.2, 5]

/** The smallest fall from one prompt to the next that shows that old outputs were cleared, in tokens. */
const LEAST_CLEARED = 5000

/** The same as a share of the prompt before, for programs that are not known to do that: they may have dropped reasoning. */
const LEAST_SHARE_CLEARED = 0.3

/** The smallest number of tokens, beyond those of the newest messages, that are written where old outputs were cleared. */
const LEAST_REWRITTEN = 2000

/** Hardly any text has fewer characters a token. */
const FEWEST_UNITS = 2

/** The messages between two calls. */
interface Interval {
  keys: readonly string[]
  /** UTF-16 units of what is sent of them. */
  units: number
  /** Tokens by which the prompt grew; undefined if that says nothing of these messages. */
  grown: number | undefined
}

/** The sizes of a session's parts. */
export interface Sized {
  /** By message, how many times its size by the session's scale; 1 for those that are not here. */
  factors: ReadonlyMap<string, number>
  /** Tokens of the system prompt and the tool declarations; undefined if the first call has no count. */
  systemTokens: number | undefined
  /** Calls, counted from 0, before which the program cleared old outputs without a word, and the tokens of their prompts. */
  clearings: ReadonlyMap<number, number>
}

/** The key of a summary that the recorded program made, by its text. */
export function summaryKey(summary: string): string {
  return `summary ${summary}`
}

/** Measures messages between the calls of a recording. */
export class Sizes {
  readonly #intervals: Interval[] = []
  #keys: string[] = []
  #units = 0
  #isChanged = false
  /** Tokens of the latest prompt; undefined before the first call and behind one without a count. */
  #prompt: number | undefined
  /** Tokens of the latest prompt that was counted; 0 before the first. */
  #latest = 0
  #first: { tokens: number; units: number } | undefined
  /** A summary that stands in place of everything before it, since the latest call. */
  #summary: { key: string; units: number } | undefined
  readonly #summaries: { key: string; units: number; others: number; prompt: number }[] = []
  #calls = 0
  readonly #clearings = new Map<number, number>()
  readonly #clears: boolean

  /** `clears`: the recorded program clears old outputs without noting it. */
  constructor(clears: boolean) {
    this.#clears = clears
  }

  /** Adds a message, of which `units` units are sent. */
  add(key: string, units: number): void {
    this.#keys.push(key)
    this.#units += units
  }

  /** Earlier messages changed, so that the next prompt does not tell the size of the newest ones. */
  change(): void {
    this.#isChanged = true
  }

  /** Replaces all messages by a summary, of which `units` units are sent. */
  summarized(summary: string, units: number): void {
    this.#isChanged = true
    this.#keys = []
    this.#units = 0
    this.#summary = { key: summaryKey(summary), units }
  }

  /** Notes a call with `prompt` tokens, 0 if they were not counted; `read` of them were read from the cache. */
  call(prompt: number, read: number): void {
    if (this.#calls === 0 && prompt > 0 && !this.#isChanged) this.#first = { tokens: prompt, units: this.#units }
    else {
      const grown = this.#prompt === undefined || prompt === 0 || this.#isChanged ? undefined : prompt - this.#prompt
      // If only the end of the earlier request left, the provider still has the rest.
      const isRewritten = prompt - read > this.#units / FEWEST_UNITS + LEAST_REWRITTEN
      const least = this.#clears ? LEAST_CLEARED : LEAST_SHARE_CLEARED * this.#latest
      const isCleared = !this.#isChanged && prompt > 0 && this.#latest - prompt >= least && isRewritten
      if (isCleared) this.#clearings.set(this.#calls, prompt)
      this.#intervals.push({ keys: this.#keys, units: this.#units, grown: isCleared ? undefined : grown })
    }
    if (this.#summary !== undefined && prompt > 0) this.#summaries.push({ ...this.#summary, others: this.#units, prompt })
    this.#summary = undefined
    this.#calls += 1
    this.#prompt = prompt > 0 ? prompt : undefined
    if (prompt > 0) this.#latest = prompt
    this.#keys = []
    this.#units = 0
    this.#isChanged = false
  }

  /** The sizes, given the session's scale. */
  sized(unitsPerToken: number): Sized {
    const factors = new Map<string, number>()
    // Tokens beyond the limit of one interval's messages count in the next one.
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
    const systemTokens = first === undefined ? undefined : Math.max(0, Math.round(first.tokens - first.units / unitsPerToken))
    // Texts that the program sends again beside a summary, such as files, are not recorded: they count as a part of it.
    for (const { key, units, others, prompt } of this.#summaries) {
      const rest = prompt - (systemTokens ?? 0) - others / unitsPerToken
      if (systemTokens !== undefined && units > 0 && rest > 0) factors.set(key, (rest * unitsPerToken) / units)
    }
    return { factors, systemTokens, clearings: this.#clearings }
  }
}
