/** OpenCode's own database as a source of sessions: read as their exports would be, by every command, and never changed. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { cleanUp } from '../../rig/cleanup.ts'
import { binary } from '../hosts/opencode.ts'
import { cli } from '../replay/support.ts'
import { emptyHome } from './home.ts'
import { writeDatabase } from './opencode-database.ts'
import type { Home } from './home.ts'

afterEach(cleanUp)

const ID = 'ses_09f3a1b2cffeAbCdEfGhIjKlMn'
const CHILD = 'ses_09f3a1b2cffdAbCdEfGhIjKlMn'
const AT = Date.parse('2026-03-04T10:00:00.000Z')

interface Part {
  id: string
  type: string
  [field: string]: unknown
}

const TOKENS = { input: 500, output: 20, reasoning: 5, cache: { read: 300, write: 40 } }
const answer = (n: number, parts: Part[]): object => ({
  info: {
    id: `msg_${n}`,
    sessionID: ID,
    role: 'assistant',
    time: { created: AT + n, completed: AT + n },
    parentID: 'msg_0',
    modelID: 'claude-sonnet-4-5',
    providerID: 'anthropic',
    mode: 'build',
    agent: 'build',
    path: { cwd: '/home/dev/shop', root: '/' },
    cost: 0,
    tokens: TOKENS,
  },
  parts: parts.map((part) => ({ ...part, sessionID: ID, messageID: `msg_${n}` })),
})

/** An export, as "opencode export" writes it and "opencode import" takes it. */
const EXPORT = {
  info: {
    id: ID,
    slug: 'tidy-tiger',
    projectID: 'global',
    directory: '/home/dev/shop',
    path: 'home/dev/shop',
    title: 'Mend the cart',
    version: '1.18.33',
    time: { created: AT, updated: AT + 9 },
    cost: 0,
    tokens: TOKENS,
  },
  messages: [
    {
      info: {
        id: 'msg_0',
        sessionID: ID,
        role: 'user',
        time: { created: AT },
        agent: 'build',
        model: { providerID: 'anthropic', modelID: 'claude-sonnet-4-5' },
      },
      parts: [{ id: 'prt_00', sessionID: ID, messageID: 'msg_0', type: 'text', text: 'mend the cart' }],
    },
    answer(1, [
      { id: 'prt_11', type: 'step-start' },
      { id: 'prt_12', type: 'text', text: 'I look.' },
      {
        id: 'prt_13',
        type: 'tool',
        callID: 'call_1',
        tool: 'bash',
        state: {
          status: 'completed',
          input: { command: 'ls', description: 'lists' },
          output: 'cart.ts\n',
          title: 'ls',
          metadata: {},
          time: { start: AT + 1, end: AT + 2 },
        },
      },
      { id: 'prt_14', type: 'step-finish', reason: 'tool-calls', cost: 0, tokens: TOKENS },
    ]),
    answer(2, [
      { id: 'prt_21', type: 'step-start' },
      { id: 'prt_22', type: 'text', text: 'Mended.' },
      { id: 'prt_23', type: 'step-finish', reason: 'stop', cost: 0, tokens: TOKENS },
    ]),
  ],
}

function put(home: Home, sessions: readonly object[]): string {
  const path = home.file('.local/share/opencode/opencode.db')
  writeDatabase(path, sessions)
  return path
}

const child = {
  ...EXPORT,
  info: { ...EXPORT.info, id: CHILD, parentID: ID },
  messages: JSON.parse(JSON.stringify(EXPORT.messages).replaceAll(ID, CHILD).replaceAll('msg_', 'msg_c').replaceAll('prt_', 'prt_c')),
}

interface Usage {
  total: { sessions: number; calls: number; cost: number; tokens: object }
  rows: { key: string; folder: string }[]
}

const LISTED = "2 calls of OpenCode count at list prices: these files don't say whether a plan at a flat rate paid\n"

describe('a session in the database', () => {
  test('counts in usage as its export does, with its subagents, and the file stays as it is', async () => {
    const home = emptyHome()
    const path = put(home, [EXPORT, child])
    const before = createHash('sha256').update(readFileSync(path)).digest('hex')
    const own = await cli(['usage', '--json', '--by', 'session'], home.env)
    expect([own.code, own.stderr]).toEqual([0, ''])
    const { total, rows } = JSON.parse(own.stdout) as Usage
    writeFileSync(home.file('export.json'), JSON.stringify(EXPORT))
    const exported = JSON.parse((await cli(['usage', '--json', home.file('export.json')], home.env)).stdout) as Usage
    expect([total.sessions, total.calls, rows.map(({ key, folder }) => [key, folder])]).toEqual([1, 2 * exported.total.calls, [[ID, '/home/dev/shop']]])
    expect(total.cost).toBeCloseTo(2 * exported.total.cost, 12)
    expect(createHash('sha256').update(readFileSync(path)).digest('hex')).toBe(before)
  })

  test('is replayed, explained and summed up by its short name', async () => {
    const home = emptyHome()
    const path = put(home, [EXPORT])
    const replayed = JSON.parse((await cli(['replay', '--all', '--json', '--policies', 'recorded,pi-context-manager'], home.env)).stdout) as {
      sessions: { format: string; id: string; calls: number; cwd: string }[]
    }
    expect(replayed.sessions).toMatchObject([{ format: 'opencode', id: ID, calls: 2, cwd: '/home/dev/shop' }])
    for (const [args, told] of [
      [['why', ID.slice(0, 12)], ''],
      [['why', `opencode:${ID.slice(0, 12)}`], ''],
      [['usage', ID.slice(0, 12)], LISTED],
      [['usage', path], LISTED],
    ] as const)
      expect([args, await cli([...args], home.env)]).toEqual([args, expect.objectContaining({ code: 0, stderr: told })])
  })

  test.each<[what: string, damage: (path: string) => void]>([
    ['a file with other contents', (path) => writeFileSync(path, 'rubbish')],
    ['an empty file', (path) => writeFileSync(path, '')],
  ])('%s is told, and ends nothing', async (_what, damage) => {
    const home = emptyHome()
    damage(put(home, []))
    const { code, stderr } = await cli(['usage'], home.env)
    expect([code, stderr]).toEqual([1, expect.stringContaining("OpenCode's database can't be read")])
  })

  test.skipIf(binary === undefined)('of the real OpenCode is read as its own export', async () => {
    const home = emptyHome()
    const env = {
      PATH: process.env['PATH'] ?? '',
      HOME: home.home,
      XDG_DATA_HOME: join(home.home, '.local/share'),
      OPENCODE_DISABLE_MODELS_FETCH: '1',
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      npm_config_offline: 'true',
    }
    writeFileSync(home.file('import.json'), JSON.stringify(EXPORT))
    const opencode = (...args: string[]): string => execFileSync(binary!, args, { cwd: home.home, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
    opencode('import', home.file('import.json'))
    writeFileSync(home.file('export.json'), opencode('export', ID))
    const [own, exported] = await Promise.all(
      [[], [home.file('export.json')]].map(
        async (paths) => JSON.parse((await cli(['usage', '--json', '--by', 'session', ...paths], home.env)).stdout) as Usage,
      ),
    )
    expect(own!.total.calls).toBe(2)
    expect(own!.total).toEqual(exported!.total)
    expect(own!.rows).toEqual(exported!.rows)
  })
})
