/** Records without written tokens: the bill has none, and neither has what the session would have cost without us or with us. */
import { afterEach, expect, test } from 'vitest'
import { cleanUp } from '../../rig/cleanup.ts'
import { cli, temporaryFile } from './support.ts'

afterEach(cleanUp)

/** Tokens of a call as Codex notes them. */
interface Counts {
  input_tokens: number
  cached_input_tokens: number
  cache_write_input_tokens?: number
  output_tokens: number
}

/** A rollout of two calls. */
function rollout(model: string, counts: readonly Counts[]): string {
  const timestamp = '2026-03-02T10:00:00.000Z'
  const lines = [
    { type: 'session_meta', payload: { id: '0199c0de-1111-4222-8333-444455556666', cwd: '/w' } },
    { type: 'turn_context', payload: { model } },
    ...counts.flatMap((last_token_usage, n) => [
      { type: 'response_item', payload: { type: 'message', role: 'user', content: [{ type: 'input_text', text: `prompt ${n}` }] } },
      { type: 'response_item', payload: { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: `answer ${n}` }] } },
      { type: 'event_msg', payload: { type: 'token_count', info: { total_token_usage: { input_tokens: 1 + n }, last_token_usage } } },
    ]),
  ]
  return temporaryFile('rollout-2026-03-02.jsonl', lines.map((line) => `${JSON.stringify({ timestamp, ...line })}\n`).join(''))
}

test.each<[what: string, model: string, counts: Counts[], written: number]>([
  [
    'without a count of what was written',
    'gpt-6-sol',
    [
      { input_tokens: 20_000, cached_input_tokens: 0, output_tokens: 10 },
      { input_tokens: 21_000, cached_input_tokens: 20_000, output_tokens: 10 },
    ],
    1,
  ],
  ['without such a count, or anything read', 'gpt-6-sol', [{ input_tokens: 20_000, cached_input_tokens: 0, output_tokens: 10 }], 1],
  ['with a count of 0', 'gpt-6-sol', [{ input_tokens: 20_000, cached_input_tokens: 0, cache_write_input_tokens: 0, output_tokens: 10 }], 1],
  [
    'with its count',
    'gpt-6-sol',
    [
      { input_tokens: 20_000, cached_input_tokens: 0, cache_write_input_tokens: 20_000, output_tokens: 10 },
      { input_tokens: 21_000, cached_input_tokens: 20_000, cache_write_input_tokens: 1_000, output_tokens: 10 },
    ],
    1.25,
  ],
  ['of a model that is not charged for it', 'gpt-5.5', [{ input_tokens: 20_000, cached_input_tokens: 0, output_tokens: 10 }], 1],
])('a session %s costs what was billed', async (_what, model, counts, written) => {
  const { stdout } = await cli(['replay', rollout(model, counts), '--json'])
  const [{ paid, policies, unit }] = (JSON.parse(stdout) as { sessions: [{ paid: { cost: number }; policies: { recorded: { cost: number } }; unit: string }] })
    .sessions
  const [input, read] = model === 'gpt-5.5' ? [5, 0.5] : [2, 0.2]
  const fresh = counts.reduce((sum, one) => sum + one.input_tokens - one.cached_input_tokens, 0)
  const cached = counts.reduce((sum, one) => sum + one.cached_input_tokens, 0)
  const bill = (fresh * written * input + cached * read) / 1e6
  expect([unit, paid.cost.toFixed(4)]).toEqual(['USD', bill.toFixed(4)])
  // The sizes of the texts decide how much of the second prompt was new, and a token that was written costs a quarter more.
  expect(Math.abs(policies.recorded.cost / bill - 1)).toBeLessThan(0.05)
})
