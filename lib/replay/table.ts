/** The report for terminals: sessions by what they save, the totals, the verdict. */
import { basename } from 'node:path'
import { columns, counted, dayOf, fitted, middleCut, savingCell, shareCell, shortened, tokens, wrapped } from '../ui/index.ts'
import { amountOf, answersOf, billOf, kindOf, plainAmountOf } from './accounts.ts'
import { measuresOf } from './measures.ts'
import { regimeText, sideNote } from './notes.ts'
import { programTitle } from '../recordings/index.ts'
import type { Format } from '../recordings/index.ts'
import type { Measured, Measures } from './measures.ts'
import type { SessionReport } from './run.ts'
import type { Summary } from './summary.ts'
import { money, verdictOf } from './verdict.ts'
import type { AmountUnit } from './verdict.ts'
import { isOnPlan } from './plan-calls.ts'

/** Colours words, or leaves them plain. */
interface Paint {
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
  /** The recorded program. */
  program: Format
  project: string
  name: string
  /** The session's ID, of which the beginning is shown instead: other commands take it. */
  id?: string
  calls: number
  /** The cost without the context manager, answers included: what was paid, unless it ran. */
  without: number
  /** `without` is what the session would have cost on an assumed cache. */
  isAssumed?: true
  /** The cost with the context manager, answers included. */
  own: number
  /** The same with the lifetime of the cache chosen; absent where none can be chosen. */
  chosen?: number
  /** The context manager ran: `own` is what was paid, and `without` is by its own account. */
  isManaged?: true
  /** Tokens for a session on a plan at a flat rate: of its prompts. */
  unit: AmountUnit
}

/** A session as a row; undefined if Pi or the context manager was left out. */
export function rowOf(report: SessionReport): Row | undefined {
  const { 'pi-context-manager': own, 'chosen-lifetime': chosen } = report.policies
  const plain = plainAmountOf(report)
  if (own === undefined || Number.isNaN(plain)) return undefined
  const isPlan = isOnPlan(report)
  const answers = answersOf(report)
  const kind = kindOf(report)
  const bill = kind === 'assumed' ? undefined : billOf(report)
  const isManaged = kind === 'managed' && bill !== undefined
  return {
    day: report.from === undefined ? '-' : dayOf(report.from),
    program: report.format,
    project: basename(report.cwd) || report.cwd,
    name: basename(report.file).replace(/\.jsonl?(\.gz)?$/, ''),
    ...(report.id !== 'unknown' && { id: report.id }),
    calls: report.calls,
    without: bill?.without ?? plain + answers,
    ...(bill === undefined && { isAssumed: true as const }),
    own: isManaged ? bill.paid : amountOf(report, own) + answers,
    ...(chosen !== undefined && !isPlan && { chosen: chosen.cost + answers }),
    ...(isManaged && { isManaged: true as const }),
    unit: isPlan ? 'tokens' : report.unit,
  }
}

/** The least and the most characters of a session's name; longer names lose their middle. */
const NAME_CHARS = { least: 10, most: 36 }

/** The most characters of a project's name. */
const PROJECT_CHARS = 10

/** The sessions of each program, by what they save. */
export function sessionsTable(rows: readonly Row[], paint: Paint, width = USUAL_WIDTH): string {
  const programs = [...new Set(rows.map(({ program }) => program))].sort()
  const of = (one: Format, isManaged: boolean, isPlan: boolean): Row[] =>
    rows.filter((row) => row.program === one && (row.isManaged === true) === isManaged && (row.unit === 'tokens') === isPlan)
  const parts = programs.flatMap((one) => [false, true].flatMap((isPlan) => [false, true].map((isManaged) => of(one, isManaged, isPlan))))
  return parts
    .filter(({ length }) => length > 0)
    .map((part) => programTable(part, paint, width))
    .join('\n\n')
}

/** The sessions of one program, all of them with the context manager, or all without it, and all on a plan at a flat rate or none. */
function programTable(rows: readonly Row[], paint: Paint, width: number): string {
  const [{ program, isManaged, unit }] = rows as [Row]
  const sorted = [...rows].sort((left, right) => right.without - right.own - (left.without - left.own))
  const room = Math.min(NAME_CHARS.most, Math.max(NAME_CHARS.least, NAME_CHARS.least + width - USUAL_WIDTH))
  // A session with the context manager was paid, whatever a replay would choose.
  const hasChoice = isManaged !== true && rows.some(({ chosen }) => chosen !== undefined)
  const ids = shortened(rows.flatMap(({ id }) => id ?? []))
  const cells = sorted.map((row) => [
    row.day,
    middleCut(row.project, PROJECT_CHARS),
    // An ID stays whole, because commands take it.
    (row.id === undefined ? undefined : ids.get(row.id)) ?? middleCut(row.name, room),
    String(row.calls),
    ...(isManaged === true
      ? [money(row.own, row.unit), money(row.without, row.unit)]
      : [`${row.isAssumed === true ? '~' : ''}${money(row.without, row.unit)}`, money(row.own, row.unit)]),
    ...(hasChoice ? [row.chosen === undefined ? '' : money(row.chosen, row.unit)] : []),
    savingCell(row.without - row.own, (amount) => money(amount, row.unit)),
    row.without === 0 ? '-' : shareCell(row.own / row.without),
  ])
  const heads = [
    'date',
    'project',
    'session',
    'answers',
    unit === 'tokens' ? 'sent' : 'paid',
    isManaged === true ? 'without' : 'ours',
    ...(hasChoice ? ['chosen'] : []),
    'saved',
    'share',
  ]
  const [head = '', ...body] = fitted([heads, ...cells], width - INDENT.length, SPARE, { left: 3 }).map((line) => `${INDENT}${line}`)
  return [
    `Sessions of ${programTitle(program)}${unit === 'tokens' ? ' on a plan at a flat rate,' : ''}${isManaged === true ? ' with pi-context-manager, by what it saved' : `${unit === 'tokens' ? '' : ','} by what they save`}`,
    paint.dim(head),
    ...body,
  ].join('\n')
}

