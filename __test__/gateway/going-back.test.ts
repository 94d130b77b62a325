/**
 * The cost without the gateway is that of the host's own requests on the provider's cache, also where the host goes back in its
 * conversation, or changes what it has sent: the provider still has the shorter prefixes.
 */
import { afterEach, expect, test } from 'vitest'
import { inputCost } from '../../lib/gateway/saving.ts'
import { pricesWith } from '../../lib/models/index.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { ProviderCache } from './provider-cache.ts'
import type { Kind, Part } from './provider-cache.ts'
import { ask, gatewayTo, JSON_TYPE, upstream } from './support.ts'

afterEach(cleanUp)

/** A step of the host's conversation. */
interface Step {
  said?: string
  /** A call with its output. */
  call?: { id: string; output: string }
  /** A text behind it that the next request does not have. */
  reminder?: string
}

interface Format {
  kind: Kind
  model: string
  /** Another one, which has a separate cache. */
  other: string
  path: string
  headers: Record<string, string>
  body(steps: readonly Step[]): object
  parts(body: never): Part[]
}

const SYSTEM = 'system '.repeat(2400)
const MARKED = { cache_control: { type: 'ephemeral' } }

interface Block extends Record<string, unknown> {
  cache_control?: object
}

interface Message {
  role: string
  content: Block[]
}

function bare({ cache_control: _marker, ...block }: Block): string {
  return JSON.stringify(block)
}

const ANTHROPIC: Format = {
  kind: 'breakpoints',
  model: 'claude-sonnet-4-5',
  other: 'claude-haiku-4-5',
  path: '/anthropic/v1/messages',
  headers: { 'user-agent': 'claude-cli/2.1.331', 'x-claude-code-session-id': 's1', 'x-api-key': 'k' },
  body: (steps) => {
    const messages = steps.flatMap(({ said, call, reminder }): Message[] => {
      const behind = reminder === undefined ? [] : [{ type: 'text', text: reminder }]
      if (call === undefined) return [{ role: 'user', content: [{ type: 'text', text: said }, ...behind] }]
      return [
        { role: 'assistant', content: [{ type: 'tool_use', id: call.id, name: 'Bash', input: { command: `run ${call.id}` } }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, content: call.output }, ...behind] },
      ]
    })
    for (const { content } of messages.filter(({ role }) => role === 'user').slice(-3)) Object.assign(content.at(-1) as object, MARKED)
    const tools = ['mcp__context__activate', 'Bash'].map((name) => ({ name, description: name, input_schema: { type: 'object' } }))
    return { model: ANTHROPIC.model, max_tokens: 100, system: [{ type: 'text', text: SYSTEM, ...MARKED }], tools, messages }
  },
  parts: ({ tools, system, messages }: { tools: Block[]; system: Block[]; messages: Message[] }) => [
    ...tools.map((tool) => ({ text: bare(tool) })),
    ...system.map((block) => ({ text: bare(block), isMarked: true })),
    ...messages.flatMap(({ role, content }) =>
      content.map((block) => ({ text: `{"role":${JSON.stringify(role)},"content":[${bare(block)}]}`, isMarked: block.cache_control !== undefined })),
    ),
  ],
}

const CHAT: Format = {
  kind: 'prefix',
  model: 'gpt-5',
  other: 'gpt-5-mini',
  path: '/openai/v1/chat/completions',
  headers: { 'x-session-id': 's1' },
  body: (steps) => ({
    model: CHAT.model,
    tools: ['context_activate', 'Bash'].map((name) => ({ type: 'function', function: { name, parameters: { type: 'object' } } })),
    messages: [
      { role: 'system', content: SYSTEM },
      ...steps.flatMap(({ said, call, reminder }) => [
        ...(call === undefined
          ? [{ role: 'user', content: said }]
          : [
              { role: 'assistant', content: null, tool_calls: [{ id: call.id, type: 'function', function: { name: 'Bash', arguments: `{"command":"run"}` } }] },
              { role: 'tool', tool_call_id: call.id, content: call.output },
            ]),
        ...(reminder === undefined ? [] : [{ role: 'user', content: reminder }]),
      ]),
    ],
  }),
  parts: ({ tools, messages }: { tools: object[]; messages: object[] }) => [tools, ...messages].map((one) => ({ text: JSON.stringify(one) })),
}

