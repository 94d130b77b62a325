/** Many sessions as one: costs and tokens are added up, so each session weighs as much as it costs. */
import { Accounts, plainCostOf } from './accounts.ts'
import type { Account } from './accounts.ts'
import { addLosses, noLosses } from './losses.ts'
import type { LossSums } from './losses.ts'
import { addUses, noUses } from './missed/uses.ts'
import type { MissedUses } from './missed/uses.ts'
import { POLICY_NAMES } from './policies/policy.ts'
import type { PolicyName } from './policies/policy.ts'
import { CrossingSums } from './prefixes.ts'
import type { Crossings } from './prefixes.ts'
import type { Format } from '../recordings/index.ts'
import { isOnPlan } from './plan-calls.ts'
import type { SessionReport } from './run.ts'
import type { TallyFigures } from './tally.ts'

/** The origin of sessions, which decides the statements that are possible about them. */
export type SessionOrigin = 'managed' | 'pi' | 'other'

/** The sums over the sessions of one source. */
export interface OriginSums {
  sessions: number
  calls: number
  /** The programs that recorded them. */
  programs: Format[]
  /** The cost of plain Pi and of the context manager; NaN if that policy was left out. */
  pi: number
  own: number
  /** The cost of the recorded prompts; NaN if one call has no count. */
  recorded: number
  /** The context manager's savings when it ran. */
  saved: number
  /** When the first and the last message came, in milliseconds since the epoch. */
  from?: number
  to?: number
}

/** The sums over sessions. */
export interface Summary {
  sessions: number
  calls: number
  unit: SessionReport['unit']
  /** When the first and the last message of all sessions came, in milliseconds since the epoch. */
  from?: number
  to?: number
  /** Sessions that a plan at a flat rate paid for: their calls cost nothing in `policies`, `losses` and `leftOut`. Absent: none. */
  onPlan?: number
  /** Calls on a plan in sessions of which other calls were paid; they count at list prices. Absent: none. */
  planCalls?: number
  policies: Partial<Record<PolicyName, TallyFigures>>
  /** The same by where sessions come from. */
  bySource?: Partial<Record<SessionOrigin, OriginSums>>
  /** The same by kind of session: the sums that the verdict tells. */
  accounts?: Account[]
  /** The losses of the provider's cache: their number, causes and cost. */
  losses?: LossSums
  /** The size from which on sessions with a long window cost more than with rolls. */
  crossings?: Crossings
  /** The calls of these sessions that count nowhere, and the dollars that were paid for them, answers included. */
  leftOut?: {
    /** Calls that are no part of the conversations. */
    side: { calls: number; cost: number }
    /** Calls that another session of the run also has. */
    repeated: { calls: number; cost: number }
    /** Calls with a count that was missing, could not be true, or contradicted another one. These do count. */
    doubtful: number
  }
  /** Per policy the largest `costVsPi` of any one session. */
  worst: Partial<Record<PolicyName, number>>
}

/** Adds up sessions as they arrive, without keeping them. */
export class ReplaySums {
  #sessions = 0
  #calls = 0
  readonly #period: { from?: number; to?: number } = {}
  #unit: SessionReport['unit'] | undefined
  readonly #policies = new Map<PolicyName, Sum>()
  /** The lifetime of the cache could be chosen in one of the sessions. */
  #hasChoice = false
  readonly #accounts = new Accounts()
  readonly #losses = noLosses()
  readonly #crossings = new CrossingSums()
  #onPlan = 0
  #planCalls = 0
  readonly #leftOut: NonNullable<Summary['leftOut']> = { side: { calls: 0, cost: 0 }, repeated: { calls: 0, cost: 0 }, doubtful: 0 }
  readonly #bySource: Partial<Record<SessionOrigin, OriginSums>> = {}

  /** The number of added sessions. */
  get sessions(): number {
    return this.#sessions
  }

