/** The parts that must be returned with an answer, provider by provider, in the formats of their answers. */
import { expect, test, afterEach } from 'vitest'
import { Projection } from '../lib/projection/harness.ts'
import type { ShapeName } from '../lib/projection/harness.ts'
import { modelNamed } from '../lib/models/model.ts'
import { rulesOf } from '../lib/models/rules.ts'
import type { ReasoningRule } from '../lib/models/rules.ts'
import { folder, opened } from './core/setup.ts'
import { output } from './hosts/script.ts'
import { cleanUp } from '../rig/cleanup.ts'
import { some } from './rows.ts'

afterEach(cleanUp)

/** One answer of a model, as its provider writes it: reasoning and a call. And the result. */
interface Wire {
  rule: ReasoningRule
  shape: ShapeName
  model: string
  answer(n: number): object[]
  result(n: number): object
  /**
   * Returns the parts that an answer must still have when it is sent again, by its number; undefined if the answer is not shown.
   */
  kept(sent: any[], n: number): unknown
}

const args = (n: number) => ({ path: `f${n}.txt`, text: `${n} ${'words of a written file '.repeat(60)}` })
const thought = (n: number) => `thought ${n} ${'hm '.repeat(300)}`
const id = (n: number) => `call_${n}`

const anthropic: Pick<Wire, 'shape' | 'answer' | 'result' | 'kept'> = {
  shape: 'anthropic',
  answer: (n) => [
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: thought(n), signature: `sig ${n}` },
        { type: 'tool_use', id: id(n), name: 'write', input: args(n) },
      ],
    },
  ],
  result: (n) => ({ role: 'user', content: [{ type: 'tool_result', tool_use_id: id(n), content: output(`o${n}`) }] }),
  kept: (sent, n) => {
    const found = sent.find(({ content }) => Array.isArray(content) && content.some((block: any) => block.type === 'tool_use' && block.id === id(n)))
    return found === undefined ? undefined : (found.content.find(({ type }: any) => type === 'thinking') ?? null)
  },
}
const chat: Pick<Wire, 'shape' | 'answer' | 'result'> = {
  shape: 'openai-chat',
  answer: (n) => [
    {
      role: 'assistant',
      content: '',
      reasoning_content: thought(n),
      tool_calls: [{ id: id(n), type: 'function', function: { name: 'write', arguments: JSON.stringify(args(n)) } }],
    },
  ],
  result: (n) => ({ role: 'tool', tool_call_id: id(n), content: output(`o${n}`) }),
}
const callIn = (sent: any[], n: number) => sent.find(({ tool_calls: calls }) => calls?.some((call: any) => call.id === id(n)))
const reasoningContent = (sent: any[], n: number) => {
  const found = callIn(sent, n)
  return found === undefined ? undefined : (found.reasoning_content ?? null)
}

