/**
 * A host with a scripted conversation before a gateway, a provider that bills by its cache, and what the host's own requests would have
 * cost on the same one.
 */
import type { Gateway } from '../../lib/gateway/gateway.ts'
import type { GatewayOptions } from '../../lib/gateway/options.ts'
import { inputCost } from '../../lib/gateway/saving.ts'
import { pricesWith } from '../../lib/models/index.ts'
import { ProviderCache } from './provider-cache.ts'
import type { Kind, Part } from './provider-cache.ts'
import { ask, gatewayTo, JSON_TYPE, lasting, upstream } from './support.ts'

/** A step of the host's conversation. */
export interface Step {
  said?: string
  /** A call with its output. */
  call?: { id: string; output: string }
  /** A text behind it that the next request does not have. */
  reminder?: string
}

export interface Format {
  kind: Kind
  model: string
  /** Another one, which has a separate cache. */
  other: string
  path: string
  headers: Record<string, string>
  body(steps: readonly Step[]): object
  parts(body: never): Part[]
}

export const SYSTEM = 'system '.repeat(2400)
export const MARKED = { cache_control: { type: 'ephemeral' } }

export interface Block extends Record<string, unknown> {
  cache_control?: { type: string; ttl?: string }
}

export interface Message {
  role: string
  content: Block[]
}

export function bare({ cache_control: _marker, ...block }: Block): string {
  return JSON.stringify(block)
}

export const ANTHROPIC: Format = {
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
    ...system.map((block) => ({ text: bare(block), ...marked(block) })),
    ...messages.flatMap(({ role, content }) =>
      content.map((block) => ({ text: `{"role":${JSON.stringify(role)},"content":[${bare(block)}]}`, ...marked(block) })),
    ),
  ],
}

/** The same client, whose markers ask for an hour. */
export function withHour(format: Format): Format {
  return {
    ...format,
    body: (steps) => JSON.parse(JSON.stringify(format.body(steps)).replaceAll('{"type":"ephemeral"}', '{"type":"ephemeral","ttl":"1h"}')) as object,
  }
}

/** A block with its marker, as the cache takes it. */
function marked({ cache_control: marker }: Block): Pick<Part, 'isMarked' | 'isHour'> {
  return { isMarked: marker !== undefined, isHour: marker?.ttl === '1h' }
}

export const CHAT: Format = {
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

export const RESPONSES: Format = {
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
export type Host = (steps: Step[], k: number) => number | void

/** The caches of a provider, one for each model. */
function cachesOf(kind: Kind): (model: string) => ProviderCache {
  const caches = new Map<string, ProviderCache>()
  return (model) => {
    const cache = caches.get(model) ?? new ProviderCache(kind)
    caches.set(model, cache)
    return cache
  }
}

/** The first prompt of other conversations. */
const OTHER = 'another one'

/** A host's headers with the name of another session. */
function named(headers: Record<string, string>, session: string): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value === 's1' ? session : value]))
}

/** The way in which a host's session goes, besides the options of its gateway. */
interface Course extends Partial<GatewayOptions> {
  modelAt?: (call: number) => string
  /** Another gateway takes each call for which this is true: one that is started anew, or with `inTurns` the other of two. */
  isNewAt?: (call: number) => boolean
  inTurns?: boolean
  /** The number of other conversations before a call, of one request each. */
  othersAt?: (call: number) => number
}

/** The cost of a session, and the cost that it would have had without the gateway: as claimed, and in truth. In dollars. */
export async function claimAndTruth(
  format: Format,
  host: Host,
  { modelAt = () => format.model, isNewAt = () => false, inTurns = false, othersAt = () => 0, ...options }: Course = {},
): Promise<{ claimed: number; without: number; paid: number; rolls: number }> {
  let now = Date.UTC(2026, 0, 1)
  const [sent, own] = [cachesOf(format.kind), cachesOf(format.kind)]
  const up = await upstream(({ body }, response) => {
    const request = JSON.parse(body.toString()) as { model: string }
    const { input, cacheRead, cacheWrite, cacheWriteHour = 0, output } = sent(request.model).bill(format.parts(request as never), now)
    const split = { ephemeral_5m_input_tokens: cacheWrite - cacheWriteHour, ephemeral_1h_input_tokens: cacheWriteHour }
    const prompt = input + cacheRead + cacheWrite
    const usage =
      format.kind === 'breakpoints'
        ? { input_tokens: input, cache_read_input_tokens: cacheRead, cache_creation_input_tokens: cacheWrite, cache_creation: split, output_tokens: output }
        : format === CHAT
          ? { prompt_tokens: prompt, completion_tokens: output, prompt_tokens_details: { cached_tokens: cacheRead } }
          : { input_tokens: prompt, output_tokens: output, input_tokens_details: { cached_tokens: cacheRead } }
    response.writeHead(200, JSON_TYPE).end(JSON.stringify({ usage }))
  })
  const place = lasting()
  const open = (): Promise<{ gateway: Gateway }> => gatewayTo(up.url, { now: () => now, cacheLifetime: 'client', ...place, ...options })
  let { gateway } = await open()
  let waiting = inTurns ? (await open()).gateway : undefined
  const found = { claimed: 0, paid: 0, rolls: 0 }
  const add = (): void => {
    for (const { cost, rolls, prompt } of gateway.ledger.sessions) {
      if (prompt === OTHER) continue
      found.claimed += cost.plain
      found.paid += cost.billed
      found.rolls += rolls.length
    }
  }
  const steps: Step[] = [{ said: 'begin' }]
  let without = 0
  for (let k = 0; k < 60; k += 1) {
    if (k > 0) steps.push({ call: { id: `t${k}`, output: text(k) } })
    now += host(steps, k) ?? 0
    if (isNewAt(k) && waiting !== undefined) [gateway, waiting] = [waiting, gateway]
    else if (isNewAt(k)) {
      await gateway.close()
      add()
      ;({ gateway } = await open())
    }
    const model = modelAt(k)
    const body = { ...format.body(steps), model }
    const truth = own(model).bill(format.parts(body as never), now)
    without += inputCost(truth, pricesWith(model))
    for (let n = 0; n < othersAt(k); n += 1) {
      const other = { ...format.body([{ said: OTHER }]), model }
      await ask(`${gateway.url}${format.path}`, { headers: { ...JSON_TYPE, ...named(format.headers, `other-${k}-${n}`) }, body: JSON.stringify(other) })
    }
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
  add()
  if (waiting !== undefined) {
    gateway = waiting
    add()
  }
  return { ...found, without }
}