  /** Adds a session. */
  add(report: SessionReport): void {
    this.#sessions += 1
    this.#calls += report.calls
    this.#unit = this.#unit === undefined || this.#unit === report.unit ? report.unit : 'input tokens'
    extend(this.#period, report)
    this.#leave(report)
    this.#accounts.add(report)
    const isPlan = isOnPlan(report)
    if (isPlan) this.#onPlan += 1
    else this.#planCalls += report.plan?.calls ?? 0
    addLosses(this.#losses, isPlan ? report.regime.losses.map((loss) => ({ ...loss, cost: 0 })) : report.regime.losses)
    this.#crossings.add(report.regime.window, report.crossing)
    const plainCost = isPlan ? 0 : plainCostOf(report)
    this.#share(report)
    const piCost = isPlan ? 0 : (report.policies.pi?.cost ?? 0)
    for (const name of POLICY_NAMES) {
      const isChosen = name === 'chosen-lifetime'
      if (isChosen && report.policies[name] !== undefined) this.#hasChoice = true
      // A session without a choice of the lifetime stays as it is.
      const figures = report.policies[name] ?? (isChosen ? report.policies['pi-context-manager'] : undefined)
      if (figures === undefined) continue
      const one = isPlan ? { ...figures, cost: 0, rereadCost: 0, fetchCost: 0 } : figures
      const cached = one.cacheHit * one.tokensSent
      const sum = this.#policies.get(name)
      if (sum === undefined) {
        const uses = noUses()
        if (one.missedUses !== undefined) addUses(uses, one.missedUses)
        this.#policies.set(name, { ...one, cached, piCost, plainCost, worst: one.costVsPi, uses })
        continue
      }
      for (const field of ADDED) sum[field] += one[field]
      if (one.missedUses !== undefined) addUses(sum.uses, one.missedUses)
      sum.cached += cached
      sum.piCost += piCost
      sum.plainCost += plainCost
      sum.peakTokens = Math.max(sum.peakTokens, one.peakTokens)
      sum.worst = Math.max(sum.worst, one.costVsPi)
    }
  }

  #leave({ side, repeated, doubtful = 0 }: SessionReport): void {
    const { side: allSide, repeated: allRepeated } = this.#leftOut
    for (const [sum, one] of [
      [allSide, side],
      [allRepeated, repeated],
    ] as const) {
      sum.calls += one?.calls ?? 0
      sum.cost += one?.cost ?? 0
    }
    this.#leftOut.doubtful += doubtful
  }

  #share(report: SessionReport): void {
    const { format, isManaged, calls, policies, recordedCost, recordedSaved } = report
    const source = isManaged ? 'managed' : format === 'pi' ? 'pi' : 'other'
    const share = (this.#bySource[source] ??= { sessions: 0, calls: 0, programs: [], pi: 0, own: 0, recorded: 0, saved: 0 })
    share.sessions += 1
    share.calls += calls
    if (!share.programs.includes(format)) share.programs.push(format)
    share.pi += policies.pi?.cost ?? Number.NaN
    share.own += policies['pi-context-manager']?.cost ?? Number.NaN
    share.recorded += recordedCost ?? Number.NaN
    share.saved += recordedSaved ?? 0
    extend(share, report)
  }

  /** The sums so far. */
  summary(): Summary {
    const policies: Summary['policies'] = {}
    const worst: Summary['worst'] = {}
    const rate = (uses: number): number => (100 * uses) / this.#calls
    for (const [name, { cached, piCost, plainCost, worst: most, uses, costVsPlain: _, ...figures }] of this.#policies) {
      if (name === 'chosen-lifetime' && !this.#hasChoice) continue
      const versus = (cost: number): number => (piCost === 0 ? Number.NaN : cost / piCost)
      const measured = figures.missedUses !== undefined
      policies[name] = {
        ...figures,
        cacheHit: figures.tokensSent === 0 ? 0 : cached / figures.tokensSent,
        costVsPi: versus(figures.cost),
        ...(plainCost > 0 && { costVsPlain: figures.cost / plainCost }),
        missed: measured ? rate(uses.toolText.all) : Number.NaN,
        missedStrong: measured ? rate(uses.toolText.strong) : Number.NaN,
        missedHarm: measured ? rate(uses.probableHarm) : Number.NaN,
        costVsPiFetched: versus(figures.cost + figures.fetchCost),
        ...(measured && { missedUses: uses }),
      }
      worst[name] = most
    }
    const crossings = this.#crossings.sums
    const plans = { ...(this.#onPlan > 0 && { onPlan: this.#onPlan }), ...(this.#planCalls > 0 && { planCalls: this.#planCalls }) }
    return {
      ...(crossings !== undefined && { crossings }),
      ...plans,
      sessions: this.#sessions,
      calls: this.#calls,
      unit: this.#unit ?? 'USD',
      ...this.#period,
      policies,
      bySource: this.#bySource,
      accounts: this.#accounts.all,
      losses: this.#losses,
      leftOut: this.#leftOut,
      worst,
    }
  }
}

/** Extends a period by another one. */
function extend(period: { from?: number; to?: number }, { from, to }: SessionReport): void {
  if (from === undefined || to === undefined) return
  period.from = Math.min(period.from ?? from, from)
  period.to = Math.max(period.to ?? to, to)
}

interface Sum extends TallyFigures {
  cached: number
  piCost: number
  plainCost: number
  worst: number
  uses: MissedUses
}

const ADDED = [
  'cost',
  'tokensSent',
  'compactions',
  'rolls',
  'reasoningLost',
  'reasoningLostRunning',
  'refused',
  'rereads',
  'rereadCost',
  'fetchCost',
  'answeredReads',
  'overWindow',
] as const
