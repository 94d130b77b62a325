/** The policies of a session side by side, each with its sums. */
import { binds } from '../models/index.ts'
import type { ChosenLifetimes } from './chosen.ts'
import type { BlockCache } from './policies/block-cache.ts'
import { bindingOf } from './policies/model-call.ts'
import { openPolicy } from './policies/open.ts'
import type { PolicyMoment, Policy, PolicyName, Setting } from './policies/policy.ts'
import type { Regime } from './regime.ts'
import { Tally } from './tally.ts'

/** One policy over a session. */
export interface Lane {
  policy: Policy
  tally: Tally
  /** The lifetimes of the cache that it chooses; undefined for all lanes but one. */
  chosen: ChosenLifetimes | undefined
}

/** The policy that chooses the cache's lifetime. */
const CHOSEN: PolicyName = 'chosen-lifetime'

/** Opens the policies with these names; that with a chosen lifetime only where there is a choice. */
export async function openLanes(names: readonly PolicyName[], regime: Regime, setting: Setting, cache: BlockCache): Promise<Lane[]> {
  const lanes: Lane[] = []
  for (const name of names) {
    const chosen = name === CHOSEN ? regime.chosenLifetimes() : undefined
    if (name === CHOSEN && chosen === undefined) continue
    const policy = await openPolicy(name, setting, cache)
    if (policy !== undefined) lanes.push({ policy, tally: new Tally(name, setting, chosen), chosen })
  }
  return lanes
}

/** The cost so far of the lane of a policy; undefined without one. */
export function costOf(lanes: readonly Lane[], name: PolicyName): number | undefined {
  return lanes.find(({ policy }) => policy.name === name)?.tally.cost
}

/** The cost without the context manager: of what was sent, if that was without it, else of plain Pi. NaN without such a lane. */
export function plainCost(lanes: readonly Lane[], isManaged: boolean): number {
  return (isManaged ? undefined : costOf(lanes, 'recorded')) ?? costOf(lanes, 'pi') ?? Number.NaN
}

/** The moment of a call as a lane has it: with the lifetime that it chooses. `plain` is the cost so far without the context manager. */
export function momentIn({ chosen, tally }: Lane, moment: PolicyMoment, setting: Setting, plain: number): PolicyMoment {
  if (chosen === undefined) return moment
  const binding = bindingOf(setting, moment)
  const isBound = binds(binding)
  return chosen.next(moment, { isBound, systemTokens: setting.systemTokens, costs: { billed: tally.cost, plain: Number.isNaN(plain) ? tally.cost : plain } })
}

/** The choices that were made, with the number of calls of each; undefined where there were none to make. */
export function choicesIn(lanes: readonly Lane[]): { why: string; calls: number }[] | undefined {
  const chosen = lanes.find((lane) => lane.chosen !== undefined)?.chosen
  return chosen === undefined ? undefined : [...chosen.reasons].map(([why, calls]) => ({ why, calls }))
}
