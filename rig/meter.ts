/**
 * A prefix cache as providers have it, over recorded prompts: what a request has in common with an earlier one, from
 * its first character on, was cached. Tokens are characters / 4, rounded up; exact to the character, without the
 * blocks of 64 to 1024 tokens that a real provider rounds to.
 */

/** The cost of reading one request, in tokens. */
interface Metered {
  /** All prompt tokens. */
  prompt: number
  /** The part of them that was read from the cache. */
  cached: number
}

/** Prices relative to an uncached, unwritten input token. */
interface Prices {
  /** A token read from the cache. */
  read: number
  /** A token that was not cached, and is written to the cache. */
  write: number
}

/** The usual ratios: a cached token costs a tenth, a cache write a quarter more than an input token. */
export const USUAL_PRICES: Prices = { read: 0.1, write: 1.25 }

/** Sums over several requests; `cost` is in uncached input tokens. */
export interface Total extends Metered {
  calls: number
  /** The largest single prompt. */
  peak: number
  cost: number
  /** `cached / prompt`, 0 where nothing was sent. */
  cachedShare: number
}

/** Tokens of a text: a quarter of its characters, rounded up. */
export function estimateTokens(text: string): number {
  return Math.ceil(text.length / 4)
}

/** Number of UTF-16 units that two texts have in common from the start. */
export function commonPrefix(left: string, right: string): number {
  const limit = Math.min(left.length, right.length)
  let low = 0
  let high = limit
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (left.slice(low, middle) === right.slice(low, middle)) low = middle
    else high = middle - 1
  }
  return low
}

/** Meters prompts one after the other against all that came before. */
export class PrefixCache {
  readonly #seen: string[] = []

  /** Tokens of `prompt`, and how many of them an earlier prompt had already put into the cache. */
  add(prompt: string): Metered {
    let common = 0
    for (let index = this.#seen.length - 1; index >= 0; index -= 1) {
      const earlier = this.#seen[index] as string
      if (earlier.length <= common) continue
      common = Math.max(common, commonPrefix(earlier, prompt))
      if (common === prompt.length) break
    }
    this.#seen.push(prompt)
    return { prompt: estimateTokens(prompt), cached: Math.floor(common / 4) }
  }
}

/** Sums what requests cost, each metered against those before it. */
export function total(requests: readonly { prompt: string }[], prices: Prices = USUAL_PRICES): Total {
  const cache = new PrefixCache()
  const sum: Total = { calls: requests.length, prompt: 0, cached: 0, peak: 0, cost: 0, cachedShare: 0 }
  for (const request of requests) {
    const { prompt, cached } = cache.add(request.prompt)
    sum.prompt += prompt
    sum.cached += cached
    sum.peak = Math.max(sum.peak, prompt)
    sum.cost += cached * prices.read + (prompt - cached) * prices.write
  }
  sum.cachedShare = sum.prompt === 0 ? 0 : sum.cached / sum.prompt
  return sum
}
