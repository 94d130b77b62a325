/**
 * A sample of the rows of a table, where each row costs seconds of real processes and differs from its neighbours in one value. A
 * suite that is named on the command line runs all of them, and so does `npm run test:full`.
 */

/** `all`, or a number: another one takes other rows. CI sets the number of its commit, so that each row has its turn. */
const ROWS = process.env['CONTEXT_ROWS'] ?? '0'

/** True if every row runs; vitest.config.ts sets the second variable where suites are named. */
export const isWhole = ROWS === 'all' || process.env['CONTEXT_NAMED'] === '1'

/**
 * Returns `count` rows in their order, evenly spread; all of them where {@link isWhole}. `turn` moves all of them on, for a table
 * inside another one: each of its runs takes other rows.
 */
export function some<T>(rows: readonly T[], count: number, turn = 0): T[] {
  if (isWhole || rows.length <= count) return [...rows]
  const first = Number(ROWS) + turn
  const places = Array.from({ length: count }, (_, n) => (first + Math.floor((n * rows.length) / count)) % rows.length)
  return places.toSorted((left, right) => left - right).map((place) => rows[place] as T)
}
