/** Sessions are replayed on the cache that they had: their lifetime, their window, and what their provider lost. */
import { afterEach, describe, expect, test } from 'vitest'
import { randomNumbers } from '../../lib/core/random.ts'
import { noUses } from '../../lib/replay/missed/uses.ts'
import { CacheRecord } from '../../lib/replay/record.ts'
import type { SessionReport } from '../../lib/replay/report.ts'
import { ReplaySums } from '../../lib/replay/summary.ts'
import { verdictOf } from '../../lib/replay/verdict.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { ALL, MINUTE, replayed, transcript } from './course.ts'
import type { Course } from './course.ts'
import { cli } from './support.ts'

afterEach(cleanUp)

describe('the policy `recorded` costs the billed amount', () => {
  test.each<[string, Course, number?]>([
    ['an hour', {}],
    ['five minutes', { lifetime: 'five minutes' }],
    ['mixed lifetimes', { lifetime: 'mixed' }],
    ['two lifetimes in each call', { lifetime: 'split' }],
    ['a pause of twenty minutes on an hour', { pauses: { 20: 20 } }],
    ['the same on five minutes', { pauses: { 20: 20 }, lifetime: 'five minutes' }],
    ['a night', { pauses: { 12: 600, 25: 10 } }],
    ['losses without a pause', { losses: [5, 6, 30], pauses: { 5: 1 } }],
    ['a system part that was warm', { isWarm: true }],
    ['a summary by the program', { summaries: [15, 30] }],
    ['a summary beside which files are sent again', { summaries: [20], attached: 25_000 }],
    ['outputs that the program cleared', { clearings: [25] }, 0.03],
    ['hidden reasoning', { hidden: 900 }],
    ['a few large outputs', { output: (n) => (n % 9 === 0 ? 60_000 : 300) }],
    ['all of it', { lifetime: 'mixed', pauses: { 9: 7, 21: 90 }, losses: [13], summaries: [26], hidden: 500, isWarm: true }],
  ])('%s', async (_, course, tolerance = 0.01) => {
    const { file, bill } = transcript(course)
    const { recordedCost, paid, policies, regime } = await replayed(file)
    expect(recordedCost).toBeCloseTo(bill, 6)
    expect(paid!.cost).toBeCloseTo(bill, 6)
    expect(paid!.answers).toBeCloseTo(((course.calls ?? 40) * 90 * 25) / 1e6, 6)
    expect(regime.from).toBe('record')
    // The recording has the amount of output that a program cleared, not the names of the outputs.
    expect(Math.abs(policies.recorded!.cost / bill - 1)).toBeLessThan(tolerance)
  })

  test('whatever the course', async () => {
    const random = randomNumbers(7)
    const some = (most: number): number => Math.floor(random() * most)
    for (let round = 0; round < 12; round += 1) {
      const calls = 10 + some(40)
      const { file, bill } = transcript({
        calls,
        lifetime: (['hour', 'five minutes', 'mixed'] as const)[some(3)]!,
        pauses: Object.fromEntries(Array.from({ length: some(5) }, () => [1 + some(calls - 1), 1 + some(120)])),
        losses: Array.from({ length: some(4) }, () => 1 + some(calls - 1)),
        summaries: random() < 0.4 ? [1 + some(calls - 1)] : [],
        hidden: some(1500),
        isWarm: random() < 0.5,
        output: () => 200 + some(20_000),
      })
      const { policies } = await replayed(file, ALL, { policies: ['recorded'] })
      expect(Math.abs(policies.recorded!.cost / bill - 1)).toBeLessThan(0.01)
    }
  })
})

