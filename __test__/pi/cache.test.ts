/** Time for which the provider keeps a prompt: the host's requests and actions decide it, not a constant. */
import { afterEach, describe, expect, test } from 'vitest'
import { Circumstances } from '../../extensions/circumstances.ts'
import { askedSeconds } from '../../extensions/requests.ts'
import { DEFAULTS } from '../../extensions/settings.ts'
import { breaks } from '../../rig/checks.ts'
import { cleanUp, startRpc } from '../../rig/pi.ts'
import { calls } from '../../rig/reply.ts'
import { lines, OUTPUTS_ONLY, put, setUp } from './support.ts'

afterEach(cleanUp)

const HOUR = { cache_control: { type: 'ephemeral', ttl: '1h' } }
const MINUTES = { cache_control: { type: 'ephemeral' } }

test.each<[string, unknown, number | 'short' | undefined]>([
  ['no request', undefined, undefined],
  ['no breakpoints', { system: [{ type: 'text', text: 's' }], messages: [] }, undefined],
  ['breakpoints', { system: [{ type: 'text', text: 's', ...MINUTES }], messages: [] }, 'short'],
  ['of an hour, at the system prompt', { system: [{ type: 'text', text: 's', ...HOUR }], messages: [] }, 3600],
  ['at the tools', { tools: [{ name: 'a' }, { name: 'b', ...HOUR }], messages: [] }, 3600],
  ['in the first message', { messages: [{ role: 'system', content: [{ type: 'text', text: 's', ...HOUR }] }] }, 3600],
  ['in the last message', { messages: [{ content: 'a' }, { content: [{ type: 'text' }, { type: 'text', ...MINUTES }] }] }, 'short'],
  ['a retention of a day', { input: [], prompt_cache_retention: '24h' }, 86_400],
  ['a text', 'cache_control', undefined],
])('the lifetime that a request asks for: %s', (_name, payload, seconds) => {
  expect(askedSeconds(payload)).toBe(seconds)
})

describe('the lifetime of the next call’s cache, in seconds', () => {
  const TIERS = { short: 300, long: 3600 }
  const at = (ms: number): string => new Date(ms).toISOString()
  const ANSWER = {
    id: 'a',
    parentId: null,
    type: 'message',
    timestamp: at(1000),
    message: { role: 'assistant', provider: 'p', model: 'm', timestamp: 1000, stopReason: 'stop' },
  }
  const WARMED = { id: 'w', parentId: 'a', type: 'usage', kind: 'cache_warm', timestamp: at(271_000) }
  const lifetime = (promptCache: object | undefined, payload: unknown, entries: any[] = []): number => {
    const ctx = {
      model: { provider: 'p', id: 'm', api: 'anthropic-messages', promptCache, cost: {}, contextWindow: 1 },
      sessionManager: {
        getLeafId: () => entries.at(-1)?.id ?? null,
        getEntry: (id: string) => entries.find((one) => one.id === id),
      },
      getSystemPrompt: () => '',
    }
    const pi = { getActiveTools: () => [], getAllTools: () => [] }
    const settings = { ...DEFAULTS, cacheLifetimeSeconds: 77 }
    return new Circumstances(pi as any, settings, () => payload).call(ctx as any, { atUserTurn: true, isPrompt: true, rolls: true }).cacheTtlMs / 1000
  }

  test.each<[string, string | undefined, object | undefined, unknown, any[], number]>([
    ['the catalogue’s', undefined, TIERS, undefined, [], 300],
    ['the catalogue’s long one, before the first request', 'long', TIERS, undefined, [], 3600],
    ['the only one of the catalogue', 'long', { short: 600 }, undefined, [], 600],
    ['the setting', undefined, undefined, undefined, [], 77],
    ['the setting, where the catalogue has the other tier', undefined, { long: 3600 }, undefined, [], 77],
    ['the request’s hour', undefined, undefined, { system: [HOUR] }, [], 3600],
    ['the request’s hour, as the catalogue has it', undefined, { short: 300, long: 3000 }, { system: [HOUR] }, [], 3000],
    ['the request’s minutes, whatever Pi was set to', 'long', TIERS, { system: [MINUTES] }, [], 300],
    ['until the last refresh, and once more', undefined, TIERS, undefined, [ANSWER, WARMED], 270 + 300],
  ])('%s', (_name, retention, tiers, payload, entries, seconds) => {
    const before = process.env['PI_CACHE_RETENTION']
    try {
      if (retention === undefined) delete process.env['PI_CACHE_RETENTION']
      else process.env['PI_CACHE_RETENTION'] = retention
      expect(lifetime(tiers, payload, entries)).toBe(seconds)
    } finally {
      if (before === undefined) delete process.env['PI_CACHE_RETENTION']
      else process.env['PI_CACHE_RETENTION'] = before
    }
  })
})

test.each<[string, Record<string, string>, Record<string, unknown>, boolean]>([
  ['a cache that lives for a millisecond is dead', {}, { promptCache: { short: 0.001, long: 3600 } }, true],
  ['unless Pi asks for the long one', { PI_CACHE_RETENTION: 'long' }, { promptCache: { short: 0.001, long: 3600 } }, false],
  ['also where the catalogue knows no time', { PI_CACHE_RETENTION: 'long' }, {}, false],
  ['and without any lifetime the setting counts', {}, {}, true],
])('Pi: %s', async (_name, env, model, isDead) => {
  const { server, home, load } = await setUp(
    (request, n) => (request.messages.at(-1)!.role === 'user' ? calls(['read', { path: `f${n}.txt` }, `call_${n}`]) : 'next'),
    { api: 'anthropic-messages', env, model, context: { ...OUTPUTS_ONLY, cacheLifetimeSeconds: 0.001 } },
  )
  for (let n = 0; n < 6; n += 2) put(home, `f${n}.txt`, lines(`f${n}`, 80))
  const rpc = await startRpc(load)
  for (let round = 0; round < 3; round += 1) await rpc.prompt(`round ${round}`)
  expect(breaks(server.requests).length > 0).toBe(isDead)
})