const RESPONSES: Format = {
  kind: 'endings',
  model: 'gpt-5.6',
  other: 'gpt-5.6-luna',
  path: '/openai/v1/responses',
  headers: { session_id: 's1' },
  body: (steps) => ({
    model: RESPONSES.model,
    instructions: SYSTEM,
    tools: ['context_activate', 'Bash'].map((name) => ({ type: 'function', name, description: name, parameters: { type: 'object' } })),
    input: steps.flatMap(({ said, call, reminder }) => [
      ...(call === undefined
        ? [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: said }] }]
        : [
            { type: 'function_call', call_id: call.id, name: 'Bash', arguments: '{"command":"run"}' },
            { type: 'function_call_output', call_id: call.id, output: call.output },
          ]),
      ...(reminder === undefined ? [] : [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: reminder }] }]),
    ]),
  }),
  parts: ({ tools, instructions, input }: { tools: object[]; instructions: string; input: { type: string }[] }) => [
    { text: JSON.stringify(tools) + instructions, isAnswer: true },
    ...input.map((one) => ({ text: JSON.stringify(one), isAnswer: one.type === 'function_call' })),
  ],
}

const text = (k: number, lines = 45): string =>
  Array.from({ length: lines }, (_, line) => `out ${k} line ${line} of what a tool has said ${(k * 7919 + line * 31) % 10007}`).join('\n')

/** The host's changes to its conversation before call `k`. Returns the time that passes besides, in milliseconds. */
type Host = (steps: Step[], k: number) => number | void

/** Removes the `count` steps before the newest one. */
const back =
  (count: number, isDue: (k: number) => boolean): Host =>
  (steps, k) =>
    void (isDue(k) && steps.splice(Math.max(1, steps.length - 1 - count), count))

const HOSTS: Record<string, Host> = {
  'that only continues': () => {},
  'that goes back by one step, often': back(1, (k) => k % 6 === 5),
  'that goes back by three steps, once': back(3, (k) => k === 40),
  'that goes back by three steps, often': back(3, (k) => k % 9 === 8),
  'that goes back by ten steps, once': back(10, (k) => k === 40),
  'that goes back by ten steps, often': back(10, (k) => k % 15 === 14),
  'that goes back by more than half': back(30, (k) => k === 45),
  'that goes back after a long pause': (steps, k) => {
    back(4, (at) => at % 10 === 9)(steps, k)
    return k % 10 === 9 ? 2_400_000 : 0
  },
  'that pauses for longer than a prompt is surely kept': (_steps, k) => (k % 10 === 9 ? 400_000 : 0),
  'that clears old outputs': (steps, k) => {
    if (k % 20 !== 19) return
    for (const step of steps.slice(0, -5)) if (step.call !== undefined) step.call = { ...step.call, output: '[cleared]' }
  },
  'that clears one old output a call': (steps) => {
    const old = steps.slice(0, -15).find(({ call }) => call !== undefined && call.output !== '[cleared]')
    if (old?.call !== undefined) old.call = { ...old.call, output: '[cleared]' }
  },
  'whose first message changes with each call': (steps, k) => void (steps[0] = { said: `begin, it is ${k}` }),
  'whose first message changes now and then': (steps, k) => void (steps[0] = { said: `begin, it is day ${Math.floor(k / 15)}` }),
  'that ends with a passing reminder': (steps, k) => {
    for (const step of steps) delete step.reminder
    steps.at(-1)!.reminder = `reminder ${k}`
  },
}

/** The caches of a provider, one for each model. */
function cachesOf(kind: Kind): (model: string) => ProviderCache {
  const caches = new Map<string, ProviderCache>()
  return (model) => {
    const cache = caches.get(model) ?? new ProviderCache(kind)
    caches.set(model, cache)
    return cache
  }
}

async function claimAndTruth(
  format: Format,
  host: Host,
  modelAt = (_call: number): string => format.model,
): Promise<{ claimed: number; without: number; paid: number; rolls: number }> {
  let now = Date.UTC(2026, 0, 1)
  const [sent, own] = [cachesOf(format.kind), cachesOf(format.kind)]
  const up = await upstream(({ body }, response) => {
    const request = JSON.parse(body.toString()) as { model: string }
    const { input, cacheRead, cacheWrite, output } = sent(request.model).bill(format.parts(request as never), now)
    const prompt = input + cacheRead + cacheWrite
    const usage =
      format.kind === 'breakpoints'
        ? { input_tokens: input, cache_read_input_tokens: cacheRead, cache_creation_input_tokens: cacheWrite, output_tokens: output }
        : format === CHAT
          ? { prompt_tokens: prompt, completion_tokens: output, prompt_tokens_details: { cached_tokens: cacheRead } }
          : { input_tokens: prompt, output_tokens: output, input_tokens_details: { cached_tokens: cacheRead } }
    response.writeHead(200, JSON_TYPE).end(JSON.stringify({ usage }))
  })
  const { gateway } = await gatewayTo(up.url, { now: () => now, cacheLifetime: 'client' })
  const steps: Step[] = [{ said: 'begin' }]
  let without = 0
  for (let k = 0; k < 60; k += 1) {
    steps.push({ call: { id: `t${k}`, output: text(k) } })
    now += host(steps, k) ?? 0
    const model = modelAt(k)
    const body = { ...format.body(steps), model }
    without += inputCost(own(model).bill(format.parts(body as never), now), pricesWith(model))
    const noted = new Promise<void>((resolve) => {
      const stop = gateway.ledger.listen(() => {
        stop()
        resolve()
      })
    })
    await ask(`${gateway.url}${format.path}`, { headers: { ...JSON_TYPE, ...format.headers }, body: JSON.stringify(body) })
    await noted
    now += k % 8 === 7 ? 60_000 : 4_000
  }
  const { sessions } = gateway.ledger
  const sum = (name: 'billed' | 'plain'): number => sessions.reduce((all, { cost }) => all + cost[name], 0)
  return { claimed: sum('plain'), paid: sum('billed'), without, rolls: sessions.reduce((all, { rolls }) => all + rolls.length, 0) }
}

