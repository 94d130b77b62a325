/** The lifetimes for which Pi asks Anthropic to keep what it caches. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { SessionLifetimes } from '../../extensions/lifetimes.ts'
import type { LifetimeOption } from '../../lib/models/index.ts'
import { cleanUp, startRpc } from '../../rig/pi.ts'
import { markerRefusal, markersOf } from '../../rig/markers.ts'
import { random } from '../../rig/random.ts'
import { calls } from '../../rig/reply.ts'
import { command, lines, put, setUp } from './support.ts'
import type { Setting } from './support.ts'

afterEach(cleanUp)

const MINUTE = 60_000
const ANTHROPIC = { api: 'anthropic-messages', baseUrl: 'https://api.anthropic.com' }

/** The context that an extension has while Pi makes a request. */
function context(model: object = ANTHROPIC, isPlan = false): any {
  return {
    model: { provider: 'p', id: 'claude-opus-4-5', cost: { input: 5, cacheRead: 0.5, cacheWrite: 6.25 }, ...model },
    modelRegistry: { isUsingOAuth: () => isPlan },
  }
}

/** A payload as Pi makes it: markers at the system prompt, the last tool and the last block. */
function payload(ttl: '1h' | undefined, messages = 1): any {
  const cache_control = { type: 'ephemeral', ...(ttl && { ttl }) }
  const said = Array.from({ length: messages }, (_, n) => ({
    role: n % 2 === 0 ? 'user' : 'assistant',
    content: [{ type: 'text', text: `m${n}`, ...(n === messages - 1 && { cache_control }) }],
  }))
  return {
    model: 'claude-opus-4-5',
    system: [{ type: 'text', text: 's', cache_control }],
    tools: [{ name: 'read' }, { name: 'bash', cache_control }],
    messages: said,
  }
}

const MOMENT = { at: 0, warmedMs: undefined, isNew: true, binding: 'none' as const, systemTokens: 3_000, savedTokens: 0 }
const asked = (body: unknown): string[] => markersOf(body).map(({ ttl }) => ttl ?? '5m')

test.each<[string, LifetimeOption, any, '1h' | undefined, string[]]>([
  ['auto, with a key, on an hour: the conversation goes to five minutes', 'auto', context(), '1h', ['1h', '1h', '5m']],
  ['auto, with a key, on five minutes', 'auto', context(), undefined, ['5m', '5m', '5m']],
  ['auto, with a plan, stays as it is', 'auto', context(ANTHROPIC, true), '1h', ['1h', '1h', '1h']],
  ['five minutes, also with a plan', '5m', context(ANTHROPIC, true), '1h', ['5m', '5m', '5m']],
  ['an hour', '1h', context(), undefined, ['1h', '1h', '1h']],
  ['as Pi asks', 'client', context(), '1h', ['1h', '1h', '1h']],
  ['another address', '1h', context({ ...ANTHROPIC, baseUrl: 'https://proxy.example/anthropic' }), undefined, ['5m', '5m', '5m']],
  ['an address that begins like Anthropic’s', '1h', context({ ...ANTHROPIC, baseUrl: 'https://api.anthropic.com.example' }), undefined, ['5m', '5m', '5m']],
  ['without encryption', '1h', context({ ...ANTHROPIC, baseUrl: 'http://api.anthropic.com' }), undefined, ['5m', '5m', '5m']],
  ['an address that is not one', '1h', context({ ...ANTHROPIC, baseUrl: '' }), undefined, ['5m', '5m', '5m']],
  ['another format', '1h', context({ ...ANTHROPIC, api: 'openai-completions' }), undefined, ['5m', '5m', '5m']],
  ['no model', '1h', { model: undefined }, undefined, ['5m', '5m', '5m']],
])('%s', (_, option, ctx, ttl, sent) => {
  const before = payload(ttl)
  const changed = new SessionLifetimes(option).changed(before, ctx, MOMENT)
  expect(asked(changed ?? before)).toEqual(sent)
  expect(before).toEqual(payload(ttl))
  expect(markerRefusal(changed ?? before)).toBeUndefined()
})

