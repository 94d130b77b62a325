/** A host behind the gateway: it sends its conversation over HTTP after each event, asks on the side, and the gateway starts anew. */
import { written } from '../hosts/conversation.ts'
import type { Step } from '../hosts/conversation.ts'
import { ask, callTool, gatewayTo, JSON_TYPE, upstream } from '../gateway/support.ts'
import type { Seen } from '../gateway/support.ts'
import type { Gateway } from '../../lib/gateway/gateway.ts'
import type { StoreOptions } from '../../index.js'
import { Host, tokensIn } from './host.ts'
import type { Event } from './host.ts'
import { fault, NAMED } from './oracle.ts'
import type { Found } from './library.ts'

/** The events that a host behind the gateway has. */
export const GATEWAY: ReadonlySet<Event['do']> = new Set(['prompt', 'calls', 'answer', 'insert', 'change', 'remove', 'swap', 'back', 'compact', 'retry', 'restart', 'aside'])

/** How often what the IDs of a request bring back is asked for: after so many events. */
const RECALLS = 10

const TOOLS = ['bash', 'write', 'mcp__context__activate']

/** What a format has of its own on the wire: the path, the headers, and the body around the messages. */
const WIRES = {
  anthropic: {
    path: '/anthropic/v1/messages',
    headers: { 'user-agent': 'claude-cli/2.1.331', 'x-claude-code-session-id': 'random' },
    body: (messages: readonly object[]) => ({ model: 'claude-sonnet-4-5', max_tokens: 1000, tools: TOOLS.map((name) => ({ name, description: name, input_schema: { type: 'object' } })), messages }),
    list: 'messages',
  },
  'openai-chat': {
    path: '/openai/v1/chat/completions',
    headers: { 'x-session-id': 'random' },
    body: (messages: readonly object[]) => ({ model: 'gpt-6-sol', tools: TOOLS.map((name) => ({ type: 'function', function: { name, parameters: { type: 'object' } } })), messages }),
    list: 'messages',
  },
  'openai-responses': {
    path: '/openai/responses',
    headers: { 'user-agent': 'codex_exec/0.169.0', 'thread-id': 'random' },
    body: (input: readonly object[]) => ({ model: 'gpt-6-sol', tools: TOOLS.map((name) => ({ type: 'function', name })), input }),
    list: 'input',
  },
} as const

/** The formats that the gateway reads. */
export const formats = Object.keys(WIRES) as (keyof typeof WIRES)[]

/** Runs events. Returns the first fault. */
export async function runGateway(events: Iterable<Event>, format: keyof typeof WIRES, place: { store: StoreOptions; formsPath: string }): Promise<Found | undefined> {
  const { url, seen } = await upstream((_, response) => response.writeHead(200, JSON_TYPE).end('{}'))
  const host = new Host()
  let { gateway } = await gatewayTo(url, place)
  let after = 0
  for (const event of events) {
    after += 1
    host.apply(event)
    if (event.do === 'restart') {
      await gateway.close()
      ;({ gateway } = await gatewayTo(url, place))
    }
    if (host.steps.length === 0) continue
    if (event.do === 'aside') await send(gateway, format, [{ user: 'Give this a title' }], seen)
    const messages = host.steps.flatMap((step) => written[format](step, 1))
    const sent = await send(gateway, format, host.steps, seen)
    const problem = (await fault({ steps: host.steps, messages, sent, before: undefined })) ?? (after % RECALLS === 0 ? await unrecalled(gateway, host, sent) : undefined)
    if (problem !== undefined) return { after, fault: problem }
  }
  await gateway.close()
  return undefined
}

/** Sends a conversation. Returns the messages that arrive. */
async function send(gateway: Gateway, format: keyof typeof WIRES, steps: readonly Step[], seen: Seen[]): Promise<object[]> {
  const { path, headers, body, list } = WIRES[format]
  await ask(`${gateway.url}${path}`, { headers: { ...JSON_TYPE, ...headers }, body: JSON.stringify(body(steps.flatMap((step) => written[format](step, 1)))) })
  return (JSON.parse((seen.at(-1) as Seen).body.toString()) as Record<string, object[]>)[list] as object[]
}

/** Returns which ID of a request brings back no text that the host has. */
async function unrecalled(gateway: Gateway, { steps }: Host, sent: readonly object[]): Promise<string | undefined> {
  const texts = steps.flatMap((step) => ('user' in step ? [step.user] : [step.text ?? '', ...step.calls.map(({ output }) => output)])).filter((text) => tokensIn(text).length > 0)
  for (const [, id] of JSON.stringify(sent).matchAll(NAMED)) {
    const back = await callTool(gateway, 'activate', { id })
    if (!texts.some((text) => back.includes(text))) return `${id} brings back what the host does not have: ${back.slice(0, 200)}`
  }
  return undefined
}