test.each(
  Object.entries({ "Anthropic's format": ANTHROPIC, 'Chat Completions': CHAT, Responses: RESPONSES }).flatMap(([name, format]) =>
    Object.entries(HOSTS).map(([how, host]): [string, string, Format, Host] => [name, how, format, host]),
  ),
)('%s, a host %s: its cost without the gateway is the true one within 2 %%', async (name, how, format, host) => {
  const { claimed, without, paid, rolls } = await claimAndTruth(format, host)
  const off = claimed / without - 1
  process.stderr.write(
    `${name}, a host ${how}: paid $${paid.toFixed(4)}, said $${claimed.toFixed(4)} beside $${without.toFixed(4)} (${(100 * off).toFixed(2)} %, ${rolls} rolls)\n`,
  )
  expect(rolls).toBeGreaterThan(0)
  expect(Math.abs(off)).toBeLessThan(0.02)
})

test.each([
  ["Anthropic's format", ANTHROPIC],
  ['Chat Completions', CHAT],
  ['Responses', RESPONSES],
])(
  '%s, a host that calls two models in turn: each finds its own prompts, and the cost without the gateway is the true one within 2 %%',
  async (name, format) => {
    for (const calls of [3, 12]) {
      const { claimed, without, rolls } = await claimAndTruth(
        format,
        () => {},
        (k) => (Math.floor(k / calls) % 2 === 0 ? format.model : format.other),
      )
      process.stderr.write(
        `${name}, two models, ${calls} calls each: said $${claimed.toFixed(4)} beside $${without.toFixed(4)} (${(100 * (claimed / without - 1)).toFixed(2)} %)\n`,
      )
      expect(rolls).toBeGreaterThan(0)
      expect(Math.abs(claimed / without - 1)).toBeLessThan(0.02)
    }
  },
)

/** Text that a provider counts, without what stands around it in JSON, behind a system prompt too short to be kept. */
const SHORT: Record<string, Format> = {
  "Anthropic's format": {
    ...ANTHROPIC,
    body: (steps) => ({ ...ANTHROPIC.body(steps), system: [{ type: 'text', text: SYSTEM.slice(0, 3500), ...MARKED }] }),
    parts: ({ tools, system, messages }: { tools: Block[]; system: Block[]; messages: Message[] }) => [
      ...[...tools, ...system].map((one) => ({ text: bare(one), isMarked: one.cache_control !== undefined })),
      ...messages.flatMap(({ role, content }) => content.map((block) => ({ text: role + bare(block), isMarked: block.cache_control !== undefined }))),
    ],
  },
  'Chat Completions': {
    ...CHAT,
    body: (steps) => {
      const { messages, ...rest } = CHAT.body(steps) as { messages: object[] }
      return { ...rest, messages: [{ role: 'system', content: SYSTEM.slice(0, 3300) }, ...messages.slice(1)] }
    },
  },
}

test.each(Object.entries(SHORT))(
  '%s, a host with a short system prompt whose first message changes with each call: its cost is the true one within 2 %%',
  async (name, format) => {
    const { claimed, without, rolls } = await claimAndTruth(format, HOSTS['whose first message changes with each call'] as Host)
    process.stderr.write(`${name}: said $${claimed.toFixed(4)} beside $${without.toFixed(4)} (${(100 * (claimed / without - 1)).toFixed(2)} %)\n`)
    expect(rolls).toBeGreaterThan(0)
    expect(Math.abs(claimed / without - 1)).toBeLessThan(0.02)
  },
)
