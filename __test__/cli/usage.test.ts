/** The cost and the savings of sessions, and the reasons for broken caches, by the program itself. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { estimated } from '../../lib/cli/estimate.ts'
import { sinceOf } from '../../lib/cli/usage.ts'
import { ContextManager } from '../../lib/index.ts'
import { cli } from '../replay/support.ts'
import { cleanUp, temporaryFolder } from '../../rig/pi.ts'

afterEach(cleanUp)

/** The entry of a session of Pi that was left plain by the holdout. */
const LEFT_PLAIN = {
  type: 'custom',
  customType: 'pi-context-manager-holdout',
  id: 'm',
  parentId: null,
  timestamp: '2026-03-01T10:00:00.000Z',
  data: { share: 0.1 },
}

/** A model whose fresh input token costs a millionth of a dollar. */
const MODEL = { provider: 'acme', model: 'large' }

interface Call {
  id: string
  parent: string | null
  /** When it came, in the local time zone. */
  at: string
  input?: number
  cacheRead?: number
  model?: { provider: string; model: string }
  isPriced?: boolean
}

function call({ id, parent, at, input = 0, cacheRead = 0, model = MODEL, isPriced = true }: Call): object {
  const cost = isPriced ? { input: input / 1e6, output: 100 / 1e6, cacheRead: cacheRead / 1e7, cacheWrite: 0 } : undefined
  const usage = { input, output: 20, cacheRead, cacheWrite: 0, totalTokens: input + cacheRead + 20, cost }
  const message = { role: 'assistant', content: [{ type: 'text', text: id }], ...model, stopReason: 'stop', usage, timestamp: Date.parse(at) }
  return { type: 'message', id, parentId: parent, timestamp: new Date(at).toISOString(), message }
}

const point = (id: string, parent: string, saved: number, at: string): object => ({
  type: 'custom',
  customType: 'pi-context-manager',
  ...{ id, parentId: parent, timestamp: new Date(at).toISOString(), data: { session: 's', tx: 1, saved, dollars: saved / 1e6 } },
})

/** A point whose calls a plan at a flat rate has paid for, with the tokens so far. */
const planPoint = (id: string, parent: string, at: string, plan: { sent: number; without: number }, isOff = false): object => ({
  type: 'custom',
  customType: 'pi-context-manager',
  ...{ id, parentId: parent, timestamp: new Date(at).toISOString(), data: { session: 's', tx: 1, ...(isOff ? { off: true } : { saved: 1000 }), plan } },
})

const edit = (id: string, parent: string, targetId: string): object => ({
  type: 'context_edit',
  id,
  parentId: parent,
  targetId,
  replacement: { content: 'gone' },
  timestamp: '2026-03-01T12:00:00.000Z',
})

function session(folder: string, id: string, cwd: string, entries: object[]): void {
  const header = { type: 'session', version: 3, id, timestamp: '2026-03-01T12:00:00.000Z', cwd }
  const sessions = join(folder, 'sessions', '--w--')
  mkdirSync(sessions, { recursive: true })
  writeFileSync(join(sessions, `2026-03-01_${id}.jsonl`), [header, ...entries].map((entry) => `${JSON.stringify(entry)}\n`).join(''))
}

/** Two sessions on two days; the second one is a fork and repeats the first call. */
function given(): { folder: string; env: Record<string, string> } {
  const folder = temporaryFolder('usage-')
  const first = [
    call({ id: 'a', parent: null, at: '2026-03-01T10:00:00', input: 1_000_000 }),
    point('p', 'a', -40_000, '2026-03-01T10:00:01'),
    call({ id: 'b', parent: 'p', at: '2026-03-01T10:01:00', input: 500_000, cacheRead: 1_000_000 }),
    point('q', 'b', 260_000, '2026-03-01T10:01:01'),
    // Back to the first answer: what was saved there is where this branch begins.
    call({ id: 'c', parent: 'p', at: '2026-03-02T09:00:00', input: 100_000, cacheRead: 1_000_000 }),
    point('r', 'c', 60_000, '2026-03-02T09:00:01'),
  ]
  session(folder, '0199aaaa-1', '/w/shop', first)
  session(folder, '0199bbbb-2', '/w/blog', [
    ...first.slice(0, 2),
    call({ id: 'x', parent: 'p', at: '2026-03-02T11:00:00', input: 700, model: { provider: 'acme', model: 'unknown' }, isPriced: false }),
  ])
  return { folder, env: { PI_CODING_AGENT_DIR: folder, XDG_DATA_HOME: join(folder, 'data') } }
}

