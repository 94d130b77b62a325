/**
 * Measures the rule on the cache that each session had: what it costs beside what was sent (`recorded`), with the recorded lifetime
 * and with the lifetime chosen, and what it hides.
 *
 *   node lab/grid.mjs [--half even|odd] [--weights 3,9,...] [--read .1,.05] [--hours 0,1] [--bindings none,drops] [--kept FILE] [--write] FOLDER...
 *
 * Each folder is measured as it is recorded, with the product's weight of a missed use and with those of `--weights`, and then in
 * the cells of a grid: `--read` are prices of a cached token in fresh ones, `--hours` are 0 for clients on five minutes and 1 for
 * those on an hour, `--bindings` is what the provider does with reasoning behind a change. The grid takes hours: with `--kept` each
 * row is kept in a file and not measured again, and rows of other cells in that file are part of the table. `--write` puts the table
 * into docs/economics.md. Needs the build.
 */
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { CACHES } from '../dist/replay/cache.js'
import { OwnPhrases } from '../dist/replay/missed/phrases.js'
import { openRecording, sessionFiles } from '../dist/recordings/open.js'
import { ratioPrices } from '../dist/recordings/prices.js'
import { replaySession } from '../dist/replay/run.js'
import { survey } from '../dist/replay/survey.js'

const BEGIN = '<!-- grid: written by lab/grid.mjs -->'
const END = '<!-- end of the grid -->'
const HOUR_WRITE = 2
const SHORT_WRITE = 1.25

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    half: { type: 'string' },
    weights: { type: 'string' },
    read: { type: 'string' },
    hours: { type: 'string' },
    bindings: { type: 'string' },
    kept: { type: 'string' },
    write: { type: 'boolean' },
  },
})
if (positionals.length === 0) {
  console.error('usage: node lab/grid.mjs [--half even|odd] [--weights LIST] [--read LIST] [--hours LIST] [--bindings LIST] [--kept FILE] [--write] FOLDER...')
  process.exit(2)
}
const listOf = (text) => (text === undefined ? [undefined] : text.split(','))
const isGrid = [values.read, values.hours, values.bindings].some((given) => given !== undefined)
const cells = [{}, ...(values.weights?.split(',') ?? []).map((weight) => ({ weight }))]
if (isGrid) {
  for (const hour of listOf(values.hours)) {
    for (const binding of listOf(values.bindings)) for (const read of listOf(values.read)) cells.push({ read, hour, binding })
  }
}

const { kept } = values
const rows =
  kept === undefined || !existsSync(kept)
    ? []
    : readFileSync(kept, 'utf8')
        .trim()
        .split('\n')
        .map((text) => JSON.parse(text))
for (const folder of positionals) {
  let sessions
  for (const cell of cells) {
    const { read = 'own', hour, binding = 'own', weight = 'product' } = cell
    const lifetime = hour === undefined ? 'recorded' : hour === '1' ? 'an hour' : 'five minutes'
    const isKept = ([sessions, ...others]) =>
      sessions.startsWith(`${basename(folder)} (`) && [lifetime, binding, read, weight].every((text, at) => others[at] === text)
    if (rows.some(isKept)) continue
    sessions ??= await sessionsOf(folder)
    const row = [`${basename(folder)} (${sessions.list.length})`, lifetime, binding, read, weight, ...(await measure(sessions, cell))]
    rows.push(row)
    if (kept !== undefined) appendFileSync(kept, `${JSON.stringify(row)}\n`)
    console.error(row.join('  '))
  }
}
const heads = [
  'sessions',
  'client',
  'reasoning',
  '`r`',
  'weight',
  'over `recorded`',
  'dearest',
  'strong, harm',
  'lifetime chosen',
  'dearest',
  'strong, harm',
  'above the bound',
]
const line = (texts) => `| ${texts.join(' | ')} |`
/** The place of a row in the table: by folder, lifetime, binding, price and weight. */
const placeOf = ([sessions, lifetime, binding, read, weight]) => {
  const folder = positionals.findIndex((one) => sessions.startsWith(`${basename(one)} (`))
  return [folder, ['recorded', 'an hour', 'five minutes'].indexOf(lifetime), binding, read === 'own' ? 0 : 1 - Number(read), weight].join(' ')
}
rows.sort((one, other) => placeOf(one).localeCompare(placeOf(other)))
const table = [line(heads), line(heads.map((_, at) => (at < 3 ? '---' : '--:'))), ...rows.map(line)].join('\n')
console.log(table)
if (values.write) {
  const page = fileURLToPath(new URL('../docs/economics.md', import.meta.url))
  const old = readFileSync(page, 'utf8')
  const [from, to] = [old.indexOf(BEGIN), old.indexOf(END)]
  if (from < 0 || to < 0) throw new Error('docs/economics.md has lost the markers of the grid')
  writeFileSync(page, `${old.slice(0, from + BEGIN.length)}\n\n${table}\n\n${old.slice(to)}`)
}

