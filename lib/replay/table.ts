/** The report as a table for terminals. */
import { POLICY_NAMES } from './policies/policy.ts'
import type { PolicyName } from './policies/policy.ts'
import type { SessionReport } from './run.ts'
import type { Figures } from './tally.ts'
import type { Summary } from './summary.ts'

const HEADINGS = [
  'policy',
  'cost',
  'vs pi',
  'cache hit',
  'sent',
  'peak',
  'compactions',
  'rolls',
  're-reads',
  'answered',
  'missed',
  'strong',
  'own words',
  'at once',
  'if fetched',
]

/** One session's table with a title line. */
export function sessionTable(report: SessionReport): string {
  const model = report.models[0] ?? 'no model'
  const scale = `${report.charsPerToken.toFixed(2)} characters a token, system ${tokens(report.systemTokens)}`
  const title = `${report.file}\n  ${report.calls} calls, ${model}, ${scale}`
  return `${title}\n${table(report)}`
}

/** The table over all sessions: costs as means weighted by what Pi's cost was, peaks as the largest. */
export function summaryTable(summary: Summary): string {
  return `all ${summary.sessions} sessions, ${summary.calls} calls\n${table(summary)}`
}

function table({ policies, unit, calls }: Pick<SessionReport, 'policies' | 'unit' | 'calls'>): string {
  const rows = POLICY_NAMES.flatMap((name) => {
    const figures = policies[name]
    return figures === undefined ? [] : [row(name, figures, unit, calls)]
  })
  const all = [HEADINGS, ...rows]
  const widths = HEADINGS.map((_, column) => Math.max(...all.map((cells) => (cells[column] as string).length)))
  const line = (cells: string[]): string =>
    cells
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[0] as number) : cell.padStart(widths[column] as number),
      )
      .join('  ')
  return all.map((cells) => `  ${line(cells)}`).join('\n')
}

/** Missed uses per 100 calls: of tool text, the strong ones, of own words, by the next call; and the cost with fetches. */
function missedCells({ missed, missedStrong, missedUses, costVsPiFetched }: Figures, calls: number): string[] {
  if (missedUses === undefined) return ['-', '-', '-', '-', '-']
  const rate = (uses: number): string => ((100 * uses) / calls).toFixed(1)
  const fetched = Number.isFinite(costVsPiFetched) ? costVsPiFetched.toFixed(3) : '-'
  const { ownWords, atOnce } = missedUses
  return [missed.toFixed(1), missedStrong.toFixed(1), rate(ownWords.all), rate(atOnce.all), fetched]
}

function row(name: PolicyName, figures: Figures, unit: SessionReport['unit'], calls: number): string[] {
  const { cost, costVsPi, cacheHit, tokensSent, peakTokens, compactions, rolls, rereads, answeredReads } = figures
  return [
    name,
    unit === 'USD' ? `$${cost.toFixed(2)}` : tokens(cost),
    Number.isFinite(costVsPi) ? costVsPi.toFixed(3) : '-',
    cacheHit.toFixed(3),
    tokens(tokensSent),
    `${tokens(peakTokens)}${figures.overWindow > 0 ? '!' : ''}`,
    String(compactions),
    String(rolls),
    String(rereads),
    String(answeredReads),
    ...missedCells(figures, calls),
  ]
}

/** A number of tokens in three or four characters: 812, 9.4k, 183k, 52M. */
export function tokens(count: number): string {
  const scaled = (value: number, unit: string): string =>
    `${value < 10 ? value.toFixed(1) : Math.round(value)}${unit}`
  if (count >= 999_500_000) return scaled(count / 1_000_000_000, 'G')
  if (count >= 999_500) return scaled(count / 1_000_000, 'M')
  return count >= 1000 ? scaled(count / 1000, 'k') : String(Math.round(count))
}
