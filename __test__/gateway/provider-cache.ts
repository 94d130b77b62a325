/** A provider's prompt cache that bills requests as the provider's pages say it does: what was read from it, what was written, and the rest. */
import type { Usage } from '../../lib/gateway/answer.ts'

/** A part of a prompt. Anthropic looks for an earlier end at most 20 of them before a marker. */
export interface Part {
  text: string
  /** A cache marker follows it. */
  isMarked?: boolean
  /** The marker asks for an hour. */
  isHour?: boolean
  /** It is the model's. */
  isAnswer?: boolean
}

/** Anthropic's breakpoints, OpenAI's common prefix in steps of 128 tokens, or its endings from GPT-5.6 on. */
export type Kind = 'breakpoints' | 'prefix' | 'endings'

interface Known {
  prefix: string
  at: number
  lifetimeMs: number
}

const HOUR_MS = 3_600_000

/** OpenAI says five to ten minutes; a marker of Anthropic's may ask for an hour. */
const LIFETIME_MS = { breakpoints: 300_000, prefix: 600_000, endings: 1_800_000 }

/** The shortest prefix that is kept, in tokens. */
const LEAST = 1024

const LOOKBACK = 20

/** The cache of one model. */
export class ProviderCache {
  readonly #kind: Kind
  readonly #known = new Map<string, Known>()

  constructor(kind: Kind) {
    this.#kind = kind
  }

  /** Bills a request, with an answer of 50 tokens. */
  bill(parts: readonly Part[], now: number): Usage {
    for (const [key, { at, lifetimeMs }] of this.#known) if (now - at >= lifetimeMs) this.#known.delete(key)
    const prefixes: string[] = []
    for (const { text } of parts) prefixes.push(`${prefixes.at(-1) ?? ''}${text}\n`)
    const all = tokensOf(prefixes.at(-1) ?? '')
    const { read, ends } = this.#kind === 'prefix' ? this.#common(prefixes) : this.#ended(parts, prefixes)
    const hours = new Set(parts.flatMap(({ isHour }, at) => (isHour === true ? [prefixes[at] as string] : [])))
    const kept = ends.filter((prefix) => tokensOf(prefix) >= LEAST)
    for (const prefix of kept) {
      const lifetimeMs = Math.max(this.#known.get(prefix)?.lifetimeMs ?? 0, hours.has(prefix) ? HOUR_MS : LIFETIME_MS[this.#kind])
      this.#known.set(prefix, { prefix, at: now, lifetimeMs })
    }
    if (this.#kind !== 'breakpoints') return { input: all - read, cacheRead: read, cacheWrite: 0, output: 50 }
    // The next marker behind a written part says for how long it is kept.
    let [end, hour] = [read, 0]
    for (const prefix of kept) {
      if (hours.has(prefix)) hour += Math.max(0, tokensOf(prefix) - end)
      end = Math.max(end, tokensOf(prefix))
    }
    const written = end - read
    return { input: all - end, cacheRead: read, cacheWrite: written, output: 50, ...(hour > 0 && { cacheWriteHour: hour }) }
  }

  /** The longest beginning that any earlier request had. */
  #common(prefixes: readonly string[]): { read: number; ends: string[] } {
    const whole = prefixes.at(-1) ?? ''
    let most = 0
    for (const { prefix } of this.#known.values()) {
      let at = 0
      while (at < whole.length && prefix.charCodeAt(at) === whole.charCodeAt(at)) at += 1
      most = Math.max(most, at)
    }
    const read = Math.floor(most / 4 / 128) * 128
    return { read: read < LEAST ? 0 : read, ends: [whole] }
  }

  /** The longest end of an earlier request that lies in reach. A used one lives on. */
  #ended(parts: readonly Part[], prefixes: readonly string[]): { read: number; ends: string[] } {
    const places = [...parts.keys()]
    const endings = places.filter((at) => parts[at]?.isAnswer !== true && (at === parts.length - 1 || parts[at + 1]?.isAnswer === true))
    const marks = this.#kind === 'endings' ? endings.slice(-1) : places.filter((at) => parts[at]?.isMarked === true)
    const inReach = this.#kind === 'endings' ? endings.slice(-1 - LOOKBACK) : places.filter((at) => marks.some((mark) => at <= mark && mark - at < LOOKBACK))
    const found = inReach.findLast((at) => this.#known.has(prefixes[at] as string))
    const ends = marks.map((at) => prefixes[at] as string)
    if (found === undefined) return { read: 0, ends }
    return { read: tokensOf(prefixes[found] as string), ends: [...new Set([prefixes[found] as string, ...ends])] }
  }
}

function tokensOf(text: string): number {
  return Math.ceil(text.length / 4)
}
