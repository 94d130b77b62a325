/** Sums over the sessions of one kind: what can be said about a session depends on what it ran with and on what is recorded. */
import type { Format } from '../recordings/index.ts'
import { isOnPlan } from './plan-calls.ts'
import type { SessionReport } from './report.ts'
import type { TallyFigures } from './tally.ts'
import type { Savings } from '../ui/index.ts'

/**
 * A kind of sessions: `managed` ran with the context manager; of `paid` the provider's counts are known, so that they are
 * replayed on the cache that they had; `assumed` have none.
 */
export type AccountKind = 'managed' | 'paid' | 'assumed'

/**
 * The sums over the sessions of one kind, of Pi or of other programs. Costs have the answers in them, which are the same with and
 * without us.
 */
export interface Account {
  kind: AccountKind
  /** A plan at a flat rate paid for these sessions: all amounts are tokens of prompts, and `answers` is 0. */
  isPlan?: true
  /** The programs that recorded them. */
  programs: Format[]
  sessions: number
  calls: number
  /** The amount paid; NaN where nothing is known. */
  paid: number
  /** Answers without a count, which are not in `paid`. */
  uncounted: number
  /** The cost of the answers that are in the other sums. */
  answers: number
  /**
   * The cost without the context manager and with it, on the same cache and window; NaN if a policy was left out. Where it ran and
   * its bill is known, the first is by its own account.
   */
  plain: number
  own: number
  /** The same with the lifetime of the cache chosen, where there is a choice; absent where no session has one. */
  chosen?: number
  /** `plain` is what plain Pi would have cost, also where another program ran. */
  isPlainPi?: true
  /** When the first and the last message came, in milliseconds since the epoch. */
  from?: number
  to?: number
}

/** Adds up sessions by their kind. */
export class Accounts {
  readonly #accounts = new Map<string, Account>()

  /** All accounts with a session; those of what was paid first. */
  get all(): Account[] {
    const order: readonly AccountKind[] = ['managed', 'paid', 'assumed']
    return [...this.#accounts.values()].sort((one, other) => order.indexOf(one.kind) - order.indexOf(other.kind))
  }

  /** Adds a session. */
  add(report: SessionReport): void {
    const { format, calls, policies, paid, from, to } = report
    const kind = kindOf(report)
    const isPlan = isOnPlan(report)
    const key = `${kind} ${format === 'pi'} ${isPlan}`
    let sum = this.#accounts.get(key)
    if (sum === undefined) {
      sum = { kind, ...(isPlan && { isPlan }), programs: [], sessions: 0, calls: 0, paid: 0, uncounted: 0, answers: 0, plain: 0, own: 0 }
      this.#accounts.set(key, sum)
    }
    if (!sum.programs.includes(format)) sum.programs.push(format)
    sum.sessions += 1
    sum.calls += calls
    const answers = answersOf(report)
    const own = billOf(report)
    sum.paid += own?.paid ?? Number.NaN
    sum.uncounted += paid?.uncounted ?? 0
    sum.answers += answers
    sum.plain += kind === 'managed' && own !== undefined ? own.without : plainAmountOf(report) + answers
    if (policies.recorded === undefined) sum.isPlainPi = true
    const ours = amountOf(report, policies['pi-context-manager']) + answers
    // A lifetime changes what tokens cost, and not how many are sent.
    const chosen = isPlan ? undefined : policies['chosen-lifetime']?.cost
    // The sessions without a choice stay as they are.
    if (chosen !== undefined || sum.chosen !== undefined) sum.chosen = (sum.chosen ?? sum.own) + (chosen === undefined ? ours : chosen + answers)
    sum.own += ours
    extend(sum, from, to)
  }
}

/**
 * What was paid for a session, as `usage` sums it up, and what would have been paid without the context manager: the same where it
 * did not run, else by its own account. On a plan at a flat rate the tokens of the prompts. Undefined where nothing is known.
 */
export function billOf({
  paid,
  isManaged,
  recordedSaved = 0,
  side,
  unit,
  plan,
  calls,
}: Pick<SessionReport, 'paid' | 'isManaged' | 'recordedSaved' | 'side' | 'unit' | 'plan' | 'calls'>): Savings | undefined {
  if (plan !== undefined && isOnPlan({ plan, calls, ...(side !== undefined && { side }) })) return { paid: plan.sent, without: plan.without }
  if (paid === undefined) return undefined
  const all = paid.cost + paid.answers
  if (!isManaged) return { paid: all, without: all }
  // Its account is of all calls, such as those of subagents and summaries.
  const whole = all + (unit === 'USD' ? (side?.cost ?? 0) : 0)
  return { paid: whole, without: whole + recordedSaved }
}

/** The kind of a session. Without the policy `recorded` nothing stands beside what was paid. */
export function kindOf({ isManaged, regime, policies }: Pick<SessionReport, 'isManaged' | 'regime' | 'policies'>): AccountKind {
  if (isManaged) return 'managed'
  return regime.from === 'record' && policies.recorded !== undefined ? 'paid' : 'assumed'
}

/** The cost of a session without the context manager, in the replay; NaN if the policies for that were left out. */
export function plainCostOf(report: Pick<SessionReport, 'isManaged' | 'policies'>): number {
  return plainOf(report)?.cost ?? Number.NaN
}

/** The amount of a session without the context manager: its cost without the answers, or on a plan its tokens. NaN as above. */
export function plainAmountOf(report: SessionReport): number {
  return amountOf(report, plainOf(report))
}

/** The amount of a policy's requests: their cost, or on a plan at a flat rate their tokens; NaN without the policy. */
export function amountOf(report: SessionReport, figures: TallyFigures | undefined): number {
  return (isOnPlan(report) ? figures?.tokensSent : figures?.cost) ?? Number.NaN
}

/** The cost of a session's answers, which counts beside that of its requests; none on a plan. */
export function answersOf(report: SessionReport): number {
  return isOnPlan(report) ? 0 : (report.paid?.answers ?? 0)
}

function plainOf({ isManaged, policies }: Pick<SessionReport, 'isManaged' | 'policies'>): TallyFigures | undefined {
  return (isManaged ? undefined : policies.recorded) ?? policies.pi
}

function extend(sum: Account, from: number | undefined, to: number | undefined): void {
  if (from === undefined || to === undefined) return
  sum.from = Math.min(sum.from ?? from, from)
  sum.to = Math.max(sum.to ?? to, to)
}