describe('usage', () => {
  test('sums up costs and savings by day, each call once', async () => {
    const { env } = given()
    const { code, stdout, stderr } = await cli(['usage', '--json'], env)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const { by, rows, total } = JSON.parse(stdout)
    expect(by).toBe('day')
    expect(rows).toMatchObject([
      {
        key: '2026-03-01',
        sessions: 1,
        calls: 2,
        cost: expect.closeTo(1.6002),
        saved: expect.closeTo(0.26),
        plainCost: expect.closeTo(1.8602),
        unpricedCalls: 0,
      },
      { key: '2026-03-02', sessions: 2, calls: 2, cost: expect.closeTo(0.2001), saved: expect.closeTo(0.1), unpricedCalls: 1 },
    ])
    expect(total).toMatchObject({
      key: 'total',
      sessions: 2,
      calls: 4,
      savedTokens: 360_000,
      tokens: { input: 1_600_700, cacheRead: 2_000_000, cacheWrite: 0, output: 80 },
    })
  })

  test.each([
    ['project', ['/w/shop', '/w/blog']],
    ['model', ['acme/large', 'acme/unknown']],
    ['session', ['0199aaaa-1', '0199bbbb-2']],
  ])('sums up by %s', async (by, keys) => {
    const { env } = given()
    const { rows } = JSON.parse((await cli(['usage', '--json', '--by', by], env)).stdout)
    expect(rows.map(({ key }: { key: string }) => key)).toEqual(keys)
  })

  test('counts a value other than a number in a damaged line as none', async () => {
    const folder = temporaryFolder('usage-')
    const damaged = call({ id: 'b', parent: 'a', at: '2026-03-01T10:01:00', input: 1 })
    const usage = { input: 'x', output: -5, cacheRead: 'INFINITE', cacheWrite: null, cost: { input: 'NaN', output: 'INFINITE' } }
    session(folder, '0199aaaa-1', '/w/shop', [
      call({ id: 'a', parent: null, at: '2026-03-01T10:00:00', input: 1_000_000 }),
      { ...damaged, message: { ...(damaged as any).message, usage } },
    ])
    const path = join(folder, 'sessions', '--w--', '2026-03-01_0199aaaa-1.jsonl')
    writeFileSync(path, readFileSync(path, 'utf8').replaceAll('"INFINITE"', '1e999'))
    const { code, stdout } = await cli(['usage', '--json'], { PI_CODING_AGENT_DIR: folder, XDG_DATA_HOME: join(folder, 'data') })
    expect(code).toBe(0)
    expect(JSON.parse(stdout).total).toMatchObject({ calls: 2, tokens: { input: 1_000_000, output: 20, cacheRead: 0, cacheWrite: 0 }, cost: 1.0001 })
  })

  test('is limited to a time and a project', async () => {
    const { env } = given()
    const calls = async (...args: string[]): Promise<number> => JSON.parse((await cli(['usage', '--json', ...args], env)).stdout).total.calls
    expect(await calls('--since', '2026-03-02')).toBe(2)
    expect(await calls('--since', '20260302', '--project', '/w/blog')).toBe(1)
    expect(await calls('--project', '/w')).toBe(4)
    const none = await cli(['usage', '--since', '2099-01-01'], env)
    expect(none).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('no model call') })
    const missing = join(env['PI_CODING_AGENT_DIR']!, 'none')
    for (const args of [['--by', 'dya'], ['--since', '2026-02-30'], ['--since', 'yesterday'], [missing]]) {
      const { code, stdout, stderr } = await cli(['usage', ...args], env)
      expect({ args, code, stdout }).toEqual({ args, code: args[0] === missing ? 1 : 2, stdout: '' })
      expect(stderr).toMatch(/^pi-context-manager: .+\n$/)
    }
    const now = Date.parse('2026-03-08T15:00:00')
    expect(sinceOf('7d', now)).toBe(Date.parse('2026-03-01T00:00:00'))
  })

  test('is a table of at most 80 columns with bars of costs and savings', async () => {
    const { env } = given()
    for (const by of ['day', 'project', 'model', 'session']) {
      const { stdout, stderr } = await cli(['usage', '--by', by], env)
      const lines = stdout.trimEnd().split('\n')
      expect(lines).toHaveLength(4)
      for (const line of lines) expect(line.length).toBeLessThanOrEqual(80)
      expect(lines.at(-1)).toMatch(
        by === 'session' ? /^total +4 +3\.6M +56 % +\$1\.80 +\$2\.16 +\$0\.36 +17 %$/ : /^total +2 +4 +3\.6M +56 % +\$1\.80 +\$2\.16 +\$0\.36 +17 %$/,
      )
      expect(lines[1]).toMatch(/█+░*$/)
      expect(stderr).toBe(
        "1 of 4 calls are of models without known prices and count as $0; in tokens, all calls together saved 360k of fresh input\nleft out: 1 call that another file has, too ($1.00); each call counts once\n1 call of Pi counts at its list price: these files don't say whether a plan at a flat rate paid\n",
      )
    }
  })

  test('compares sessions that were left plain with the others', async () => {
    const folder = temporaryFolder('usage-')
    const env = { PI_CODING_AGENT_DIR: folder, CONTEXT_STORE_PATH: join(folder, 'none.db') }
    const paid = (id: string, input: number, before: object[], after: object[] = []): void =>
      session(folder, id, '/w/shop', [...before, call({ id: `${id}-call`, parent: null, at: `2026-03-0${1 + Number(id.at(-1))}T10:00:00`, input }), ...after])
    const saved = (id: string): object => point(`${id}-point`, `${id}-call`, 1000, `2026-03-0${1 + Number(id.at(-1))}T10:00:01`)
    paid('plain-1', 1_000_000, [LEFT_PLAIN])
    expect((await cli(['usage'], env)).stdout).not.toContain('left plain')
    paid('managed-2', 500_000, [], [saved('managed-2')])
    const few = (await cli(['usage'], env)).stdout
    expect(few).toMatch(/left plain +\$1\.00 a call, 1 session\n/)
    expect(few).toContain('Too few sessions for an interval')
    paid('plain-3', 1_000_000, [LEFT_PLAIN])
    paid('managed-4', 700_000, [], [saved('managed-4')])
    // Left plain and then switched on: neither.
    paid('both-5', 9_000_000, [LEFT_PLAIN], [saved('both-5')])
    const { stdout } = await cli(['usage'], env)
    for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(80)
    expect(stdout).toMatch(/context manager +\$0\.60 a call, 2 sessions\n/)
    expect(stdout).toContain('A call cost 60 % of a plain one (95 % interval: 50 % to 70 %).')
    const { holdout } = JSON.parse((await cli(['usage', '--json'], env)).stdout)
    expect(holdout).toMatchObject([
      { unit: 'dollars', plain: { sessions: 2, calls: 2 }, managed: { sessions: 2, calls: 2 }, interval: [expect.closeTo(0.5, 2), expect.closeTo(0.7, 2)] },
    ])
  })

  test('counts calls of Pi on a plan in tokens, branch by branch', async () => {
    const folder = temporaryFolder('usage-')
    const env = { PI_CODING_AGENT_DIR: folder, CONTEXT_STORE_PATH: join(folder, 'none.db') }
    session(folder, '0199aaaa-1', '/w/shop', [
      call({ id: 'a', parent: null, at: '2026-03-01T10:00:00', input: 300_000 }),
      planPoint('p', 'a', '2026-03-01T10:00:01', { sent: 300_000, without: 300_000 }),
      call({ id: 'b', parent: 'p', at: '2026-03-01T10:01:00', input: 100_000, cacheRead: 100_000 }),
      planPoint('q', 'b', '2026-03-01T10:01:01', { sent: 500_000, without: 700_000 }),
      // Back to the first answer.
      call({ id: 'c', parent: 'p', at: '2026-03-01T10:02:00', input: 300_000 }),
      planPoint('r', 'c', '2026-03-01T10:02:01', { sent: 600_000, without: 700_000 }),
    ])
    const whole = await cli(['usage'], env)
    expect(whole.stdout).toMatch(/^total +1 +3 +800k +13 % +plan +1\.1M +300k +27 %$/m)
    expect(whole.stdout).not.toContain('$')
    const look = { isReadingOver: () => false, isOver: () => false, progress: () => {} }
    const { agents } = await estimated([{ agent: 'Pi', host: 'pi', command: 'pi', path: join(folder, 'sessions') }], undefined, look)
    expect(agents).toMatchObject([
      { calls: 3, onPlan: { calls: 3, sent: 800_000, without: 1_100_000 }, paid: 0, managed: { paid: 0, saved: 0 }, sample: { sessions: 0 } },
    ])
    // The user changes to a key.
    session(folder, '0199bbbb-2', '/w/shop', [
      call({ id: 'd', parent: null, at: '2026-03-02T10:00:00', input: 100_000 }),
      planPoint('s', 'd', '2026-03-02T10:00:01', { sent: 100_000, without: 100_000 }),
      call({ id: 'e', parent: 's', at: '2026-03-02T10:01:00', input: 1_000_000 }),
      planPoint('t', 'e', '2026-03-02T10:01:01', { sent: 100_000, without: 100_000 }),
    ])
    const mixed = await cli(['usage', '--by', 'session'], env)
    expect(mixed.stdout).toMatch(/^0199bbbb shop +2 +1\.1M +0 % +\$1\.00 +\$1\.00 /m)
    expect(mixed.stdout.replaceAll('\n', ' ')).toContain(
      '4 of 5 calls were made on a plan at a flat rate, and count in tokens: saved 300k tokens (25 %): sent 900k tokens, without pi-context-manager 1.2M tokens',
    )
  })

  test('compares sessions on a plan in tokens', async () => {
    const folder = temporaryFolder('usage-')
    const env = { PI_CODING_AGENT_DIR: folder, CONTEXT_STORE_PATH: join(folder, 'none.db') }
    for (const [n, isLeft] of [true, false, true, false].entries()) {
      const [at, input] = [`2026-03-0${1 + n}T10:00:00`, isLeft ? 200_000 : 90_000 + 10_000 * n]
      session(folder, `session-${n}`, '/w/shop', [
        ...(isLeft ? [LEFT_PLAIN] : []),
        call({ id: `c${n}`, parent: null, at, input }),
        planPoint(`p${n}`, `c${n}`, at.replace('00:00', '00:01'), { sent: input, without: 200_000 }, isLeft),
      ])
    }
    const { stdout } = await cli(['usage'], env)
    expect(stdout).not.toContain('$')
    expect(stdout).toMatch(/left plain +200k tokens a call, 2 sessions on a plan\n/)
    expect(stdout).toMatch(/context manager +110k tokens a call, 2 sessions on a plan\n/)
    expect(stdout).toContain('A call sent 55 % of a plain one (95 % interval: 50 % to 60 %).')
    const { holdout } = JSON.parse((await cli(['usage', '--json'], env)).stdout)
    expect(holdout).toMatchObject([{ unit: 'tokens', plain: { sessions: 2, perCall: 200_000 }, managed: { sessions: 2, perCall: 110_000 } }])
    for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(80)
  })

  test('counts the sessions of the store without a bill, and sessions prints the costs of those of Pi', async () => {
    const { folder, env } = given()
    const store = join(folder, 'context.db')
    for (const sessionId of ['0199aaaa-1', 'of-a-host']) {
      const manager = await ContextManager.open({ sessionId, cwd: folder, store: { kind: 'sqlite', path: store }, watch: false })
      await manager.appendTurn({ role: 'user', content: 'go' })
      await manager.close()
    }
    expect((await cli(['usage', '--store', store], env)).stderr).toContain('1 session of the store is not in these files')
    const { stdout } = await cli(['sessions', '--store', store], env)
    expect(stdout).toMatch(/ 0199aaaa {2}Pi {14}1 turn {3}paid \$1\.80, saved \$0\.36/)
    expect(stdout).toMatch(/ of-a-hos {2}library {9}1 turn /)
    const list = JSON.parse((await cli(['sessions', '--store', store, '--json'], env)).stdout)
    expect(list.find(({ id }: { id: string }) => id === '0199aaaa-1')).toMatchObject({ cost: expect.closeTo(1.8003), saved: expect.closeTo(0.36) })
    expect(list.find(({ id }: { id: string }) => id === 'of-a-host')).not.toHaveProperty('cost')
  })
})

