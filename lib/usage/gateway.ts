/** The charges of sessions that went through a gateway, as it has noted them. */
import type { BilledCall, GatewayBreak, Usage } from '../gateway/index.ts'
import { inputCost, plainCost, summaryCost } from '../gateway/index.ts'
import { isFields, isThere } from '../core/index.ts'
import { callCost, isGivenPrices, pricesWith, soundUsage } from '../models/index.ts'
import { jsonLines } from '../recordings/index.ts'
import type { Charge } from './charges.ts'

/** Reads a gateway's file; nothing if there is none. `onLeftOut` is called for each line in which no call can be read. */
export async function* gatewayCharges(path: string, onLeftOut?: () => void): AsyncGenerator<Charge> {
  for await (const call of gatewayCalls(path, onLeftOut)) yield chargeOf(call)
}

/** The calls in a gateway's file, as it has noted them; none without a file. Throws the system's error if it can't be read. */
export async function* gatewayCalls(path: string, onLeftOut: () => void = () => {}): AsyncGenerator<BilledCall> {
  if (!isThere(path)) return
  for await (const { value } of jsonLines(path, onLeftOut)) {
    if (isBilled(value)) yield soundCall(withBreak(value))
    else onLeftOut()
  }
}

/** The largest time that a date can have, in milliseconds since the epoch. */
const LAST_MS = 8.64e15

function chargeOf({ at, session, folder, model, billed, plain, summary, prices: given, isHeldOut, isPlan, isDoubtful, lifetime }: BilledCall): Charge {
  const call = { at, session, folder, model, calls: 1, isHeldOut, isManaged: !isHeldOut }
  if (billed === undefined || plain === undefined)
    return {
      ...call,
      tokens: { input: 0, cacheRead: 0, cacheWrite: 0, cacheWriteHour: 0, output: 0 },
      cost: undefined,
      isUnbilled: true,
      saved: 0,
      savedTokens: 0,
    }
  const prices = pricesWith(model, given)
  const unit = (prices?.input ?? 1) / 1_000_000
  const saved = isHeldOut ? 0 : plainCost(plain, billed, prices) + (isUsage(summary) ? summaryCost(summary as Usage, prices) : 0) - inputCost(billed, prices)
  const cost = prices === undefined ? undefined : callCost(prices, billed)
  return {
    ...call,
    ...{ tokens: { cacheWriteHour: 0, ...billed }, cost },
    ...(isDoubtful === true && { isDoubtful }),
    ...(given !== undefined && { hasGivenPrices: true as const }),
    saved: prices === undefined ? 0 : saved,
    savedTokens: saved / unit,
    ...(lifetime !== undefined && {
      lifetime: { why: lifetime.why, saved: prices === undefined || isPlan === true ? 0 : lifetime.savedTokens * unit, savedTokens: lifetime.savedTokens },
    }),
    ...(isPlan === true && {
      plan: { sent: promptOf(billed), without: promptOf(isHeldOut ? billed : plain) + (isUsage(summary) ? promptOf(summary as Usage) : 0) },
    }),
  }
}

function promptOf({ input, cacheRead, cacheWrite }: Usage): number {
  return input + cacheRead + cacheWrite
}

function isBilled(value: unknown): value is BilledCall {
  if (!isFields(value)) return false
  const { at, session, folder, model, billed, plain } = value
  return (
    typeof at === 'number' &&
    [session, folder, model].every((one) => typeof one === 'string') &&
    ((isUsage(billed) && isUsage(plain)) || (billed === undefined && plain === undefined))
  )
}

/** A call without what can't be read of its additions. */
function withBreak({ broken, lifetime, prices, at, ...call }: BilledCall): BilledCall {
  return {
    ...{ ...call, at: Math.abs(at) <= LAST_MS ? at : 0 },
    ...(isGivenPrices(prices) && { prices }),
    ...(isBreak(broken) && { broken: broken as GatewayBreak }),
    ...(isChoice(lifetime) && { lifetime }),
  }
}

/** A call whose figures can be added up. What can't be true counts as 0, and nothing follows from it for the host's own request. */
function soundCall(call: BilledCall): BilledCall {
  const { billed, plain, summary, broken: _, ...rest } = call
  const [own, ...estimates] = [billed, plain, isUsage(summary) ? (summary as Usage) : undefined].map((usage) =>
    usage === undefined ? undefined : soundUsage({ ...usage, hour: usage.cacheWriteHour }),
  )
  if (own === undefined || [own, ...estimates].every((usage) => usage?.isDoubtful !== true)) return call
  const { isDoubtful: _doubtful, ...counts } = own
  return { ...rest, billed: counts, plain: counts, isDoubtful: true }
}

function isChoice(value: unknown): value is NonNullable<BilledCall['lifetime']> {
  return isFields(value) && typeof value['why'] === 'string' && Number.isFinite(value['savedTokens'])
}

function isBreak(value: unknown): boolean {
  return isFields(value) && typeof value['tokens'] === 'number' && Array.isArray(value['causes']) && value['causes'].every((cause) => typeof cause === 'string')
}

function isUsage(value: unknown): boolean {
  return isFields(value) && ['input', 'cacheRead', 'cacheWrite', 'output'].every((name) => typeof value[name] === 'number')
}
