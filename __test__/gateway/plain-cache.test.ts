/** The provider's cache without us is searched by the provider's rules, and its account takes little room. */
import { expect, test } from 'vitest'
import { PlainCache } from '../../lib/gateway/plain-cache.ts'
import type { CacheReach } from '../../lib/gateway/plain-cache.ts'

const BREAKPOINTS: CacheReach = { kind: 'breakpoints', lookback: 20 }
const ENDINGS: CacheReach = { kind: 'endings', lookback: 20 }
const PREFIX: CacheReach = { kind: 'prefix', lookback: 0 }
const MINUTE_MS = 60_000

/** A conversation of that many steps: a call and its output, of 100 tokens together, the last of which has a marker. */
function conversation(steps: number, isMarked = true): object[] {
  return Array.from({ length: steps }, (_, step): object[] => [
    { role: 'assistant', content: [{ type: 'tool_use', id: `c${step}` }] },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: `c${step}`, content: `${step} `.padEnd(300, 'x') },
        ...(isMarked && step === steps - 1 ? [{ type: 'text', text: 'next', cache_control: { type: 'ephemeral' } }] : [{ type: 'text', text: 'next' }]),
      ],
    },
  ]).flat()
}

/** The cache after requests of 1 to `steps` steps, one a second. */
function filled(steps: number, reach: CacheReach, isMarked = true): { cache: PlainCache; find: (messages: object[], common: number, at?: number) => number } {
  const cache = new PlainCache()
  let before: object[] = []
  const now = (messages: object[], at: number): Parameters<PlainCache['found']>[0] => ({
    messages,
    reach,
    isMarked: false,
    at,
    lifetimeMs: 5 * MINUTE_MS,
    rate: 0.25,
  })
  for (let step = 1; step <= steps; step += 1) {
    const messages = conversation(step, isMarked)
    cache.sent(now(messages, 1000 * step), before, before.length, 100 * step)
    before = messages
  }
  return { cache, find: (messages, common, at = 1000 * steps) => cache.found(now(messages, at), before, common) }
}

test.each<[string, CacheReach]>([
  ['breakpoints', BREAKPOINTS],
  ['endings', ENDINGS],
  ['a common prefix', PREFIX],
])('a host that goes back finds the earlier end: %s', (_name, reach) => {
  const { find } = filled(30, reach)
  for (const steps of [29, 25, 20])
    expect(Math.round(find([...conversation(steps), { role: 'assistant', content: 'hm' }, { role: 'user', content: 'other' }], 2 * steps) / 100)).toBe(steps)
})

test.each<[string, CacheReach, number]>([
  ['breakpoints', BREAKPOINTS, 5],
  ['endings', ENDINGS, 5],
  ['a common prefix', PREFIX, 5],
])('nothing is found once its lifetime is over: %s', (_name, reach, minutes) => {
  const { find } = filled(30, reach)
  const messages = conversation(25)
  expect(find(messages, 50, 30_000 + minutes * MINUTE_MS)).toBe(0)
  expect(find(messages, 50, 20_000 + minutes * MINUTE_MS)).toBeGreaterThan(0)
})

test('a breakpoint finds an end at most twenty positions before it', () => {
  const { find } = filled(30, BREAKPOINTS)
  const other = (steps: number): object[] => conversation(30).map((message, at) => (at < 2 * steps ? message : { ...message, changed: true }))
  expect(find(other(25), 50)).toBeGreaterThan(0)
  expect(find(other(20), 40)).toBe(0)
})

test('an ending finds the twenty endings before it', () => {
  const { find } = filled(40, ENDINGS)
  expect(find(conversation(40), 2 * 25)).toBeGreaterThan(0)
  expect(find(conversation(40), 2 * 15)).toBe(0)
})

test('without markers, breakpoints find nothing', () => {
  expect(filled(30, BREAKPOINTS, false).find(conversation(25, false), 50)).toBe(0)
})

test('a conversation beside this one has all of it, and changes nothing in it', () => {
  const { cache, find } = filled(30, PREFIX)
  const other = cache.fork()
  other.clear()
  expect(find(conversation(25), 50)).toBeGreaterThan(0)
})

test('at most 512 ends are kept', () => {
  expect(filled(1200, BREAKPOINTS).cache.size).toBe(512)
})