/** Columns that a narrow terminal does without, the first one first. */
const SPARE = ['answers', 'date', 'project']

/** Characters of a line where the width is not known. */
const USUAL_WIDTH = 80

/** One session's facts and figures. */
export function sessionTable(report: SessionReport, paint: Paint = PLAIN, width = USUAL_WIDTH): string {
  const model = report.models[0] ?? 'no model'
  const scale = `${report.charsPerToken.toFixed(2)} characters a token, system prompt and tools ${tokens(report.systemTokens)} tokens`
  const skipped = [...Object.entries(report.skipped).map(([kind, count]) => `${count} ${kind}`), ...[sideNote(report.side) ?? []].flat()]
  const left = skipped.length === 0 ? '' : `\n  left out: ${skipped.join(', ')}`
  const title = `${report.file}\n  ${programTitle(report.format)}, ${counted(report.calls, 'answer')}, ${model}, ${scale}\n  ${regimeText(report.regime)}${left}`
  return `${title}\n${table(report, paint, width)}`
}

/** The totals of all sessions: costs and tokens add up, peaks are the largest. */
export function summaryTable(summary: Summary, paint: Paint = PLAIN, width = USUAL_WIDTH): string {
  const side = sideNote(summary.leftOut?.side)
  const { sessions, onPlan = 0 } = summary
  const plans =
    onPlan === 0 || onPlan === sessions ? '' : `; costs without those of ${onPlan === 1 ? 'one session' : `${onPlan} sessions`} on a plan at a flat rate`
  return `all ${sessions} sessions, ${summary.calls} answers${plans}${side === undefined ? '' : `; left out: ${side}`}\n${table(summary, paint, width)}`
}

/** The verdict, as the last lines of a run; undefined where there is none. */
export function verdictLines(summary: Summary, paint: Paint): string | undefined {
  const verdict = verdictOf(summary)
  if (verdict === undefined) return undefined
  const more = [verdict.losses, verdict.window].flatMap((sentence) => (sentence === undefined ? [] : [`${sentence}\n`])).join('')
  return `${verdict.saves ? paint.good(verdict.cost) : paint.own(verdict.cost)}\n${more}${verdict.fetch}`
}

/** The figures of the policies: as many tables, one below the other, as the width needs. */
function table(measured: Measured, paint: Paint, width: number): string {
  const { names, rows: all } = measuresOf(measured)
  const widest = Math.max(...names.map((name) => name.length))
  const rows = all.flatMap((row) => narrowed(row, Math.max(LEAST_LABEL, width - INDENT.length - GAP - widest)))
  const label = Math.max(...rows.map((row) => row.label.length))
  const cellWidth = (at: number): number => Math.max(...rows.map(({ cells }) => cells[at]?.length ?? 0), names[at]?.length ?? 0)
  const parts: number[][] = [[]]
  let used = INDENT.length + label
  for (const at of names.keys()) {
    const needed = cellWidth(at) + GAP
    if (used + needed > width && (parts.at(-1) ?? []).length > 0) {
      parts.push([])
      used = INDENT.length + label
    }
    parts.at(-1)?.push(at)
    used += needed
  }
  return parts
    .map((part) =>
      lines(
        part.map((at) => names[at] ?? ''),
        rows,
        part,
        paint,
      ),
    )
    .join('\n\n')
}

/** A row whose label takes at most `most` characters: of more lines, the last one has the cells. */
function narrowed({ label, cells }: Measures['rows'][number], most: number): Measures['rows'] {
  if (label.length <= most) return [{ label, cells }]
  const indent = /^ */.exec(label)?.[0] ?? ''
  const lines = wrapped(label.trimStart(), most - indent.length, '  ').map((line) => indent + line)
  return lines.map((line, at) => ({ label: line, cells: at === lines.length - 1 ? cells : [] }))
}

/** The fewest characters of a label. */
const LEAST_LABEL = 24

const INDENT = '  '

/** Spaces between columns. */
const GAP = 2

function lines(heads: readonly string[], rows: Measures['rows'], part: readonly number[], paint: Paint): string {
  const cells = rows.map((row) => [row.label, ...part.map((at) => row.cells[at] ?? '')])
  const [head = '', ...body] = columns([['', ...heads], ...cells]).map((line) => `${INDENT}${line}`)
  return [paint.dim(head), ...body].join('\n')
}
