/** The first lines of a report: the verdict, in the terminal and on the page. */
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { showsColours, timeLeft } from '../../lib/ui/terminal.ts'
import { noUses } from '../../lib/replay/missed/uses.ts'
import type { Summary } from '../../lib/replay/summary.ts'
import { COLOURS, PLAIN, sessionsTable, summaryTable } from '../../lib/replay/table.ts'
import type { Row } from '../../lib/replay/table.ts'
import type { TallyFigures } from '../../lib/replay/tally.ts'
import { verdictOf } from '../../lib/replay/verdict.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { cli, fixture, temporaryFolder } from './support.ts'
import { POLICY_NAMES } from '../../lib/replay/policies/policy.ts'

afterEach(cleanUp)

function figures(cost: number, piCost: number, changes: Partial<TallyFigures> = {}): TallyFigures {
  return {
    ...{ cost, costVsPi: cost / piCost, cacheHit: 0.9, tokensSent: 1, peakTokens: 1, compactions: 0, rolls: 0 },
    ...{ reasoningLost: 0, reasoningLostRunning: 0 },
    ...{ refused: 0, rereads: 0, rereadCost: 0, answeredReads: 0, overWindow: 0, missed: 0, missedStrong: 0, missedHarm: 0, fetchCost: 0 },
    ...{ costVsPiFetched: cost / piCost, missedUses: noUses() },
    ...changes,
  }
}

function summary(pi: number, own: number, changes: Partial<Summary> = {}, more: Partial<TallyFigures> = {}): Summary {
  const policies = { pi: figures(pi, pi), 'pi-context-manager': figures(own, pi, more) }
  return { sessions: 2, calls: 100, unit: 'USD', policies, worst: {}, ...changes }
}

const row = (name: string, without: number, own: number): Row => ({
  ...{ day: '2026-01-02', program: 'pi', project: 'shop', name, calls: 10, without, own, unit: 'USD' },
})

const noon = (day: string): number => new Date(`${day}T12:00:00`).getTime()

describe('the verdict', () => {
  test.each<[Summary, string]>([
    [summary(60.14, 24.71), 'You would have paid $24.71 instead of $60.14 (59 % less) for 2 sessions with 100 answers.'],
    [summary(1, 1.04), 'You would have paid $1.04 instead of $1.00 (4 % more) for 2 sessions with 100 answers.'],
    [summary(1, 1), 'You would have paid $1.00 instead of $1.00 (the same) for 2 sessions with 100 answers.'],
    [
      summary(2e6, 1e6, { unit: 'input tokens', sessions: 1, calls: 1234 }),
      'You would have paid 1.0M fresh input tokens instead of 2.0M (50 % less) for one session with 1,234 answers.',
    ],
    [
      summary(2, 1, { from: noon('2026-01-02'), to: noon('2026-02-03') }),
      'You would have paid $1.00 instead of $2.00 (50 % less) for 2 sessions with 100 answers from 2026-01-02 to 2026-02-03.',
    ],
    [
      summary(2, 1, { from: noon('2026-01-02'), to: noon('2026-01-02') + 1000 }),
      'You would have paid $1.00 instead of $2.00 (50 % less) for 2 sessions with 100 answers on 2026-01-02.',
    ],
  ])('%#', (about, sentence) => {
    expect(verdictOf(about)?.cost).toBe(sentence)
  })

  test('has one line that matters most: the paid price, or else the estimated one', () => {
    const share = (more: object) => ({ sessions: 1, calls: 1, programs: ['pi' as const], pi: 2, own: 1, recorded: Number.NaN, saved: 0, ...more })
    const headline = (changes: Partial<Summary>, own = 1): string | undefined => verdictOf(summary(2, own, changes))?.headline
    expect(headline({})).toBe('With pi-context-manager: $1.00 instead of $2.00, 50 % less')
    expect(headline({}, 2.1)).toBe('With pi-context-manager: $2.10 instead of $2.00, 5 % more')
    expect(headline({ bySource: { managed: share({ recorded: 0.46, saved: 0.52 }), other: share({}) } })).toBe(
      'Saved $0.52 (53 %): paid $0.46, without pi-context-manager $0.98',
    )
    expect(headline({ bySource: { managed: share({}) } })).toBe('With pi-context-manager: $1.00 instead of $2.00, 50 % less')
    expect(headline({ unit: 'input tokens' })).toMatch(/^With pi-context-manager: \S+ fresh input tokens instead of \S+, 50 % less$/)
  })

  test('names the texts that had to be fetched again', () => {
    expect(verdictOf(summary(2, 1))?.fetch).toBe('No answer would have had to fetch anything again.')
    const missedUses = { ...noUses(), toolText: { all: 9, strong: 3 }, ownWords: { all: 4, strong: 1 } }
    const more = { rereads: 2, missedUses, costVsPiFetched: 0.62 }
    expect(verdictOf(summary(2, 1, {}, more))?.fetch).toBe(
      '6 of 100 answers would have had to fetch something again: 2 a file for an edit (included in that cost) and 4 other text. Including the other text, it would be 38 % less.',
    )
  })

  test('is left out where there is nothing to compare with', () => {
    expect(verdictOf({ ...summary(2, 1), policies: { 'pi-context-manager': figures(1, 2) } })).toBeUndefined()
    expect(verdictOf(summary(0, 0))).toBeUndefined()
  })
})

