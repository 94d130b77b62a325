/**
 * `npm run harm -- [--save FOLDER NAME] [--check]`: keeps the lines of a measured model as docs/harm/NAME.jsonl.gz, and
 * writes every figure of docs/harm.md from what is kept there. With `--check` it fails if the page has other figures.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { ARMS } from './capture.ts'
import type { Line } from './measure.ts'
import { changeOf, comparedWith, figuresOf, measuredIn, merged, meterOf, reachOf } from './table.ts'
import type { ArmFigures, Interval, RunLines } from './table.ts'

const BEGIN = '<!-- figures: written by npm run harm -->'
const END = '<!-- end of figures -->'
const PAGE = 'docs/harm.md'
const README = 'README.md'
const DATA = 'docs/harm'

/** The end of the names of files with the costs of a session. */
const COSTS = '.costs.json'

/** The price of a cached and of a written token, relative to a fresh one. */
const RATIOS = { read: 0.1, write: 1.25 }

/** The number of the worst answers that the page names, and their arm. */
const WORST = 10
const WORST_OF = 'rule'

/** The model of which the README has the figures. */
const SMALLEST = 'qwen2.5-coder-0.5b'

const args = process.argv.slice(process.argv.findIndex((one) => one.endsWith('report.ts')) + 1)
const save = args.indexOf('--save')
if (save >= 0) keep(args[save + 1] ?? '', args[save + 2] ?? '')
write(PAGE, BEGIN, END, `\n\n${figures()}\n\n`)
write(README, '<!-- harm -->', '<!-- /harm -->', sentence())

/** Puts a text between two marks of a file, or fails with `--check` if the file has another one. */
function write(file: string, begin: string, end: string, inside: string): void {
  const text = readFileSync(file, 'utf8')
  const [from, to] = [text.indexOf(begin), text.indexOf(end)]
  if (from < 0 || to < 0) throw new Error(`${file} has lost its marks`)
  const written = text.slice(0, from + begin.length) + inside + text.slice(to)
  if (!args.includes('--check')) writeFileSync(file, written)
  else if (written !== text) {
    console.error(`${file} has other figures than the data in ${DATA}: run "npm run harm"`)
    process.exitCode = 1
  }
}

/** Adds the lines of a folder of results to those that are kept, without the nats of single tokens. */
function keep(folder: string, name: string): void {
  mkdirSync(DATA, { recursive: true })
  const measured = readdirSync(folder)
    .filter((file) => file.endsWith(COSTS))
    .map((file): RunLines => {
      const run = file.slice(0, -COSTS.length)
      const results = join(folder, `${run}.jsonl`)
      const text = existsSync(results) ? readFileSync(results, 'utf8') : ''
      // The last line of a run that was stopped may be cut.
      const lines = text.split('\n').flatMap((one) => (one.endsWith('}') ? [withoutTokens(JSON.parse(one) as Line & { nats?: unknown })] : []))
      return { run, lines, costs: JSON.parse(readFileSync(join(folder, file), 'utf8')) as RunLines['costs'] }
    })
  const file = join(DATA, `${name}.jsonl.gz`)
  const runs = merged(existsSync(file) ? kept(file) : [], measured)
  writeFileSync(file, gzipSync(runs.map((run) => `${JSON.stringify(run)}\n`).join(''), { level: 9 }))
}

function withoutTokens({ nats: _, ...line }: Line & { nats?: unknown }): Line {
  return line
}

function kept(file: string): RunLines[] {
  const lines = gunzipSync(readFileSync(file)).toString().trim().split('\n')
  return lines.map((line) => JSON.parse(line) as RunLines)
}

function figures(): string {
  const files = existsSync(DATA) ? readdirSync(DATA).filter((file) => file.endsWith('.jsonl.gz')) : []
  if (files.length === 0) return 'None yet.'
  return files
    .sort()
    .map((file) => {
      const runs = kept(join(DATA, file))
      return [`### ${file.replace('.jsonl.gz', '')}`, reach(runs), table(runs), ...together(runs), meter(runs), worst(runs)].join('\n\n')
    })
    .join('\n\n')
}

/** The figures of the product's rule for the README. */
function sentence(): string {
  const runs = kept(join(DATA, `${SMALLEST}.jsonl.gz`))
  const [reach, found] = [reachOf(WORST_OF, runs), figuresOf(WORST_OF, runs, RATIOS)]
  if (found === undefined) throw new Error(`${DATA} has no answers of the arm ${WORST_OF}`)
  const { value, low, high } = found.nats
  return [
    `In ${reach.sessions} recorded runs, text was hidden before ${percent(reach.changed / reach.answers)} of the answers.`,
    `A coding model with half a billion parameters found ${found.answers} of those answers, from ${found.runs} runs, ${value.toFixed(1)} nats less likely`,
    `than with everything in sight, out of ${found.full.toFixed(0)} (90 %: ${low.toFixed(1)} to ${high.toFixed(1)}).`,
  ].join(' ')
}

