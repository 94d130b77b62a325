/**
 * The extension's cost in time in the real Pi: its start, its handlers beside Pi's own copying of the messages (G10, G11), and a
 * whole turn beside one without it. The agent reads a small file with each model call, until the session has as many results as
 * CONTEXT_RESULTS says (default 1,000: 2,000 messages and 2,000 objects; with `--once` 100). PI_VERSION is the Pi: `installed`
 * (default) or `newest`. The start is given in processor time as well (on Linux), which other programs on the machine do not
 * lengthen by making Pi wait.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { withExtension } from '../../rig/extension.ts'
import { startModelServer } from '../../rig/model-server.ts'
import { cleanUp, createPiHome, runPrint } from '../../rig/pi.ts'
import { calls } from '../../rig/reply.ts'
import { isOnce, median, percentile, print, rounds } from '../figure.ts'
import type { Time } from './timed.ts'

const RESULTS = Number(process.env['CONTEXT_RESULTS'] ?? (isOnce() ? 100 : 1000))
const TIMED = fileURLToPath(new URL('timed.ts', import.meta.url))

/** One run: milliseconds from the start to the first request, and of each turn between two requests. */
interface Run {
  start: number
  /** Milliseconds of processor time that Pi had used by then; NaN where the system does not say. */
  processor: number
  turns: number[]
  root: string
}

type More = (root: string) => { extension?: string; env?: Record<string, string> }

async function run(results: number, more: More): Promise<Run> {
  const arrivals: number[] = []
  let processor = Number.NaN
  const server = await startModelServer((request, n) => {
    arrivals.push(performance.now())
    if (n === 0) processor = processorTime()
    // Thousands of recorded requests would fill the memory.
    Object.assign(request, { raw: Buffer.alloc(0), body: { model: request.body.model }, messages: [], prompt: '' })
    return n >= results ? 'done' : calls(['read', { path: `f${n}.txt` }])
  })
  const home = createPiHome({ server, contextWindow: 100_000_000 })
  for (let at = 0; at < results; at += 1) {
    writeFileSync(join(home.cwd, `f${at}.txt`), `file ${at}\n${'a line of text\n'.repeat(30)}`)
  }
  const begin = performance.now()
  const { exitCode, stderr } = await runPrint({ home, prompts: ['go'], timeoutMs: 540_000, ...more(home.root) })
  server.check()
  if (exitCode !== 0 || stderr !== '') throw new Error(`pi ended with ${exitCode}: ${stderr}`)
  const turns = arrivals.slice(1).map((time, at) => time - (arrivals[at] as number))
  return { start: (arrivals[0] as number) - begin, processor, turns, root: home.root }
}

/** Milliseconds of processor time of the processes that this one has started, while they run. */
function processorTime(): number {
  if (!existsSync('/proc/self/schedstat')) return Number.NaN
  const children = (pid: number): number[] =>
    readdirSync(`/proc/${pid}/task`)
      .flatMap((thread) => read(`/proc/${pid}/task/${thread}/children`).trim().split(' '))
      .filter((word) => word !== '')
      .flatMap((word) => [Number(word), ...children(Number(word))])
  const ofThread = (path: string): number => Number(read(path).split(' ')[0])
  const paths = children(process.pid).flatMap((pid) => readdirSync(`/proc/${pid}/task`).map((thread) => `/proc/${pid}/task/${thread}/schedstat`))
  return paths.reduce((sum, path) => sum + ofThread(path), 0) / 1e6
}

/** A file of a thread; empty if the thread has ended since it was listed. */
function read(path: string): string {
  return existsSync(path) ? readFileSync(path, 'utf8') : ''
}

const plain: More = () => ({})
const managed: More = (root) => withExtension(join(root, 'store', 'context.db'))
const timed: More = (root) => {
  const { env } = withExtension(join(root, 'store', 'context.db'))
  return { extension: TIMED, env: { ...env, TIMES: join(root, 'times.json') } }
}

await start()
if (RESULTS > 0) await session()
await cleanUp()

