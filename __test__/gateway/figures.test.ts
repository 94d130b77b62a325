/** The cost of an answer, and the calls of our tool in it, in the forms of different providers. */
import { describe, expect, test } from 'vitest'
import type { Answered } from '../../lib/gateway/answer.ts'
import { AnswerReader } from '../../lib/gateway/answer.ts'
import type { Api } from '../../lib/gateway/request.ts'

/** Reads an answer that comes in pieces of seven bytes. */
function read(api: Api, text: string): Answered {
  const reader = new AnswerReader(api)
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += 7) reader.write(bytes.subarray(at, at + 7))
  return reader.end()
}

const events = (...list: object[]): string => list.map((one) => `data: ${JSON.stringify(one)}\n\n`).join('')
const body = (...[one]: object[]): string => JSON.stringify(one)

describe.each([
  ['events', events],
  ['one body', body],
])('usage in %s', (_, wire) => {
  test.each([
    ['OpenAI', { usage: { prompt_tokens: 9, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 4 } } }],
    ['OpenAI Responses', { usage: { input_tokens: 9, output_tokens: 2, input_tokens_details: { cached_tokens: 4 } } }],
    ['DeepSeek', { usage: { prompt_tokens: 9, completion_tokens: 2, prompt_cache_hit_tokens: 4, prompt_cache_miss_tokens: 5 } }],
    ['Moonshot', { usage: { prompt_tokens: 9, completion_tokens: 2, cached_tokens: 4 } }],
    ['Moonshot, in the last choice', { choices: [{ index: 0, delta: {}, usage: { prompt_tokens: 9, completion_tokens: 2, cached_tokens: 4 } }] }],
    [
      'Groq, in `x_groq`',
      {
        choices: [{ index: 0, delta: {} }],
        x_groq: { id: 'q', usage: { prompt_tokens: 9, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 4 } } },
      },
    ],
    ['details that are null', { usage: { prompt_tokens: 9, completion_tokens: 2, prompt_tokens_details: null, cached_tokens: 4 } }],
    [
      'in a choice and for all of them',
      { choices: [{ usage: { prompt_tokens: 1, completion_tokens: 1 } }], usage: { prompt_tokens: 9, completion_tokens: 2, cached_tokens: 4 } },
    ],
    [
      'xAI, whose total tells that reasoning is not a part of the answer',
      {
        usage: {
          ...{ prompt_tokens: 9, completion_tokens: 1, total_tokens: 11, prompt_tokens_details: { cached_tokens: 4 } },
          completion_tokens_details: { reasoning_tokens: 1 },
        },
      },
    ],
    [
      'OpenAI, whose total tells that it is',
      {
        usage: {
          ...{ prompt_tokens: 9, completion_tokens: 2, total_tokens: 11, prompt_tokens_details: { cached_tokens: 4 } },
          completion_tokens_details: { reasoning_tokens: 1 },
        },
      },
    ],
  ])('of %s', (_name, answer) => {
    expect(read('chat', wire(answer)).usage).toEqual({ input: 5, cacheRead: 4, cacheWrite: 0, output: 2 })
  })
})

test.each([
  ['no figures at all', { choices: [{ delta: { content: '"usage"' } }] }],
  ['usage that is null', { choices: [{ delta: { content: 'x' } }], usage: null }],
])('%s: no bill', (_, answer) => {
  expect(read('chat', events(answer)).usage).toBeUndefined()
})

/** Figures of an answer: the whole prompt, its cached part, and the output. */
type Figures = [prompt: unknown, cached: unknown, output: unknown]

