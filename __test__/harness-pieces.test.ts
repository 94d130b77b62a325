/** Long work lets the event loop run, and short work waits for nothing. */
import { expect, test } from 'vitest'
import { groupsOf, inPieces } from '../lib/projection/pieces.ts'

/** Keeps the processor busy for that many milliseconds. */
function busy(ms: number): void {
  for (const end = performance.now() + ms; performance.now() < end;);
}

test('others have their turn during long work, and every result is in its place', async () => {
  let rounds = 0
  let isOver = false
  const count = (): void => {
    rounds += 1
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  const results = await inPieces(
    Array.from({ length: 200 }, (_, n) => n),
    (one, index) => {
      busy(0.5)
      return [one, index]
    },
  )
  isOver = true
  // 100 ms of work in pieces of 10 ms and what is left of 16 steps.
  expect(rounds).toBeGreaterThan(3)
  expect(results).toEqual(Array.from({ length: 200 }, (_, n) => [n, n]))
})

test('short work is done at once', async () => {
  const done: number[] = []
  const running = inPieces([1, 2, 3], (one) => done.push(one))
  expect(done).toEqual([1, 2, 3])
  await running
})

test('work that fails in the middle fails as a whole', async () => {
  const failing = inPieces([1, 2, 3], (one) => {
    if (one === 2) throw new Error('two')
  })
  await expect(failing).rejects.toThrow('two')
})

test('groups have all elements in their order', () => {
  expect([...groupsOf([1, 2, 3, 4, 5], 2)]).toEqual([[1, 2], [3, 4], [5]])
  expect([...groupsOf([], 2)]).toEqual([])
})
