/** One short name of a session works in every command, for sessions of Pi and of the gateway. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { billsFile } from '../../lib/gateway/bills.ts'
import { ContextManager } from '../../lib/index.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { startModelServer } from '../../rig/model-server.ts'
import { gatewayTo } from '../gateway/support.ts'
import { AGENTS, ID, talk } from '../gateway/wire-agents.ts'
import { cli } from '../replay/support.ts'
import { emptyHome } from './home.ts'
import type { Home } from './home.ts'

/** Pi's session, and another one whose ID begins with other digits. */
const PI = '0199c5a2-1111-7000-8000-000000000001'

let home: Home
let store: string

beforeAll(async () => {
  home = emptyHome()
  store = home.file('.local/share/pi-context-manager/context.db')
  const options = { kind: 'sqlite', path: store } as const
  mkdirSync(dirname(store), { recursive: true })
  const put = (path: string, rows: readonly object[]): void => {
    mkdirSync(dirname(home.file(path)), { recursive: true })
    writeFileSync(home.file(path), rows.map((row) => `${JSON.stringify(row)}\n`).join(''))
  }
  const at = '2026-03-01T10:00:01.000Z'
  const usage = { input: 700, output: 9, cacheRead: 50, cacheWrite: 3, totalTokens: 762 }
  put(`.pi/agent/sessions/--w--/2026_${PI}.jsonl`, [
    { type: 'session', version: 3, id: PI, timestamp: at, cwd: '/w' },
    { type: 'message', id: 'a', parentId: null, timestamp: at, message: { role: 'user', content: 'mend the pelican', timestamp: Date.parse(at) } },
    {
      type: 'message',
      id: 'b',
      parentId: 'a',
      timestamp: at,
      message: {
        role: 'assistant',
        content: [{ type: 'text', text: 'mended' }],
        provider: 'anthropic',
        model: 'claude-sonnet-4-5',
        stopReason: 'stop',
        usage,
        timestamp: Date.parse(at),
      },
    },
  ])
  const manager = await ContextManager.open({ sessionId: PI, cwd: home.home, store: options, watch: false })
  await manager.appendTurn({ role: 'user', content: 'mend the pelican' })
  await manager.receive({ id: 'call_pi', tool: 'bash', args: { command: 'ls' }, content: 'a pelican\n', status: 'ok' })
  await manager.close()

  const server = await startModelServer(() => 'ok')
  const { gateway } = await gatewayTo(server.url, { store: options, billsPath: billsFile(options) })
  const agent = AGENTS['Claude Code']!
  await talk(gateway, agent, { prompts: 3, calls: 2 })
  await gateway.close()
  agent.write(
    home.file(agent.path),
    server.requests.map((request) => request.usage!),
    new Date().toISOString(),
  )
})
afterAll(cleanUp)

const GATEWAY = `claude-code:${ID}`

describe.each<[whose: string, id: string, words: string, names: readonly string[]]>([
  ['Pi', PI, 'mend the pelican', [PI.slice(0, 7), PI.slice(0, 8)]],
  ['the gateway', GATEWAY, 'prompt 0', [ID.slice(0, 7), GATEWAY.slice(0, 'claude-code:'.length + 7)]],
])('a session of %s', (_whose, id, words, names) => {
  test.each<[command: string, args: (name: string) => string[], told: RegExp]>([
    ['why', (name) => ['why', name], /first|call|cache/],
    ['show', (name) => ['show', name], new RegExp(`^user: ${words}`)],
    ['log', (name) => ['log', '--no-patch', name], new RegExp(`session ${id}\n[0-9a-f]{8}@\\d+ `)],
    ['inspect', (name) => ['inspect', name], new RegExp(`  ${id}  `)],
    ['inspect --call', (name) => ['inspect', '--call', '-1', name], /parts?\s+(?:is|are)\s+unchanged/],
    ['search --session', (name) => ['search', '--session', name, id === PI ? 'pelican' : 'line'], new RegExp(`session ${id}`)],
    ['export --session', (name) => ['export', '--session', name, home.file(`${name.replace(':', '-')}.jsonl`)], /objects in \d+ versions/],
    ['forget --session', (name) => ['forget', '--dry-run', '--session', name], /would erase [1-9]/],
    ['forget --id', (name) => ['forget', '--dry-run', '--id', name], /would erase [1-9]/],
    ['replay', (name) => ['replay', name], /You (?:paid|would have paid) |Saved |Cost /],
    ['usage', (name) => ['usage', name, '--by', 'session'], new RegExp(`^(?:claude-code:)?${id.replace('claude-code:', '').slice(0, 7)}`, 'm')],
  ])('%s takes each of its names', async (_command, args, told) => {
    for (const name of names) {
      const isFile = ['replay', 'usage'].includes(args(name)[0]!)
      const { code, stdout } = await cli([...args(name), ...(isFile ? [] : ['--store', store])], home.env)
      expect([name, code, stdout]).toEqual([name, 0, expect.stringMatching(told)])
    }
  })

  test('sessions, usage and the tables of replay show one that is taken', async () => {
    const shown = names[1]!
    expect((await cli(['sessions', '--lines'], home.env)).stdout).toContain(`  ${shown}  `)
    expect((await cli(['usage', '--by', 'session'], home.env)).stdout).toMatch(new RegExp(`^${shown} `, 'm'))
    expect((await cli(['replay', '--all'], home.env)).stdout).toContain(` ${id.replace('claude-code:', '').slice(0, 8)} `)
  })
})

test('a name of several is told with them, and one of none with where to look', async () => {
  const other = join(dirname(home.file(`.pi/agent/sessions/--w--/x`)), `2026_${PI.replace(/1$/, '2')}.jsonl`)
  writeFileSync(other, `${JSON.stringify({ type: 'session', version: 3, id: PI.replace(/1$/, '2'), timestamp: '2026-03-01T10:00:01.000Z', cwd: '/w' })}\n`)
  expect(await cli(['replay', PI.slice(0, 7)], home.env)).toMatchObject({ code: 2, stderr: expect.stringMatching(/0199c5a may be .*1, .*2; give more of it/) })
  for (const command of ['show', 'log'])
    expect(await cli([command, 'abcdef0'], home.env)).toMatchObject({ code: 1, stderr: expect.stringContaining('"search" shows IDs and paths') })
})
