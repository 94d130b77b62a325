/** The shapes of messages: their recognition, refused values, untouched values, and equal treatment of all. */
import { afterEach, describe, expect, test } from 'vitest'
import { Projection } from '../lib/projection/harness.ts'
import type { ShapeName } from '../lib/projection/harness.ts'
import { shapeNamed, shapeOf } from '../lib/projection/shapes.ts'
import { folder, opened } from './core/setup.ts'
import { conversation, shapes, shown, written } from './hosts/conversation.ts'
import { cleanUp } from '../rig/cleanup.ts'
import { SOON } from '../rig/extension.ts'
import { some } from './rows.ts'
import { MODEL } from './hosts/processes.ts'

afterEach(cleanUp)

/** Messages that only one shape has, and that many harnesses send. */
const OWN: [ShapeName, string, object][] = [
  ['pi', 'a result', { role: 'toolResult', toolCallId: 'c', toolName: 'x', content: [{ type: 'text', text: 'a' }], isError: false }],
  ['pi', 'a call', { role: 'assistant', content: [{ type: 'toolCall', id: 'c', name: 'x', arguments: {} }] }],
  ['pi', "an application's own message", { role: 'notification', text: 'hello', timestamp: 5 }],
  ['anthropic', 'a call', { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'x', input: {} }] }],
  ['anthropic', 'a result', { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c', content: 'a' }] }],
  ['anthropic', 'signed reasoning', { role: 'assistant', content: [{ type: 'thinking', thinking: 'a', signature: 'b' }] }],
  ['anthropic', 'hidden reasoning', { role: 'assistant', content: [{ type: 'redacted_thinking', data: 'a' }] }],
  ['anthropic', 'an image', { role: 'user', content: [{ type: 'image', source: { type: 'url', url: 'https://x' } }] }],
  ['anthropic', 'a cache marker', { role: 'user', content: [{ type: 'text', text: 'a', cache_control: { type: 'ephemeral' } }] }],
  ['anthropic', 'a search by the provider', { role: 'assistant', content: [{ type: 'server_tool_use', id: 's', name: 'web_search', input: {} }] }],
  ['openai-chat', 'a call', { role: 'assistant', content: null, tool_calls: [{ id: 'c', type: 'function', function: { name: 'x', arguments: '{}' } }] }],
  ['openai-chat', 'a result', { role: 'tool', tool_call_id: 'c', content: 'a' }],
  ['openai-chat', 'an image', { role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://x' } }] }],
  ['openai-responses', 'a call', { type: 'function_call', call_id: 'c', name: 'x', arguments: '{}' }],
  ['openai-responses', 'a result', { type: 'function_call_output', call_id: 'c', output: 'a' }],
  ['openai-responses', 'a call of the Agents SDK', { type: 'function_call', callId: 'c', name: 'x', arguments: '{}', status: 'completed' }],
  [
    'openai-responses',
    'a result of the Agents SDK',
    { type: 'function_call_result', callId: 'c', name: 'x', status: 'completed', output: { type: 'text', text: 'a' } },
  ],
  ['openai-responses', 'encrypted reasoning', { type: 'reasoning', id: 'r', summary: [], encrypted_content: 'a' }],
  ['openai-responses', 'a message', { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'a' }] }],
  ['openai-responses', 'an input', { role: 'user', content: [{ type: 'input_text', text: 'a' }] }],
  ['openai-responses', 'a search by the provider', { type: 'web_search_call', id: 'w', status: 'completed' }],
  ['gemini', 'an answer', { role: 'model', parts: [{ text: 'a' }] }],
  ['gemini', 'a prompt', { role: 'user', parts: [{ text: 'a' }] }],
  ['gemini', 'a call', { role: 'model', parts: [{ functionCall: { name: 'x', args: {} }, thoughtSignature: 's' }] }],
  ['gemini', 'a result', { role: 'user', parts: [{ functionResponse: { name: 'x', response: { output: 'a' } } }] }],
  ['ai-sdk', 'a call', { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'c', toolName: 'x', input: {} }] }],
  ['ai-sdk', 'a result', { role: 'tool', content: [{ type: 'tool-result', toolCallId: 'c', toolName: 'x', output: { type: 'text', value: 'a' } }] }],
  ['ai-sdk', 'signed reasoning', { role: 'assistant', content: [{ type: 'reasoning', text: 'a', providerOptions: { anthropic: { signature: 's' } } }] }],
  ['ai-sdk', 'an image', { role: 'user', content: [{ type: 'image', image: new Uint8Array(3) }] }],
  ['ai-sdk', 'a cache marker', { role: 'system', content: 'a', providerOptions: { anthropic: { cacheControl: { type: 'ephemeral' } } } }],
]

