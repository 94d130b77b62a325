/**
 * Compares sessions that were left plain with those in which the context manager ran, by what a model call cost. Sessions
 * are of different lengths and calls of one session depend on each other, so the interval is a bootstrap over sessions.
 */
import { randomNumbers } from '../core/index.ts'
import type { Charge } from './charges.ts'

/** One kind of session. */
export interface Arm {
  sessions: number
  calls: number
  /** Dollars for a call. */
  perCall: number
}

/** Both kinds beside each other. */
export interface Comparison {
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
  isManaged: boolean
  isHeldOut: boolean
}

/** Adds up charges by session, as they come. */
export class HoldoutSums {
  readonly #sessions = new Map<string, Bill>()

  /** Adds a charge. */
  add({ session, cost, calls, isManaged, isHeldOut }: Charge): void {
    const bill = this.#sessions.get(session) ?? { cost: 0, calls: 0, isManaged: false, isHeldOut: false }
    bill.cost += cost ?? 0
    bill.calls += cost === undefined ? 0 : calls
    bill.isManaged ||= isManaged
    bill.isHeldOut ||= isHeldOut
    this.#sessions.set(session, bill)
  }

  /** The comparison; undefined unless there are sessions of both kinds that cost something. */
  comparison(): Comparison | undefined {
    // One that was left plain and then switched on is neither.
    const of = (isManaged: boolean): Bill[] =>
      [...this.#sessions.values()].filter((bill) => bill.calls > 0 && bill.isManaged === isManaged && bill.isHeldOut !== isManaged)
    const [plain, managed] = [armOf(of(false)), armOf(of(true))]
    if (plain.sessions === 0 || managed.sessions === 0 || plain.perCall <= 0) return undefined
    return { plain, managed, ratio: managed.perCall / plain.perCall, interval: intervalOf(of(false), of(true)) }
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
  const drawn = (bills: readonly Bill[]): number =>
    armOf(bills.map(() => bills[Math.floor(random() * bills.length)] as Bill)).perCall
  const ratios: number[] = []
  for (let draw = 0; draw < DRAWS; draw += 1) {
    const below = drawn(plain)
    if (below > 0) ratios.push(drawn(managed) / below)
  }
  ratios.sort((left, right) => left - right)
  const at = (share: number): number => ratios[Math.min(ratios.length - 1, Math.floor(share * ratios.length))] as number
  return [at(0.025), at(0.975)]
}
