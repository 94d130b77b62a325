/** Long work in pieces, so that the host's event loop goes on meanwhile. */
import { setImmediate as nextRound } from 'node:timers/promises'

/** Work goes on for this long before others have their turn, in milliseconds. */
const PIECE_MS = 10

/** How much of the work is done between two looks at the clock. */
const LOOK_EVERY = 16

/** Does something with each of `all`, one after the other. What takes less than a piece is done at once. */
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

/** The parts of a list, each with so many elements at most. */
export function* groupsOf<T>(list: readonly T[], size: number): Generator<T[]> {
  for (let at = 0; at < list.length; at += size) yield list.slice(at, at + size)
}
