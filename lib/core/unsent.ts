/** The sentence about writes that wait in a journal when its store has been closed. */
import type { StoreState } from '../../index.js'

/**
 * One sentence about the transactions that the XTDB database does not have yet, given the state that `close()` resolves with;
 * undefined if it has all.
 */
export function unsentSentence(left: StoreState | null | undefined): string | undefined {
  if (left === undefined || left === null || left.queued === 0) return undefined
  const { queued, url = '' } = left
  const [what, them] = queued === 1 ? ['1 transaction waits', 'it'] : [`${queued} transactions wait`, 'them']
  return `${what} in the journal for the XTDB database at ${url}; the next session on it sends ${them}`
}
