/** Splits long work into pieces, so that it does not block the host's event loop. */
import { setImmediate as nextRound } from 'node:timers/promises'

/** After this time the event loop gets a turn, in milliseconds. */
const PIECE_MS = 10

/** The number of elements that are processed between two looks at the clock. */
const LOOK_EVERY = 16

/** Maps elements one after the other. Work shorter than a piece is done synchronously. */
export async function inPieces<T, R>(all: Iterable<T>, work: (one: T, index: number) => R): Promise<R[]> {
  const results: R[] = []
  let start = performance.now()
  for (const one of all) {
    if (results.length % LOOK_EVERY === LOOK_EVERY - 1 && performance.now() - start > PIECE_MS) {
      await nextRound()
      start = performance.now()
    }
    results.push(work(one, results.length))
  }
  return results
}

/** Splits a list into groups of at most `size` elements. */
export function* groupsOf<T>(list: readonly T[], size: number): Generator<T[]> {
  for (let at = 0; at < list.length; at += size) yield list.slice(at, at + size)
}
