/** Losses of the provider's cache by their cause, and rolls that follow from what is lost. */
import { afterEach, describe, expect, test } from 'vitest'
import { breakOf } from '../../lib/gateway/break.ts'
import type { SentBefore } from '../../lib/gateway/break.ts'
import { headChanges, messageChanges } from '../../lib/gateway/changes.ts'
import type { GatewayOptions } from '../../lib/gateway/options.ts'
import { readRequest } from '../../lib/gateway/request.ts'
import type { Api, ModelRequest } from '../../lib/gateway/request.ts'
import { draw } from '../../lib/gateway/page/draw.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { AnthropicLoop, gatewayTo, long, upstream } from './support.ts'

afterEach(cleanUp)

const MINUTE = 60_000

/** A provider that finds all of the request before, unless it is told to lose it. Its tokens are a quarter of the bytes. */
async function provider(): Promise<{ url: string; lose: () => void; bodies: any[] }> {
  const bodies: any[] = []
  let [before, isLost] = [0, false]
  const { url } = await upstream(({ body }, response) => {
    bodies.push(JSON.parse(body.toString('utf8')))
    const tokens = Math.round(body.length / 4)
    const read = isLost ? 0 : Math.min(before, tokens)
    ;[before, isLost] = [tokens, false]
    const usage = { input_tokens: 0, cache_read_input_tokens: read, cache_creation_input_tokens: tokens - read, output_tokens: 10 }
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ type: 'message', role: 'assistant', content: [{ type: 'text', text: 'ok' }], usage }))
  })
  return { url, bodies, lose: () => void (isLost = true) }
}

async function session(options: Partial<GatewayOptions> = {}) {
  const server = await provider()
  const { gateway } = await gatewayTo(server.url, options)
  const loop = new AnthropicLoop(gateway)
  const work = async (from: number, to: number): Promise<void> => {
    for (let n = from; n < to; n += 1) await loop.call('Bash', { command: `cat n${n}` }, long(`n${n}`))
  }
  return { server, gateway, loop, work, sums: () => gateway.ledger.sessions[0]! }
}

