import { describe, expect, test } from 'vitest'
import type { ReplayBlock } from '../../lib/recordings/blocks.ts'
import { CACHES, PromptCache } from '../../lib/replay/cache.ts'
import type { CacheRules } from '../../lib/replay/cache.ts'
import { block } from './support.ts'

/** A cache that counts a character as a token. */
function cacheOf(rules: Partial<CacheRules> & { base?: keyof typeof CACHES }): (blocks: ReplayBlock[], at?: number, model?: string) => number {
  const { base = 'plain', ...changes } = rules
  const cache = new PromptCache({ ...CACHES[base], ...changes }, 1)
  return (blocks, at = 0, model = 'm') => cache.send(blocks, 1, model, at)
}

const system = block('s', 2000)
const talk = Array.from({ length: 40 }, (_, index) => block(`${index} `, 100))

describe('any common prefix', () => {
  test('an earlier prefix is cached, whatever follows it', () => {
    const send = cacheOf({})
    expect(send([system, ...talk.slice(0, 4)])).toBe(0)
    expect(send([system, ...talk.slice(0, 6)])).toBe(2400)
    expect(send([system, ...talk.slice(0, 2)])).toBe(2200)
  })

  test('a changed block breaks the prefix inside of it', () => {
    const send = cacheOf({})
    send([system, block('abc', 90), ...talk])
    const changed = { ...block('abc', 90), bytes: `${'abc'.repeat(10)}${'x'.repeat(60)}` }
    expect(send([system, changed, ...talk])).toBe(2030)
  })

  test('equal bytes in another object are equal', () => {
    const send = cacheOf({})
    send([system, block('a', 50)])
    expect(send([{ ...system }, block('a', 50), block('b', 10)])).toBe(2050)
  })

  test.each([
    [0, 300_000, 2400],
    [0, 300_001, 0],
    [100_000, 400_000, 2400],
  ])('used at %i, asked at %i', (used, asked, cached) => {
    const send = cacheOf({})
    send([system, ...talk.slice(0, 4)], used)
    expect(send([system, ...talk.slice(0, 4)], asked)).toBe(cached)
  })

  test('use renews a prefix', () => {
    const send = cacheOf({})
    send([system], 0)
    send([system, ...talk.slice(0, 1)], 250_000)
    expect(send([system, ...talk.slice(0, 2)], 500_000)).toBe(2100)
  })

  test('another model knows nothing of it, and the first one still does', () => {
    const send = cacheOf({})
    send([system], 0, 'one')
    expect(send([system], 0, 'two')).toBe(0)
    expect(send([system], 0, 'one')).toBe(2000)
  })
})

describe('steps and least lengths', () => {
  test.each([
    ['openai-5.5' as const, 5, 2432],
    ['openai-5.5' as const, 6, 2560],
    ['openai' as const, 5, 2500],
    ['plain' as const, 5, 2500],
  ])('%s, %i blocks', (base, count, cached) => {
    const send = cacheOf({ base })
    send([system, ...talk.slice(0, count)])
    expect(send([system, ...talk.slice(0, count)])).toBe(cached)
  })

  test('a prefix that is too short is not cached', () => {
    const send = cacheOf({ base: 'openai-5.5' })
    send([block('s', 1000)])
    expect(send([block('s', 1000)])).toBe(0)
  })
})

describe('breakpoints', () => {
  test('an end of an earlier request is found 20 blocks back and no further', () => {
    for (const [more, cached] of [
      [20, 2400],
      [21, 2000],
    ] as const) {
      const send = cacheOf({ base: 'anthropic' })
      send([system, ...talk.slice(0, 4)])
      expect(send([system, ...talk.slice(0, 4 + more)]), `${more} blocks more`).toBe(cached)
    }
  })

  test('an edit before the last end leaves the system part', () => {
    const send = cacheOf({ base: 'anthropic' })
    send([system, ...talk.slice(0, 10)])
    const edited = [system, ...talk.slice(0, 8), block('new', 30), ...talk.slice(9, 10)]
    expect(send(edited)).toBe(2000)
    expect(send([...edited, block('z', 10)])).toBe(2000 + 800 + 30 + 100)
  })

  test('an edit after an earlier end that is still known keeps the part before it', () => {
    const send = cacheOf({ base: 'anthropic' })
    send([system, ...talk.slice(0, 4)])
    send([system, ...talk.slice(0, 8)])
    expect(send([system, ...talk.slice(0, 6), block('new', 30)])).toBe(2400)
  })
})

describe('positions', () => {
  const call = (name: string): ReplayBlock => ({ ...block(name, 10), side: 'answer', run: 'calls' })
  const result = (name: string): ReplayBlock => ({ ...block(name, 10), run: 'results' })

  test.each([
    ['a run of calls and one of results are two', 30, 1, 2400],
    ['each round of a call and a result has two', 1, 10, 2400],
    ['ten rounds and a block are too many', 1, 11, 2000],
  ])('%s', (_, width, rounds, cached) => {
    const send = cacheOf({ base: 'anthropic' })
    send([system, ...talk.slice(0, 4)])
    const more = Array.from({ length: rounds }, (_none, round) => [
      ...Array.from({ length: width }, (_no, n) => call(`call ${round} ${n} `)),
      ...Array.from({ length: width }, (_no, n) => result(`result ${round} ${n} `)),
    ])
    expect(send([system, ...talk.slice(0, 4), ...more.flat()])).toBe(cached)
  })
})

describe('endings', () => {
  const answer = (n: number): ReplayBlock => ({ ...block(`answer ${n} `, 100), side: 'answer' })
  const output = (n: number): ReplayBlock => ({ ...block(`output ${n} `, 100), run: 'results' })
  /** A system part, a prompt, and this many rounds of an answer and an output. */
  const after = (rounds: number): ReplayBlock[] => [system, block('prompt', 100), ...Array.from({ length: rounds }, (_, n) => [answer(n), output(n)]).flat()]
  const grown = (rounds: number): ReturnType<typeof cacheOf> => {
    const send = cacheOf({ base: 'openai' })
    for (let n = 0; n <= rounds; n += 1) send(after(n), n)
    return send
  }

  test('a request that only grows is read up to the end of the one before', () => {
    expect(grown(3)(after(4))).toBe(2100 + 600)
  })

  test('an edit is billed from the last request that ended before it', () => {
    const edited = after(6)
    edited[2 + 2 * 3] = { ...answer(3), bytes: 'other' }
    expect(grown(5)(edited)).toBe(2100 + 600)
  })

  test.each([
    [20, 2100],
    [21, 0],
  ])('an edit %i endings back', (rounds, cached) => {
    const edited = after(rounds)
    edited[2] = { ...answer(0), bytes: 'other' }
    expect(grown(rounds - 1)(edited)).toBe(cached)
  })

  test('without an ending before the edit nothing is found, not even the system part', () => {
    const edited = after(3)
    edited[1] = block('another prompt', 100)
    expect(grown(2)(edited)).toBe(0)
  })

  test.each([
    [1_800_000, 2100],
    [1_800_001, 0],
  ])('after %i ms', (at, cached) => {
    const send = cacheOf({ base: 'openai' })
    send(after(0), 0)
    expect(send(after(1), at)).toBe(cached)
  })
})
