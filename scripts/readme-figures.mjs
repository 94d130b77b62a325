/**
 * Writes the figures in README.md, a table and the saving in its first lines, from the saved baseline of
 * `npm run replay:check`:
 * `node scripts/readme-figures.mjs` replaces what stands between the markers, `--check` fails where they differ.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const BEGIN = '<!-- figures: written by scripts/readme-figures.mjs -->'
const END = '<!-- end of figures -->'

const path = (relative) => fileURLToPath(new URL(`../${relative}`, import.meta.url))
const readme = path('README.md')
const { sessions } = JSON.parse(readFileSync(path('fixtures/replay-baseline-large.json'), 'utf8'))
const all = Object.values(sessions)

const percent = (value) => `${Math.round(100 * value)} %`
/** The share saved, of a cost relative to the cost without the context manager. */
const saved = (value) => `${Math.floor(100 * (1 - value))} %`
const thousands = (value) => `${Math.round(value / 1000)}k`
const rows = [
  ['saved of what the prompts cost', 'costVsPlain', saved],
  ['prompt tokens that came from the cache', 'cacheHit', percent],
  ['largest request, in tokens', 'peakTokens', thousands],
  ['answers in 100 that clearly used text no longer shown', 'missedStrong', (value) => value.toFixed(1)],
  ['those of them that probably harm', 'missedHarm', (value) => value.toFixed(1)],
  ['lossy compactions', 'compactions', String],
]
const table = [
  `| ${all.length} recorded sessions | lowest | median | highest |`,
  '|---|--:|--:|--:|',
  ...rows.map(([name, field, format]) => {
    const values = all.map((session) => session[field]).sort((left, right) => (format === saved ? right - left : left - right))
    const cells = [values[0], values[Math.floor((values.length - 1) / 2)], values.at(-1)]
    return `| ${name} | ${cells.map(format).join(' | ')} |`
  }),
].join('\n')

const text = readFileSync(readme, 'utf8')
const [from, to] = [text.indexOf(BEGIN), text.indexOf(END)]
if (from < 0 || to < 0) throw new Error('README.md has lost its markers')
const costs = all.map(({ costVsPlain }) => costVsPlain)
const saving = (cost) => Math.floor(100 * (1 - cost))
const [least, most] = [saving(Math.max(...costs)), saving(Math.min(...costs))]
const middle = saving(costs.toSorted((one, other) => one - other)[Math.floor((costs.length - 1) / 2)])
// A session that ends right after a roll costs a little more than without one.
const range = least < 0 ? `up to ${most} percent, and ${middle} percent in the middle session,` : `${least} to ${most} percent`
const wanted = `${text.slice(0, from + BEGIN.length)}\n${table}\n${text.slice(to)}`.replace(
  /<!-- saving -->.*<!-- \/saving -->/,
  `<!-- saving -->${range}<!-- /saving -->`,
)
if (!process.argv.includes('--check')) writeFileSync(readme, wanted)
else if (wanted !== text) {
  console.error('README.md does not have the figures of the baseline; run node scripts/readme-figures.mjs')
  process.exitCode = 1
}