test.each([
  ['all of what stayed is read', 50_000, 49_000, 0],
  ['a little less, as far as texts tell', 50_000, 46_000, 0],
  ['what stayed is lost, too', 50_000, 16_000, 34_000],
])('after a change of earlier messages, %s', (_, keptTokens, read, lost) => {
  const record = new CacheRecord()
  const prices = { input: 5, cacheRead: 0.5, cacheWrite: 6.25 }
  const before = { at: 0, isPrompt: true, model: 'm', isChanged: false }
  record.take({ input: 0, output: 1, cacheRead: 0, cacheWrite: 120_000 }, before, prices)
  const call = record.take({ input: 0, output: 1, cacheRead: read, cacheWrite: 60_000 - read }, { ...before, isChanged: true, keptTokens }, prices)
  expect(call).toMatchObject({ lost, short: 0 })
  expect(record.losses.map(({ tokens }) => tokens)).toEqual(lost > 0 ? [lost] : [])
})

/** Calls of two models: the prompt, and the tokens of it that were read. */
test.each<[how: string, calls: [model: string, prompt: number, read: number, isChanged?: true][], lost: number[], causes: string[]]>([
  [
    'in turn, each of which finds its own',
    [
      ['a', 50_000, 0],
      ['b', 60_000, 0],
      ['a', 70_000, 50_000],
      ['b', 80_000, 60_000],
    ],
    [0, 50_000, 0, 0],
    ['model'],
  ],
  [
    'in turn, one of which has lost its own',
    [
      ['a', 50_000, 0],
      ['b', 60_000, 0],
      ['a', 70_000, 10_000],
    ],
    [0, 50_000, 40_000],
    ['model', 'unknown'],
  ],
  [
    'and a change while the other one worked',
    [
      ['a', 50_000, 0],
      ['b', 60_000, 0],
      ['b', 40_000, 5_000, true],
      ['a', 70_000, 5_000],
    ],
    [0, 50_000, 0, 0],
    ['model'],
  ],
])('two models %s', (_, calls, lost, causes) => {
  const record = new CacheRecord()
  const prices = { input: 5, cacheRead: 0.5, cacheWrite: 6.25 }
  const found = calls.map(([model, prompt, read, isChanged = false], n) =>
    record.take({ input: 0, output: 1, cacheRead: read, cacheWrite: prompt - read }, { at: 1_000 * n, isPrompt: true, model, isChanged }, prices),
  )
  expect(found.map((call) => call?.lost)).toEqual(lost)
  expect(record.losses.map(({ cause }) => cause)).toEqual(causes)
})

