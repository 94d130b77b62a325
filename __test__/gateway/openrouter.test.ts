/** OpenRouter behind the gateway: its two formats, its keys for a session, and what it takes of Anthropic's fields. */
import { afterEach, describe, expect, test } from 'vitest'
import { cleanUp } from '../../rig/cleanup.ts'
import { startModelServer } from '../../rig/model-server.ts'
import { PlainLoop, Refused } from '../../rig/plain-loop.ts'
import { thinker } from '../../rig/thinker.ts'
import { ask, callTool, gatewayTo, JSON_TYPE, long } from './support.ts'

afterEach(cleanUp)

/** The headers by which an app names itself and its session there. */
const APP = { authorization: 'Bearer sk-or-secret', 'http-referer': 'https://app.example', 'x-title': 'app', 'x-session-id': 'session-of-app' }
const ANTHROPIC_TOOLS = ['show', 'mcp__context__activate'].map((name) => ({ name, description: name, input_schema: { type: 'object' } }))

describe('in Anthropic’s format', () => {
  async function started(strict: object, model = 'anthropic/claude-opus-5.5') {
    const server = await startModelServer(thinker, { account: 'new', ...strict })
    const { gateway, warnings } = await gatewayTo('http://127.0.0.1:1')
    const url = `${gateway.url.replace(/\/anthropic$/, '')}/${server.url}/api`
    const body = { tools: ANTHROPIC_TOOLS, thinking: { type: 'adaptive' }, system: [{ type: 'text', text: 'You help.', cache_control: { type: 'ephemeral' } }] }
    const loop = new PlainLoop({
      server: { url },
      api: 'anthropic-messages',
      model,
      run: (_, { name }) => long(name),
      body,
      headers: { 'user-agent': 'app/1', ...APP, 'x-api-key': 'sk-or-secret' },
    })
    return { server, gateway, warnings, loop }
  }

  /** Prompts with two calls each. After a refusal the user asks again. Returns the refusals. */
  async function talk(loop: PlainLoop, prompts: number): Promise<string[]> {
    const refused: string[] = []
    for (let n = 0; n < prompts; n += 1) {
      for (let isAnswered = false; !isAnswered && refused.length < 8;) {
        try {
          await loop.prompt(`show a${n} b${n}`)
          isAnswered = true
        } catch (error) {
          if (!(error instanceof Refused)) throw error
          refused.push(error.message)
        }
      }
    }
    return refused
  }

  test('a provider that does not know the field for bound reasoning refuses once at most', async () => {
    const { server, loop, warnings } = await started({ lacksControls: true })
    const refused = await talk(loop, 24)
    expect(refused).toEqual(['thinking.block_binding: Extra inputs are not permitted'])
    expect(warnings).toEqual([expect.stringContaining('does not take the field that lets a provider drop reasoning')])
    const last = server.requests.at(-1)!
    expect(last.raw.toString()).toContain('toolcall_ref')
    expect(last.raw.length).toBeLessThan(0.6 * JSON.stringify(loop.messages).length)
    expect(last.body.thinking).toEqual({ type: 'adaptive' })
    expect(last.headers['anthropic-beta']).toBeUndefined()
  })

  test('a refusal of reasoning, which names the field as a way out, is not one of the field', async () => {
    const { loop, warnings } = await started({}, 'anthropic/claude-sonnet-4.5')
    const refused = await talk(loop, 24)
    expect(refused).toEqual([expect.stringContaining('prefix_mismatch_behavior')])
    expect(warnings).toEqual([expect.stringContaining('has refused reasoning of anthropic/claude-sonnet-4.5')])
  })

  test('one that knows it refuses nothing; session and markers arrive as the app has set them', async () => {
    const { server, gateway, loop } = await started({})
    expect(await talk(loop, 24)).toEqual([])
    expect(server.requests.at(-1)!.raw.toString()).toContain('toolcall_ref')
    for (const { headers, raw, path } of server.requests) {
      expect(path).toBe('/api/v1/messages')
      expect(headers).toMatchObject(APP)
      expect(raw.toString()).not.toContain('"ttl"')
    }
    expect(gateway.ledger.sessions.map(({ session }) => session)).toEqual(['agent:session-of-app'])
  })
})

test.each([
  ['its header', { 'x-session-id': 'session-of-app' }, {}],
  ['its field', {}, { session_id: 'session-of-app' }],
])('in the format of chat completions: the session by %s, and its other fields arrive', async (_, headers, fields) => {
  const server = await startModelServer(() => 'ok')
  const { gateway } = await gatewayTo('http://127.0.0.1:1')
  const url = `${gateway.url.replace(/\/anthropic$/, '')}/${server.url}/api/v1/chat/completions`
  const own = {
    model: 'anthropic/claude-opus-5.5',
    provider: { order: ['Anthropic'], allow_fallbacks: false },
    usage: { include: true },
    transforms: [],
    reasoning: { effort: 'high' },
    ...fields,
  }
  const tools = ['bash', 'mcp__context__activate'].map((name) => ({ type: 'function', function: { name, parameters: { type: 'object' } } }))
  const messages: any[] = [{ role: 'system', content: [{ type: 'text', text: 'You help.', cache_control: { type: 'ephemeral' } }] }]
  for (let n = 0; n < 16; n += 1) {
    messages.push({ role: 'user', content: `prompt ${n}` })
    for (const part of ['a', 'b']) {
      const id = `call_${part}${n}`
      messages.push({
        role: 'assistant',
        content: null,
        tool_calls: [{ id, type: 'function', function: { name: 'bash', arguments: JSON.stringify({ command: `cat ${part}${n}` }) } }],
        reasoning_details: [{ type: 'reasoning.encrypted', data: `secret ${id}`, index: 0 }],
      })
      messages.push({ role: 'tool', tool_call_id: id, content: long(`${part}${n}`) })
      expect(
        (await ask(url, { headers: { ...JSON_TYPE, authorization: 'Bearer sk-or-secret', ...headers }, body: JSON.stringify({ ...own, tools, messages }) }))
          .status,
      ).toBe(200)
    }
    messages.push({ role: 'assistant', content: `done ${n}` })
  }
  server.check()
  const { messages: sent, tools: _tools, ...rest } = server.requests.at(-1)!.body
  expect(rest).toEqual(own)
  expect(gateway.ledger.sessions.map(({ session }) => session)).toEqual(['agent:session-of-app'])
  // Signed reasoning stays with its calls.
  const details = new Map(messages.flatMap(({ tool_calls: calls, reasoning_details: one }) => (calls === undefined ? [] : [[calls[0].id, one]])))
  for (const { tool_calls: calls, reasoning_details: one } of sent) if (calls !== undefined) expect(one).toEqual(details.get(calls[0].id))
  const [, id] = /toolcall_ref id=(\w+)/.exec(JSON.stringify(sent))!
  expect(await callTool(gateway, 'activate', { id })).toContain('line 119 of an output')
})
