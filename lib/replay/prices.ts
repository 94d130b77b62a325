/** What tokens cost. */

/** Prices per million tokens, in dollars; or relative to a fresh input token, which is then 1,000,000 a million. */
export interface Prices {
  input: number
  output: number
  cacheRead: number
  /** A token that is not cached and is written to the cache. */
  cacheWrite: number
}

/** Known models by a part of their name, first match wins. Dollars per million tokens, from the vendors' price pages. */
const KNOWN: readonly [pattern: RegExp, prices: Prices][] = [
  [/opus-4-[5-9]|opus-[5-9]/, { input: 5, output: 25, cacheRead: 0.5, cacheWrite: 6.25 }],
  [/opus/, { input: 15, output: 75, cacheRead: 1.5, cacheWrite: 18.75 }],
  [/sonnet/, { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 }],
  [/haiku-4/, { input: 1, output: 5, cacheRead: 0.1, cacheWrite: 1.25 }],
  [/gpt-5/, { input: 1.25, output: 10, cacheRead: 0.125, cacheWrite: 1.25 }],
]

/** Prices by ratio, with a fresh input token as the unit. By default, output costs five fresh tokens. */
export function ratioPrices(read: number, write: number, output = 5): Prices {
  const unit = 1_000_000
  return { input: unit, output: output * unit, cacheRead: read * unit, cacheWrite: write * unit }
}

/** The prices of a model that is known by name. */
export function knownPrices(model: string): Prices | undefined {
  return KNOWN.find(([pattern]) => pattern.test(model))?.[1]
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