describe('why', () => {
  const at = (minute: number): string => new Date(Date.parse('2026-03-01T10:00:00') + minute * 60_000).toISOString()
  const other = { provider: 'acme', model: 'small' }
  const entries = [
    call({ id: 'a', parent: null, at: at(0), input: 50_000 }),
    call({ id: 'b', parent: 'a', at: at(1), input: 500, cacheRead: 50_000 }),
    edit('e', 'b', 'a'),
    call({ id: 'c', parent: 'e', at: at(2), input: 30_000, cacheRead: 10_000 }),
    call({ id: 'd', parent: 'c', at: at(40), input: 40_100 }),
    call({ id: 'f', parent: 'd', at: at(41), input: 40_200, model: other }),
    call({ id: 'g', parent: 'a', at: at(42), input: 40_300, model: other }),
    call({ id: 'h', parent: 'g', at: at(43), input: 40_400, model: other }),
    call({ id: 'i', parent: 'h', at: at(44), input: 300, cacheRead: 40_400, model: other }),
  ]

  test('names the causes of broken caches, the newest first, with age and price', async () => {
    const { folder, env } = given()
    session(folder, '0199cccc-3', '/w', entries)
    const { code, stdout } = await cli(['why', '0199c'], env)
    expect(code).toBe(0)
    for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(80)
    const whole = stdout.replaceAll('\n  ', ' ').split('\n')
    expect(whole.map((line) => line.replace(/ \(20[^)]+\)/, ''))).toEqual([
      '5 times in 8 calls: 1 expired, 1 changed by the agent, 1 with another model, 2 for no known reason; $0.17 in all.',
      expect.stringMatching(/^1 call ago, 40k tokens written again, \$0\.04: Nothing in the session explains it/),
      '2 calls ago, 40k tokens written again, $0.04: The conversation went back to an earlier message.',
      '3 calls ago, 40k tokens written again, $0.04: The model changed from acme/large to acme/small.',
      '4 calls ago, 40k tokens written again, $0.04: 38 minutes had passed; providers drop a prompt after 5 to 60 minutes.',
      '5 calls ago, 30k tokens written again, $0.03: Not known: 1 message was replaced, and the session does not show why.',
      '',
    ])
    expect((await cli(['why', '--limit', '1', '0199c'], env)).stdout).toContain('4 earlier ones: --limit 5 shows them all.')
    expect(JSON.parse((await cli(['why', '--json', '0199c'], env)).stdout)).toMatchObject({
      calls: 8,
      isKnown: true,
      breaks: [{ callsAgo: 1 }, {}, {}, {}, {}],
    })
  })

  test('reports unknown figures and sessions', async () => {
    const { folder, env } = given()
    session(folder, '0199dddd-4', '/w', [call({ id: 'a', parent: null, at: at(0), input: 5000 }), call({ id: 'b', parent: 'a', at: at(1), input: 6000 })])
    expect((await cli(['why', '0199d'], env)).stdout).toContain('has not reported any use of its cache')
    expect(await cli(['why', 'absent'], env)).toMatchObject({ code: 1, stdout: '' })
    expect(await cli(['why', '0199'], env)).toMatchObject({
      code: 2,
      stderr: 'pi-context-manager: 0199 may be 0199aaaa-1, 0199bbbb-2, 0199dddd-4; give more of it\n',
    })
    expect(await cli(['inspect', '--call', '0', '--session', '0199'], env)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('0199 may be 0199aaaa-1, 0199bbbb-2, 0199dddd-4'),
    })
    expect((await cli(['inspect', '--call', '0', '--session', '0199d'], env)).code).toBe(0)
    expect((await cli(['why'], env)).code).toBe(2)
  })
})