describe('the cause of a loss', () => {
  const MESSAGES = ['one', 'two', 'three'].map((text) => ({ role: 'user', content: [{ type: 'text', text }] }))
  const request = (more: object = {}): ModelRequest =>
    readRequest('messages', {
      model: 'claude-sonnet-5',
      system: [{ type: 'text', text: 'You are a test.' }],
      tools: [{ name: 'Bash' }],
      messages: MESSAGES,
      ...more,
    })!
  const sent = (read: number, at: number, more: object = {}, rest: Partial<SentBefore> = {}): SentBefore => ({
    request: request(more),
    usage: { input: 0, cacheRead: read, cacheWrite: 50_000 - read, output: 0 },
    at,
    lifetimeMs: 5 * MINUTE,
    roll: undefined,
    ...rest,
  })
  const receipt = { items: 1, removedTokens: 1, cost: 1, gain: 1, reason: 'pays' } as SentBefore['roll']
  const rows: [name: string, now: SentBefore, by: string, says: RegExp][] = [
    ['it had expired', sent(0, 6 * MINUTE), 'time', /^It had expired: 6 minutes had passed, and the provider keeps a prompt for 5 minutes\.$/],
    ['its hour is not over', sent(0, 20 * MINUTE, {}, { lifetimeMs: 60 * MINUTE }), 'unknown', /the provider has dropped its cache/],
    ['other tools', sent(0, MINUTE, { tools: [{ name: 'Bash' }, { name: 'Read' }] }), 'host', /^The agent declared other tools\.$/],
    [
      'another system prompt',
      sent(0, MINUTE, { system: [{ type: 'text', text: 'You are another test.' }] }),
      'host',
      /^The agent changed its system prompt\.$/,
    ],
    ['the first message is gone', sent(0, MINUTE, { messages: MESSAGES.slice(1) }), 'host', /^The agent changed or removed message 1 of its 3 messages\.$/],
    [
      'outputs that the provider clears on request',
      sent(0, MINUTE, { context_management: { edits: [{ type: 'clear_tool_uses_20250919' }] } }),
      'host',
      /^The agent lets its provider clear old outputs \(context_management\)/,
    ],
    [
      'thinking that the provider keeps on request',
      sent(0, MINUTE, { context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] } }),
      'unknown',
      /the provider/,
    ],
    ['other settings', sent(0, MINUTE, { speed: 'fast' }), 'host', /^The agent changed its settings: speed\.$/],
    ['another model', sent(0, MINUTE, { model: 'claude-opus-5' }), 'model', /^The model changed from claude-sonnet-5 to claude-opus-5\.$/],
    ['another model after a pause', sent(0, 6 * MINUTE, { model: 'claude-opus-5' }), 'model', /^The model changed .* It had expired/],
    ['a roll', sent(0, MINUTE, {}, { roll: receipt }), 'roll', /^A roll of ours/],
    ['a roll once it had expired', sent(0, 6 * MINUTE, {}, { roll: receipt }), 'time', /^A roll of ours .* It had expired/],
    ['nothing of all that', sent(0, MINUTE), 'unknown', /the provider has dropped its cache/],
    [
      'a stamp of the agent leaves the system prompt unchanged',
      sent(0, MINUTE, {
        system: [
          { type: 'text', text: 'x-anthropic-billing-header: cch=2;' },
          { type: 'text', text: 'You are a test.' },
        ],
      }),
      'unknown',
      /the provider/,
    ],
  ]
  test.each(rows)('%s', (_, now, by, says) => {
    const before = { ...sent(0, 0), lifetimeMs: now.lifetimeMs }
    const found = breakOf(before, now)
    expect([found?.by, found?.tokens]).toEqual([by, 50_000])
    expect(found?.causes.join(' ')).toMatch(says)
  })

  const user = (text: string): object => ({ role: 'user', content: [{ type: 'text', text }] })
  const texts = (letters: string): object[] => [...letters].map(user)
  test.each<[before: string, now: string, says: string[]]>([
    ['abcd', 'abcde', []],
    ['abcd', 'xbcde', ['changed or removed message 1 of its 4 messages']],
    ['abcd', 'bcde', ['changed or removed message 1 of its 4 messages']],
    ['abcd', 'axcye', ['changed or removed 2 of its 4 messages, from message 2 on']],
    ['abcd', 'ab', ['changed or removed the last 2 of its 4 messages']],
    ['abcd', 'abcx', ['changed or removed message 4 of its 4 messages']],
    ['abcd', 'xyz', ['changed or removed the last 4 of its 4 messages']],
    ['abcd', 'abxcd', ['inserted or moved messages before message 3 of its 4 messages']],
    ['aab', 'ab', ['changed or removed message 2 of its 3 messages']],
    ['abcd', 'xabc', ['changed or removed message 4 of its 4 messages']],
  ])('messages %s become %s', (before, now, says) => {
    const all = [before, now].map((letters) => request({ messages: texts(letters) })) as [ModelRequest, ModelRequest]
    expect(messageChanges(...all)).toEqual(says.map((one) => `The agent ${one}.`))
  })

  const PROMPT = { role: 'user', content: 'begin' }
  test.each<[api: Api, list: string, role: string]>([
    ['chat', 'messages', 'system'],
    ['chat', 'messages', 'developer'],
    ['responses', 'input', 'developer'],
  ])('a system prompt in the list of %s', (api, list, role) => {
    const [before, now] = ['one', 'two'].map((text) => readRequest(api, { model: 'm', [list]: [{ role, content: text }, PROMPT] })!) as [
      ModelRequest,
      ModelRequest,
    ]
    expect([headChanges(before, now), messageChanges(before, now)]).toEqual([['The agent changed its system prompt.'], []])
  })

  test.each<[api: Api, before: object, now: object, named: string | undefined]>([
    ['messages', {}, { tool_choice: { type: 'any' } }, 'tool_choice'],
    ['messages', {}, { tool_choice: { type: 'auto' } }, undefined],
    ['messages', {}, { thinking: { type: 'enabled', budget_tokens: 2_000 } }, 'thinking'],
    ['messages', { thinking: { type: 'enabled', budget_tokens: 2_000 } }, { thinking: { type: 'enabled', budget_tokens: 9_000 } }, 'thinking'],
    ['messages', { thinking: { type: 'adaptive' } }, { thinking: { type: 'adaptive', display: 'omitted' } }, undefined],
    ['messages', {}, { thinking: { type: 'disabled' } }, undefined],
    ['messages', {}, { output_config: { effort: 'low', format: { type: 'json_schema' } } }, 'output_config.effort, output_config.format'],
    ['messages', {}, { max_tokens: 5, stream: true, metadata: { user_id: 'u' } }, undefined],
    ['chat', {}, { reasoning_effort: 'low', verbosity: 'low' }, 'reasoning_effort, verbosity'],
    ['chat', { prompt_cache_key: 'a' }, { prompt_cache_key: 'b' }, 'prompt_cache_key'],
    ['chat', {}, { response_format: { type: 'text' }, parallel_tool_calls: true, service_tier: 'auto' }, undefined],
    [
      'chat',
      {},
      { response_format: { type: 'json_object' }, parallel_tool_calls: false, service_tier: 'priority' },
      'response_format, parallel_tool_calls, service_tier',
    ],
    ['responses', { reasoning: { effort: 'high' } }, { reasoning: { effort: 'low', summary: 'auto' } }, 'reasoning.effort'],
    ['responses', {}, { text: { verbosity: 'low', format: { type: 'json_schema' } } }, 'text.verbosity, text.format'],
    ['gemini', {}, { toolConfig: { functionCallingConfig: { mode: 'ANY' } } }, 'toolConfig'],
    ['gemini', { toolConfig: { mode: 'x' } }, { tool_config: { mode: 'x' }, cached_content: 'c' }, 'cachedContent'],
  ])('settings in the format of %s: %j and %j', (api, before, now, named) => {
    const list = { messages: 'messages', chat: 'messages', responses: 'input', gemini: 'contents' }[api]
    const all = [before, now].map((more) => readRequest(api, { model: 'm', [list]: [PROMPT], ...more })!) as [ModelRequest, ModelRequest]
    const says = named === undefined ? [] : [`The agent changed its settings: ${named}.`]
    expect([headChanges(...all), headChanges(all[1], all[0])]).toEqual([says, says])
  })

  test('a cache marker leaves system and tools unchanged', () => {
    const cache_control = { type: 'ephemeral' }
    expect(
      headChanges(request(), request({ tools: [{ name: 'Bash', cache_control }], system: [{ type: 'text', text: 'You are a test.', cache_control }] })),
    ).toEqual([])
  })
})

