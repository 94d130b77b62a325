/** Agents behind the gateway, each in its provider's format, and the files in which they keep the same sessions. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { expect } from 'vitest'
import type { Usage } from '../../rig/exchange.ts'
import { WIRES } from '../../rig/wires.ts'
import type { WireName } from '../../rig/wires.ts'
import { writeDatabase } from '../cli/opencode-database.ts'
import { ask, JSON_TYPE, long } from './support.ts'

/** The ID that each gives its session. */
export const ID = '9f3a1b2c-1111-4222-8333-444455556666'

/** An agent behind the gateway: its format on the wire, and the file in which it keeps the same session. */
export interface WireAgent {
  wire: WireName
  model: string
  /** True if what was not cached is written to the cache, and billed so. */
  writes: boolean
  /** Headers besides those of its format. */
  headers?: Record<string, string>
  path: string
  /** Writes its session, with the usage of each call. */
  write(path: string, usages: readonly Usage[], at: string): void
}

function writeLines(path: string, lines: readonly object[]): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
}

/** A message of Gemini's after a resume of its CLI: without signatures, and with each result twice. */
export function doubled(message: object): object {
  const { parts } = message as { parts?: any[] }
  if (parts === undefined) return message
  const results = parts.filter(({ functionResponse }) => functionResponse !== undefined)
  return { ...message, parts: [...parts, ...results].map(({ thoughtSignature: _, ...part }) => part) }
}

/** The agents by their names. */
export const AGENTS: Record<string, WireAgent> = {
  'Claude Code': {
    wire: 'anthropic',
    model: 'claude-sonnet-4-5',
    writes: true,
    path: `.claude/projects/-w/${ID}.jsonl`,
    write(path, usages, timestamp) {
      const lines = usages.map((usage, n) => ({
        ...{ type: 'assistant', uuid: `a${n}`, parentUuid: n === 0 ? null : `a${n - 1}`, sessionId: ID, cwd: '/w', timestamp },
        message: {
          id: `msg_${n}`,
          role: 'assistant',
          model: 'claude-sonnet-4-5',
          content: [{ type: 'text', text: 'ok' }],
          usage: {
            input_tokens: usage.input,
            cache_read_input_tokens: usage.cacheRead,
            cache_creation_input_tokens: usage.cacheWrite,
            output_tokens: usage.output,
          },
        },
      }))
      writeLines(path, lines)
    },
  },
  Codex: {
    wire: 'openai-responses',
    model: 'gpt-6-sol',
    writes: false,
    path: `.codex/sessions/2026/03/02/rollout-2026-03-02-${ID}.jsonl`,
    write: (path, usages, timestamp) =>
      writeLines(path, [
        { timestamp, type: 'session_meta', payload: { id: ID, cwd: '/w' } },
        { timestamp, type: 'turn_context', payload: { model: 'gpt-6-sol' } },
        ...usages.flatMap(({ input, cacheRead, output }, n) => [
          { timestamp, type: 'response_item', payload: { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: `ok ${n}` }] } },
          {
            timestamp,
            type: 'event_msg',
            payload: {
              type: 'token_count',
              info: {
                total_token_usage: { input_tokens: 1 + n },
                last_token_usage: { input_tokens: input + cacheRead, cached_input_tokens: cacheRead, output_tokens: output },
              },
            },
          },
        ]),
      ]),
  },
  'Gemini CLI': {
    wire: 'gemini',
    model: 'gemini-3-pro',
    writes: false,
    path: '.gemini/tmp/shop/chats/session-2026-03-03T10-00-9f3a1b2c.jsonl',
    write: (path, usages, timestamp) =>
      writeLines(path, [
        { sessionId: ID, projectHash: 'f' },
        ...usages.map(({ input, cacheRead, output }, n) => ({
          id: `g${n}`,
          type: 'gemini',
          timestamp,
          content: 'ok',
          model: 'gemini-3-pro',
          tokens: { input: input + cacheRead, cached: cacheRead, output },
        })),
      ]),
  },
  OpenCode: {
    wire: 'openai-chat',
    model: 'gpt-6-sol',
    writes: false,
    headers: { 'user-agent': 'opencode/1.18.33' },
    path: '.local/share/opencode/opencode.db',
    write(path, usages, timestamp) {
      const at = Date.parse(timestamp)
      const tokensOf = ({ input, cacheRead, cacheWrite, output }: Usage): object => ({
        input,
        output,
        reasoning: 0,
        cache: { read: cacheRead, write: cacheWrite },
      })
      const messages = usages.map((usage, n) => ({
        info: {
          id: `msg_${n}`,
          sessionID: ID,
          role: 'assistant',
          time: { created: at + n },
          modelID: 'gpt-6-sol',
          providerID: 'openai',
          cost: 0,
          tokens: tokensOf(usage),
        },
        parts: [
          { id: `prt_${n}a`, sessionID: ID, messageID: `msg_${n}`, type: 'text', text: 'ok' },
          { id: `prt_${n}b`, sessionID: ID, messageID: `msg_${n}`, type: 'step-finish', tokens: tokensOf(usage) },
        ],
      }))
      writeDatabase(path, [{ info: { id: ID, slug: 's', directory: '/w', title: 't', version: '1.18.33', time: { created: at, updated: at } }, messages }])
    },
  },
}

/** Sends a conversation through a gateway in a format; `more` are fields of the body. */
export async function sendIn(
  gateway: { url: string },
  wire: WireName,
  messages: readonly object[],
  headers: Record<string, string> = {},
  more: object = {},
): Promise<void> {
  const { path, body } = WIRES[wire]
  const { status, text } = await ask(`${new URL(gateway.url).origin}${path}`, {
    headers: { ...JSON_TYPE, ...headers },
    body: JSON.stringify({ ...body(messages), ...more }),
  })
  expect([status, text]).toEqual([200, expect.any(String)])
}

/** Holds a conversation through a gateway: some prompts with some calls each, from number `from` on. Returns the messages. */
export async function talk(
  gateway: { url: string },
  { wire, headers = {} }: Pick<WireAgent, 'wire' | 'headers'>,
  { prompts = 12, calls = 4, messages = [] as object[], from = 0, more = {} } = {},
): Promise<object[]> {
  const { said, called, returned, answered, headers: naming } = WIRES[wire]
  const send = (): Promise<void> => sendIn(gateway, wire, messages, { ...naming(ID), ...headers }, more)
  for (let turn = from; turn < from + prompts; turn += 1) {
    messages.push(said(`prompt ${turn}`))
    await send()
    for (let n = 0; n < calls; n += 1) {
      const name = `n${turn * calls + n}`
      messages.push(called(`call_${name}`, `cat ${name}`), returned(`call_${name}`, long(name)))
      await send()
    }
    messages.push(answered(`done ${turn}`))
  }
  return messages
}
