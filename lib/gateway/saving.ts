/** What was saved, in money where prices are known and in fresh input tokens where not. */
import { modelNamed } from '../models/model.ts'
import type { Usage } from './answer.ts'
import type { SessionSums } from './ledger.ts'

/** The cost of a usage without its output, in dollars; for a model without known prices in fresh input tokens. */
export function inputCost(usage: Usage, model: string): number {
  const known = modelNamed(model)
  const prices = known.input > 0 ? known : { input: 1_000_000, cacheRead: 100_000, cacheWrite: 1_250_000 }
  return (usage.input * prices.input + usage.cacheRead * prices.cacheRead + usage.cacheWrite * prices.cacheWrite) / 1_000_000
}

/** The saved share of what the sessions' input would have cost; undefined if nothing was billed yet. */
export function savedShare(sessions: readonly SessionSums[]): number | undefined {
  let [billed, plain] = [0, 0]
  for (const one of sessions) {
    billed += inputCost(one.billed, one.model)
    plain += inputCost(one.plain, one.model)
  }
  return plain === 0 ? undefined : 1 - billed / plain
}
