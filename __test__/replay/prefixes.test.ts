/** A session call by call: the size from which on rolls pay, and the bound on what they cost. */
import { describe, expect, test } from 'vitest'
import { aboveBound, crossingOf, crossingSentence, CrossingSums } from '../../lib/replay/prefixes.ts'
import type { Series } from '../../lib/replay/tally.ts'

const series = (cost: number[], again?: number[]): Series => ({
  tokens: cost.map((_, call) => 10_000 * (call + 1)),
  cost,
  ...(again !== undefined && { again }),
})

describe('the crossing', () => {
  const rows: [name: string, plain: number[], own: number[], tokens: number | undefined][] = [
    ['from the first call on', [2, 4, 6], [1, 2, 3], 10_000],
    ['after a roll has paid', [1, 2, 3, 4], [1, 2.5, 2.9, 3], 30_000],
    ['only the last time counts', [1, 2, 3, 4], [0.9, 2.5, 2.9, 3], 30_000],
    ['never', [1, 2, 3], [1, 2, 3], undefined],
    ['not for good', [1, 2, 3], [0.5, 1.5, 3.1], undefined],
  ]
  test.each(rows)('%s', (_, plain, own, tokens) => {
    expect(crossingOf({ recorded: series(plain), 'pi-context-manager': series(own) })?.tokens).toBe(tokens)
  })

  test('there is none without one of the two', () => {
    expect([crossingOf({ 'pi-context-manager': series([1]) }), crossingOf({ recorded: series([1]) })]).toEqual([undefined, undefined])
  })

  test('the middle session with a long window is told, with what rolls hide', () => {
    const sums = new CrossingSums()
    for (const tokens of [90_000, 50_000, 70_000]) sums.add(1_000_000, { tokens, plain: 1000, own: 400 })
    sums.add(1_000_000, undefined)
    sums.add(200_000, { tokens: 10, plain: 1000, own: 0 })
    expect(sums.sums).toEqual({ sessions: 4, crossed: 3, tokens: 70_000, hidden: 0.6 })
    expect(crossingSentence(sums.sums)).toBe(
      'In a window of a million tokens, a session costs more than one that rolls from about 70k tokens on (the middle one of 3 of 4 sessions); rolls keep 60 % of what would be sent out of the requests.',
    )
    expect(crossingSentence(new CrossingSums().sums)).toBeUndefined()
  })
})

describe('the bound', () => {
  const rows: [name: string, own: number[], again: number[] | undefined, above: number, most: number][] = [
    ['no more than the client', [1, 2], undefined, 0, 0],
    ['3 % and 5,000 tokens more', [1.03 + 0.005, 2.06 + 0.005], undefined, 0, 0],
    ['a beginning above it', [1.03 + 0.006, 2.06], undefined, 1, 1000],
    ['reads of hidden text are apart', [1.03 + 0.006, 2.06 + 0.006], [0.001, 0.001], 0, 0],
  ]
  test.each(rows)('%s', (_, own, again, above, most) => {
    // A million tokens cost a dollar; differences by rounding are allowed.
    const found = aboveBound(
      {
        append: series([1, 2]),
        'pi-context-manager': series(
          own.map((cost) => cost - 1e-12),
          again,
        ),
      },
      1e-6,
    )
    expect(found).toEqual({ calls: 2, above, most })
  })
})
