/** Lifetimes that the gateway chooses, as its provider gets them. */
import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayOptions } from '../../../lib/gateway/gateway.ts'
import { cleanUp } from '../../../rig/cleanup.ts'
import { markerRefusal, markersOf } from '../../../rig/markers.ts'
import { AnthropicLoop, gatewayTo, long, upstream } from '../support.ts'

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
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ type: 'message', role: 'assistant', content: [{ type: 'text', text: 'ok' }], usage }))
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

  test('a provider that keeps all for five minutes is asked no more, and the user hears of it once', async () => {
    const server = await provider('5m')
    const { gateway, warnings } = await gatewayTo(server.url, { ...OPEN, cacheLifetime: '1h' })
    const loop = new MarkedLoop(gateway)
    await loop.prompt('begin')
    for (let n = 0; n < 2; n += 1) await loop.call('Bash', { command: `cat n${n}` }, 'x')
    expect(server.bodies.map(lifetimes)).toEqual([['1h', '1h', '1h'], ['5m', '5m', '5m'], ['5m', '5m', '5m']])
    expect(warnings.filter((one) => one.includes('five minutes'))).toHaveLength(1)
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
