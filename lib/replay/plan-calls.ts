/** The calls of a session that a plan at a flat rate paid for: they count in tokens, because they cost no dollars of their own. */
import type { PaidCall, Saved } from '../recordings/index.ts'

/** Calls on a plan, with the tokens of their prompts, and of what would have been sent without us. */
export interface PlanCalls {
  calls: number
  sent: number
  without: number
  /** Calls without a count, such as interrupted ones: nothing was paid for them. Absent: none. */
  uncounted?: number
}

/** True if a plan at a flat rate paid for all calls of a session: those of the conversation and those outside it. */
export function isOnPlan({ plan, calls, side }: { plan?: PlanCalls | undefined; calls: number; side?: { calls: number } }): boolean {
  return plan !== undefined && plan.calls + (plan.uncounted ?? 0) >= calls + (side?.calls ?? 0)
}

/** A call by a gateway's notes. */
export interface NotedCall {
  /** The context manager's saving with it; absent where the session was left plain. */
  saved?: Saved
  /** For a call on a plan: tokens of its prompt, as sent and without us. */
  plan?: { sent: number; without: number }
}

/** Adds up the calls on a plan. The gateway says of each call what has paid for it; Pi says it after some of them, of all of those. */
export class PlanSums {
  readonly sums: PlanCalls = { calls: 0, sent: 0, without: 0 }
  /** Calls, and tokens of their prompts, of which nothing has been said yet. */
  #open = { calls: 0, sent: 0 }

  /** Takes a call. `plan` is what the gateway says of it. */
  call({ usage }: Pick<PaidCall, 'usage'>, plan: NotedCall['plan']): void {
    const sent = usage === undefined ? 0 : usage.input + usage.cacheRead + usage.cacheWrite
    if (plan !== undefined) this.#add(1, plan)
    else if (usage?.isPlan === true) this.#add(1, { sent, without: sent })
    else if (usage === undefined) this.sums.uncounted = (this.sums.uncounted ?? 0) + 1
    else {
      this.#open.calls += 1
      this.#open.sent += sent
    }
  }

  /** Takes Pi's account of the calls since its last one: with a plan, it was what paid for them. */
  account(plan: Saved['plan']): void {
    const { calls, sent } = this.#open
    this.#open = { calls: 0, sent: 0 }
    // The calls that Pi does not count, such as those for a summary, would have been the same without us.
    if (plan !== undefined) this.#add(calls, { sent, without: sent + plan.without - plan.sent })
  }

  #add(calls: number, { sent, without }: NonNullable<Saved['plan']>): void {
    this.sums.calls += calls
    this.sums.sent += sent
    this.sums.without += without
  }
}
