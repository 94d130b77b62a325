/** The report for terminals: sessions by what they save, the totals, the verdict. */
import { basename } from 'node:path'
import { POLICY_NAMES } from './policies/policy.ts'
import type { PolicyName } from './policies/policy.ts'
import type { SessionReport } from './run.ts'
import type { Summary } from './summary.ts'
import type { Figures } from './tally.ts'
import { tokens } from './tokens.ts'
import { dayOf, difference, money, verdictOf } from './verdict.ts'

/** Colours words, or leaves them plain. */
export interface Paint {
  own(text: string): string
  good(text: string): string
  dim(text: string): string
}

/** No colours. */
export const PLAIN: Paint = { own: (text) => text, good: (text) => text, dim: (text) => text }

const code =
  (number: number) =>
  (text: string): string =>
    `\x1b[${number}m${text}\x1b[0m`

/** Colours of a terminal. */
export const COLOURS: Paint = { own: code(1), good: (text) => code(1)(code(32)(text)), dim: code(2) }

/** One session in the list. */
export interface Row {
  day: string
  project: string
  name: string
  calls: number
  pi: number
  own: number
  /** Strong missed uses of tool text per 100 calls. */
  missedStrong: number
  unit: SessionReport['unit']
}

/** A session as a row; undefined if Pi or the context manager was left out. */
export function rowOf(report: SessionReport): Row | undefined {
  const { pi, 'pi-context-manager': own } = report.policies
  if (pi === undefined || own === undefined) return undefined
  return {
    day: report.from === undefined ? '-' : dayOf(report.from),
    project: basename(report.cwd) || report.cwd,
    name: basename(report.file).replace(/\.jsonl?(\.gz)?$/, ''),
    calls: report.calls,
    pi: pi.cost,
    own: own.cost,
    missedStrong: own.missedStrong,
    unit: report.unit,
  }
}

/** Maximum length of a session's name; longer names lose their middle. */
const NAME_CHARS = 36

/** The sessions, by what they save. */
export function sessionsTable(rows: readonly Row[], paint: Paint): string {
  const sorted = [...rows].sort((left, right) => right.pi - right.own - (left.pi - left.own))
  const cells = sorted.map((row) => [
    row.day,
    row.project,
    shortened(row.name),
    String(row.calls),
    money(row.pi, row.unit),
    money(row.own, row.unit),
    signed(row.pi - row.own, row.unit),
    row.pi === 0 ? '-' : difference(row.own / row.pi),
    row.missedStrong.toFixed(1),
  ])
  const heads = ['date', 'project', 'session', 'answers', 'Pi', 'pi-context-manager', 'saved', '', 'strong misses']
  return `Sessions, by what they save\n${aligned(heads, cells, 3, paint)}`
}

/** One session's facts and figures. */
export function sessionTable(report: SessionReport, paint: Paint = PLAIN): string {
  const model = report.models[0] ?? 'no model'
  const scale = `${report.charsPerToken.toFixed(2)} characters a token, system part ${tokens(report.systemTokens)} tokens`
  const skipped = Object.entries(report.skipped).map(([kind, count]) => `${count} ${kind}`)
  const left = skipped.length === 0 ? '' : `\n  left out: ${skipped.join(', ')}`
  const title = `${report.file}\n  ${report.calls} answers, ${model}, ${scale}${left}`
  return `${title}\n${table(report, paint)}`
}

/** The totals of all sessions: costs and tokens add up, peaks are the largest. */
export function summaryTable(summary: Summary, paint: Paint = PLAIN): string {
  return `all ${summary.sessions} sessions, ${summary.calls} answers\n${table(summary, paint)}`
}

/** The verdict, as the last lines of a run; undefined where there is none. */
export function verdictLines(summary: Summary, paint: Paint): string | undefined {
  const verdict = verdictOf(summary)
  if (verdict === undefined) return undefined
  return `${verdict.saves ? paint.good(verdict.cost) : paint.own(verdict.cost)}\n${verdict.fetch}`
}

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

/** What the headings mean. */
const MEANINGS: Readonly<Record<string, string>> = {
  cost: 'prompts only, because the recorded answers cost the same under every policy',
  're-reads': 'files read again because an edit needs text that was no longer shown; part of the cost',
  answered: 'repeated reads that were answered by pointing to the text or to what has changed',
  missed: 'uses of tool text that was no longer shown, per 100 answers',
  strong: 'the clear cases among them',
  'own words': 'the same for text of the model and the user',
  'at once': 'by the very next answer',
  'if fetched': 'cost relative to Pi if the text of every strong case is fetched',
}

/** Those headings that need an explanation, each with its meaning. */
export function legend(headings: readonly string[], policies: Partial<Record<PolicyName, Figures>>): [string, string][] {
  const found = headings.flatMap((heading): [string, string][] => {
    const meaning = MEANINGS[heading]
    return meaning === undefined ? [] : [[heading, meaning]]
  })
  if (Object.values(policies).some(({ overWindow }) => overWindow > 0)) {
    found.push(['!', 'larger than the context window; these calls would have failed'])
  }
  return found
}

/** The width of the text below a table. */
const LEGEND_COLUMNS = 116

function wrapped(text: string): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last === undefined || last.length + 1 + word.length > LEGEND_COLUMNS) lines.push(word)
    else lines[lines.length - 1] = `${last} ${word}`
  }
  return lines
}

function table({ policies, unit, calls }: Pick<SessionReport, 'policies' | 'unit' | 'calls'>, paint: Paint): string {
  const names = POLICY_NAMES.filter((name) => policies[name] !== undefined)
  const rows = names.map((name) => row(name, policies[name] as Figures, unit, calls))
  const meanings = legend(HEADINGS, policies).map(([heading, meaning]) => `${heading}: ${meaning}.`)
  const notes = wrapped(meanings.join(' ')).map((line) => paint.dim(`  ${line}`))
  return [aligned(HEADINGS, rows, 1, paint, names.indexOf('pi-context-manager')), ...notes].join('\n')
}

/** Columns of equal width; the first `left` ones begin at the left. */
function aligned(heads: string[], rows: readonly string[][], left: number, paint: Paint, own = -1): string {
  const all = [heads, ...rows]
  const widths = heads.map((_, column) => Math.max(...all.map((cells) => (cells[column] as string).length)))
  const line = (cells: string[]): string =>
    cells
      .map((cell, at) => (at < left ? cell.padEnd(widths[at] as number) : cell.padStart(widths[at] as number)))
      .join('  ')
  return [paint.dim(`  ${line(heads)}`), ...rows.map((cells, at) => (at === own ? paint.own(`  ${line(cells)}`) : `  ${line(cells)}`))].join('\n')
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
    money(cost, unit),
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

function shortened(name: string): string {
  if (name.length <= NAME_CHARS) return name
  return `${name.slice(0, NAME_CHARS - 13)}…${name.slice(-12)}`
}

function signed(saved: number, unit: SessionReport['unit']): string {
  return saved < 0 ? `-${money(-saved, unit)}` : money(saved, unit)
}
