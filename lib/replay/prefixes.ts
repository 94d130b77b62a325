/** A session call by call: from which size on it costs more than one that rolls, and whether any beginning of it costs more than the bound. */
import { percent, tokens as short } from '../ui/index.ts'
import type { PolicyName } from './policies/policy.ts'
import type { Series } from './tally.ts'

/** The window from which on a session counts as a long one, in tokens. */
const LONG_WINDOW = 1_000_000

/** The bound on what rolls may cost: a share of the client's own requests, and fresh tokens (docs/economics.md). */
const [BOUND_SHARE, BOUND_TOKENS] = [0.03, 5_000]

/** The point from which on a session costs more without rolls. */
export interface Crossing {
  /** Tokens of the request without rolls there. */
  tokens: number
  /** Tokens of all requests, without rolls and with them. */
  plain: number
  own: number
}

/** The crossings of many sessions. */
export interface Crossings {
  /** Sessions with a long window, and those of them that cross. */
  sessions: number
  crossed: number
  /** The size at the middle one of those. */
  tokens: number
  /** The share of the tokens that rolls keep out of the requests. */
  hidden: number
}

/** The crossing of a session in a long window: from there on, each beginning of it costs more without rolls. Undefined: none. */
export function crossingOf(series: Partial<Record<PolicyName, Series>>): Crossing | undefined {
  const [plain, own] = [series.recorded ?? series.append, series['pi-context-manager']]
  if (plain === undefined || own === undefined) return undefined
  const at = plain.cost.findLastIndex((cost, call) => cost <= (own.cost[call] ?? Infinity)) + 1
  const tokens = plain.tokens[at]
  return tokens === undefined ? undefined : { tokens, plain: sumOf(plain.tokens), own: sumOf(own.tokens) }
}

/** Adds up the crossings of sessions with a long window. */
export class CrossingSums {
  #sessions = 0
  readonly #all: Crossing[] = []

  /** Adds a session. */
  add(window: number, crossing: Crossing | undefined): void {
    if (window < LONG_WINDOW) return
    this.#sessions += 1
    if (crossing !== undefined) this.#all.push(crossing)
  }

  /** The sums; undefined without a session that crosses. */
  get sums(): Crossings | undefined {
    const middle = this.#all.map(({ tokens }) => tokens).toSorted((one, other) => one - other)[Math.floor(this.#all.length / 2)]
    if (middle === undefined) return undefined
    const [plain, own] = [sumOf(this.#all.map((one) => one.plain)), sumOf(this.#all.map((one) => one.own))]
    return { sessions: this.#sessions, crossed: this.#all.length, tokens: middle, hidden: plain > 0 ? Math.max(0, 1 - own / plain) : 0 }
  }
}

/** The crossings in a sentence; undefined without one. */
export function crossingSentence(sums: Crossings | undefined): string | undefined {
  if (sums === undefined) return undefined
  const { sessions, crossed, tokens, hidden } = sums
  const of = sessions === 1 ? '' : ` (the middle one of ${crossed}${crossed === sessions ? '' : ` of ${sessions}`} sessions)`
  return `In a window of a million tokens, a session costs more than one that rolls from about ${short(tokens)} tokens on${of}; rolls keep ${percent(hidden)} of what would be sent out of the requests.`
}

/** Beginnings of a session that cost more than the bound. */
export interface AboveBound {
  /** Calls in all, and those after which the session had cost more. */
  calls: number
  above: number
  /** The largest excess, in fresh tokens. */
  most: number
}

/** The beginnings above the bound, without what reading text again has cost. `price` is that of a fresh token. */
export function aboveBound(series: Partial<Record<PolicyName, Series>>, price: number): AboveBound | undefined {
  const [plain, own] = [series.append ?? series.recorded, series['pi-context-manager']]
  if (plain === undefined || own === undefined || !(price > 0)) return undefined
  const excess = own.cost.map((cost, call) => (cost - (own.again?.[call] ?? 0) - (1 + BOUND_SHARE) * (plain.cost[call] ?? 0)) / price - BOUND_TOKENS)
  const above = excess.filter((tokens) => tokens > 0)
  return { calls: own.cost.length, above: above.length, most: Math.round(Math.max(0, ...above)) }
}

function sumOf(all: readonly number[]): number {
  return all.reduce((sum, one) => sum + one, 0)
}
