/** The list of `sessions` in a terminal: what it draws at each size, what keys do, and the screen that it gives back. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { afterEach, describe, expect, test } from 'vitest'
import { age, drawSessions, filtered, keysIn, pageOf, pressed, START } from '../../lib/cli/session-screen.ts'
import type { AfterKey, ListedSession, ListState } from '../../lib/cli/session-screen.ts'
import { ContextManager } from '../../lib/index.ts'
import { cleanUp, onCleanUp } from '../../rig/cleanup.ts'
import { inTerminal } from '../../rig/process.ts'
import { program, temporaryFolder } from '../replay/support.ts'

afterEach(cleanUp)

const NOW = Date.parse('2026-03-10T12:00:00Z')
const SESSIONS: ListedSession[] = Array.from({ length: 50 }, (_, at) => ({
  ...{ name: `claude-code:${String(at).padStart(7, '0')}`, agent: at % 2 === 0 ? 'Claude Code' : 'Codex', at: NOW - at * 7_200_000 },
  ...{
    folder: at % 3 === 0 ? '/home/dev/shop' : '/home/dev/a-long-name-of-a-project',
    turns: at,
    objects: 2 * at,
    prompt: `prompt ${at} ${'and more words '.repeat(at)}`,
  },
}))

describe('the screen', () => {
  test.each([
    [60, 24],
    [100, 30],
    [180, 50],
    [20, 10],
  ])('%i columns and %i rows: no line is wider, and the chosen session is in sight', (width, height) => {
    for (const selected of [0, 7, 25, 49]) {
      for (const state of [
        { ...START, selected },
        { selected: 0, filter: 'shop', isTyping: true },
        { selected: 0, filter: 'none such', isTyping: false },
      ]) {
        const lines = drawSessions(SESSIONS, state, width, height, NOW)
        expect(lines.length).toBeLessThanOrEqual(height)
        for (const line of lines) expect([line, stripVTControlCharacters(line).length <= width]).toEqual([line, true])
        expect(lines.filter((line) => line.includes('\x1b[7m')).length).toBe(filtered(SESSIONS, state.filter).length > 0 ? 1 : 0)
      }
    }
  })

  test('a row has age, agent, folder and prompt; the preview has the name and the whole folder', () => {
    const lines = drawSessions(SESSIONS, { ...START, selected: 3 }, 100, 24, NOW).map(stripVTControlCharacters)
    expect(lines[4]).toMatch(/^ {2}6h {2}Codex {8}shop {14}prompt 3 and more words/)
    expect(lines).toContain('claude-code:0000003  Codex, 6h ago, 3 turns, 6 objects')
    expect(lines).toContain('/home/dev/shop')
  })

  test('a prompt, a folder and a filter can not steer the terminal', () => {
    const hostile = [{ ...(SESSIONS[0] as ListedSession), prompt: 'a\x1b]0;x\x07\nb', folder: '/\x1b[2J' }]
    const text = drawSessions(hostile, { ...START, filter: '\x1b[2J' }, 100, 24, NOW).join('\n') + drawSessions(hostile, START, 100, 24, NOW).join('\n')
    expect(text.replaceAll(/\x1b\[2?7m/g, '')).not.toContain('\x1b')
  })
})

test.each<[ms: number, text: string]>([
  [-5000, '0m'],
  [59_000, '0m'],
  [3_540_000, '59m'],
  [3_600_000, '1h'],
  [172_800_000, '2d'],
  [1_814_400_000, '3w'],
  [63_115_200_000, '2y'],
])('%i milliseconds are %s', (ms, text) => expect(age(ms)).toBe(text))

describe('keys', () => {
  const after = (keys: string, state: ListState = START): AfterKey => {
    let now: AfterKey = state
    for (const key of keysIn(keys)) if (typeof now === 'object') now = pressed(now, key, filtered(SESSIONS, now.filter).length, pageOf(24))
    return now
  }
  test.each<[keys: string, wanted: Partial<ListState> | string]>([
    ['\x1b[B\x1b[B\x1b[A', { selected: 1 }],
    ['\x1bOB', { selected: 1 }],
    ['jjk', { selected: 1 }],
    ['\x1b[A', { selected: 0 }],
    ['\x1b[6~', { selected: 14 }],
    ['\x1b[F\x1b[B', { selected: 49 }],
    ['G\x1b[5~g', { selected: 0 }],
    ['/shop', { filter: 'shop', isTyping: true, selected: 0 }],
    ['/shop\x7f\x7f', { filter: 'sh' }],
    ['/jq', { filter: 'jq' }],
    ['/\u{1F600}\x7fa', { filter: 'a' }],
    ['/shop\x1b[B\x1b[B', { filter: 'shop', selected: 2 }],
    ['/none such\r', { filter: 'none such' }],
    ['/shop\x1b', { filter: '', isTyping: false }],
    ['/shop\r', 'chosen'],
    ['\r', 'chosen'],
    ['q', 'quit'],
    ['\x1b', 'quit'],
    ['\x03', 'quit'],
    ['/a\x03', 'quit'],
    ['\x1b[15~\x1b[200~', { selected: 0 }],
  ])('%j', (keys, wanted) => {
    const state = after(keys)
    if (typeof wanted === 'string') expect(state).toBe(wanted)
    else expect(state).toMatchObject(wanted)
  })
})

test.skipIf(process.platform !== 'linux')('in a terminal, a session is chosen with the keys and then printed', async () => {
  const folder = temporaryFolder()
  const path = join(folder, 'context.db')
  for (const sessionId of ['claude-code:aaaaaaaa', 'codex:bbbbbbbb']) {
    const manager = await ContextManager.open({ sessionId, cwd: folder, store: { kind: 'sqlite', path }, watch: false })
    await manager.recordToolcall({ id: `call_${sessionId}`, tool: 'bash', args: {}, content: 'x', status: 'ok' })
    await manager.close()
  }
  const [node, args] = program('sessions', '--store', path)
  const [file, words] = inTerminal([node, ...args], { columns: 100, rows: 24 })
  const child = spawn(file, words, { env: { ...process.env, HOME: folder, TERM: 'xterm-256color' }, stdio: ['pipe', 'pipe', 'inherit'] })
  onCleanUp(() => void child.kill('SIGKILL'))
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (part: string) => (text += part))
  const sees = async (wanted: string): Promise<void> => {
    while (!text.includes(wanted)) await once(child.stdout, 'data')
  }
  await sees('q quit')
  child.stdin.write('/claude')
  await sees('Filter: claude_  (1 of 2)')
  child.stdin.write('\r')
  const [code] = (await once(child, 'close')) as [number]
  const printed = text.slice(text.lastIndexOf('\x1b[?1049l'))
  expect(code).toBe(0)
  expect(printed).toContain('claude-code:aaaaaaa')
  expect(printed).toContain('pi-context-manager why claude-code:aaaaaaa')
  expect(printed).not.toContain('codex')
})
