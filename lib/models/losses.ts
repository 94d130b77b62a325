/** Losses of a provider's cache, summed up. */

/** Losses, and what they cost. */
export interface LossSum {
  count: number
  /** Tokens that were read or written again. */
  tokens: number
  /** The cost above that of reading them from the cache, in dollars or, without known prices, in fresh input tokens or millions of them. */
  cost: number
}

/** The sum of no losses. */
export function noLoss(): LossSum {
  return { count: 0, tokens: 0, cost: 0 }
}

/** Adds one loss to a sum. */
export function addLoss(sum: LossSum, { tokens, cost }: Pick<LossSum, 'tokens' | 'cost'>): void {
  sum.count += 1
  sum.tokens += tokens
  sum.cost += cost
}
