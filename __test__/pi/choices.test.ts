/** A user's choices: sessions that are left plain, a project's own settings, and outputs that never collapse. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { exemptions } from '../../extensions/results.ts'
import { HOLDOUT, isHeldOut } from '../../extensions/holdout.ts'
import { POINT } from '../../extensions/messages.ts'
import type { SessionEntry } from '@earendil-works/pi-coding-agent'
import { startModelServer } from '../../rig/model-server.ts'
import { cleanUp, createPiHome, readSession, runPrint, sessionFiles, startRpc } from '../../rig/pi.ts'
import { calls } from '../../rig/reply.ts'
import type { Script } from '../../rig/reply.ts'
import { command, lines, notices, put, reference, setUp } from './support.ts'
import type { Setting } from './support.ts'

afterEach(cleanUp)

const READS: Script = (_request, n) => (n === 0 ? calls(['read', { path: 'a.txt' }, 'call_a'], ['read', { path: 'docs/rules.md' }, 'call_b']) : `answer ${n}.`)

function files(home: Setting['home']): void {
  mkdirSync(join(home.cwd, 'docs'), { recursive: true })
  put(home, 'a.txt', lines('a', 60))
  put(home, 'docs/rules.md', lines('rules', 60))
}

describe('a session of the holdout', () => {
  test('sends exactly the messages of plain Pi, and has a mark', async () => {
    const server = await startModelServer(READS)
    const home = createPiHome({ server })
    files(home)
    await runPrint({ home, prompts: ['read'] })
    const setting = await setUp(READS, { context: { holdout: 1 } })
    files(setting.home)
    expect(await runPrint({ ...setting.load, prompts: ['read'] })).toMatchObject({ exitCode: 0, stderr: '' })
    const sent = (all: Setting['server']['requests']): unknown => all.map(({ messages }) => messages.map(({ role, text }) => [role, text]))
    const placed = JSON.stringify(sent(setting.server.requests)).replaceAll(setting.home.cwd, home.cwd)
    expect(placed).toBe(JSON.stringify(sent(server.requests)))
    const marks = readSession(sessionFiles(setting.home.sessionsDir).at(-1)!).entries.filter(
      (entry) => (entry as { customType?: string }).customType === HOLDOUT,
    )
    expect(marks).toHaveLength(1)
  })

  test('is told on request, and can be switched on', async () => {
    const { home, load } = await setUp(READS, { context: { holdout: 1 } })
    files(home)
    const rpc = await startRpc(load)
    expect(await command(rpc, '/context')).toEqual([expect.stringContaining('/context on switches it on here')])
    expect(await command(rpc, '/context on')).toEqual([expect.stringContaining('The context manager is on')])
    await rpc.prompt('read')
    expect(await command(rpc, '/context')).toEqual([expect.stringContaining('Outputs: 2 in the window')])
  })

  const entry = (customType: string): SessionEntry => ({ type: 'custom', customType, id: 'x', parentId: null, timestamp: '' }) as SessionEntry
  test.each([0, 0.1, 0.5, 1])('holds out this share of sessions: %f', (share) => {
    const ids = Array.from({ length: 10_000 }, (_, index) => `session-${index}`)
    const held = ids.filter((id) => isHeldOut(id, share, []))
    expect(Math.abs(held.length / ids.length - share)).toBeLessThan(0.015)
    // A resumed session stays what it was, and one with points was begun with the context manager.
    expect(held.every((id) => isHeldOut(id, share, [entry(HOLDOUT)]))).toBe(true)
    expect(held.some((id) => isHeldOut(id, share, [entry(POINT)]))).toBe(false)
  })
})

describe("a project's settings", () => {
  test.each([true, false])('count if the project is trusted: %s', async (trusted) => {
    const { home, load, server } = await setUp(READS)
    files(home)
    mkdirSync(join(home.cwd, '.pi'), { recursive: true })
    const settings = { neverCollapse: { files: ['docs/**'] }, store: '/elsewhere.db' }
    writeFileSync(join(home.cwd, '.pi', 'context-manager.json'), JSON.stringify(settings))
    const rpc = await startRpc({ ...load, args: [trusted ? '--approve' : '--no-approve'] })
    for (const prompt of ['one', 'two', 'three', 'four']) await rpc.prompt(prompt)
    await command(rpc, '/context roll')
    await rpc.prompt('five')
    const shown = server.requests.at(-1)!.messages.map(({ text }) => text)
    expect(shown.filter((text) => text.startsWith(reference('call_a', 'read')))).toHaveLength(1)
    expect(shown.some((text) => text.includes('rules line 30:'))).toBe(trusted)
  })
})

test("a project's file that can't be used is reported once, and the session continues", async () => {
  const { home, load } = await setUp(READS)
  files(home)
  mkdirSync(join(home.cwd, '.pi', 'context-manager.json'), { recursive: true })
  const rpc = await startRpc({ ...load, args: ['--approve'] })
  for (const prompt of ['one', 'two']) await rpc.prompt(prompt)
  expect(notices(rpc.events)).toEqual([expect.stringMatching(/context-manager\.json is not a file, so no settings are read from it$/)])
  expect(await command(rpc, '/context')).toEqual([expect.stringContaining('Context:')])
})

describe('outputs that never collapse', () => {
  test.each<[string, string, Record<string, unknown>, boolean]>([
    ['a tool', 'todo', {}, true],
    ['another tool', 'bash', { command: 'cat docs/a.md' }, false],
    ['a file of a folder', 'read', { path: 'docs/deep/a.md' }, true],
    ['an absolute path to it', 'read', { path: '/project/docs/a.md' }, true],
    ['a path with detours', 'read', { path: './src/../docs/a.md' }, true],
    ['the other field for paths', 'edit', { file_path: 'docs/a.md' }, true],
    ['a file elsewhere', 'read', { path: '/elsewhere/docs/a.md' }, false],
    ['a name without a folder', 'read', { path: 'packages/one/AGENTS.md' }, true],
    ['one outside of the project', 'read', { path: '/other/AGENTS.md' }, true],
    ['a hidden file', 'read', { path: 'docs/.rules' }, true],
    ['an absolute glob', 'read', { path: '/etc/app/conf' }, true],
    ['a file that no glob names', 'read', { path: 'src/a.ts' }, false],
    ['no path', 'read', { path: 7 }, false],
  ])('%s', (_name, tool, args, exempt) => {
    const rule = exemptions({ tools: ['todo'], files: ['docs/**', 'AGENTS.md', '/etc/app/*'] }, '/project')
    expect(rule(tool, args)).toBe(exempt)
  })

  test('nothing, if the settings name nothing', () => {
    expect(exemptions({}, '/project')('read', { path: 'a' })).toBe(false)
  })
})
