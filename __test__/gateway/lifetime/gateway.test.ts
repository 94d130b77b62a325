/** Lifetimes that the gateway chooses, as its provider gets them. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { billsFile } from '../../../lib/gateway/bills.ts'
import type { GatewayOptions } from '../../../lib/gateway/options.ts'
import { cleanUp } from '../../../rig/cleanup.ts'
import { markerRefusal, markersOf } from '../../../rig/markers.ts'
import { folder } from '../../core/setup.ts'
import { cli } from '../../replay/support.ts'
import { gatewayCharges, LifetimeSums } from '../../../lib/usage/index.ts'
import type { Gateway } from '../../../lib/gateway/gateway.ts'
import type { LifetimeOption } from '../../../lib/models/index.ts'
import { AnthropicLoop, gatewayTo, lasting, long, upstream } from '../support.ts'

afterEach(cleanUp)

/** A provider that answers with the lifetimes that it was asked for, or with its own. */
async function provider(given?: '5m' | '1h'): Promise<{ url: string; bodies: any[]; refusals: string[] }> {
  const bodies: any[] = []
  const refusals: string[] = []
  const { url } = await upstream(({ body }, response) => {
    const request = JSON.parse(body.toString('utf8'))
    bodies.push(request)
    const refusal = markerRefusal(request)
    if (refusal !== undefined) refusals.push(refusal)
    const markers = markersOf(request)
    const isHour = (given ?? markers.at(-1)?.ttl ?? '5m') === '1h'
    const head = (given ?? (markers[0]?.ttl === '1h' ? '1h' : '5m')) === '1h' && bodies.length === 1 ? 3_000 : 0
    const written = 2_000
    const creation = { ephemeral_5m_input_tokens: isHour ? 0 : written, ephemeral_1h_input_tokens: (isHour ? written : 0) + head }
    const usage = { input_tokens: 3, cache_read_input_tokens: 1_000, cache_creation_input_tokens: written + head, cache_creation: creation, output_tokens: 10 }
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ type: 'message', role: 'assistant', content: [{ type: 'text', text: 'ok' }], usage }))
  })
  return { url, bodies, refusals }
}

/** A client whose markers ask for a lifetime in tools, system and its last message. */
class MarkedLoop extends AnthropicLoop {
  readonly #ttl: string | undefined

  constructor(gateway: { url: string }, ttl?: string, key: Record<string, string> = { 'x-api-key': 'sk-ant-api03-test' }) {
    super(gateway)
    this.#ttl = ttl
    const cache_control = this.#marker
    this.tools = this.tools.map((tool, at) => (at === this.tools.length - 1 ? { ...tool, cache_control } : tool))
    this.more = { system: [{ type: 'text', text: 'You are a test.', cache_control }] }
    this.encode = (body) => {
      const whole = JSON.parse(body.toString('utf8'))
      const last = whole.messages.at(-1).content.at(-1)
      last.cache_control = this.#marker
      return { body: Buffer.from(JSON.stringify(whole)), headers: { 'x-api-key': '', ...key } }
    }
  }