/** The sessions of a folder, each call once, and the phrases that models write on their own. */
async function sessionsOf(folder) {
  const phrases = new OwnPhrases()
  const [charged, list] = [new Set(), []]
  let index = 0
  for await (const file of sessionFiles(folder)) {
    const recording = await openRecording(file).catch(() => undefined)
    if (recording === undefined) continue
    await phrases.learn(recording)
    const found = await survey(recording, () => {}, charged)
    if (found.calls === 0) continue
    const isAsked = values.half === undefined || index % 2 === (values.half === 'even' ? 0 : 1)
    index += 1
    if (isAsked) list.push({ recording, found })
  }
  return { list, phrases }
}

async function measure({ list, phrases }, { read, hour, binding, weight }) {
  const policies = ['recorded', 'append', 'pi-context-manager', 'chosen-lifetime']
  const sums = { plain: 0, calls: 0, above: 0, all: 0 }
  const [ours, chosen] = [
    { cost: 0, strong: 0, harm: 0, dearest: 0 },
    { cost: 0, strong: 0, harm: 0, dearest: 0 },
  ]
  const add = (sum, { cost, missedUses }, plain) => {
    sum.cost += cost
    sum.strong += missedUses.toolText.strong
    sum.harm += missedUses.probableHarm
    sum.dearest = Math.max(sum.dearest, cost / plain)
  }
  for (const { recording, found } of list) {
    const isOwn = hour === undefined
    const report = await replaySession(recording, found, {
      policies,
      cache: isOwn ? CACHES.plain : hour === '1' ? CACHES['anthropic-1h'] : CACHES.anthropic,
      window: 200_000,
      phrases,
      record: { cache: isOwn, lifetime: isOwn, window: true, losses: true },
      ...(read !== undefined && { prices: ratioPrices(Number(read), hour === '1' ? HOUR_WRITE : SHORT_WRITE) }),
      manager: {
        ...{ perTurn: 5, turnsBack: 3, onlyAtUserTurn: false, overheadTokens: 600 },
        ...(binding !== undefined && { binding }),
        ...(weight !== undefined && { open: { stay: { weight: Number(weight) } } }),
      },
    })
    const { recorded, 'pi-context-manager': own } = report.policies
    sums.plain += recorded.cost
    sums.calls += report.calls
    add(ours, own, recorded.cost)
    add(chosen, report.policies['chosen-lifetime'] ?? own, recorded.cost)
    sums.above += report.bound?.above ?? 0
    sums.all += report.bound?.calls ?? 0
  }
  const rate = (count) => ((100 * count) / sums.calls).toFixed(1)
  const cellsOf = ({ cost, dearest, strong, harm }) => [(cost / sums.plain).toFixed(3), dearest.toFixed(2), `${rate(strong)}, ${rate(harm)}`]
  return [...cellsOf(ours), ...cellsOf(chosen), `${sums.above} of ${sums.all}`]
}
