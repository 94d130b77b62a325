/** The cost with the lifetime of the cache chosen: what it must be where nothing leaves, and where it is told. */
import { afterEach, describe, expect, test } from 'vitest'
import { randomNumbers } from '../../lib/core/random.ts'
import { baselineOf, compare } from '../../lib/replay/baseline.ts'
import type { HeldSession } from '../../lib/replay/baseline.ts'
import { PromptCache } from '../../lib/replay/cache.ts'
import type { ReplayOptions, SessionReport } from '../../lib/replay/report.ts'
import { ReplaySums } from '../../lib/replay/summary.ts'
import { verdictOf } from '../../lib/replay/verdict.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { ALL, MINUTE, replayed, SYSTEM, transcript } from './course.ts'
import type { Course } from './course.ts'
import { cli, options } from './support.ts'

afterEach(cleanUp)

const POLICIES: ReplayOptions['policies'] = ['recorded', 'pi-context-manager', 'chosen-lifetime']

function chosen(file: string, changes: Partial<ReplayOptions> = {}): Promise<SessionReport> {
  return replayed(file, ALL, { policies: POLICIES, ...changes })
}

/** Nothing is ever stale, so that the requests are those of the recording. */
const KEEPS: Partial<ReplayOptions> = { manager: { ...options({}).manager, open: { stay: { weight: 1e9 } } } }

describe('with nothing hidden, the cost of a client on an hour is that of the same requests with the conversation on five minutes', () => {
  test.each<[string, Course]>([
    ['without a pause', {}],
    ['a pause of twenty minutes', { pauses: { 20: 20 } }],
    ['a pause that neither lifetime outlives', { pauses: { 12: 600 } }],
    // A request begins when what it answers has come, .2 minutes before its answer.
    ['pauses just below and above five minutes', { pauses: { 10: 4.7, 20: 5.1 } }],
    ['losses without a pause', { losses: [5, 6, 30] }],
    ['a loss after a pause', { losses: [15], pauses: { 15: 30 } }],
    ['a system part that another session wrote', { isWarm: true }],
    ['hidden reasoning', { hidden: 900, pauses: { 9: 12 } }],
    ['all of it', { pauses: { 9: 7, 21: 90, 30: 1 }, losses: [13], hidden: 500, isWarm: true }],
  ])('%s', async (_, course) => {
    const { file, mixed } = transcript(course)
    const { policies, chosen: choices } = await chosen(file, KEEPS)
    expect(policies['pi-context-manager']!.rolls).toBe(0)
    expect(policies['chosen-lifetime']!.cost / mixed).toBeCloseTo(1, 2)
    expect(choices).toEqual([{ why: expect.stringMatching(/^system and tools are kept for an hour; the conversation/), calls: course.calls ?? 40 }])
  })

  test('whatever the course', async () => {
    const random = randomNumbers(11)
    const some = (most: number): number => Math.floor(random() * most)
    for (let round = 0; round < 8; round += 1) {
      const calls = 10 + some(30)
      const { file, mixed } = transcript({
        calls,
        pauses: Object.fromEntries(Array.from({ length: some(6) }, () => [1 + some(calls - 1), [3, 10, 30, 55, 70, 120][some(6)]!])),
        losses: Array.from({ length: some(4) }, () => 1 + some(calls - 1)),
        hidden: some(900),
        isWarm: random() < 0.5,
        output: () => 200 + some(12_000),
      })
      const { policies } = await chosen(file, KEEPS)
      expect(Math.abs(policies['chosen-lifetime']!.cost / mixed - 1)).toBeLessThan(0.01)
    }
  })
})

test('a client on five minutes costs the same until a pause, and gets the hour for its system part from there on', async () => {
  const long = { lifetime: 'five minutes', calls: 80, output: () => 9_000 } as const
  const without = await chosen(transcript(long).file)
  expect(without.policies['chosen-lifetime']!.cost).toBeCloseTo(without.policies['pi-context-manager']!.cost, 9)
  // The first pause comes after savings that exceed the price of the hour.
  const pauses = { 60: 20, 65: 20, 70: 20, 75: 20 }
  const { policies, chosen: choices } = await chosen(transcript({ ...long, pauses }).file)
  expect(choices!.map(({ calls }) => calls)).toEqual([60, 20])
  // The system part is read instead of written after three of the pauses: 1.25 - .1 of a fresh token, and .75 once.
  const saved = (policies['pi-context-manager']!.cost - policies['chosen-lifetime']!.cost) / (5e-6 * SYSTEM)
  expect(saved).toBeGreaterThan(0.9 * (3 * 1.15 - 0.75))
  expect(saved).toBeLessThan(1.1 * (3 * 1.15 - 0.75))
})

