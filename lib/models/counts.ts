/**
 * The provider's token counts for one answer, as it gives them or as recorders note them. A count may be missing, negative, no
 * number, far too large, or contradict another one: programs of many versions write them, and files are edited and cut off. Each is
 * made a count that can be added up, and the answer is marked, so that reports can say how many there were.
 */
import type { CallTokens } from './prices.ts'

/** Counts that can be added up. */
export interface SoundUsage extends CallTokens {
  /** A count was missing, could not be true, or contradicted another one. */
  isDoubtful?: true
}

/** More tokens than any model takes or writes in one call: ten times the longest window that is known. */
const MOST_TOKENS = 100_000_000

/** Counts as they were given; undefined where there is none. */
export interface GivenCounts {
  /** Tokens that were neither read from the cache nor written to it; or all of them, see `isWhole`. */
  input: unknown
  output: unknown
  cacheRead: unknown
  cacheWrite: unknown
  /** Those of `cacheWrite` that were written for five minutes, and for an hour, where the provider tells them apart. */
  fiveMinutes?: unknown
  hour?: unknown
  /** True if `input` includes the tokens of the cache, as OpenAI counts. */
  isWhole?: boolean
}

/** Makes counts sound; undefined if there is none at all. */
export function soundUsage(given: GivenCounts): SoundUsage | undefined {
  const { isWhole = false, ...counts } = given
  if (Object.values(counts).every((count) => count === undefined || count === null)) return undefined
  const doubts = new Doubts()
  const output = doubts.count(given.output)
  const hour = doubts.count(given.hour ?? 0)
  const split = hour + doubts.count(given.fiveMinutes ?? 0)
  let cacheWrite = doubts.count(given.cacheWrite ?? split)
  if (split > cacheWrite) doubts.found = true
  const all = doubts.count(given.input)
  let cacheRead = doubts.count(given.cacheRead ?? 0)
  let input = all
  if (isWhole) {
    if (cacheRead + cacheWrite > all) doubts.found = true
    cacheRead = Math.min(cacheRead, all)
    cacheWrite = Math.min(cacheWrite, all - cacheRead)
    input = all - cacheRead - cacheWrite
  }
  const cacheWriteHour = Math.min(hour, cacheWrite)
  return {
    ...{ input, output, cacheRead, cacheWrite },
    ...(cacheWriteHour > 0 && { cacheWriteHour }),
    ...(doubts.found && { isDoubtful: true as const }),
  }
}

/** The sum of counts of one kind; no count if one of them is none, and undefined if none is given. */
export function countsTogether(...counts: readonly unknown[]): unknown {
  const given = counts.filter((count) => count !== undefined && count !== null)
  return given.length === 0 ? undefined : given.every(isCount) ? given.reduce((sum, count) => sum + count, 0) : Number.NaN
}

/** Takes counts, and keeps in mind whether one of them can't be true. */
class Doubts {
  found = false

  /** The count itself; 0 for anything that is none. */
  count(given: unknown): number {
    if (isCount(given)) return given
    this.found = true
    return 0
  }
}

function isCount(given: unknown): given is number {
  return typeof given === 'number' && given >= 0 && given <= MOST_TOKENS
}
