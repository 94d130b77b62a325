/** The options of a projection, as a harness in JavaScript gives them, and arguments with numbers that JavaScript does not have. */
import { afterEach, describe, expect, test } from 'vitest'
import { ContextManager } from '../lib/index.ts'
import { Projection } from '../lib/projection/index.ts'
import { cleanUp } from '../rig/cleanup.ts'
import { folder } from './core/setup.ts'
import { MODEL } from './hosts/processes.ts'

afterEach(cleanUp)

const opened = (): Promise<ContextManager> => ContextManager.open({ sessionId: 's', cwd: folder(), store: { kind: 'memory' }, watch: false })

const text = (n: number): string => Array.from({ length: 40 }, (_, line) => `output ${n}, line ${line}: ${n * line}`).join('\n')

/** A conversation of this many calls. */
function calls(count: number, args = '{"command":"make"}'): object[] {
  const call = (n: number): object => ({ id: `c${n}`, type: 'function', function: { name: 'bash', arguments: n === 3 ? args : '{"command":"make"}' } })
  return Array.from({ length: count }, (_, n): object[] => [
    { role: 'assistant', content: null, tool_calls: [call(n)] },
    { role: 'tool', tool_call_id: `c${n}`, content: text(n) },
  ]).reduce((all, two) => [...all, ...two], [{ role: 'user', content: 'begin' }])
}

/** Sends a conversation call by call. Returns how many of the requests changed what the one before had, and what the last one has. */
async function sentBy(projection: Projection, messages: object[]): Promise<{ breaks: number; last: string[] }> {
  let last: string[] = []
  let breaks = 0
  for (let length = 1; length <= messages.length; length += 2) {
    const sent = (await projection.transform(messages.slice(0, length))).map((message) => JSON.stringify(message))
    if (last.some((message, at) => sent[at] !== message)) breaks += 1
    last = sent
  }
  return { breaks, last }
}

describe('a projection', () => {
  test.each<[string, object, RegExp]>([
    ['an option that does not exist', { nope: 1 }, /has no field "nope"/],
    ['a limit that is not a number', { limitMs: Number.NaN }, /limitMs is a number above 0, not NaN/],
    ['a limit below 0', { limitMs: -1 }, /limitMs is a number above 0, not -1/],
    ['a negative count', { sentMessages: -1 }, /sentMessages is a number of 0 or more, not -1/],
    ['a size that is a text', { systemTokens: '3000' }, /systemTokens is a number of 0 or more, not "3000"/],
    ['a word where yes or no is asked', { canRecall: 'yes' }, /canRecall is true, false or a function, not "yes"/],
    ['a negative price', { model: { ...MODEL, input: -1 } }, /model\.input is a number of 0 or more, not -1/],
  ])('refuses %s', async (_, options, sentence) => {
    const manager = await opened()
    expect(() => new Projection(manager, options as never)).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(sentence) }),
    )
  })

  test("takes a host's own description of a model, which has more fields", async () => {
    const projection = new Projection(await opened(), { shape: 'openai-chat', model: { ...MODEL, output: 15, maxTokens: 8_000 } as never })
    expect((await sentBy(projection, calls(40))).last.join('').length).toBeLessThan(JSON.stringify(calls(40)).length)
  })

  test('takes a lifetime and a limit without an end', async () => {
    const messages = calls(80)
    const found = []
    for (const cacheTtlMs of [3_600_000, Infinity]) {
      for (const limitMs of [30_000, 2 ** 31, Infinity]) {
        const warnings: string[] = []
        const options = {
          shape: 'openai-chat',
          model: { ...MODEL, cacheTtlMs },
          limitMs,
          onWarning: (sentence: string) => warnings.push(sentence),
          now: () => 1,
        } as const
        const { breaks, last } = await sentBy(new Projection(await opened(), options), messages)
        found.push({ breaks, last: last.join('').length, warnings })
      }
    }
    expect(new Set(found.map((one) => JSON.stringify(one))).size).toBe(1)
    expect(found[0]!.last).toBeLessThan(JSON.stringify(messages).length / 2)
  })
})

test.each(['{"d":1e400}', '{"d":[{"e":-1E+999}]}', `{"d":${'9'.repeat(400)}}`, '{"d":"1e400"}', '{"d":1e-400}'])(
  'arguments %s are sent as they came',
  async (args) => {
    const messages = calls(40, args)
    const { last } = await sentBy(new Projection(await opened(), { shape: 'openai-chat', model: MODEL }), messages)
    expect(last.length).toBe(messages.length)
    expect(last.find((message) => message.includes('"c3"'))).toBe(JSON.stringify(messages[7]))
  },
)
