/** The breaks of the cache in sessions through a gateway, as the gateway noted them. */
import type { BilledCall } from '../gateway/index.ts'
import { lossCost, pricesWith } from '../models/index.ts'
import { BREAK_CAUSES } from './breaks.ts'
import type { CacheBreak, CacheHistory } from './breaks.ts'
import { gatewayCalls } from './gateway.ts'

/** The histories of the sessions whose ID passes, by ID, in one pass through a gateway's file. */
export async function gatewayHistories(path: string, isWanted: (session: string) => boolean): Promise<Map<string, CacheHistory>> {
  const all = new Map<string, BilledCall[]>()
  for await (const call of gatewayCalls(path)) {
    if (!isWanted(call.session)) continue
    const calls = all.get(call.session)
    if (calls === undefined) all.set(call.session, [call])
    else calls.push(call)
  }
  return new Map([...all].map(([session, calls]) => [session, historyOf(calls)]))
}

function historyOf(calls: readonly BilledCall[]): CacheHistory {
  const breaks = calls.flatMap((call, at): CacheBreak[] => {
    if (call.broken === undefined) return []
    const { tokens, by, causes } = call.broken
    return [
      {
        callsAgo: calls.length - 1 - at,
        at: call.at,
        tokens,
        cost: priceOf(call, tokens),
        by: BREAK_CAUSES.find((cause) => cause === by) ?? 'unknown',
        causes,
      },
    ]
  })
  return { calls: calls.length, isKnown: calls.some(({ billed }) => billed !== undefined && billed.cacheRead > 0), breaks: breaks.reverse() }
}

/** Dollars for processing tokens again instead of reading them; undefined for a model without known prices, and on a plan at a flat rate. */
function priceOf({ model, billed, prices: given, isPlan }: BilledCall, tokens: number): number | undefined {
  const prices = pricesWith(model, given)
  if (prices === undefined || billed === undefined || isPlan === true) return undefined
  return lossCost(prices, tokens, billed)
}