/** Messages that several shapes have, and that mean the same in each. */
const SHARED = [
  { role: 'user', content: 'a' },
  { role: 'assistant', content: 'a' },
  { role: 'system', content: 'a' },
  { role: 'user', content: [{ type: 'text', text: 'a' }] },
  { role: 'assistant', content: [{ type: 'text', text: 'a' }] },
]

/** Values that are not messages, or are those of an unknown provider. */
const REFUSED: [string, unknown][] = [
  ['null', null],
  ['a text', 'hello'],
  ['a number', 5],
  ['a list', [{ role: 'user', content: 'a' }]],
  ['nothing', {}],
  ['a part of an unknown kind', { role: 'model', parts: [{ spell: 'a' }] }],
  ['a message of Bedrock', { role: 'user', content: [{ toolResult: { toolUseId: 'c', content: [] } }] }],
  ['a message without content', { role: 'user' }],
  ['a block without a type', { role: 'user', content: [{ text: 'a' }] }],
  ['an unknown role', { role: 'wizard', content: 'a' }],
  ['an unknown item', { type: 'spell', name: 'x' }],
  ['a LangChain document', { pageContent: 'a', metadata: {} }],
]

describe('the shape of messages', () => {
  test.each(OWN)('%s: %s', (shape, _, message) => {
    expect(shapeOf([message], 0, undefined)?.name).toBe(shape)
    // Gemini's have parts, and no content.
    if (shape !== 'gemini') expect(shapeOf([...SHARED.slice(0, 3), message], 0, undefined)?.name).toBe(shape)
    expect(shapeNamed(shape).judge(message)).toBe('own')
  })

  test.each(SHARED)('nothing tells yet: %j', (message) => {
    expect(shapeOf([message], 0, undefined)).toBeUndefined()
    const readings = shapes
      .map((shape) => shapeNamed(shape))
      .filter((shape) => shape.judge(message) === 'shared')
      .map((shape) => shape.read([message], 0))
    expect(readings.length).toBeGreaterThan(2)
    for (const reading of readings) expect(reading).toEqual({ size: 1, parts: [message] })
  })

  test.each(OWN)('%s: no other shape claims %s', (shape, _, message) => {
    const others = shapes.filter((name) => name !== shape && shapeNamed(name).judge(message) === 'own')
    expect(others).toEqual([])
  })

  test.each(REFUSED)('%s is refused, and nothing is recorded', async (_, message) => {
    const manager = await opened({ cwd: folder() })
    const given = [{ role: 'user', content: 'a' }, message]
    await expect(manager.transformContext(given)).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(/^message 1 of 2 is not of a known shape \(pi, anthropic, openai-chat, openai-responses, ai-sdk, gemini\): it /),
    })
    expect(await manager.get('chat:s').then((chat) => chat?.['turn_count'] ?? 0)).toBe(0)
    expect(await manager.transformContext(given.slice(0, 1))).toEqual(given.slice(0, 1))
  })

  test.each([null, undefined, 'hello', 5, { role: 'user', content: 'a' }])('a value that is not a list is refused: %j', async (messages) => {
    const manager = await opened({ cwd: folder() })
    await expect(new Projection(manager, { model: MODEL }).transform(messages as never)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  })

  test('a conversation of two shapes is refused, with the place', async () => {
    const manager = await opened({ cwd: folder() })
    const [anthropic] = OWN.filter(([shape]) => shape === 'anthropic').map(([, , message]) => message)
    const [result] = OWN.filter(([shape]) => shape === 'openai-chat').map(([, , message]) => message)
    await expect(manager.transformContext([anthropic, result])).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('message 1 of 2 is not of the shape anthropic'),
    })
    const other = await opened({ cwd: folder(), sessionId: 't', shape: 'openai-chat' })
    await expect(other.transformContext([anthropic])).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    expect(() => new Projection(manager, { shape: 'bedrock' as never })).toThrow(/shape is one of/)
    await expect(new Projection(manager, { layout: 'sections' }).transform([anthropic])).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  })
})

