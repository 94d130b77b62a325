/** Random numbers that are the same for the same seed on every machine, so that a failure can be repeated. */

/** What a seed gives. */
export interface Random {
  /** A number of at least 0 and less than 1. */
  next(): number
  /** A whole number of at least 0 and less than the limit. */
  below(limit: number): number
  /** One of several. */
  pick<T>(items: readonly T[]): T
}

/** A generator (mulberry32). */
export function random(seed: number): Random {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let value = Math.imul(state ^ (state >>> 15), 1 | state)
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (limit: number): number => Math.floor(next() * limit)
  return { next, below, pick: <T>(items: readonly T[]): T => items[below(items.length)] as T }
}
