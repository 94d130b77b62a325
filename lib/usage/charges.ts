/** The charges for the model calls of recorded sessions, and the context manager's savings by its own account. */
import type { CallTokens } from '../models/index.ts'
import { callIn, costOf, isFirst, SavedSteps } from '../recordings/index.ts'
import type { Charged, PricesByModel, RecordedUsage, Recording } from '../recordings/index.ts'

/** A model call, or what was saved after it. */
export interface Charge {
  /** Milliseconds since the epoch. */
  at: number
  /** The recorded session's ID. */
  session: string
  /** The folder that the agent worked in; empty if it is not known. */
  folder: string
  /** `provider/model`. */
  model: string
  /** 1 for a model call, 0 for a saving. */
  calls: number
  /** Tokens as the provider counted them. */
  tokens: ChargedTokens
  /** Dollars; undefined for a model without known prices. */
  cost: number | undefined
  /** True for a call that the gateway has priced with what the user gave for its model. */
  hasGivenPrices?: true
  /** True for a call whose answer did not tell what it was billed. */
  isUnbilled?: true
  /** True for a call with a count that was missing, could not be true, or contradicted another one. */
  isDoubtful?: true
  /** For a call made with a plan at a flat rate: the tokens of its prompt, and of what would have been sent without us. */
  plan?: { sent: number; without: number }
  /** The lifetime of the cache that was asked for in place of the agent's own, and what that saved since the call before: a part of `saved`. */
  lifetime?: { why: string; saved: number; savedTokens: number }
  /** Dollars saved against plain Pi since the charge before; below zero if a roll has not paid for itself yet. */
  saved: number
  /** The same in fresh input tokens. */
  savedTokens: number
  /** The context manager ran in this session, as far as it was read. */
  isManaged: boolean
  /** The session was left plain to compare with, as far as it was read. */
  isHeldOut: boolean
}

/** The tokens of a charge, each kind once, and those of `cacheWrite` that were written for an hour. */
export type ChargedTokens = Required<CallTokens>

/** Calls that came again and were not charged a second time. */
export interface Repeated {
  calls: number
  /** Dollars that they would have cost. */
  cost: number
}

/** The charges of one session, in their order, with the user's own prices where some are given. Charges that other files also have are added to `repeated` instead. */
export async function* chargesOf(
  recording: Recording,
  charged: Charged,
  repeated: Repeated = { calls: 0, cost: 0 },
  given?: PricesByModel,
): AsyncGenerator<Charge> {
  const { id: session, cwd: folder } = recording.origin
  const place = { session, folder }
  let model = 'unknown/unknown'
  const savings = new SavedSteps()
  let [isManaged, isHeldOut] = [false, false]
  // In Pi, the context manager says after a call whether a plan paid for it.
  const [waits, calls]: [boolean, Charge[]] = [recording.origin.format === 'pi', []]
  for await (const step of recording.steps(() => {})) {
    const gained = savings.take(step, charged)
    if (step.kind === 'heldOut') isHeldOut = true
    else if (step.kind === 'managed' || step.kind === 'off') {
      if (step.kind === 'managed') isManaged = true
      const plan = gained?.plan
      for (const call of calls.splice(0)) yield plan === undefined ? call : { ...call, plan: promptOf(call) }
      const onPlan = plan === undefined ? {} : { plan: { sent: 0, without: plan.without - plan.sent } }
      if (gained !== undefined)
        yield {
          ...place,
          at: step.at,
          model,
          calls: 0,
          tokens: NO_TOKENS,
          cost: 0,
          ...onPlan,
          saved: gained.dollars,
          savedTokens: gained.tokens,
          isManaged,
          isHeldOut,
        }
    } else {
      const call = callIn(step, recording.file)
      if (call === undefined) continue
      model = call.model
      const { usage } = call
      const cost = costOf(call, given)
      if (!isFirst(charged, call.names)) {
        repeated.calls += 1
        repeated.cost += cost ?? 0
        continue
      }
      const doubts = { ...(usage === undefined && { isUnbilled: true as const }), ...(usage?.isDoubtful === true && { isDoubtful: true as const }) }
      const charge = { ...place, at: call.at, model, calls: 1, tokens: tokensOf(usage), cost, ...doubts, saved: 0, savedTokens: 0, isManaged, isHeldOut }
      if (waits) calls.push(charge)
      else yield usage?.isPlan === true ? { ...charge, plan: promptOf(charge) } : charge
    }
  }
  yield* calls
}

/** A call's prompt, which would have been the same without us. */
function promptOf({ tokens: { input, cacheRead, cacheWrite } }: Pick<Charge, 'tokens'>): NonNullable<Charge['plan']> {
  const sent = input + cacheRead + cacheWrite
  return { sent, without: sent }
}

const NO_TOKENS: ChargedTokens = { input: 0, cacheRead: 0, cacheWrite: 0, cacheWriteHour: 0, output: 0 }

function tokensOf(usage: RecordedUsage | undefined): ChargedTokens {
  if (usage === undefined) return NO_TOKENS
  const { input, cacheRead, cacheWrite, cacheWriteHour = 0, output } = usage
  return { input, cacheRead, cacheWrite, cacheWriteHour, output }
}
