/** Reasoning in a projected conversation: which binding holds, and what happens once it is refused. */
import { afterEach, describe, expect, test } from 'vitest'
import { Reasoning } from '../lib/projection/reasoning.ts'
import type { KnownModel } from '../lib/projection/reasoning.ts'
import { Projection } from '../lib/projection/harness.ts'
import type { ProjectedModel } from '../lib/projection/harness.ts'
import type { Binding } from '../lib/models/rules.ts'
import { folder, opened } from './core/setup.ts'
import { output } from './hosts/script.ts'
import { cleanUp } from '../rig/cleanup.ts'
import { SOON } from '../rig/extension.ts'
import { fateOf } from '../rig/fate.ts'
import { startModelServer } from '../rig/model-server.ts'
import { PlainLoop, Refused } from '../rig/plain-loop.ts'
import type { LoopOptions } from '../rig/plain-loop.ts'
import type { Reply } from '../rig/reply.ts'
import type { ModelRequest } from '../rig/exchange.ts'
import { lossOf } from '../rig/strict.ts'
import type { StrictOptions } from '../rig/strict.ts'
import { thinker } from '../rig/thinker.ts'

afterEach(cleanUp)

const OPUS: ProjectedModel = { name: 'claude-opus-5-5', contextWindow: 200_000, input: 4, cacheRead: 0.2, cacheWrite: 5 }

async function started(
  strict: StrictOptions,
  model: ProjectedModel | undefined,
  more: Partial<LoopOptions> = {},
  script: (request: ModelRequest) => Reply = thinker,
) {
  const server = await startModelServer(script, strict)
  const manager = await opened({ cwd: folder(), stay: SOON })
  let rolls = 0
  const projection = new Projection(manager, { shortens: true, systemTokens: 3000, onRoll: () => (rolls += 1), ...(model === undefined ? {} : { model }) })
  const loop = new PlainLoop({
    server,
    api: 'anthropic-messages',
    run: (_, { name }) => output(name),
    prepare: (messages) => projection.transform(messages),
    ...more,
  })
  return { server, projection, loop, rolls: () => rolls }
}

/** Prompts of `count` calls each. */
const prompts = (turns: number, count: number) =>
  Array.from({ length: turns }, (_, turn) => `show ${Array.from({ length: count }, (_, n) => `n${turn}_${n}`).join(' ')}`)

test('refused_reasoning_stays_out_and_conversation_goes_on', async () => {
  // The host says that nothing is bound, and is wrong.
  const { server, projection, loop, rolls } = await started({}, { ...OPUS, binding: 'none' })
  let refusals = 0
  for (const text of prompts(40, 3)) {
    try {
      await loop.prompt(text)
    } catch (error) {
      expect(error).toBeInstanceOf(Refused)
      expect(projection.refused(error)).toBe(true)
      refusals += 1
      await loop.resume()
    }
  }
  expect(rolls()).toBeGreaterThan(0)
  expect(refusals).toBeGreaterThan(0)
  expect(lossOf(server.requests).refused).toBe(refusals)
  server.check()
})

test('reasoning_that_the_provider_hides_and_answers_that_stay_for_an_image_leave_no_gap', async () => {
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } }
  const hides = (request: ModelRequest): Reply => {
    const { thinking, parts = [], text } = thinker(request) as Reply & { thinking: string }
    const thought = request.n % 3 === 0 ? { thinking: '', isRedacted: true as const } : { thinking }
    return { parts: [thought, ...(text === undefined ? parts : [{ text }])] }
  }
  const { server, loop, rolls } = await started(
    {},
    OPUS,
    { run: (_, { name }) => (name.endsWith('1') ? [{ type: 'text', text: output(name) }, image] : output(name)) },
    hides,
  )
  for (const text of prompts(40, 3)) await loop.prompt(text)
  server.check()
  expect(rolls()).toBeGreaterThan(0)
  expect(fateOf(server.requests, (text) => text.startsWith('show '))).toMatchObject({ refused: 0, lostRunning: 0 })
})

