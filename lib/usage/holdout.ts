/**
 * Compares sessions that were left plain with those in which the context manager ran, by what a model call cost: in dollars, and
 * where a plan at a flat rate paid for it, in tokens of its prompt. Sessions are of different lengths and calls of one session
 * depend on each other, so the interval is a bootstrap over sessions.
 */
import { randomNumbers } from '../core/index.ts'
import type { Charge } from './charges.ts'

/** One kind of session. */
export interface Arm {
  sessions: number
  calls: number
  /** The cost of a call, in the unit of the comparison. */
  perCall: number
}

/** The unit of a call's cost: dollars, or tokens of its prompt on a plan at a flat rate. */
type CostUnit = 'dollars' | 'tokens'

/** Both kinds beside each other. */
export interface Comparison {
  unit: CostUnit
  plain: Arm
  managed: Arm
  /** The cost of a call with the context manager, as a share of a plain one's; below 1 where it saved. */
  ratio: number
  /** Between these bounds in 95 of 100 resampled sets of sessions; undefined with fewer than two sessions of a kind. */
  interval: [low: number, high: number] | undefined
}

/** The number of drawn sets of sessions. */
const DRAWS = 2000

interface Bill {
  cost: number
  calls: number
}

/** A session: its bill in each unit, and its kind. */
interface SessionBills extends Record<CostUnit, Bill> {
  isManaged: boolean
  isHeldOut: boolean
}

/** Adds up charges by session, as they come. */
export class HoldoutSums {
  readonly #sessions = new Map<string, SessionBills>()

  /** Adds a charge. */
  add({ session, cost, plan, calls, isManaged, isHeldOut }: Charge): void {
    const bills = this.#sessions.get(session) ?? { dollars: { cost: 0, calls: 0 }, tokens: { cost: 0, calls: 0 }, isManaged: false, isHeldOut: false }
    const [bill, paid] = plan === undefined ? [bills.dollars, cost] : [bills.tokens, plan.sent]
    bill.cost += paid ?? 0
    bill.calls += paid === undefined ? 0 : calls
    bills.isManaged ||= isManaged
    bills.isHeldOut ||= isHeldOut
    this.#sessions.set(session, bills)
  }

  /** The comparisons, one for each unit in which there are sessions of both kinds that cost something. */
  comparisons(): Comparison[] {
    return (['dollars', 'tokens'] as const).flatMap((unit) => this.#comparison(unit) ?? [])
  }

  #comparison(unit: CostUnit): Comparison | undefined {
    // One that was left plain and then switched on is neither.
    const of = (isManaged: boolean): Bill[] =>
      [...this.#sessions.values()]
        .filter((bills) => bills[unit].calls > 0 && bills.isManaged === isManaged && bills.isHeldOut !== isManaged)
        .map((bills) => bills[unit])
    const [plain, managed] = [armOf(of(false)), armOf(of(true))]
    if (plain.sessions === 0 || managed.sessions === 0 || plain.perCall <= 0) return undefined
    return { unit, plain, managed, ratio: managed.perCall / plain.perCall, interval: intervalOf(of(false), of(true)) }
  }
}

function armOf(bills: readonly Bill[]): Arm {
  const calls = bills.reduce((sum, bill) => sum + bill.calls, 0)
  const cost = bills.reduce((sum, bill) => sum + bill.cost, 0)
  return { sessions: bills.length, calls, perCall: calls === 0 ? 0 : cost / calls }
}

function intervalOf(plain: readonly Bill[], managed: readonly Bill[]): [number, number] | undefined {
  if (plain.length < 2 || managed.length < 2) return undefined
  // The same at every run, so that the same sessions give the same interval.
  const random = randomNumbers(1)
  const drawn = (bills: readonly Bill[]): number => armOf(bills.map(() => bills[Math.floor(random() * bills.length)] as Bill)).perCall
  const ratios: number[] = []
  for (let draw = 0; draw < DRAWS; draw += 1) {
    const below = drawn(plain)
    if (below > 0) ratios.push(drawn(managed) / below)
  }
  ratios.sort((left, right) => left - right)
  const at = (share: number): number => ratios[Math.min(ratios.length - 1, Math.floor(share * ratios.length))] as number
  return [at(0.025), at(0.975)]
}
