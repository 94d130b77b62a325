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
