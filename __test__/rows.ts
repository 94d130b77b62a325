/** A sample of the rows of a table for `npm test`; all of them in CI and in a suite that is named on the command line. */

/** True if every row runs; vitest.config.ts sets the second variable where suites are named. */
export const isWhole = process.env['CONTEXT_FULL'] === '1' || process.env['CONTEXT_NAMED'] === '1'

/**
 * Returns `count` rows, evenly spread from the first to the last; all of them where {@link isWhole}. The rows that `npm test` leaves
 * out differ from their neighbours in one value, and each costs seconds of real processes.
 */
export function some<T>(rows: readonly T[], count: number): T[] {
  if (isWhole || rows.length <= count) return [...rows]
  const step = count < 2 ? 0 : (rows.length - 1) / (count - 1)
  return Array.from({ length: count }, (_, index) => rows[Math.round(index * step)] as T)
}