test.each([undefined, null, 'text', [], {}, { messages: 1 }, { messages: [null, { content: 3 }], system: 'x' }])(
  'a payload of another form stays as it is: %j',
  (odd) => {
    expect(new SessionLifetimes('1h').changed(odd, context(), MOMENT)).toBeUndefined()
  },
)

describe('the rule', () => {
  const run = (pauses: readonly number[], changes: Partial<typeof MOMENT>, warm?: (minute: number) => number | undefined): string[] => {
    const own = new SessionLifetimes('auto')
    let minute = 0
    return pauses.map((pause, n) => {
      minute += pause
      const body = payload(undefined, 2 * n + 1)
      const changed = own.changed(body, context(), { ...MOMENT, ...changes, at: minute * MINUTE, isNew: n === 0, warmedMs: warm?.(minute) } as typeof MOMENT)
      own.answered({ input: 0, cacheRead: 0, cacheWrite: 2_000, cacheWrite1h: n > 0 && changed !== undefined ? 1_000 : 0 })
      return asked(changed ?? body).join(' ')
    })
  }

  test('system and tools get the hour at the first pause', () => {
    expect(run([0, 1, 9, 1], {})).toEqual(['5m 5m 5m', '5m 5m 5m', '1h 1h 5m', '1h 1h 5m'])
  })

  test('a cache that Pi has kept warm has no pause', () => {
    expect(run([0, 1, 9, 1], {}, (minute) => (minute - 2) * MINUTE)).toEqual(['5m 5m 5m', '5m 5m 5m', '5m 5m 5m', '5m 5m 5m'])
  })

  test('an hour for a large system part has to be saved first', () => {
    expect(run([0, 9], { systemTokens: 40_000 }).at(-1)).toBe('5m 5m 5m')
    expect(run([0, 9], { systemTokens: 40_000, savedTokens: 30_000 }).at(-1)).toBe('1h 1h 5m')
  })

  test('a session that another process has begun keeps Pi’s lifetimes until they must have expired', () => {
    const own = new SessionLifetimes('1h')
    const at = (minute: number): string =>
      asked(own.changed(payload(undefined), context(), { ...MOMENT, at: minute * MINUTE, isNew: false }) ?? payload(undefined)).join(' ')
    expect([at(0), at(30), at(95)]).toEqual(['5m 5m 5m', '5m 5m 5m', '1h 1h 1h'])
  })

  test('the choice is told with what it has saved, until the provider gives another lifetime', () => {
    const own = new SessionLifetimes('5m')
    expect(own.chosen).toBeUndefined()
    own.changed(payload('1h'), context(), MOMENT)
    expect(own.chosen).toEqual({ why: 'five minutes, as you have set', savedTokens: 0 })
    own.answered({ input: 0, cacheRead: 0, cacheWrite: 8_000, cacheWrite1h: 0 })
    expect(own.chosen).toEqual({ why: 'five minutes, as you have set', savedTokens: 6_000 })
    own.changed(payload('1h', 3), context(), { ...MOMENT, at: 1, isNew: false })
    own.answered({ input: 0, cacheRead: 8_000, cacheWrite: 100, cacheWrite1h: 100 })
    expect(own.chosen).toBeUndefined()
  })

  test('an answer that gives another lifetime ends the choices, and one that tells none does not', () => {
    const own = new SessionLifetimes('1h')
    own.changed(payload(undefined), context(), MOMENT)
    own.answered({ input: 0, cacheRead: 0, cacheWrite: 9_000 })
    expect(asked(own.changed(payload(undefined), context(), { ...MOMENT, at: 1, isNew: false })).at(-1)).toBe('1h')
    own.answered({ input: 0, cacheRead: 0, cacheWrite: 9_000, cacheWrite1h: 0 })
    expect(own.changed(payload(undefined), context(), { ...MOMENT, at: 2, isNew: false })).toBeUndefined()
  })
})

