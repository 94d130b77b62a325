/** Random numbers that are the same for the same seed on every machine, so that a failure can be repeated. */

import { randomNumbers } from '../lib/core/index.ts'

/** The values that a seed gives. */
export interface Random {
  /** A number of at least 0 and less than 1. */
  next(): number
  /** A whole number of at least 0 and less than the limit. */
  below(limit: number): number
  /** One of several. */
  pick<T>(items: readonly T[]): T
}

/** A generator. */
export function random(seed: number): Random {
  const next = randomNumbers(seed)
  const below = (limit: number): number => Math.floor(next() * limit)
  return { next, below, pick: <T>(items: readonly T[]): T => items[below(items.length)] as T }
}