  get #marker(): object {
    return { type: 'ephemeral', ...(this.#ttl === undefined ? {} : { ttl: this.#ttl }) }
  }
}

const lifetimes = (body: any): string[] => markersOf(body).map(({ ttl }) => ttl ?? '5m')
const OPEN: Partial<GatewayOptions> = { isAnthropic: () => true }

describe('the lifetime of cached prefixes', () => {
  const rows: [name: string, options: Partial<GatewayOptions>, ttl: string | undefined, key: Record<string, string> | undefined, sent: string[]][] = [
    ['auto: a client on an hour keeps it for tools and system', OPEN, '1h', undefined, ['1h', '1h', '5m']],
    ['auto: a client on five minutes stays there', OPEN, undefined, undefined, ['5m', '5m', '5m']],
    ['5m', { ...OPEN, cacheLifetime: '5m' }, '1h', undefined, ['5m', '5m', '5m']],
    ['1h', { ...OPEN, cacheLifetime: '1h' }, undefined, undefined, ['1h', '1h', '1h']],
    ['client', { ...OPEN, cacheLifetime: 'client' }, '1h', undefined, ['1h', '1h', '1h']],
    ['another provider than Anthropic gets what the client asks for', {}, '1h', undefined, ['1h', '1h', '1h']],
    ['another provider never gets a ttl', { cacheLifetime: '1h' }, undefined, undefined, ['5m', '5m', '5m']],
    ['auto: a subscription has no price', OPEN, '1h', { authorization: 'Bearer sk-ant-oat01-test' }, ['1h', '1h', '1h']],
    ['a user may choose on a subscription', { ...OPEN, cacheLifetime: '5m' }, '1h', { authorization: 'Bearer sk-ant-oat01-test' }, ['5m', '5m', '5m']],
    ['auto: a key may be a bearer, too', OPEN, '1h', { authorization: 'Bearer sk-ant-api03-test' }, ['1h', '1h', '5m']],
  ]
  test.each(rows)('%s', async (_, options, ttl, key, sent) => {
    const server = await provider()
    const { gateway } = await gatewayTo(server.url, options)
    const loop = new MarkedLoop(gateway, ttl, key)
    await loop.prompt('begin')
    for (let n = 0; n < 2; n += 1) await loop.call('Bash', { command: `cat n${n}` }, long(`n${n}`, 10))
    expect(server.bodies.map(lifetimes)).toEqual([sent, sent, sent])
    expect(server.refusals).toEqual([])
  })

  test('markers stay where the client has set them over rolls, and each request keeps its lifetimes', async () => {
    const server = await provider()
    let now = 0
    const { gateway } = await gatewayTo(server.url, { ...OPEN, now: () => now })
    const loop = new MarkedLoop(gateway, '1h')
    await loop.prompt('begin')
    for (let n = 0; n < 60; n += 1) {
      now += n === 30 ? 20 * 60_000 : 10_000
      await loop.call('Bash', { command: `cat n${n}` }, long(`n${n}`))
    }
    expect(gateway.ledger.sessions[0]!.rolls.length).toBeGreaterThan(0)
    expect(server.refusals).toEqual([])
    for (const body of server.bodies) expect(lifetimes(body)).toEqual(['1h', '1h', '5m'])
  })

  test.each<[first: LifetimeOption, second: LifetimeOption, ttl: string | undefined, sent: string[]]>([
    ['auto', 'auto', '1h', ['1h', '1h', '5m']],
    ['5m', '5m', '1h', ['5m', '5m', '5m']],
    ['1h', '1h', undefined, ['1h', '1h', '1h']],
    ['5m', '1h', undefined, ['5m', '5m', '5m']],
    ['1h', 'auto', '1h', ['1h', '1h', '1h']],
  ])('%s, then a gateway with %s on the same conversation: what is cached keeps its lifetime', async (first, second, ttl, sent) => {
    const server = await provider()
    const own = lasting()
    let now = Date.UTC(2026, 0, 1)
    const open = (cacheLifetime: LifetimeOption): Promise<{ gateway: Gateway }> => gatewayTo(server.url, { ...OPEN, ...own, cacheLifetime, now: () => now })
    const one = await open(first)
    const loop = new MarkedLoop(one.gateway, ttl)
    await loop.prompt('begin')
    for (let n = 0; n < 3; n += 1) await loop.call('Bash', { command: `cat n${n}` }, long(`n${n}`, 10))
    await one.gateway.close()
    now += 60_000
    const two = await open(second)
    loop.url = two.gateway.url
    for (let n = 3; n < 6; n += 1) await loop.call('Bash', { command: `cat n${n}` }, long(`n${n}`, 10))
    expect(server.bodies.map(lifetimes)).toEqual(server.bodies.map(() => sent))
    expect(server.refusals).toEqual([])
    // Once that has expired, the second one chooses.
    now += 61 * 60_000
    await loop.call('Bash', { command: 'cat n6' }, long('n6', 10))
    const chosen = { auto: ['1h', '1h', '5m'], '5m': ['5m', '5m', '5m'], '1h': ['1h', '1h', '1h'], client: [] }[second]
    expect(lifetimes(server.bodies.at(-1))).toEqual(chosen)
  })

  test('a client that marks only its messages keeps its hour, and is told nothing of its provider', async () => {
    const server = await provider()
    const { gateway, warnings } = await gatewayTo(server.url, OPEN)
    const loop = new MarkedLoop(gateway, '1h')
    loop.tools = loop.tools.map((tool) => ({ ...tool, cache_control: undefined }))
    loop.more = { system: [{ type: 'text', text: 'You are a test.' }] }
    await loop.prompt('begin')
    for (let n = 0; n < 3; n += 1) await loop.call('Bash', { command: `cat n${n}` }, long(`n${n}`, 10))
    expect(server.bodies.map(lifetimes)).toEqual(server.bodies.map(() => ['1h']))
    expect(warnings).toEqual([])
  })

  test('a provider that keeps all for five minutes is asked no more, and the user hears of it once', async () => {
    const server = await provider('5m')
    const { gateway, warnings } = await gatewayTo(server.url, { ...OPEN, cacheLifetime: '1h' })
    const loop = new MarkedLoop(gateway)
    await loop.prompt('begin')
    for (let n = 0; n < 2; n += 1) await loop.call('Bash', { command: `cat n${n}` }, 'x')
    expect(server.bodies.map(lifetimes)).toEqual([
      ['1h', '1h', '1h'],
      ['5m', '5m', '5m'],
      ['5m', '5m', '5m'],
    ])
    expect(warnings.filter((one) => one.includes('five minutes'))).toHaveLength(1)
  })

  test('`usage` tells for how many calls a lifetime was chosen, why, and what that saved', async () => {
    const server = await provider()
    const path = folder()
    const store = { kind: 'sqlite' as const, path: join(path, 'context.db') }
    const env = { PI_CODING_AGENT_DIR: join(path, 'no-pi'), XDG_DATA_HOME: path }
    const { gateway } = await gatewayTo(server.url, { ...OPEN, store, billsPath: billsFile(store), cwd: path })
    const [hour, plan] = [new MarkedLoop(gateway, '1h'), new MarkedLoop(gateway, '1h', { authorization: 'Bearer sk-ant-oat01-test' })]
    await plan.prompt('another')
    await hour.prompt('begin')
    for (let n = 0; n < 3; n += 1) await hour.call('Bash', { command: `cat n${n}` }, long(`n${n}`, 10))
    const told = gateway.ledger.sessions.flatMap(({ lifetime }) => lifetime ?? [])
    await gateway.close()
    // Each answer has written 2,000 tokens for five minutes in place of an hour: .75 of a fresh token each, of 3 dollars a million.
    expect(told.map(({ savedTokens }) => savedTokens)).toEqual([6_000])
    const { stdout } = await cli(['usage', '--store', store.path, '--json'], env)
    const { lifetimes: sums, total } = JSON.parse(stdout)
    expect(total.calls).toBe(5)
    expect(sums).toEqual({ calls: 4, saved: expect.closeTo((3 * 6_000) / 1e6, 9), savedTokens: 6_000, reasons: [{ why: told[0]!.why, calls: 4 }] })
    expect(total.saved).toBeGreaterThan(0.9 * sums.saved)
    const text = (await cli(['usage', '--store', store.path], env)).stdout.replace(/\s+/g, ' ')
    expect(text).toContain(
      `The gateway chose how long Anthropic keeps the cache of 4 calls; that saved $0.02, which is part of what was saved: 4 of 4: ${told[0]!.why}`,
    )
  })

  test.each<[string, object, boolean]>([
    ['a choice', { why: 'an hour', savedTokens: -100 }, true],
    ['without a number', { why: 'an hour', savedTokens: null }, false],
    ['without a reason', { savedTokens: 5 }, false],
    ['a text', 'an hour' as never, false],
  ])('a line of a gateway that can be read only in part counts as a call: %s', async (_, lifetime, isChoice) => {
    const usage = { input: 1, cacheRead: 0, cacheWrite: 1_000, output: 1 }
    const file = join(folder(), 'bills.jsonl')
    writeFileSync(
      file,
      `${JSON.stringify({ at: 1, session: 's', folder: '/', model: 'claude-sonnet-4-5', billed: usage, plain: usage, isHeldOut: false, lifetime })}\n`,
    )
    const sums = new LifetimeSums()
    let calls = 0
    for await (const charge of gatewayCharges(file)) {
      calls += 1
      sums.add(charge)
    }
    expect(calls).toBe(1)
    expect(sums.sums).toEqual(
      isChoice ? { calls: 1, saved: expect.closeTo(-0.0003, 9), savedTokens: -100, reasons: [{ why: 'an hour', calls: 1 }] } : undefined,
    )
  })

  test('an hour in the cache costs twice a fresh token', async () => {
    const server = await provider()
    const { gateway } = await gatewayTo(server.url, { ...OPEN, cacheLifetime: 'client' })
    const loop = new MarkedLoop(gateway, '1h')
    await loop.call('Bash', { command: 'ls' }, 'x')
    // claude-sonnet-4-5: 3 dollars for a million fresh tokens.
    expect(gateway.ledger.sessions[0]!.cost.billed).toBeCloseTo((3 * (3 + 0.1 * 1_000 + 2 * 5_000)) / 1_000_000, 9)
  })
})