/** If a roll had already taken it out, the host's message is the text that was sent instead of it. */
test.each(['nothing else', 'the first prompt', 'the beginning'])(
  'reasoning_that_the_host_removes_after_a_roll_is_not_sent_again: with %s changed',
  async (what) => {
    const manager = await opened({ cwd: folder(), stay: SOON })
    let rolls = 0
    const projection = new Projection(manager, { shortens: true, model: { ...OPUS, name: 'claude-opus-4-6' }, onRoll: () => (rolls += 1) })
    let messages: any[] = []
    const call = async (n: number): Promise<object[]> => {
      const thinking = { type: 'thinking', thinking: `thought ${n}`, signature: `s${n}` }
      if (n % 4 === 1 && n > 1)
        messages.push({
          role: 'assistant',
          content: [
            { ...thinking, signature: `d${n}` },
            { type: 'text', text: 'done' },
          ],
        })
      if (n % 4 === 1) messages.push({ role: 'user', content: `prompt ${n}` })
      messages.push({ role: 'assistant', content: [thinking, { type: 'tool_use', id: `c${n}`, name: 'show', input: { name: `n${n}` } }] })
      messages.push({ role: 'user', content: [{ type: 'tool_result', tool_use_id: `c${n}`, content: output(`n${n}`) }] })
      return projection.transform(messages)
    }
    let n = 0
    while (rolls === 0) {
      expect(n).toBeLessThan(90)
      await call((n += 1))
    }
    await call((n += 1))
    await call((n += 1))
    messages = messages.map((one) => (one.role === 'assistant' ? { ...one, content: one.content.filter(({ type }: any) => type !== 'thinking') } : one))
    if (what === 'the first prompt') messages[0] = { role: 'user', content: 'another one' }
    if (what === 'the beginning') messages = messages.slice(10)
    const thoughts = (sent: readonly object[]): number => JSON.stringify(sent).split('"type":"thinking"').length - 1
    expect(thoughts(await projection.transform(messages))).toBe(0)
    expect(thoughts(await call((n += 1)))).toBe(thoughts(messages))
  },
)

test('other_failures_change_nothing', async () => {
  const { projection, loop } = await started({}, OPUS)
  await loop.prompt('show a')
  expect(projection.refused(new Error('overloaded'))).toBe(false)
  expect(await projection.transform(loop.messages)).toEqual(loop.messages)
})

test('old_account_loses_nothing', async () => {
  const { server, loop, rolls } = await started({ account: 'old' }, { ...OPUS, binding: 'keeps' })
  for (const text of prompts(40, 3)) await loop.prompt(text)
  expect(rolls()).toBeGreaterThan(0)
  expect(lossOf(server.requests)).toEqual({ refused: 0, lost: 0, lostRunning: 0 })
})