describe('what a host changes before the messages', () => {
  const changes: [name: string, change: (loop: AnthropicLoop) => void][] = [
    ['its tools', (loop) => (loop.tools = [...loop.tools, { name: 'More', input_schema: { type: 'object' } }])],
    ['its system prompt', (loop) => (loop.more = { system: [{ type: 'text', text: 'You are another one.' }] })],
    ['its thinking', (loop) => (loop.more = { thinking: { type: 'enabled', budget_tokens: 2_000 } })],
  ]
  test.each(changes)('everything stale leaves with a change of %s, at no cost', async (_, change) => {
    const { server, loop, work, sums } = await session()
    await work(0, 14)
    const before = sums().rolls.length
    server.lose()
    change(loop)
    await work(14, 15)
    expect(sums().rolls.slice(before)).toMatchObject([{ cost: 0, reason: 'free' }])
    expect(sums().cache.losses).toMatchObject({ host: { count: 1 } })
    // The next request is like this one, and pays for what it changes.
    await work(15, 16)
    expect(sums().rolls.slice(before)).toHaveLength(1)
  })

  test('nothing leaves early for a stamp of the agent in its system prompt', async () => {
    const { loop, work, sums } = await session()
    await work(0, 14)
    const before = sums().rolls.length
    for (let n = 14; n < 17; n += 1) {
      loop.more = {
        system: [
          { type: 'text', text: `x-anthropic-billing-header: cch=${n};` },
          { type: 'text', text: 'You are a test.' },
        ],
      }
      await work(n, n + 1)
    }
    expect(
      sums()
        .rolls.slice(before)
        .filter(({ reason }) => reason === 'free'),
    ).toEqual([])
  })

  test('once the provider finds the messages in spite of a change, another one frees nothing', async () => {
    const { loop, work, sums } = await session()
    await work(0, 14)
    for (let n = 14; n < 24; n += 1) {
      loop.more = { system: [{ type: 'text', text: `You are test ${n}.` }] }
      await work(n, n + 1)
    }
    expect(sums().rolls.filter(({ reason }) => reason === 'free')).toHaveLength(1)
  })
})

describe('what a session has lost', () => {
  test('calls are counted by what they come with and the pause before them, and the page shows it', async () => {
    let now = 1_800_000_000_000
    const { server, gateway, loop, work, sums } = await session({
      now: () => now,
      models: { 'claude-sonnet-4-5': { cacheTtlMs: 60 * MINUTE } },
      open: { store: { kind: 'memory' }, stay: { weight: 50 } },
    })
    await work(0, 6)
    // Each of these prompts is followed by another one, with the first call.
    for (let n = 0; n < 6; n += 1) {
      now += (n % 2 === 0 ? 1 : 20) * MINUTE
      if (n < 3) server.lose()
      await loop.prompt(`prompt ${n}`)
      await work(10 * n + 10, 10 * n + 12)
    }
    const { counts, losses } = sums().cache
    expect(counts.prompt).toMatchObject({ 'under 5': { kept: 7, lost: 2 }, '5 to 60': { kept: 2, lost: 1 } })
    expect(counts.results['under 5'].lost).toBe(0)
    expect(losses).toMatchObject({ unknown: { count: 3 } })
    expect(losses.unknown!.cost).toBeCloseTo((losses.unknown!.tokens * (3.75 - 0.3)) / 1_000_000, 9)
    const { breaks } = draw(gateway.ledger.sessions, sums(), undefined).regions
    expect(breaks).toContain('What was read again, by its cause: the provider 3 (')
    expect(breaks).toContain('9 of 12 with a prompt')
  })

  test('the likelihood follows the losses of the session itself', async () => {
    let now = 1_800_000_000_000
    const { server, gateway, loop, work } = await session({ now: () => now, open: { store: { kind: 'memory' }, stay: { weight: 50 } } })
    const kept = (): number =>
      gateway.ledger.keptOf('claude-code:session-1', readRequest('messages', server.bodies.at(-1))!, {
        isPrompt: true,
        common: server.bodies.at(-1).messages.length,
      })
    await work(0, 6)
    expect(kept()).toBeCloseTo(0.914, 3)
    for (let n = 0; n < 10; n += 1) {
      now += MINUTE
      server.lose()
      await loop.prompt(`prompt ${n}`)
    }
    expect(kept()).toBeCloseTo(1 - 10.86 / 20, 3)
  })
})