test('no request of 3,000 in random sessions is refused, and nothing but lifetimes changes', () => {
  const next = random(5).below
  const plain = (body: object): unknown => JSON.parse(JSON.stringify(body, (name, value: unknown) => (name === 'ttl' ? undefined : value)))
  for (let session = 0; session < 150; session += 1) {
    const own = new SessionLifetimes((['auto', '5m', '1h'] as const)[next(3)]!)
    const [ttl, binding, systemTokens] = [next(2) === 0 ? ('1h' as const) : undefined, next(2) === 0 ? ('drops' as const) : ('none' as const), 1_000 * next(40)]
    let at = 0
    for (let n = 0; n < 20; n += 1) {
      at += MINUTE * (next(3) === 0 ? next(90) : 0.3)
      const body = payload(ttl, 1 + next(30))
      const changed = own.changed(body, context(), { ...MOMENT, at, isNew: n === 0, binding, systemTokens, savedTokens: next(80_000) })
      const sent = changed ?? body
      expect(markerRefusal(sent)).toBeUndefined()
      expect(markersOf(sent).map(({ path }) => path)).toEqual(markersOf(body).map(({ path }) => path))
      expect(plain(sent)).toEqual(plain(body))
      const written = next(30_000)
      const hour = next(3) === 0 ? undefined : asked(sent).at(-1) === '1h' ? written : 0
      own.answered({ input: 0, cacheRead: next(50_000), cacheWrite: written, ...(hour !== undefined && { cacheWrite1h: hour }) })
    }
  }
})

/** A Pi that takes a scripted provider for Anthropic: requests to its address go to that one. */
async function pi(context: object, env: Record<string, string>, isAnthropic: boolean): Promise<Setting> {
  const setting = await setUp((request, n) => (n % 2 === 0 ? calls(['read', { path: `f${n}.txt` }, `call_${n}`]) : 'next'), {
    api: 'anthropic-messages',
    env,
    context,
  })
  const file = join(setting.home.agentDir, 'models.json')
  const models = JSON.parse(readFileSync(file, 'utf8'))
  const own = new URL(models.providers.rig.baseUrl).origin
  if (!isAnthropic) return setting
  models.providers.rig.baseUrl = 'https://api.anthropic.com'
  writeFileSync(file, JSON.stringify(models))
  // Pi brings its own `fetch`, so what it sets is wrapped as well.
  const redirect = `let send = globalThis.fetch
    const own = (to, ...more) => send(String(to).replace('https://api.anthropic.com', ${JSON.stringify(own)}), ...more)
    Object.defineProperty(globalThis, 'fetch', { get: () => own, set: (other) => { if (other !== own) send = other } })`
  setting.load.env['NODE_OPTIONS'] = `--import=data:text/javascript,${encodeURIComponent(redirect)}`
  return setting
}

describe('Pi', () => {
  test.each<[string, object, Record<string, string>, boolean, string, RegExp]>([
    [
      'on an hour at Anthropic asks for it in tools and system',
      {},
      { PI_CACHE_RETENTION: 'long' },
      true,
      '1h 1h 5m',
      /The cache's lifetime: system and tools are kept for an hour; the conversation, which rolls rewrite, for five minutes(?:; that has saved about .* so far)?\./,
    ],
    ['at Anthropic asks for what the user has set', { cacheLifetime: '1h' }, {}, true, '1h 1h 1h', /The cache's lifetime: an hour, as you have set\./],
    ['asks another provider for nothing, whatever is set', { cacheLifetime: '1h' }, {}, false, '5m 5m 5m', /^(?![^]*lifetime)/],
  ])('%s', async (_, context, env, isAnthropic, wanted, told) => {
    const { server, home, load } = await pi(context, env, isAnthropic)
    for (let n = 0; n < 4; n += 1) put(home, `f${n}.txt`, lines(`f${n}`, 40))
    const rpc = await startRpc(load)
    for (let round = 0; round < 2; round += 1) await rpc.prompt(`round ${round}`)
    expect((await command(rpc, '/context')).join('\n')).toMatch(told)
    const bodies = server.requests.map(({ raw }) => JSON.parse(String(raw)))
    expect(bodies.length).toBe(4)
    for (const body of bodies) {
      expect(asked(body).join(' ')).toBe(wanted)
      expect(markerRefusal(body, isAnthropic)).toBeUndefined()
    }
  })
})
