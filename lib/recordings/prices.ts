/** The prices of tokens in a replay. */
import { factorAt, factorsOf, pricesWith, writeCost } from '../models/index.ts'
import type { CataloguePrices, GivenPrices, PriceFactor } from '../models/index.ts'
import type { Message } from './recording.ts'

/** Prices per million tokens, in dollars; or relative to a fresh input token, which is then 1,000,000 a million. */
export interface Prices {
  input: number
  output: number
  cacheRead: number
  /** A token that is not cached and is written to the cache. */
  cacheWrite: number
  /** Sizes above which the whole prompt costs more, in ascending order. */
  steps?: readonly PriceFactor[]
}

/** Prices by ratio, with a fresh input token as the unit. By default, output costs five fresh tokens. */
export function ratioPrices(read: number, write: number, output = 5): Prices {
  const unit = 1_000_000
  return { input: unit, output: output * unit, cacheRead: read * unit, cacheWrite: write * unit }
}

/** The prices that a user gives, by the names of models: as the requests have them, or as `provider/model`. */
export type PricesByModel = Readonly<Record<string, GivenPrices>>

/** The prices of a model, `provider/model`: those that the user gave, else by its name; undefined if neither says them. */
export function cataloguePrices(model: string, given: PricesByModel = {}): CataloguePrices | undefined {
  const name = [model, model.slice(model.indexOf('/') + 1)].find((one) => Object.hasOwn(given, one))
  return pricesWith(model, name === undefined ? undefined : given[name])
}

/** The same prices for a replay. */
export function knownPrices(model: string, given?: PricesByModel): Prices | undefined {
  const found = cataloguePrices(model, given)
  if (found === undefined) return undefined
  const { input, output, cacheRead, cacheWrite } = found
  const steps = factorsOf(found)
  return { input, output, cacheRead, cacheWrite, ...(steps.length > 0 && { steps }) }
}

/**
 * Returns what an answer's prompt cost by the provider's counts; undefined if it has none. `writes` if every token that
 * was not cached is charged as written, as the replayed requests are under prices that the user gave.
 */
export function promptCost({ usage }: Message, prices: Prices, writes = false): number | undefined {
  if (usage === undefined || !(usage.input + usage.cacheRead + usage.cacheWrite > 0)) return undefined
  const fresh = writes ? prices.cacheWrite : prices.input
  const written = writes ? usage.cacheWrite * prices.cacheWrite : writeCost(prices, usage)
  const factor = factorAt(prices.steps, usage.input + usage.cacheRead + usage.cacheWrite)
  return (factor * (usage.input * fresh + usage.cacheRead * prices.cacheRead + written)) / 1_000_000
}

/** Fills in prices missing from a catalogue: cache writes cost as much as input, cache reads a tenth of it. */
export function mended(prices: Prices): Prices {
  const { input, output } = prices
  return {
    input,
    output: output > 0 ? output : 5 * input,
    cacheRead: prices.cacheRead > 0 ? prices.cacheRead : 0.1 * input,
    cacheWrite: prices.cacheWrite > 0 ? prices.cacheWrite : input,
  }
}