/** The number of answers that an arm changes at all, in all sessions. */
function reach(runs: readonly RunLines[]): string {
  const rows = ARMS.slice(1).map(({ name }) => ({ name, ...reachOf(name, runs) }))
  return tableOf(
    ['arm', 'sessions', 'in which it hides', 'their answers', 'after its first roll'],
    rows.filter(({ sessions }) => sessions > 0).map((one) => [one.name, ...[one.sessions, one.rolled, one.answers, one.changed].map(String)]),
  )
}

function table(runs: readonly RunLines[]): string {
  const rows = ARMS.slice(1).flatMap(({ name }) => figuresOf(name, runs, RATIOS) ?? [])
  return tableOf(
    [
      'arm',
      'runs',
      'answers',
      'prompt',
      'cost',
      'tokens of an answer',
      'nats after the full request',
      'more nats (90 %)',
      'thinking',
      'text',
      'calls',
      'names and quotes',
      'median',
      '9th of 10',
      'worse by 5',
    ],
    rows.map(rowOf),
  )
}

function rowOf(one: ArmFigures): string[] {
  return [
    one.arm,
    String(one.runs),
    String(one.answers),
    one.prompt.toFixed(2),
    one.cost.toFixed(2),
    one.tokens.toFixed(0),
    one.full.toFixed(1),
    intervalOf(one.nats),
    signed(one.parts.thinking),
    signed(one.parts.text),
    signed(one.parts.calls),
    percent(one.hiddenShare),
    signed(one.median),
    signed(one.ninth),
    percent(one.worse),
  ]
}

/** The other arms beside the product's rule, each on the answers that both have changed. */
function together(runs: readonly RunLines[]): string[] {
  const rows = ARMS.slice(1).flatMap(({ name }) => (name === WORST_OF ? [] : (comparedWith(WORST_OF, name, runs, RATIOS) ?? [])))
  if (rows.length === 0) return []
  const table = tableOf(
    ['arm', 'runs', 'answers', 'prompt', 'cost', 'more nats', `more nats than "${WORST_OF}" (90 %)`, 'worse by 5', 'better by 5'],
    rows.map((one) => [
      one.arm,
      String(one.runs),
      String(one.answers),
      one.prompts.map((share) => share.toFixed(2)).join(', '),
      one.costs.map((share) => share.toFixed(2)).join(', '),
      one.nats.map(signed).join(', '),
      intervalOf(one.more),
      percent(one.worse),
      percent(one.better),
    ]),
  )
  return [`Beside "${WORST_OF}", on the answers that both change; where a cell has two figures, the first is that of "${WORST_OF}":\n\n${table}`]
}

/** The missed uses in the answers of the arm whose worst answers are named, beside their nats. */
function meter(runs: readonly RunLines[]): string {
  const { kinds, correlation } = meterOf(WORST_OF, runs)
  const rows = Object.entries(kinds).map(([kind, { answers, nats, share }]) => [kind, String(answers), signed(nats), percent(share)])
  return `Missed uses that replay counts in the answers of "${WORST_OF}"; the rank correlation of their number with the nats is ${correlation.toFixed(2)}:\n\n${tableOf(
    ['strong missed uses', 'answers', 'more nats', 'of all that was added'],
    rows,
  )}`
}

function worst(runs: readonly RunLines[]): string {
  const all = runs.flatMap(({ run, lines }) => measuredIn(lines, WORST_OF).map((line) => ({ run, line })))
  all.sort((left, right) => changeOf(right.line) - changeOf(left.line))
  const rows = all
    .slice(0, WORST)
    .map(({ run, line }) => [
      run,
      String(line.answer),
      signed(changeOf(line)),
      String(line.hidden?.tokens ?? 0),
      signed((line.hidden?.nats ?? 0) - (line.hidden?.fullNats ?? 0)),
    ])
  return `The answers that "${WORST_OF}" makes least likely:\n\n${tableOf(['run', 'answer', 'nats', 'tokens of names and quotes', 'their nats'], rows)}`
}

function tableOf(heads: string[], rows: string[][]): string {
  const line = (cells: string[]): string => `| ${cells.join(' | ')} |`
  return [line(heads), line(heads.map((_, index) => (index === 0 ? '---' : '--:'))), ...rows.map(line)].join('\n')
}

function intervalOf({ value, low, high }: Interval): string {
  return `${signed(value)} (${signed(low)} to ${signed(high)})`
}

function signed(value: number): string {
  return `${value < 0 ? '' : '+'}${value.toFixed(1)}`
}

function percent(share: number): string {
  return `${(100 * share).toFixed(0)} %`
}
