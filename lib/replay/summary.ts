/** Many sessions as one: costs and tokens add up, so that a long session counts as much as it costs. */
import { POLICY_NAMES } from './policies/policy.ts'
import type { PolicyName } from './policies/policy.ts'
import type { SessionReport } from './run.ts'
import type { Figures } from './tally.ts'

/** The sums over sessions. */
export interface Summary {
  sessions: number
  calls: number
  unit: SessionReport['unit']
  policies: Partial<Record<PolicyName, Figures>>
  /** Per policy the largest `costVsPi` of any one session. */
  worst: Partial<Record<PolicyName, number>>
}

/** Adds sessions up as they come; holds no session. */
export class Sums {
  #sessions = 0
  #calls = 0
  #unit: SessionReport['unit'] | undefined
  readonly #policies = new Map<PolicyName, Figures & { cached: number; piCost: number; worst: number }>()

  /** Takes in a session. */
  add(report: SessionReport): void {
    this.#sessions += 1
    this.#calls += report.calls
    this.#unit = this.#unit === undefined || this.#unit === report.unit ? report.unit : 'input tokens'
    const piCost = report.policies.pi?.cost ?? 0
    for (const name of POLICY_NAMES) {
      const one = report.policies[name]
      if (one === undefined) continue
      const cached = one.cacheHit * one.tokensSent
      const sum = this.#policies.get(name)
      if (sum === undefined) {
        this.#policies.set(name, { ...one, cached, piCost, worst: one.costVsPi })
        continue
      }
      for (const field of ADDED) sum[field] += one[field]
      sum.cached += cached
      sum.piCost += piCost
      sum.peakTokens = Math.max(sum.peakTokens, one.peakTokens)
      sum.worst = Math.max(sum.worst, one.costVsPi)
    }
  }

  /** The sums so far. */
  summary(): Summary {
    const policies: Summary['policies'] = {}
    const worst: Summary['worst'] = {}
    for (const [name, { cached, piCost, worst: most, ...figures }] of this.#policies) {
      const cacheHit = figures.tokensSent === 0 ? 0 : cached / figures.tokensSent
      policies[name] = { ...figures, cacheHit, costVsPi: piCost === 0 ? Number.NaN : figures.cost / piCost }
      worst[name] = most
    }
    return { sessions: this.#sessions, calls: this.#calls, unit: this.#unit ?? 'USD', policies, worst }
  }
}

const ADDED = [
  'cost',
  'tokensSent',
  'compactions',
  'rolls',
  'rereads',
  'rereadCost',
  'answeredReads',
  'overWindow',
] as const