const WIRES: Record<string, Wire> = {
  'older Claude': { rule: 'turn', model: 'claude-opus-4-6', ...anthropic },
  'Kimi in the format of Anthropic': { rule: 'calls', model: 'kimi-k3', ...anthropic },
  'MiniMax in the format of Anthropic': { rule: 'calls', model: 'MiniMax-M3', ...anthropic },
  'GLM in the format of Anthropic': { rule: 'calls', model: 'glm-5.3', ...anthropic },
  DeepSeek: { rule: 'calls', model: 'deepseek-v4-pro', ...chat, kept: reasoningContent },
  Kimi: { rule: 'calls', model: 'moonshotai/kimi-k2.7-code', ...chat, kept: reasoningContent },
  Qwen: { rule: 'calls', model: 'qwen3.8-max', ...chat, kept: reasoningContent },
  'GPT in the responses format': {
    rule: 'items',
    model: 'gpt-5.5',
    shape: 'openai-responses',
    answer: (n) => [
      { type: 'reasoning', id: `rs_${n}`, summary: [{ type: 'summary_text', text: thought(n) }], encrypted_content: `enc ${n}` },
      { type: 'function_call', id: `fc_${n}`, call_id: id(n), name: 'write', arguments: JSON.stringify(args(n)) },
    ],
    result: (n) => ({ type: 'function_call_output', call_id: id(n), output: output(`o${n}`) }),
    kept: (sent, n) => {
      const at = sent.findIndex(({ type, call_id: called }) => type === 'function_call' && called === id(n))
      return at < 0 ? undefined : sent[at - 1]?.type === 'reasoning' ? sent[at - 1] : null
    },
  },
  'Gemini in the AI SDK': {
    rule: 'signatures',
    model: 'gemini-3.1-pro-preview',
    shape: 'ai-sdk',
    answer: (n) => [
      {
        role: 'assistant',
        content: [{ type: 'tool-call', toolCallId: id(n), toolName: 'write', input: args(n), providerOptions: { google: { thoughtSignature: `sig ${n}` } } }],
      },
    ],
    result: (n) => ({
      role: 'tool',
      content: [{ type: 'tool-result', toolCallId: id(n), toolName: 'write', output: { type: 'text', value: output(`o${n}`) } }],
    }),
    kept: (sent, n) =>
      sent.flatMap(({ content }) => (Array.isArray(content) ? content : [])).find(({ type, toolCallId }) => type === 'tool-call' && toolCallId === id(n)),
  },
  'Gemini in the format of OpenAI': {
    rule: 'signatures',
    model: 'google/gemini-3.1-pro-preview',
    ...chat,
    answer: (n) => [
      {
        role: 'assistant',
        content: '',
        tool_calls: [
          {
            id: id(n),
            type: 'function',
            function: { name: 'write', arguments: JSON.stringify(args(n)) },
            extra_content: { google: { thought_signature: `sig ${n}` } },
          },
        ],
      },
    ],
    kept: (sent, n) => callIn(sent, n)?.tool_calls[0],
  },
}

const TURNS = 4
const CALLS = 20

test.each(some(Object.entries(WIRES), 3))('%s: the parts that the provider wants back stay', async (_, { rule, shape, model, answer, result, kept }) => {
  expect(rulesOf(model, shape === 'openai-responses' ? { api: 'openai-responses' } : {}).reasoning).toBe(rule)
  let rolls = 0
  const projection = new Projection(await opened({ cwd: folder(), stay: { weight: 0.3 } }), {
    shape,
    shortens: true,
    model: modelNamed(model, { contextWindow: 200_000 }),
    onRoll: () => (rolls += 1),
  })
  const messages: object[] = []
  for (let turn = 0; turn < TURNS; turn += 1) {
    messages.push({ role: 'user', content: `prompt ${turn}` })
    for (let call = 0; call < CALLS; call += 1) {
      const n = turn * CALLS + call
      messages.push(...answer(n), result(n))
      const sent = await projection.transform(messages)
      for (let old = 0; old <= n; old += 1) {
        const now = kept(sent, old)
        if (now === undefined || now === null) {
          // A call that is no longer shown needs nothing, but none of the turn under way may go from Claude and Gemini.
          if (now === null) expect(rule).toBe('turn')
          if (rule === 'turn' || rule === 'signatures') expect(old).toBeLessThan(turn * CALLS)
        } else if (rule !== 'signatures' || old >= turn * CALLS) expect(now).toEqual(kept(messages, old))
      }
    }
  }
  expect(rolls).toBeGreaterThan(0)
})

test('an account that keeps reasoning gets the same messages as one that does not check', async () => {
  const { answer, result, kept } = WIRES['older Claude']!
  const sentTo = async (binding: 'keeps' | 'none') => {
    let rolls = 0
    const manager = await opened({ cwd: folder(), sessionId: binding, stay: { weight: 0.3 } })
    const projection = new Projection(manager, {
      shape: 'anthropic',
      shortens: true,
      model: modelNamed('claude-opus-5-5', { contextWindow: 200_000, binding }),
      onRoll: () => (rolls += 1),
    })
    const messages: object[] = []
    const requests: object[][] = []
    for (let n = 0; n < TURNS * CALLS; n += 1) {
      if (n % CALLS === 0) messages.push({ role: 'user', content: `prompt ${n}` })
      messages.push(...answer(n), result(n))
      requests.push(await projection.transform(messages))
      // The open round keeps its reasoning.
      expect(kept(requests.at(-1)!, n)).toEqual(kept(messages, n))
    }
    return { rolls, requests }
  }
  const [keeps, none] = [await sentTo('keeps'), await sentTo('none')]
  expect(keeps.rolls).toBeGreaterThan(0)
  expect(keeps).toEqual(none)
})
