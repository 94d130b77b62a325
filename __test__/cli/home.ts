/** A home in which each agent has one small session. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { temporaryFolder } from '../../rig/pi.ts'

const PI = [
  { type: 'session', version: 3, id: '0199aaaa-1', timestamp: '2026-03-01T10:00:00.000Z', cwd: '/home/dev/shop' },
  {
    type: 'message',
    id: 'a',
    parentId: null,
    timestamp: '2026-03-01T10:00:01.000Z',
    message: { role: 'user', content: 'hi', timestamp: Date.parse('2026-03-01T10:00:01.000Z') },
  },
  {
    type: 'message',
    id: 'b',
    parentId: 'a',
    timestamp: '2026-03-01T10:00:02.000Z',
    message: {
      role: 'assistant',
      content: [{ type: 'text', text: 'hello' }],
      provider: 'anthropic',
      model: 'claude-sonnet-4-5',
      stopReason: 'stop',
      usage: { input: 700, output: 9, cacheRead: 50, cacheWrite: 3, totalTokens: 762 },
      timestamp: Date.parse('2026-03-01T10:00:02.000Z'),
    },
  },
]
const CLAUDE = [
  {
    type: 'user',
    uuid: 'u',
    parentUuid: null,
    sessionId: '9f3a1b2c-1111-4222-8333-444455556666',
    cwd: '/home/dev/shop',
    timestamp: '2026-03-01T11:00:00.000Z',
    message: { role: 'user', content: 'hi' },
  },
  {
    type: 'assistant',
    uuid: 'v',
    parentUuid: 'u',
    sessionId: '9f3a1b2c-1111-4222-8333-444455556666',
    cwd: '/home/dev/shop',
    timestamp: '2026-03-01T11:00:01.000Z',
    message: {
      id: 'msg_1',
      role: 'assistant',
      model: 'claude-sonnet-4-5',
      content: [{ type: 'text', text: 'hello' }],
      usage: { input_tokens: 3, cache_read_input_tokens: 200, cache_creation_input_tokens: 40, output_tokens: 8 },
    },
  },
]
const CODEX = [
  { timestamp: '2026-03-02T10:00:00.000Z', type: 'session_meta', payload: { id: '0199c0de-1111-4222-8333-444455556666', cwd: '/home/dev/shop' } },
  { timestamp: '2026-03-02T10:00:01.000Z', type: 'turn_context', payload: { model: 'gpt-5.5' } },
  { timestamp: '2026-03-02T10:00:02.000Z', type: 'response_item', payload: { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'hi' }] } },
  {
    timestamp: '2026-03-02T10:00:03.000Z',
    type: 'response_item',
    payload: { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'hello' }] },
  },
  {
    timestamp: '2026-03-02T10:00:03.000Z',
    type: 'event_msg',
    payload: {
      type: 'token_count',
      info: { total_token_usage: { input_tokens: 1000 }, last_token_usage: { input_tokens: 1000, cached_input_tokens: 400, output_tokens: 10 } },
    },
  },
]
/** The lines of Gemini CLI's session. */
export const GEMINI = [
  { sessionId: '0199beef-1111-4222-8333-444455556666', projectHash: 'f' },
  { id: 'u', type: 'user', timestamp: '2026-03-03T10:00:00.000Z', content: 'hi' },
  { id: 'g', type: 'gemini', timestamp: '2026-03-03T10:00:01.000Z', content: 'hello', model: 'gemini-2.5-pro', tokens: { input: 500, cached: 100, output: 5 } },
]

/** The home's folder, files in it by their names, and the environment of a program that works there. */
export interface Home {
  home: string
  file: (name: string) => string
  env: Record<string, string>
}

/** An empty home. */
export function emptyHome(): Home {
  const home = temporaryFolder('agents-')
  const env = { HOME: home, CLAUDE_CONFIG_DIR: '', CODEX_HOME: '', GEMINI_CLI_HOME: '', PI_CODING_AGENT_DIR: '', XDG_DATA_HOME: '' }
  return { home, file: (name) => join(home, name), env }
}

/** A home in which each agent has one session. */
export function usedHome(): Home {
  const own = emptyHome()
  const put = (path: string, all: readonly object[]): void => {
    mkdirSync(dirname(own.file(path)), { recursive: true })
    writeFileSync(own.file(path), all.map((line) => `${JSON.stringify(line)}\n`).join(''))
  }
  put('.pi/agent/sessions/--w--/2026_0199aaaa-1.jsonl', PI)
  put('.claude/projects/-w/9f3a1b2c-1111-4222-8333-444455556666.jsonl', CLAUDE)
  put('.codex/sessions/2026/03/02/rollout-2026-03-02-0199c0de-1111-4222-8333-444455556666.jsonl', CODEX)
  put('.gemini/tmp/shop/chats/session-2026-03-03T10-00-0199beef.jsonl', GEMINI)
  return own
}