test('a bound model stays on the hour until five minutes lead', async () => {
  const { file } = transcript({ calls: 60, output: () => 6_000 })
  const bound = { manager: { ...options({}).manager, binding: 'drops' as const } }
  const { chosen: choices, policies } = await chosen(file, bound)
  expect(choices!.map(({ why }) => why)).toEqual([expect.stringMatching(/^an hour for all/), expect.stringMatching(/five minutes, which are cheaper so far$/)])
  expect(choices![0]!.calls).toBeGreaterThan(5)
  expect(policies['chosen-lifetime']!.cost).toBeLessThan(policies['pi-context-manager']!.cost)
})

test.each([
  ['gpt-5.6', {}],
  ['eu.anthropic.claude-opus-4-5-v1:0', {}],
  ['openrouter/anthropic/claude-opus-4-5', {}],
  ['claude-opus-4-5', { hasCounts: false }],
])('nothing can be chosen for %s (%o), and the sums stay as they are', async (model, course) => {
  const report = await chosen(transcript({ calls: 12, model, ...course }).file)
  expect(report.policies['chosen-lifetime']).toBeUndefined()
  expect(report.chosen).toBeUndefined()
  const sums = new ReplaySums()
  sums.add(report)
  expect(sums.summary().policies['chosen-lifetime']).toBeUndefined()
  expect(sums.summary().accounts![0]!.chosen).toBeUndefined()
})

test('the cost is the third that the verdict, the table, the JSON and the baseline tell, and sessions without a choice count as they are', async () => {
  const [one, other] = [
    transcript({ calls: 60, output: () => 6000 }).file,
    transcript({ calls: 30, model: 'openrouter/anthropic/claude-opus-4-5', output: () => 6000 }).file,
  ]
  const [report, without] = [await chosen(one), await chosen(other)]
  const sums = new ReplaySums()
  for (const each of [without, report, without]) sums.add(each)
  const own = without.policies['pi-context-manager']!.cost
  // The verdict has the answers in it, as the bill has.
  const answers = report.paid!.answers + 2 * without.paid!.answers
  const cost = report.policies['chosen-lifetime']!.cost
  expect(sums.summary().policies['chosen-lifetime']!.cost).toBeCloseTo(cost + 2 * own, 9)
  expect(sums.summary().accounts![0]!.chosen).toBeCloseTo(cost + 2 * own + answers, 9)
  expect(verdictOf(sums.summary())!.cost).toContain(`. With the cache's lifetime chosen as well, it would be about $${(cost + 2 * own + answers).toFixed(2)} (`)

  const { stdout } = await cli(['replay', one])
  expect(stdout).toMatch(/recorded +pi-context-manager\n[^]* chosen-lifetime\n/)
  expect(stdout).toMatch(
    new RegExp(
      `on the same cache and window\\. With the cache's lifetime chosen as well, it would be about \\$${(cost + report.paid!.answers).toFixed(2)} \\(\\d+ % less\\)\\.`,
    ),
  )
  const both = await cli(['replay', one, other])
  expect(both.stdout).toMatch(/paid +ours +chosen +saved +share\n/)
  const json = JSON.parse((await cli(['replay', one, '--json'])).stdout)
  expect(json.sessions[0].policies['chosen-lifetime'].cost).toBeCloseTo(cost, 6)
  expect(json.sessions[0].chosen).toEqual(report.chosen)

  const baseline = baselineOf([report], 'these')
  expect(Object.values(baseline.sessions)[0]!.chosenVsPlain).toBeCloseTo(report.policies['chosen-lifetime']!.costVsPlain!, 3)
  const worse = structuredClone(report)
  worse.policies['chosen-lifetime']!.costVsPlain! *= 1.02
  const told = (held: HeldSession): number => compare(baseline, [held], 'these').worse.filter((line) => line.includes('with the lifetime chosen')).length
  expect([told(report), told(worse)]).toEqual([0, 1])
})

test('a cache with two lifetimes keeps each prefix for as long as it was written for', () => {
  const rules = { name: 'test', kind: 'breakpoints' as const, lookback: 20, minimum: 0, granularity: 1, lifetimeMs: 5 * MINUTE }
  const block = (label: string) => ({ label, bytes: label, texts: [], units: 100, side: 'answer' as const, key: label })
  const blocks = ['system', 'a', 'b'].map(block)
  const kept = { head: { blocks: 1, ms: 60 * MINUTE }, restMs: 5 * MINUTE }
  const cache = new PromptCache(rules, 1)
  const send = (minute: number, count: number): number => cache.send(blocks.slice(0, count), 1, 'm', minute * MINUTE, kept)
  expect([send(0, 2), send(4, 3), send(8, 3), send(14, 3), send(60, 3), send(121, 3)]).toEqual([0, 200, 300, 100, 100, 0])
  // Text that was written for an hour keeps it when the request asks for five minutes.
  const hour = new PromptCache(rules, 1)
  const all = { head: { blocks: 1, ms: 60 * MINUTE }, restMs: 60 * MINUTE }
  expect(hour.send(blocks.slice(0, 2), 1, 'm', 0, all)).toBe(0)
  expect(hour.send(blocks, 1, 'm', 30 * MINUTE, kept)).toBe(200)
  expect(hour.send(blocks, 1, 'm', 60 * MINUTE, kept)).toBe(200)
})