/** Answers of each format with given figures, whole and in events. Anthropic does not count what was cached in the prompt. */
const FORMATS: [name: string, api: Api, isWhole: boolean, answer: (figures: Figures) => string][] = (
  [
    [
      'Messages',
      'messages',
      false,
      ([input_tokens, cache_read_input_tokens, output_tokens]) => ({ usage: { input_tokens, cache_read_input_tokens, output_tokens } }),
    ],
    [
      'Responses',
      'responses',
      true,
      ([input_tokens, cached_tokens, output_tokens]) => ({ response: { usage: { input_tokens, input_tokens_details: { cached_tokens }, output_tokens } } }),
    ],
    [
      'Chat Completions',
      'chat',
      true,
      ([prompt_tokens, cached_tokens, completion_tokens]) => ({ usage: { prompt_tokens, prompt_tokens_details: { cached_tokens }, completion_tokens } }),
    ],
    [
      'Gemini',
      'gemini',
      true,
      ([promptTokenCount, cachedContentTokenCount, candidatesTokenCount]) => ({
        usageMetadata: { promptTokenCount, cachedContentTokenCount, candidatesTokenCount },
      }),
    ],
  ] as [string, Api, boolean, (figures: Figures) => object][]
).flatMap(([name, api, isWhole, answer]) => [
  [`${name}, in one body`, api, isWhole, (figures: Figures) => body(answer(figures))],
  [
    `${name}, in events`,
    api,
    isWhole,
    (figures: Figures) =>
      api === 'messages'
        ? // As Anthropic sends them: all at the beginning, and the output once more at the end.
          events({ message: answer([figures[0], figures[1], 1]) }, { type: 'message_delta', usage: { output_tokens: figures[2] } })
        : events({ choices: [] }, answer(figures)),
  ],
])

describe.each(FORMATS)('%s', (name, api, isWhole, answer) => {
  test.each<[Figures, [input: number, cacheRead: number, output: number], isDoubtful: boolean]>([
    [[1000, 400, 30], [1000, 400, 30], false],
    [[1000, undefined, 30], [1000, 0, 30], false],
    [[1000, null, 30], [1000, 0, 30], false],
    [[1000, 400, 1e30], [1000, 400, 0], true],
    [[1e30, 400, 30], [0, 400, 30], true],
    [[-5, undefined, 3], [0, 0, 3], true],
    [['12', undefined, 'x'], [0, 0, 0], true],
    [[true, [], {}], [0, 0, 0], true],
    [[1000, -1e9, 30], [1000, 0, 30], true],
  ])('bills the figures %o as %o; doubtful: %s', (figures, [all, cached, output], isDoubtful) => {
    const [cacheRead, input] = isWhole ? [Math.min(cached, all), all - Math.min(cached, all)] : [cached, all]
    const { usage, isDoubtful: found = false } = read(api, answer(figures))
    expect([usage, found]).toEqual([{ input, cacheRead, cacheWrite: 0, output }, isDoubtful])
  })

  test.each<Figures>([
    [undefined, undefined, undefined],
    [null, null, null],
  ])('names no figures with %s: no bill', (...figures) => {
    // The beginning of Anthropic's stream has one already.
    if (name === 'Messages, in events') return
    expect(read(api, answer(figures)).usage).toBeUndefined()
  })
})

test('figures that contradict each other are doubtful', () => {
  const split = { input_tokens: 10, cache_creation_input_tokens: 5, cache_creation: { ephemeral_5m_input_tokens: 100 }, output_tokens: 5 }
  expect(read('messages', body({ usage: split }))).toMatchObject({ usage: { input: 10, cacheWrite: 5 }, isDoubtful: true })
  expect(read('chat', body({ usage: { prompt_tokens: 4, completion_tokens: 1, cached_tokens: 9 } }))).toMatchObject({
    usage: { input: 0, cacheRead: 4 },
    isDoubtful: true,
  })
  const thoughts = { promptTokenCount: 5, candidatesTokenCount: 4, thoughtsTokenCount: -4 }
  expect(read('gemini', body({ usageMetadata: thoughts }))).toMatchObject({ usage: { input: 5, output: 0 }, isDoubtful: true })
})

describe('a call of our tool', () => {
  const item = { type: 'function_call', id: 'fc_1', call_id: 'c1', name: 'activate', namespace: 'mcp__context', arguments: '{}' }
  const usage = { input_tokens: 9, output_tokens: 2 }
  const called = { id: 'c1', type: 'function', function: { name: 'mcp__context__activate', arguments: '{}' } }

  test.each<[string, Api, string]>([
    ['Responses, in one body', 'responses', body({ object: 'response', output: [item], usage })],
    [
      'Responses, in events',
      'responses',
      events({ type: 'response.output_item.done', item }, { type: 'response.completed', response: { output: [item], usage } }),
    ],
    ['Responses, at the end alone', 'responses', events({ type: 'response.completed', response: { output: [item], usage } })],
    ['Chat Completions, in one body', 'chat', body({ choices: [{ message: { tool_calls: [called] } }] })],
    ['Chat Completions, in events', 'chat', events({ choices: [{ delta: { tool_calls: [{ index: 1, ...called }] } }] })],
  ])('in %s is noted once', (_, api, text) => {
    expect(read(api, text).recalls).toEqual(['c1'])
  })
})