describe.each(some([1, 2, 3, 4, 5, 6, 7, 8], 1))('one conversation in every shape, seed %i', (seed) => {
  /** Returns the messages sent at each step, and the session's result. */
  async function run(shape: ShapeName) {
    const manager = await opened({ cwd: folder(), sessionId: shape, stay: SOON })
    let now = Date.UTC(2026, 0, 1)
    const rolls: object[] = []
    const projection = new Projection(manager, { model: { ...MODEL, binding: 'none' }, systemTokens: 1000, now: () => now, onRoll: (one) => rolls.push(one) })
    const messages: object[] = []
    const requests: unknown[][] = []
    for (const [at, step] of conversation(seed, 50).entries()) {
      messages.push(...written[shape](step, now))
      const before = structuredClone(messages)
      requests.push(await projection.transform(messages))
      expect(messages, 'the harness keeps its own').toEqual(before)
      now += at % 12 === 11 ? 600_000 : 1000
    }
    return { manager, projection, messages, requests, rolls }
  }

  test.each(shapes)(
    '%s: only outputs and arguments change, all of them can be brought back, and each request extends the last one but for rolls',
    async (shape) => {
      const { manager, projection, messages, requests, rolls } = await run(shape)
      const sent = requests.at(-1)!
      const [whole, seen] = [shown(messages), shown(sent)]
      let collapsed = 0
      for (const [id, { text, args }] of whole) {
        const now = seen.get(id)!
        if (now.text === text && JSON.stringify(now.args) === JSON.stringify(args)) continue
        collapsed += 1
        const name = /id=(\S+)/.exec(now.text ?? '')?.[1] ?? id
        expect(await projection.permits(name)).toBe(true)
        const back = await manager.activate(name)
        expect(back.content).toBe(text)
        if (JSON.stringify(now.args) !== JSON.stringify(args)) expect(back.arguments).toEqual(args)
      }
      expect(collapsed).toBeGreaterThan(3)
      expect(masked(sent)).toEqual(masked(messages))
      let broken = 0
      for (const [n, request] of requests.entries()) {
        const before = requests[n - 1]?.map((one) => JSON.stringify(one)) ?? []
        if (request.slice(0, before.length).some((one, index) => JSON.stringify(one) !== before[index])) broken += 1
      }
      expect(broken).toBeLessThanOrEqual(rolls.length)
      expect(rolls.length).toBeGreaterThan(0)
    },
  )

  test('all shapes collapse the same', async () => {
    const { requests } = await run('anthropic')
    for (const shape of ['ai-sdk', 'openai-responses'] as const) {
      const other = await run(shape)
      for (const [n, request] of requests.entries()) {
        expect(Object.fromEntries(shown(other.requests[n]!)), `${shape}, request ${n}`).toEqual(Object.fromEntries(shown(request)))
      }
    }
  })
})