describe('binding', () => {
  const thinking = { role: 'assistant', content: [{ type: 'thinking', thinking: 'hm', signature: 's' }] }
  const sdk = (provider: string, options: object) => ({
    role: 'assistant',
    content: [{ type: 'reasoning', text: 'hm', providerOptions: { [provider]: options } }],
  })
  test.each<[string, object[], KnownModel, Binding]>([
    ['what the host says', [thinking], { name: 'claude-opus-5-5', binding: 'keeps' }, 'keeps'],
    ['a bound name', [], { name: 'claude-opus-5-5' }, 'refuses'],
    ['a name that is not bound', [thinking], { name: 'claude-opus-4-6' }, 'none'],
    ['no name and no answer', [{ role: 'user', content: 'hello' }], {}, 'none'],
    ["no name and Anthropic's signature", [thinking], {}, 'refuses'],
    ["an unknown name and Anthropic's signature", [thinking], { name: 'prod' }, 'refuses'],
    ["another maker's name and Anthropic's signature", [thinking], { name: 'kimi-k3' }, 'none'],
    ["OpenAI's item", [{ type: 'reasoning', encrypted_content: 'e' }], {}, 'drops'],
    ["the AI SDK's Anthropic", [sdk('anthropic', { signature: 's' })], {}, 'refuses'],
    ["the AI SDK's OpenAI", [sdk('openai', { reasoningEncryptedContent: 'e' })], {}, 'drops'],
    ["Pi's answer", [{ role: 'assistant', api: 'anthropic-messages', provider: 'anthropic', model: 'claude-sonnet-5-5', content: [] }], {}, 'refuses'],
    ["Pi's answer from a copy", [{ role: 'assistant', api: 'anthropic-messages', provider: 'minimax', model: 'MiniMax-M3', content: [] }], {}, 'none'],
    ["LangChain's answer", [{ content: '', response_metadata: { model_name: 'claude-haiku-5-5' } }], {}, 'refuses'],
    ["OpenCode's answer", [{ info: { role: 'assistant', modelID: 'claude-fable-5-2', providerID: 'anthropic' }, parts: [] }], {}, 'refuses'],
    [
      "Pi's report",
      [
        {
          role: 'assistant',
          api: 'anthropic-messages',
          provider: 'anthropic',
          model: 'claude-opus-5-5',
          content: [],
          diagnostics: [
            { type: 'anthropic_input_transformations', details: { transformations: [{ type: 'thinking_dropped', reason: 'prefix_binding_mismatch' }] } },
          ],
        },
      ],
      {},
      'drops',
    ],
  ])('%s: %o', (_, messages, model, binding) => {
    const reasoning = new Reasoning()
    reasoning.see(messages, 0)
    expect(reasoning.binding(model)).toBe(binding)
  })

  test('report_of_an_answer_corrects_it', () => {
    const reasoning = new Reasoning()
    const model = { name: 'claude-opus-5-5' }
    expect(reasoning.binding(model)).toBe('refuses')
    reasoning.answered({ input_transformations: [{ type: 'thinking_mismatch_allowed', path: 'messages.1.content.0', reason: 'prefix_binding_mismatch' }] })
    expect(reasoning.binding(model)).toBe('keeps')
    expect(reasoning.refused(new Error('messages.1.content.0: ... The block is bound to a different conversation.'))).toBe(true)
    expect(reasoning.binding(model)).toBe('refuses')
  })

  const DROPS = { thinking: { block_binding: { prefix_mismatch_behavior: 'drop_block' } } }
  test.each<[string, KnownModel, object, Binding]>([
    ['a bound model', { name: 'claude-opus-5-5' }, DROPS, 'drops'],
    ['one that the host says refuses', { name: 'claude-opus-5-5', binding: 'refuses' }, DROPS, 'refuses'],
    ['one that is not bound', { name: 'claude-opus-4-6' }, DROPS, 'none'],
    ['a bound model, but not any more', { name: 'claude-opus-5-5' }, {}, 'refuses'],
  ])('request_that_asks_for_drops_counts: %s', (_, model, request, binding) => {
    const reasoning = new Reasoning()
    reasoning.asked(DROPS)
    reasoning.asked(request)
    expect(reasoning.binding(model)).toBe(binding)
    reasoning.refused(new Error('The block is bound to a different conversation.'))
    expect(reasoning.binding(model)).toBe('refuses')
  })

  test('refusal_in_the_conversation_withholds_what_stands_before_it_only', () => {
    const reasoning = new Reasoning()
    const answer = (signature: string) => ({
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: '', thinkingSignature: signature },
        { type: 'text', text: signature },
      ],
    })
    const failure = { role: 'assistant', content: [], stopReason: 'error', errorMessage: '400 The block is bound to a different conversation.' }
    const messages = [answer('a'), failure, answer('b')]
    for (let time = 0; time < 2; time += 1) {
      reasoning.see(messages, 0)
      expect(reasoning.sent(messages)).toEqual([{ role: 'assistant', content: [{ type: 'text', text: 'a' }] }, failure, answer('b')])
    }
  })
})
