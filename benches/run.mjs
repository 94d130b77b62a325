/**
 * All figures of the product in one table, each beside its limit or peer in the same run:
 *
 *     npm run bench                  everything, 2 to 8 minutes
 *     npm run bench -- G5 G14        only these
 *     npm run bench -- --json        one JSON document instead of the table
 *     npm run bench -- --once        one round of each, to see that all of them run; not for figures
 *
 * CONTEXT_SESSIONS names a folder of recorded sessions for the error of the token count; without it that figure is
 * left out. Needs `npm ci`, `npm run build:dist` and `npm run build:ts`.
 */
import { spawn } from 'node:child_process'
import { cpus, loadavg, totalmem } from 'node:os'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const asked = process.argv.slice(2).filter((argument) => !argument.startsWith('--'))
const json = process.argv.includes('--json')
/** Then what cargo's tests have compiled will do. */
const once = process.argv.includes('--once') ? ['--once'] : []
const profile = once.length > 0 ? ['--profile', 'dev'] : []

/** Runs on the whole workspace, because cargo chooses other features for one crate and compiles its dependencies again. */
const cargo = (bench) => ['cargo', ['bench', '--quiet', ...profile, '--workspace', '--bench', bench, '--', '--json']]
const script = (file) => ['node', ['benches/ts.mjs', `benches/${file}`]]

/** The programs, and which figures each has. */
const benches = [
  { figures: ['G1'], program: cargo('model') },
  { figures: ['ledger'], program: cargo('projection') },
  { figures: ['G3', 'G4', 'G5', 'G6', 'G15', 'turns'], program: cargo('store') },
  { figures: ['G2', 'G7', 'G9', 'G12', 'G13', 'G14', 'group'], program: cargo('engine') },
  { figures: ['G8'], program: cargo('watch') },
  { figures: ['G3'], program: script('store.ts') },
  { figures: ['G8'], program: script('watch.ts') },
  { figures: ['transform', 'tokens'], program: script('projection.ts') },
  { figures: ['linear'], program: script('linear.ts') },
  { figures: ['gateway'], program: script('gateway/figures.ts') },
  { figures: ['gateway-cost'], program: script('gateway/recorded.ts') },
  { figures: ['G10', 'G11', 'overhead', 'start', 'turn'], program: script('pi/overhead.ts') },
]

/** Returns a program's output, line by line; its messages beside the figures are passed to the terminal. */
async function run([program, args], names) {
  const child = spawn(program, [...args, ...names, ...once], { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text) => (output += text))
  const code = await new Promise((resolve, reject) => child.once('error', reject).once('close', resolve))
  if (code !== 0) throw new Error(`${program} ${args.join(' ')} ended with ${code}`)
  return output.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line)] : []))
}

/** `stretch`, `good` or `MISSED`; empty where no bound is set. Less is better unless good is below stretch. */
function verdict({ ratio, good, stretch }) {
  if (ratio == null || Number.isNaN(ratio)) return 'NOT MEASURED'
  const more = good != null && stretch != null && good < stretch
  const reached = (bound) => bound != null && (more ? ratio >= bound : ratio <= bound)
  if (reached(stretch)) return 'stretch'
  if (good == null) return stretch == null ? '' : 'good'
  return reached(good) ? 'good' : 'MISSED'
}

const number = (value) => (value == null || Number.isNaN(value) ? '' : `${Number(value.toPrecision(3))}`)
const value = (amount, unit) => `${number(amount)} ${unit}`
const order = ({ figure }) => (figure.startsWith('G') && Number(figure.slice(1)) ? Number(figure.slice(1)) : 99)

const started = Date.now()
const load = loadavg()[0]
const figures = []
let failed = false
for (const { figures: own, program } of benches) {
  const names = own.filter((name) => asked.includes(name))
  if (asked.length > 0 && names.length === 0) continue
  try {
    const isCargo = program[0] === 'cargo'
    const found = await run(program, isCargo ? names : [])
    figures.push(...found.filter(({ figure }) => asked.length === 0 || asked.includes(figure)))
  } catch (error) {
    failed = true
    console.error(`not measured: ${own.join(', ')}: ${error.message}`)
  }
}
figures.sort((left, right) => order(left) - order(right))
for (const figure of figures) figure.verdict = verdict(figure)

const machine = {
  cpu: cpus()[0]?.model.trim() ?? '',
  cores: cpus().length,
  memoryGiB: Math.round(totalmem() / 2 ** 30),
  node: process.version,
  loadBefore: load,
  loadAfter: loadavg()[0],
  seconds: Math.round((Date.now() - started) / 1000),
}
if (json) console.log(JSON.stringify({ machine, figures }, null, 2))
else {
  const { cpu, cores, memoryGiB, node, loadBefore, loadAfter, seconds } = machine
  console.log(
    `${cpu}, ${cores} cores, ${memoryGiB} GiB, Node ${node}; load ${loadBefore.toFixed(1)} before, ` +
      `${loadAfter.toFixed(1)} after (from 0.8 per core on, only the ratios say something); ${seconds} s\n`,
  )
  console.log('| | measured | | beside | | ratio | good | stretch | |\n|---|---|---|---|---|---|---|---|---|')
  for (const { figure, what, ours, peer, beside, unit, ratio, good, stretch, verdict: mark, note } of figures) {
    const cells = [figure, note ? `${what} (${note})` : what, value(ours, unit), peer, value(beside, unit)]
    cells.push(number(ratio), number(good), number(stretch), mark)
    console.log(`| ${cells.join(' | ')} |`)
  }
  const count = (mark) => figures.filter(({ verdict: found }) => found === mark).length
  console.log(`\n${count('stretch')} stretch, ${count('good')} good, ${count('MISSED')} missed`)
}
if (failed || figures.some(({ verdict: mark }) => mark === 'NOT MEASURED')) process.exitCode = 1