/** Messages without the texts of results and the long arguments, which are what may change. */
function masked(messages: readonly unknown[]): unknown {
  return JSON.parse(JSON.stringify(messages), (key, value: unknown) => {
    if (key === 'args' || key === 'response') return '-'
    if (key === 'arguments' || key === 'input' || key === 'output') return typeof value === 'string' || !isRich(value) ? '-' : rich(value)
    const fields = value as Record<string, unknown> | null
    if (fields !== null && typeof fields === 'object' && !Array.isArray(fields)) {
      const isResult = fields['role'] === 'toolResult' || fields['role'] === 'tool' || fields['type'] === 'tool_result'
      if (isResult) return { ...fields, content: isRich(fields['content']) ? rich(fields['content']) : '-' }
    }
    return value
  })
}

/** True if a result has more than text; then nothing of it may change. */
function isRich(content: unknown): boolean {
  return /"type":"(image|image_url|input_image|image-data|tool-result)"/.test(JSON.stringify(content))
}

function rich(content: unknown): unknown {
  return content
}

describe('signed or marked content', () => {
  test('calls that a provider has signed keep their arguments', async () => {
    const long = { content: 'x'.repeat(8000), path: 'a' }
    const cases: [ShapeName, object][] = [
      [
        'ai-sdk',
        {
          role: 'assistant',
          content: [{ type: 'tool-call', toolCallId: 'c', toolName: 'write', input: long, providerOptions: { google: { thoughtSignature: 's' } } }],
        },
      ],
      [
        'openai-chat',
        {
          role: 'assistant',
          content: null,
          tool_calls: [
            { id: 'c', type: 'function', function: { name: 'write', arguments: JSON.stringify(long) }, extra_content: { google: { thought_signature: 's' } } },
          ],
        },
      ],
      ['openai-responses', { type: 'custom_tool_call', call_id: 'c', name: 'write', input: 'x'.repeat(8000) }],
    ]
    for (const [shape, answer] of cases) {
      const manager = await opened({ cwd: folder(), sessionId: shape, stay: SOON })
      let now = 0
      const projection = new Projection(manager, { model: MODEL, now: () => now })
      const result = written[shape]({ calls: [{ id: 'c', name: 'write', args: {}, output: 'done '.repeat(4000) }] }, 0).at(-1)!
      const messages = [{ role: 'user', content: 'go' }, answer, shape === 'openai-responses' ? { ...result, type: 'custom_tool_call_output' } : result]
      await projection.transform(messages)
      for (let n = 0; n < 8; n += 1)
        messages.push(...written[shape]({ calls: [{ id: `d${n}`, name: 'bash', args: {}, output: 'y'.repeat(300) }] }, 0), { role: 'user', content: 'on' })
      await projection.transform(messages)
      now += 3_600_000
      const sent = await projection.transform([...messages, { role: 'user', content: 'later' }])
      expect(sent[1], shape).toEqual(answer)
      expect(JSON.stringify(sent[2])).toContain('toolcall_ref')
    }
  })

  test('a cache marker that moves along is sent where it is now, and nothing is read again', async () => {
    const manager = await opened({ cwd: folder() })
    const projection = new Projection(manager, { model: MODEL, now: () => 0 })
    let reads = 0
    const resync = manager.resync.bind(manager)
    manager.resync = (...given) => ((reads += 1), resync(...given))
    const messages: { role: string; content: any }[] = []
    const marked = () =>
      messages.map((message, index) =>
        index < messages.length - 1 || typeof message.content === 'string'
          ? message
          : {
              ...message,
              content: message.content.map((block: object, n: number) =>
                n === message.content.length - 1 ? { ...block, cache_control: { type: 'ephemeral' } } : block,
              ),
            },
      )
    for (const [at, step] of conversation(3, 40).entries()) {
      messages.push(...(written.anthropic(step, at) as typeof messages))
      const sent = JSON.stringify(await projection.transform(marked()))
      expect((sent.match(/cache_control/g) ?? []).length).toBe(typeof messages.at(-1)!.content === 'string' ? 0 : 1)
    }
    expect(reads).toBe(1)
  })
})