describe('the list of sessions', () => {
  test('begins with the one that saves most', () => {
    const lines = sessionsTable([row('little', 2, 1.5), row('dearer', 1, 1.2), row('most', 3, 1)], PLAIN).split('\n')
    expect(lines.slice(2).map((line) => line.trim().split(/\s+/).slice(2))).toEqual([
      ['most', '10', '$3.00', '$1.00', '$2.00', '67', '%'],
      ['little', '10', '$2.00', '$1.50', '$0.50', '25', '%'],
      ['dearer', '10', '$1.00', '$1.20', '$0.20', 'more', '20', '%', 'more'],
    ])
  })

  test('keeps the end of a long name, and colours change no width', () => {
    const long = `${'x'.repeat(60)}-163396cf`
    const plain = sessionsTable([row(long, 2, 1)], PLAIN)
    expect(plain).toMatch(/x…6cf /)
    expect(sessionsTable([row(long, 2, 1)], PLAIN, 120)).toMatch(/x…xx-163396cf /)
    // eslint-disable-next-line no-control-regex
    expect(sessionsTable([row(long, 2, 1)], COLOURS).replace(/\x1b\[\d+m/g, '')).toBe(plain)
  })
})

describe('the table of figures', () => {
  const longest = (text: string): number => Math.max(...text.split('\n').map((line) => line.length))

  test('fits into 80 columns, with as many tables as that takes, and breaks no word', () => {
    const two = summaryTable(summary(60.14, 24.71))
    expect(longest(two)).toBeLessThanOrEqual(80)
    expect(two).toMatch(/cost of the prompts +\$60\.14 +\$24\.71\n/)
    const policies = Object.fromEntries(POLICY_NAMES.map((name) => [name, figures(1234.56, 1234.56)]))
    const all = summaryTable({ ...summary(1, 1), policies })
    expect(longest(all)).toBeLessThanOrEqual(80)
    expect(all.match(/cost of the prompts/g)?.length).toBeGreaterThan(1)
    for (const name of POLICY_NAMES) expect(all).toContain(` ${name}`)
    expect(summaryTable({ ...summary(1, 1), policies }, PLAIN, 200).match(/cost of the prompts/g)).toHaveLength(1)
  })

  test('the list of sessions fits into 80 columns', () => {
    const rows = [{ ...row(`2026-01-31T10-00-00-000Z_${'0'.repeat(36)}`, 1234.5, 999.9), project: 'a-very-long-project', calls: 12_345 }]
    expect(longest(sessionsTable(rows, PLAIN))).toBeLessThanOrEqual(80)
  })

  test('fits into 60 columns: labels take several lines, and the list does without some columns', () => {
    const narrow = summaryTable(summary(60.14, 24.71), PLAIN, 60)
    expect(longest(narrow)).toBeLessThanOrEqual(60)
    expect(narrow).toMatch(/  saved of what the prompts cost without\n    us +59 %\n/)
    const list = sessionsTable([row('one', 1234.5, 999.9), row('two', 1, 1.2)], PLAIN, 60)
    expect(longest(list)).toBeLessThanOrEqual(60)
    expect(list).toMatch(/ session +.*paid +ours +saved +share\n/)
  })

  test('requests that would have failed have a row of their own', () => {
    const failing = (overWindow: number): string => summaryTable(summary(2, 1, {}, { overWindow }))
    expect(failing(2)).toMatch(/requests larger than the window \(would fail\) +0 +2\n/)
    expect(failing(0)).not.toContain('would fail')
  })
})

test.each([
  [1000, 0.5, ''],
  [10_000, 0.5, ', 0:10 left'],
  [60_000, 0.25, ', 3:00 left'],
  [60_000, 1, ''],
])('after %i ms and a part of %d: "%s"', (elapsed, part, words) => {
  expect(timeLeft(elapsed, part)).toBe(words)
})

test('a file that is not a terminal gets no colours', () => {
  expect(showsColours({})).toBe(false)
  expect(showsColours({ isTTY: false })).toBe(false)
})

describe('a run', () => {
  test('ends with the verdict, after the totals and the sessions', async () => {
    const { stdout } = await cli(['replay', fixture('pi-version-1.jsonl'), fixture('claude-code.jsonl')])
    const order = ['Sessions of Claude Code, by what they save', 'Sessions of Pi, by what they save', 'all 2 sessions', 'cost of the prompts', 'You paid'].map(
      (words) => stdout.indexOf(words),
    )
    expect(order).toEqual([...order].sort((left, right) => left - right))
    expect(order.every((at) => at >= 0)).toBe(true)
    expect(stdout.trimEnd().split('\n').slice(-2)).toEqual([
      expect.stringMatching(
        /^You paid \$\d+\.\d\d in Pi for one session with 39 answers.* With pi-context-manager they would have cost about \$\d+\.\d\d .* You paid \$\d+\.\d\d in Claude Code for one session with 39 answers.* Through the gateway they would have cost about \$/,
      ),
      expect.stringMatching(/of 100 answers would have had to fetch something again|No answer/),
    ])
    expect(stdout).not.toMatch(/\x1b/)
    for (const policy of ['append', 'mask', 'bound']) expect(stdout).not.toContain(`  ${policy} `)
  })

  test('the page begins with it, sorts by saving, folds many and shows one session’s figures once', async () => {
    const folder = temporaryFolder()
    const page = join(folder, 'page.html')
    for (const name of ['pi-version-1', 'pi-version-2', 'claude-code']) {
      copyFileSync(fixture(`${name}.jsonl`), join(folder, `${name}.jsonl`))
    }
    const many = await cli(['replay', folder, '--html', page, '--json'])
    const html = readFileSync(page, 'utf8')
    expect(html).toMatch(/<section class="all"><h1>You paid \$\d+\.\d\d in Claude Code and Pi; with pi-context-manager about \$/)
    const orders = [...html.matchAll(/<details class="session" style="order:(-?\d+)">/g)].map(([, order]) => Number(order))
    const saved = (
      JSON.parse(many.stdout).sessions as { paid: { cost: number; answers: number }; policies: Record<'pi-context-manager', { cost: number }> }[]
    ).map(({ paid, policies }) => paid.cost + paid.answers - (policies['pi-context-manager'].cost + paid.answers))
    expect(orders).toEqual(saved.map((dollars) => -Math.round(dollars * 10_000)))
    await cli(['replay', fixture('pi-version-1.jsonl'), '--quiet', '--html', page])
    const single = readFileSync(page, 'utf8')
    expect(single.match(/>cost of the prompts</g)).toHaveLength(1)
    expect(single).toMatch(/<details class="session" style="order:-?\d+" open>/)
    writeFileSync(page, '')
  })
})
