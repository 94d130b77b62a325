/** Savings, in money where prices are known and in fresh input tokens where not. */
import { accountText, dollars, percent, savingText, tokens } from '../ui/index.ts'
import type { Savings } from '../ui/index.ts'
import { ratesAt, UNKNOWN_PRICES, USUAL_OUTPUT, writeCost } from '../models/index.ts'
import type { CataloguePrices } from '../models/index.ts'
import type { Usage } from './answer.ts'

/** The cost of one call without its output, in dollars; without known prices in millions of fresh input tokens. */
export function inputCost(usage: Usage, prices: CataloguePrices | undefined): number {
  const { input, cacheRead } = usage
  const rates = ratesFor(usage, prices)
  return (input * rates.input + cacheRead * rates.cacheRead + writeCost(rates, usage)) / 1_000_000
}

/** The cost of calls as billed, and as it would have been without us. */
interface Costs {
  billed: number
  plain: number
}

/**
 * Returns what `billed` would have cost without us, as `plain`: the same without the output, and what the output would have
 * cost more above a step in the price.
 */
export function plainCost(plain: Usage, billed: Usage, prices: CataloguePrices | undefined): number {
  return inputCost(plain, prices) + (billed.output * (ratesFor(plain, prices).output - ratesFor(billed, prices).output)) / 1_000_000
}

/** The cost of a call's answer, in the unit of {@link inputCost}. */
export function answerCost(usage: Usage, prices: CataloguePrices | undefined): number {
  return (usage.output * ratesFor(usage, prices).output) / 1_000_000
}

/** The cost of a request for a summary, with its answer. */
export function summaryCost(usage: Usage, prices: CataloguePrices | undefined): number {
  return inputCost(usage, prices) + answerCost(usage, prices)
}

function ratesFor({ input, cacheRead, cacheWrite }: Usage, prices: CataloguePrices = UNKNOWN_MODEL): Omit<CataloguePrices, 'tiers'> {
  return ratesAt(prices, input + cacheRead + cacheWrite)
}

/** Prices in fresh input tokens, where those of the model are unknown. */
export const UNKNOWN_MODEL: CataloguePrices = { ...UNKNOWN_PRICES, output: USUAL_OUTPUT }

/** The costs of sessions with us and without, each in dollars or, without known prices, in millions of fresh input tokens. */
export function accountOf(sessions: readonly { cost: Costs; answers: number }[]): Savings {
  const account = { paid: 0, without: 0 }
  for (const { cost, answers } of sessions) {
    account.paid += cost.billed + answers
    account.without += cost.plain + answers
  }
  return account
}

/** The sums of a session that make an account. */
export interface AccountSums {
  cost: Costs
  answers: number
  isPriced: boolean
  /** The session was paid at a flat rate. */
  isPlan?: boolean
  /** As billed, and as it would have been without us. */
  billed?: Usage
  plain?: Usage
}

/** An account in words; undefined if nothing was billed yet. At a flat rate in tokens; where prices are not known for all calls, only the share. */
export function accountLine(sessions: readonly AccountSums[]): string | undefined {
  const account = accountOf(sessions)
  if (account.without === 0) return undefined
  if (sessions.every(({ isPlan }) => isPlan === true)) {
    return accountText(tokensOf(sessions), (count) => `${tokens(count)} tokens`, 'sent')
  }
  if (sessions.every(({ isPriced }) => isPriced)) return accountText(account, (amount) => dollars(amount))
  return savingText(savedShare(account), percent)
}

/** The account of a session that is shown: tokens of its prompts at a flat rate, else its cost. */
export function accountShown(sums: AccountSums): Savings {
  return sums.isPlan === true ? tokensOf([sums]) : accountOf([sums])
}

function tokensOf(sessions: readonly AccountSums[]): Savings {
  const sum = (name: 'billed' | 'plain'): number =>
    sessions.reduce((all, { [name]: usage }) => all + (usage === undefined ? 0 : usage.input + usage.cacheRead + usage.cacheWrite), 0)
  return { paid: sum('billed'), without: sum('plain') }
}

/** The saved share of what would have been paid. */
export function savedShare({ paid, without }: Savings): number {
  return without === 0 ? 0 : 1 - paid / without
}