describe('every policy has the cache that the session had', () => {
  test('lost text is lost to all of them, and reported with its cause, pause and cost', async () => {
    const { file } = transcript({ losses: [10, 20], pauses: { 10: 3, 30: 90 } })
    const lossy = await replayed(file)
    expect(lossy.regime).toMatchObject({ from: 'record', cache: 'anthropic', lifetime: 'hour', lifetimeMs: 60 * MINUTE })
    expect(lossy.regime.losses.map(({ call, after, cause }) => [call, after, cause])).toEqual([
      [10, 'prompt', 'unknown'],
      [20, 'results', 'unknown'],
      [30, 'prompt', 'expired'],
    ])
    for (const { tokens, cost } of lossy.regime.losses) expect(cost).toBeCloseTo((tokens * (10 - 0.5)) / 1e6, 9)
    const without = await replayed(file, { ...ALL, losses: false })
    for (const name of ['recorded', 'append', 'pi', 'pi-context-manager'] as const)
      expect(lossy.policies[name]!.cost).toBeGreaterThan(without.policies[name]!.cost + 0.1)
    const sums = new ReplaySums()
    sums.add(lossy)
    expect(sums.summary().losses).toMatchObject({
      count: 3,
      after: { prompt: { 'under 5': 1, 'over 60': 1 }, results: { 'under 5': 1 } },
      byCause: { expired: { count: 1 } },
    })
    const { losses } = verdictOf(sums.summary())!
    expect(losses).toMatch(
      /^The provider lost the cached conversation 3 times: 2 with prompts \(pause before: 1 under 5 minutes, 1 over 60 minutes\), 1 with results of tools \(pause before: 1 under 5 minutes\); 1 had expired, 2 have no recorded cause\. Writing it again cost \$\d+\.\d\d\.$/,
    )
  })

  test('a part of the rules that the user names replaces that part alone', async () => {
    const { file } = transcript({ calls: 60, output: () => 4000 })
    const costs = async (...args: string[]): Promise<[name: string, from: string, cost: number]> => {
      const [{ policies, regime }] = JSON.parse((await cli(['replay', file, '--json', '--policies', 'append', ...args])).stdout).sessions
      return [regime.cache, regime.from, policies.append.cost]
    }
    const [name, from, own] = await costs()
    expect([name, from]).toEqual(['anthropic', 'record'])
    expect(await costs('--minimum', '1024')).toEqual([name, from, own])
    for (const args of [
      ['--lookback', '1'],
      ['--granularity', '20000'],
      ['--minimum', '90000'],
    ])
      expect(await costs(...args)).toEqual([name, from, expect.toSatisfy((cost: number) => cost > 1.02 * own)])
  })

  test('a lifetime that the user names replaces the recorded one, and saves or loses only expired prefixes', async () => {
    const { file } = transcript({ pauses: { 10: 20, 20: 20 }, lifetime: 'five minutes' })
    const own = await replayed(file, ALL, { policies: ['recorded'] })
    expect(own.regime.losses.map(({ cause }) => cause)).toEqual(['expired', 'expired'])
    const cost = async (seconds: string): Promise<number> =>
      JSON.parse((await cli(['replay', file, '--json', '--policies', 'recorded', '--lifetime', seconds])).stdout).sessions[0].policies.recorded.cost
    expect(await cost('300')).toBeCloseTo(own.policies.recorded!.cost, 6)
    // An hour keeps both pauses, and each written token costs 2.
    const hour = transcript({ lifetime: 'hour', pauses: { 10: 20, 20: 20 } })
    expect(await cost('3600')).toBeCloseTo(hour.bill, 1)
    const shorter = JSON.parse((await cli(['replay', hour.file, '--json', '--policies', 'recorded', '--lifetime', '300'])).stdout).sessions[0].policies.recorded
    expect(shorter.cost).toBeCloseTo(own.policies.recorded!.cost, 1)
  })

  test('the window is the one that the session had: none of its requests is too large for it', async () => {
    const large = transcript({ calls: 60, output: () => 15_000 })
    const { regime, policies } = await replayed(large.file)
    expect(regime.window).toBe(1_000_000)
    for (const name of ['recorded', 'append', 'pi'] as const) expect(policies[name]).toMatchObject({ overWindow: 0, compactions: 0 })
    const { policies: narrow } = await replayed(large.file, { ...ALL, window: false })
    expect(narrow.pi!.compactions).toBeGreaterThan(0)
    expect(narrow.pi!.peakTokens).toBeLessThanOrEqual(200_000)
    expect((await replayed(transcript({}).file)).regime.window).toBe(200_000)
  })

  test('a session without counts is replayed as the options say, and the report says so', async () => {
    const { file } = transcript({ hasCounts: false })
    const report = await replayed(file)
    expect(report.regime).toEqual({ from: 'options', cache: 'plain', lifetimeMs: 5 * MINUTE, window: 200_000, losses: [] })
    expect(report.recordedCost).toBeUndefined()
    const plain = await replayed(file, undefined)
    expect(report.policies).toEqual(plain.policies)
    const { stdout } = await cli(['replay', file])
    expect(stdout).toContain('on an assumed cache (plain, 5 minutes), window of 200k')
    expect(stdout).toMatch(
      /On an assumed cache, one session of Claude Code with 40 answers on 2026-07-01 would have cost \$\d+\.\d\d with pi-context-manager and \$\d+\.\d\d without it \(/,
    )
  })
})

describe('the verdict answers the questions of the user', () => {
  test('shows the paid price, and the price through the gateway, on one screen without contradiction', async () => {
    const { file, bill } = transcript({ calls: 60, losses: [30], output: () => 6000 })
    const { stdout } = await cli(['replay', file])
    const verdict =
      /You paid \$(\d+\.\d\d) in Claude Code for one session with 60 answers on 2026-07-01\. Through the gateway they would have cost about \$(\d+\.\d\d) \((\d+) % less\), on the same cache and window\./
    const [, paid, own, share] = verdict.exec(stdout) ?? []
    // As "usage" says.
    const { total } = JSON.parse((await cli(['usage', file, '--json'])).stdout)
    expect([paid, total.cost > bill]).toEqual([total.cost.toFixed(2), true])
    // The share goes by what was not rounded to cents.
    const [most, least] = [-0.005, 0.005].map((cent) => Math.round(100 * (1 - (Number(own) + cent) / (Number(paid) - cent))))
    expect(Number(share)).toBeGreaterThanOrEqual(least!)
    expect(Number(share)).toBeLessThanOrEqual(most!)
    expect(stdout).toMatch(new RegExp(`cost, answers included +\\$${paid} +\\$${own}\n +cost of the prompts +\\$${bill.toFixed(2)} `))
    expect(stdout).toMatch(/recorded +pi-context-manager\n/)
    expect(stdout).not.toMatch(/Pi\b.*\$|vs Pi/)
    expect(stdout).toMatch(/the provider lost the cached conversation once/i)
    const listed = await cli(['replay', file, transcript({ hasCounts: false, calls: 70, output: () => 6000 }).file])
    expect(listed.stdout).toMatch(/date +project +session +answers +paid +ours +chosen +saved +share\n/)
    expect(listed.stdout).toMatch(new RegExp(`course-\\d+ +60 +\\$${paid} `))
    expect(listed.stdout).toMatch(/course-\d+ +70 +~\$/)
  })

  test('a session that ran with the context manager has the figures that it counted itself', () => {
    const sums = new ReplaySums()
    const figures = (cost: number) => ({ ...NOTHING, cost, costVsPi: cost / 3.49, missedUses: noUses() })
    sums.add({
      ...REPORT,
      isManaged: true,
      recordedSaved: 3.74,
      paid: { cost: 2.01, answers: 0.5, uncounted: 0 },
      recordedCost: 2.51,
      policies: { recorded: figures(2.5), pi: figures(3.49), 'pi-context-manager': figures(2.4) },
    })
    const { cost, headline } = verdictOf(sums.summary())!
    expect(headline).toBe('Saved $3.74 (60 %): paid $2.51, without pi-context-manager $6.25')
    expect(cost).toMatch(
      /^Saved \$3\.74 \(60 %\): paid \$2\.51, without pi-context-manager \$6\.25, for one session with .* by its own account\. With the settings of this replay it would have been \$2\.90\.$/,
    )
  })
})

const NOTHING = {
  ...{ cacheHit: 0.9, tokensSent: 1, peakTokens: 1, compactions: 0, rolls: 0, reasoningLost: 0, reasoningLostRunning: 0, refused: 0, rereads: 0 },
  ...{ rereadCost: 0, answeredReads: 0, overWindow: 0, missed: 0, missedStrong: 0, missedHarm: 0, fetchCost: 0, costVsPiFetched: 1 },
}

const REPORT: Omit<SessionReport, 'policies'> = {
  ...{
    file: 's.jsonl',
    id: 's',
    cwd: '/w',
    format: 'pi',
    skipped: {},
    calls: 9,
    models: ['acme/large'],
    charsPerToken: 3,
    systemTokens: 3000,
    unit: 'USD',
    recordedTokens: 1,
  },
  ...{ isManaged: false, regime: { from: 'record', cache: 'anthropic', lifetimeMs: 300_000, window: 200_000, losses: [] } },
  details: { series: {}, rolls: [], byLabel: {}, lifetimes: [] },
}