async function start(): Promise<void> {
  const [without, with_]: [Run[], Run[]] = [[], []]
  for (let round = 0; round < rounds(7); round += 1) {
    without.push(await run(0, plain))
    with_.push(await run(0, managed))
  }
  const wall = (runs: readonly Run[]): number => median(runs.map(({ start }) => start))
  const used = (runs: readonly Run[]): number => median(runs.map(({ processor }) => processor))
  const more = wall(with_) - wall(without)
  print({
    figure: 'start',
    what: "what the extension adds to Pi's start",
    ours: more,
    peer: 'the bound of 100 ms',
    beside: 100,
    unit: 'ms',
    good: 1,
    stretch: 0.5,
    note:
      `${wall(with_).toFixed(0)} ms to the first request, without it ${wall(without).toFixed(0)} ms; ` +
      `processor time ${used(with_).toFixed(0)} ms, without it ${used(without).toFixed(0)} ms`,
  })
}

async function session(): Promise<void> {
  const bare = await run(RESULTS, plain)
  const watched = await run(RESULTS, timed)
  const times = timesOf(watched)
  // Calls stay, so that the session has as many messages as it is to be measured at.
  const keeping = await run(RESULTS, (root) => {
    const more = timed(root)
    return { ...more, env: { ...more.env, CONTEXT_SETTINGS: JSON.stringify({ calls: 'keep' }) } }
  })
  const contexts = timesOf(keeping).filter(({ event }) => event === 'context_with_system')
  // The events with about this many messages.
  const at = (messages: number): Time[] => contexts.filter((time) => Math.abs((time.messages ?? 0) - messages) <= Math.max(50, messages / 20))
  const middle = (list: Time[]): number => median(list.map(({ milliseconds }) => milliseconds))
  const copy = (list: Time[]): number => median(list.map(({ copy }) => copy ?? Number.NaN))
  const many = Math.min(2_000, 2 * RESULTS - 50)
  print({
    figure: 'G10',
    what: `our handler of one context event, ${many} messages`,
    ours: middle(at(many)),
    peer: "Pi's structuredClone of the same messages",
    beside: copy(at(many)),
    unit: 'ms',
    good: 0.2,
    stretch: 0.05,
  })
  print({
    figure: 'G11',
    what: `the same at ${many} messages`,
    ours: middle(at(many)),
    peer: 'at 200',
    beside: middle(at(200)),
    unit: 'ms',
    good: 2,
    stretch: 1.3,
  })
  const last = perCall(times).slice(-Math.min(200, RESULTS))
  print({
    figure: 'overhead',
    what: `all handlers of one model call, p95 at ${(2 * RESULTS).toLocaleString('en')} objects`,
    ours: percentile(last, 0.95),
    peer: 'the bound of 5 ms',
    beside: 5,
    unit: 'ms',
    good: 1,
    stretch: 0.5,
    note: `p50 ${median(last).toFixed(2)} ms; ${byEvent(times)}`,
  })
  const tail = (turns: readonly number[]): number => median(turns.slice(-Math.ceil(turns.length / 10)))
  print({
    figure: 'turn',
    what: 'a turn of Pi at the end of that session',
    ours: tail(watched.turns),
    peer: 'the same without the extension',
    beside: tail(bare.turns),
    unit: 'ms',
  })
}

function timesOf({ root }: Run): Time[] {
  return JSON.parse(readFileSync(join(root, 'times.json'), 'utf8')) as Time[]
}

/** Milliseconds of all handlers from one turn's end to the next. */
function perCall(times: readonly Time[]): number[] {
  const sums: number[] = []
  let sum = 0
  for (const { event, milliseconds } of times) {
    sum += milliseconds
    if (event !== 'turn_end') continue
    sums.push(sum)
    sum = 0
  }
  return sums
}

/** The medians, and the 95th percentiles, of the handlers in the last half of the session. */
function byEvent(times: readonly Time[]): string {
  const events = ['context_with_system', 'tool_call', 'tool_result', 'turn_end'].map((name) => {
    const own = times.filter(({ event }) => event === name).map(({ milliseconds }) => milliseconds)
    const half = own.slice(own.length / 2)
    return `${name} ${median(half).toFixed(2)} (${percentile(half, 0.95).toFixed(2)})`
  })
  return events.join(', ')
}
