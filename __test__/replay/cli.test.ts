import { copyFileSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { cleanUp } from '../../rig/cleanup.ts'
import { cli, fixture, temporaryFolder } from './support.ts'

afterEach(cleanUp)

describe('help and wrong use', () => {
  test.each([
    [['nonsense'], 'unknown command "nonsense"'],
    [['replay'], 'needs a session file'],
    [['replay', '--nonsense', 'x'], '--nonsense'],
    [['replay', '--policies', 'pi,magic', 'x'], 'unknown policy "magic"'],
    [['replay', '--cache', 'huge', 'x'], 'no cache rules "huge"'],
    [['replay', '--window', 'wide', 'x'], '--window needs a number'],
    [['replay', '--per-turn', '0', 'x'], '--per-turn needs a number from 1'],
    [['replay', '--per-turn', '1.5', 'x'], 'whole number'],
    [['replay', '--policies', 'bound', '--save-baseline', '/nonexistent/baseline', 'x'], 'name it in --policies, too'],
    [['replay', '--check', '/nonexistent.json', 'x'], '/nonexistent.json'],
  ])('%j', async (args, sentence) => {
    const { code, stdout, stderr } = await cli(args)
    expect(code === 1 || code === 2, stderr).toBe(true)
    expect(stderr).toContain(sentence)
    expect(stderr).not.toContain('    at ')
    expect(stdout).toBe('')
  })
})

describe('replay', () => {
  test('the JSON has every policy, and nothing else is printed', async () => {
    const { code, stdout, stderr } = await cli(['replay', '--json', '--policies', 'all', fixture('pi-version-3.jsonl')])
    expect([code, stderr]).toEqual([0, ''])
    const report = JSON.parse(stdout)
    expect(report).toMatchObject({ version: 1, problems: [], summary: { sessions: 1, calls: 42, unit: 'USD' } })
    expect(report.sessions).toHaveLength(1)
    const [session] = report.sessions
    expect(session).toMatchObject({ file: fixture('pi-version-3.jsonl'), format: 'pi', calls: 42 })
    expect(Object.keys(session.policies)).toEqual(['recorded', 'append', 'pi', 'mask', 'clear', 'sections', 'pi-context-manager', 'bound'])
    for (const figures of Object.values(session.policies)) {
      for (const field of ['cost', 'costVsPi', 'cacheHit', 'tokensSent', 'peakTokens', 'compactions', 'rolls']) {
        expect((figures as Record<string, unknown>)[field], field).toEqual(expect.any(Number))
      }
    }
    const { pi, 'pi-context-manager': own, bound } = session.policies
    expect(pi).toMatchObject({ missed: 0, missedStrong: 0, fetchCost: 0, costVsPiFetched: 1 })
    const { toolText, byAge, byKind } = own.missedUses
    expect(own.missed).toBeCloseTo((100 * toolText.all) / 42, 9)
    expect(own.missedStrong).toBeCloseTo((100 * toolText.strong) / 42, 9)
    expect(own.costVsPiFetched).toBeCloseTo(own.costVsPi * (1 + own.fetchCost / own.cost), 9)
    for (const sum of [byAge, byKind]) {
      const all = Object.values(sum as Record<string, { all: number }>).reduce((n, one) => n + one.all, 0)
      expect(all).toBe(toolText.all)
    }
    expect(bound).toMatchObject({ missed: null, missedStrong: null, costVsPiFetched: null })
    expect(report.summary.policies['pi-context-manager'].missedUses).toEqual(own.missedUses)
  })

  test('good and bad files of a folder: a line for each, the good ones replayed, the exit code tells', async () => {
    const folder = temporaryFolder()
    copyFileSync(fixture('pi-version-1.jsonl'), join(folder, 'good.jsonl'))
    writeFileSync(join(folder, 'cut.jsonl'), readFileSync(fixture('pi-version-3.jsonl'), 'utf8').slice(0, 150_000))
    writeFileSync(join(folder, 'future.jsonl'), '{"type":"session","version":9,"id":"x","cwd":"/"}\n')
    writeFileSync(join(folder, 'other.jsonl'), '{"hello":1}\n')
    writeFileSync(join(folder, 'notes.txt'), 'not looked at')
    const page = join(folder, 'report.html')
    const { code, stdout, stderr } = await cli(['replay', folder, join(folder, 'missing.jsonl'), '--policies', 'pi,pi-context-manager', '--html', page])
    expect(code).toBe(1)
    const lines = stderr.trim().split('\n').sort()
    expect(lines).toEqual([
      expect.stringMatching(/cut\.jsonl, line \d+: the last line is cut off/),
      expect.stringMatching(/future\.jsonl: a session of Pi in version 9/),
      expect.stringMatching(/missing\.jsonl: it does not exist/),
      expect.stringMatching(/other\.jsonl: neither/),
    ])
    expect(stdout).toMatch(/01a1fe24 [\s\S]*all 2 sessions[\s\S]*\nYou would have paid \$/)
    const html = readFileSync(page, 'utf8')
    expect(statSync(page).mode & 0o777).toBe(0o600)
    expect(html).toContain('Not everything could be read')
    expect(html).toContain('neither a session of Pi')
  })

  test('the page needs nothing else, and text from sessions can’t become markup', async () => {
    const folder = temporaryFolder()
    const evil = join(folder, '<img src=x onerror=alert(1)>.jsonl')
    copyFileSync(fixture('pi-version-3.jsonl'), evil)
    const page = join(folder, 'report.html')
    await cli(['replay', evil, '--quiet', '--policies', 'all', '--html', page])
    const html = readFileSync(page, 'utf8')
    expect(/<(img|script|link|iframe|object)|href=|url\(|@import/.exec(html)?.[0]).toBeUndefined()
    expect(html.match(/<svg /g)).toHaveLength(4)
    expect(html.includes('prefers-color-scheme:dark')).toBe(true)
    expect(html.slice(-8)).toBe('</html>\n')
  })

  test.each<[string[], RegExp]>([
    [['--debt-cap', 'much'], /--debt-cap/],
    [['--debt-cap', '-1'], /--debt-cap/],
    [['--binding', 'maybe'], /--binding is one of none, keeps, drops, refuses, not "maybe"/],
    [['--step', '272000:2'], /--step goes with --read or --write/],
    [['--read', '0.1', '--step', '272000'], /--step needs a size and a factor/],
    [['--read', '0.1', '--step', '272000:0.5'], /--step/],
    [['--cache', 'mine'], /there are no cache rules "mine"/],
  ])('%j is wrong use', async (args, sentence) => {
    const { code, stderr } = await cli(['replay', fixture('pi-version-2.jsonl'), '--quiet', ...args])
    expect(code).toBe(2)
    expect(stderr).toMatch(sentence)
  })

  test('steps, caches, binding and the bound on the debt reach the policies', async () => {
    const run = async (...args: string[]) => {
      const { code, stdout } = await cli(['replay', fixture('claude-code.jsonl'), '--json', '--read', '0.1', '--write', '1.25', ...args])
      expect(code).toBe(0)
      return JSON.parse(stdout).sessions[0].policies
    }
    const usual = await run()
    const stepped = await run('--step', '1:2')
    expect(stepped.pi.cost).toBeCloseTo(2 * usual.pi.cost, 3)
    const hour = await run('--cache', 'anthropic-1h')
    const endings = await run('--cache', 'openai')
    for (const one of [hour, endings]) expect(one.pi.cost).not.toBeCloseTo(usual.pi.cost, 3)
    const free = await run('--debt-cap', 'none')
    expect(free['pi-context-manager'].rolls).toBeGreaterThanOrEqual(usual['pi-context-manager'].rolls)
    expect((await run('--debt-cap', 'none', '--binding', 'refuses'))['pi-context-manager']).toMatchObject({ refused: 0, reasoningLostRunning: 0 })
  })

  test('a baseline holds, and fails when a figure is worse', async () => {
    const folder = temporaryFolder()
    const baseline = join(folder, 'baseline.json')
    const run = (...args: string[]) => cli(['replay', fixture('pi-version-2.jsonl'), '--policies', 'pi,pi-context-manager', '--quiet', ...args])
    expect(await run('--save-baseline', baseline)).toEqual({ code: 0, stdout: '', stderr: '' })
    expect((await run('--check', baseline)).code).toBe(0)
    const stored = JSON.parse(readFileSync(baseline, 'utf8'))
    stored.sessions['pi-version-2.jsonl'].costVsPi *= 0.9
    writeFileSync(baseline, JSON.stringify(stored))
    const worse = await run('--check', baseline)
    expect(worse.code).toBe(1)
    expect(worse.stderr).toContain('worse: pi-version-2.jsonl: cost relative to Pi')
    stored.sessions['pi-version-2.jsonl'].costVsPi *= 2
    stored.sessions['pi-version-2.jsonl'].missedHarm -= 0.5
    writeFileSync(baseline, JSON.stringify(stored))
    const blinder = await run('--check', baseline)
    expect(blinder.code).toBe(1)
    expect(blinder.stderr).toMatch(/worse: pi-version-2\.jsonl: missed uses that probably harm, per 100 calls, \d/)
    delete stored.sessions['pi-version-2.jsonl'].missedHarm
    writeFileSync(baseline, JSON.stringify(stored))
    expect((await run('--check', baseline)).code).toBe(0)
    const other = await run('--check', baseline, '--window', '100000')
    expect(other.stderr).toContain('the baseline was measured with')
    expect(other.code).toBe(1)
  })

  test('--all without any agent’s folder says which ones it tried', async () => {
    const { code, stderr } = await cli(['replay', '--all'], { HOME: temporaryFolder(), PI_CODING_AGENT_DIR: temporaryFolder() })
    expect(code).toBe(1)
    expect(stderr).toContain('there are no sessions in ')
  })

  test('--store keeps the store, and is never written over', async () => {
    const store = join(temporaryFolder(), 'kept.db')
    const args = ['replay', fixture('pi-version-1.jsonl'), '--policies', 'pi-context-manager', '--quiet', '--store', store]
    expect((await cli(args)).code).toBe(0)
    expect(existsSync(store)).toBe(true)
    const again = await cli(args)
    expect(again.code).toBe(2)
    expect(again.stderr).toContain('the file exists')
  })
})
