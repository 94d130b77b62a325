/** The sessions of all agents, as `usage` and `replay --all` find them: each call once, and nothing damaged ends it. */
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { billsFile } from '../../lib/gateway/bills.ts'
import { NotedCalls } from '../../lib/usage/noted.ts'
import type { Charge } from '../../lib/usage/charges.ts'
import { cli } from '../replay/support.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { GEMINI, usedHome } from './home.ts'

afterEach(cleanUp)

interface Sums {
  total: { sessions: number; calls: number; cost: number }
  rows: { key: string; calls: number; cost: number }[]
}

async function usage(env: Record<string, string>, ...args: string[]): Promise<Sums & { stderr: string; code: number | null }> {
  const { stdout, stderr, code } = await cli(['usage', '--json', ...args], env)
  return { ...(JSON.parse(stdout) as Sums), stderr, code }
}

describe('without a name, all agents count', () => {
  test('usage sums them up', async () => {
    const { env, file } = usedHome()
    const all = await usage(env)
    const each = await Promise.all(['.pi/agent/sessions', '.claude/projects', '.codex/sessions', '.gemini/tmp'].map((folder) => usage(env, file(folder))))
    expect(each.map(({ total }) => total.sessions)).toEqual([1, 1, 1, 1])
    expect(all.total.calls).toBe(each.reduce((sum, { total }) => sum + total.calls, 0))
    expect(all.total.cost).toBeCloseTo(
      each.reduce((sum, { total }) => sum + total.cost, 0),
      9,
    )
    expect([all.total.sessions, all.code, all.stderr]).toEqual([4, 0, ''])
  })

  test('replay --all replays them, and none of them is missed where it is absent', async () => {
    const { env } = usedHome()
    const { code, stdout, stderr } = await cli(['replay', '--all', '--json', '--policies', 'recorded,pi-context-manager'], env)
    const report = JSON.parse(stdout) as { sessions: { format: string }[] }
    expect([code, stderr, report.sessions.map(({ format }) => format).sort()]).toEqual([0, expect.any(String), ['claude-code', 'codex', 'gemini-cli', 'pi']])
  })

  test('why takes the ID of each', async () => {
    const { env } = usedHome()
    for (const id of ['0199bee', '0199beef-1111-4222-8333-444455556666']) expect([id, (await cli(['why', id], env)).stderr]).toEqual([id, ''])
  })
})

describe('what is damaged is told, and ends nothing', () => {
  const isRoot = process.getuid?.() === 0
  test.each<[what: string, damage: (file: (name: string) => string) => void, told: RegExp]>([
    ['a file without a session', (file) => writeFileSync(file('.claude/projects/-w/x.jsonl'), 'rubbish\n'), /left out: .*x\.jsonl/],
    ['an empty file', (file) => writeFileSync(file('.claude/projects/-w/x.jsonl'), ''), /left out: .*x\.jsonl/],
    ['a link to nothing', (file) => symlinkSync('/nowhere', file('.claude/projects/-w/x.jsonl')), /^$/],
    ['a folder with the name of a file', (file) => mkdirSync(file('.claude/projects/-w/x.jsonl')), /^$/],
    ['a packed file that is none', (file) => writeFileSync(file('.claude/projects/-w/x.jsonl.gz'), 'no'), /left out: .*x\.jsonl\.gz/],
    [
      'a last line that is cut off',
      (file) =>
        writeFileSync(
          file('.gemini/tmp/shop/chats/session-2026-03-03T10-00-0199beef.jsonl'),
          `${GEMINI.map((line) => JSON.stringify(line)).join('\n')}\n{"id":`,
        ),
      /^$/,
    ],
    [
      'a document that begins as a session and is cut off',
      (file) => writeFileSync(file('.gemini/tmp/shop/chats/session-1.json'), '{"sessionId":"a","projectHash":"b","messages":['),
      /left out: .*session-1\.json/,
    ],
    ...(isRoot
      ? []
      : ([['a folder that may not be read', (file: (name: string) => string) => chmodSync(file('.claude/projects'), 0), /left out: .*projects/]] as [
          string,
          (file: (name: string) => string) => void,
          RegExp,
        ][])),
  ])('%s', async (_what, damage, told) => {
    const { env, file } = usedHome()
    damage(file)
    const { total, stderr, code } = await usage(env)
    expect([total.sessions, code, stderr]).toEqual([4, 0, expect.stringMatching(told)])
  })
})

describe('a call that both the gateway and the agent have noted counts once', () => {
  const bills = (env: Record<string, string>, calls: readonly object[]): void => {
    const file = billsFile({ kind: 'sqlite', path: join(env['HOME'] as string, '.local/share/pi-context-manager/context.db') })
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, calls.map((call) => `${JSON.stringify(call)}\n`).join(''))
  }
  const noted = (more: object = {}): object => ({
    ...{
      at: Date.parse('2026-03-02T10:00:05.000Z'),
      session: 'codex:0199c0de-1111-4222-8333-444455556666',
      folder: '/home/dev/shop',
      model: 'openai/gpt-5.5',
      isHeldOut: false,
    },
    ...{ billed: { input: 600, cacheRead: 400, cacheWrite: 0, output: 10 }, plain: { input: 900, cacheRead: 400, cacheWrite: 0, output: 10 } },
    ...more,
  })

  test('and the session keeps one name', async () => {
    const { env } = usedHome()
    const before = await usage(env)
    bills(env, [noted()])
    const after = await usage(env, '--by', 'session')
    expect([after.total.calls, after.total.sessions]).toEqual([before.total.calls, before.total.sessions])
    expect(after.total.cost).toBeCloseTo(before.total.cost, 9)
    expect(after.rows.map(({ key }) => key)).toContain('codex:0199c0de-1111-4222-8333-444455556666')
    expect(after.rows.map(({ key }) => key)).not.toContain('0199c0de-1111-4222-8333-444455556666')
  })

  const charge = (changes: Partial<Charge> = {}): Charge => ({
    ...{ at: 1_000_000_000, session: 'codex:s', folder: '/', model: 'm', calls: 1, cost: 1, saved: 0, savedTokens: 0, isManaged: true, isHeldOut: false },
    ...{ tokens: { input: 5, cacheRead: 6, cacheWrite: 7, cacheWriteHour: 0, output: 8 } },
    ...changes,
  })
  test.each<[what: string, own: Partial<Charge>, isTaken: boolean]>([
    ['of the same prompt at the same time', {}, true],
    ['with another count of the answer', { tokens: { ...charge().tokens, output: 1 } }, true],
    [
      'whose file does not tell what was written to the cache',
      { tokens: { ...charge().tokens, input: charge().tokens.input + charge().tokens.cacheWrite, cacheWrite: 0 } },
      true,
    ],
    ['noted half an hour later', { at: 1_001_800_000 }, true],
    ['without a time', { at: 0 }, true],
    ['noted a day later', { at: 1_086_400_000 }, false],
    ['of another prompt', { tokens: { ...charge().tokens, input: 4 } }, false],
    ['that is none, but a saving', { calls: 0 }, false],
  ])('a call %s', (_what, own, isTaken) => {
    const calls = new NotedCalls()
    calls.add(charge())
    expect([calls.take(charge(own)), calls.take(charge(own))]).toEqual([isTaken ? charge() : undefined, undefined])
  })
})
