/** A harness lets its own requests ask for the lifetimes of the rule. */
import { expect, test } from 'vitest'
import { CacheLifetimes, modelNamed } from '../lib/projection/harness.ts'
import type { CachedRequest } from '../lib/projection/harness.ts'
import { markerRefusal, markersOf } from '../rig/markers.ts'

const MINUTE = 60_000
const URL = 'https://api.anthropic.com/v1/messages'
const REQUEST: CachedRequest = { url: URL, paysByToken: true, model: modelNamed('claude-opus-4-5'), isNew: true, systemTokens: 3_000, at: 0 }

/** A body with a marker at the system prompt and at the end, and perhaps one for the whole request. */
function body(ttl?: '1h', isWhole = false): any {
  const cache_control = { type: 'ephemeral', ...(ttl && { ttl }) }
  return {
    system: [{ type: 'text', text: 's', cache_control }],
    messages: [{ role: 'user', content: [{ type: 'text', text: 'm', ...(!isWhole && { cache_control }) }] }],
    ...(isWhole && { cache_control }),
  }
}

const asked = (one: unknown): string =>
  markersOf(one)
    .map(({ ttl }) => ttl ?? '5m')
    .join(' ')

test.each<[string, CacheLifetimes, any, Partial<CachedRequest>, string, number | undefined]>([
  ['a client on an hour', new CacheLifetimes(), body('1h'), {}, '1h 5m', 5],
  ['one marker for the whole request', new CacheLifetimes(), body('1h', true), {}, '1h 5m', 5],
  ['five minutes', new CacheLifetimes(), body(), {}, '5m 5m', 5],
  ['a model that binds its reasoning', new CacheLifetimes(), body('1h'), { model: { input: 5, cacheRead: 0.5, binding: 'drops' } }, '1h 1h', 60],
  ['a plan', new CacheLifetimes(), body('1h'), { paysByToken: false }, '1h 1h', undefined],
  ['a plan, and the user has set it', new CacheLifetimes('5m'), body('1h'), { paysByToken: false }, '5m 5m', 5],
  ['another provider', new CacheLifetimes('1h'), body(), { url: 'https://bedrock-runtime.example' }, '5m 5m', undefined],
  ['as the host asks', new CacheLifetimes('client'), body('1h'), {}, '1h 1h', undefined],
  ['no markers', new CacheLifetimes('1h'), { messages: [] }, {}, '', undefined],
  ['a conversation of another process', new CacheLifetimes('1h'), body(), { isNew: false }, '5m 5m', undefined],
])('%s', (_, lifetimes, before, changes, wanted, minutes) => {
  const copy = structuredClone(before)
  const sent = lifetimes.applied(before, { ...REQUEST, ...changes })
  expect(asked(sent)).toBe(wanted)
  expect(before).toEqual(copy)
  expect(sent === before).toBe(asked(before) === wanted)
  expect(lifetimes.conversationMs).toBe(minutes === undefined ? undefined : minutes * MINUTE)
  expect(markerRefusal(sent)).toBeUndefined()
})

test('the system part gets the hour at the first pause, and an answer that gives another lifetime ends that', () => {
  const lifetimes = new CacheLifetimes()
  const send = (minute: number): string => asked(lifetimes.applied(body(), { ...REQUEST, systemTokens: 5_000, at: minute * MINUTE, isNew: minute === 0 }))
  expect(send(0)).toBe('5m 5m')
  lifetimes.answered({ input: 1, cacheRead: 0, cacheWrite: 9_000, cacheWriteHour: 0 })
  expect(send(20)).toBe('1h 5m')
  lifetimes.answered({ input: 1, cacheRead: 0, cacheWrite: 9_000, cacheWriteHour: 0 })
  expect(send(21)).toBe('5m 5m')
})
