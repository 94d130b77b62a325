/** Charges, summed up by day, project, model or session. */
import { dayOf } from '../ui/index.ts'
import type { Charge } from './charges.ts'

/** The groups by which charges can be summed up. */
export const GROUPS = ['day', 'project', 'model', 'session'] as const

/** One of them. */
export type Group = (typeof GROUPS)[number]

/** The sums of one group. */
export interface Sum {
  /** The day, folder, model or session. */
  key: string
  sessions: number
  calls: number
  tokens: Charge['tokens']
  /** Dollars that were charged for prompts and answers; nothing on a plan. */
  cost: number
  /** Calls made with a plan at a flat rate, with the tokens of their prompts, and of what would have been sent without us. */
  plan: { calls: number; sent: number; without: number }
  /** Calls of models without known prices; they are not in `cost`. */
  unpricedCalls: number
  /** Calls whose answers did not tell what they were billed; they are not in `tokens` and `cost`. */
  unbilledCalls: number
  /** Calls with a count that was missing, could not be true, or contradicted another one. */
  doubtfulCalls: number
  /** Dollars that the context manager saved by its own account. */
  saved: number
  /** The same in fresh input tokens, also for models without known prices. */
  savedTokens: number
  /** The cost that the prompts and answers would have had in plain Pi: `cost` and `saved`. */
  plainCost: number
  /** The folder of the last charge. */
  folder: string
  /** When the last charge came, in milliseconds since the epoch. */
  last: number
}

/** Adds up charges as they come. */
export class Sums {
  readonly #group: Group
  readonly #sums = new Map<string, Sum>()
  readonly #sessions = new Map<string, Set<string>>()

  constructor(group: Group) {
    this.#group = group
  }

  /** Adds a charge. */
  add(charge: Charge): void {
    for (const key of [keyOf(charge, this.#group), TOTAL]) this.#add(key, charge)
  }

  /** The groups: days in their order, others by cost. */
  rows(): Sum[] {
    const rows = [...this.#sums.values()].filter(({ key }) => key !== TOTAL)
    if (this.#group === 'day') return rows.sort((left, right) => (left.key < right.key ? -1 : 1))
    return rows.sort((left, right) => right.plainCost - left.plainCost || right.calls - left.calls)
  }

  /** The sum of all. */
  total(): Sum {
    return { ...(this.#sums.get(TOTAL) ?? noSum(TOTAL)), key: 'total' }
  }

  #add(key: string, { session, folder, calls, tokens, cost, isUnbilled, isDoubtful, plan, saved, savedTokens, at }: Charge): void {
    let sum = this.#sums.get(key)
    if (sum === undefined) this.#sums.set(key, (sum = noSum(key)))
    let sessions = this.#sessions.get(key)
    if (sessions === undefined) this.#sessions.set(key, (sessions = new Set()))
    sum.sessions = sessions.add(session).size
    sum.calls += calls
    for (const name of ['input', 'cacheRead', 'cacheWrite', 'cacheWriteHour', 'output'] as const) sum.tokens[name] += tokens[name]
    if (isUnbilled === true) sum.unbilledCalls += calls
    else if (cost === undefined && plan === undefined) sum.unpricedCalls += calls
    if (isDoubtful === true) sum.doubtfulCalls += calls
    if (plan === undefined) {
      sum.cost += cost ?? 0
      sum.saved += saved
    } else {
      sum.plan.calls += calls
      sum.plan.sent += plan.sent
      sum.plan.without += plan.without
    }
    sum.savedTokens += savedTokens
    sum.folder = folder
    sum.plainCost = sum.cost + sum.saved
    sum.last = Math.max(sum.last, at)
  }
}

/** The group of calls whose recorder noted no time; it sorts behind every day. */
const NO_DAY = 'no date'

/** No day, folder, model or session has this name. */
const TOTAL = '\0'

function noSum(key: string): Sum {
  const tokens = { input: 0, cacheRead: 0, cacheWrite: 0, cacheWriteHour: 0, output: 0 }
  return {
    key,
    sessions: 0,
    calls: 0,
    tokens,
    cost: 0,
    plan: { calls: 0, sent: 0, without: 0 },
    unpricedCalls: 0,
    unbilledCalls: 0,
    doubtfulCalls: 0,
    saved: 0,
    savedTokens: 0,
    plainCost: 0,
    folder: '',
    last: 0,
  }
}

function keyOf({ at, folder, model, session }: Charge, group: Group): string {
  switch (group) {
    case 'day':
      return at > 0 ? dayOf(at) : NO_DAY
    case 'project':
      return folder
    case 'model':
      return model
    case 'session':
      return session
  }
}
