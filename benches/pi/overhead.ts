/**
 * What the extension costs in time: the real Pi with and without it, on the same script, in one run. The agent reads
 * small files, as many with each model call as the second argument says (default 20), until the session has as many
 * results as the first argument says (default 2,000). Run: `node --experimental-strip-types benches/pi/overhead.ts [results [batch]]`.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { withExtension } from '../../__test__/rig/extension.ts'
import { startModelServer } from '../../__test__/rig/model-server.ts'
import { cleanUp, createPiHome, runPrint } from '../../__test__/rig/pi.ts'
import { calls } from '../../__test__/rig/reply.ts'

/** Results with each model call. */
const BATCH = Number(process.argv[3] ?? 20)

const results = Number(process.argv[2] ?? 2000)
const TIMED = fileURLToPath(new URL('timed.ts', import.meta.url))

/** One run: milliseconds from the start to the first request, and of each turn between two requests. */
interface Run {
  start: number
  turns: number[]
}

async function run(
  more: (root: string) => { extension?: string; env?: Record<string, string> },
): Promise<Run & { root: string }> {
  const arrivals: number[] = []
  const server = await startModelServer((request, n) => {
    arrivals.push(performance.now())
    // Thousands of recorded requests would fill the memory.
    Object.assign(request, {
      raw: Buffer.alloc(0),
      body: { model: request.body.model },
      messages: [],
      prompt: '',
    })
    if (n * BATCH >= results) return 'done'
    return calls(
      ...Array.from({ length: BATCH }, (_, at): [string, object] => [
        'read',
        { path: `f${(n * BATCH + at) % 400}.txt` },
      ]),
    )
  })
  const home = createPiHome({ server, contextWindow: 100_000_000 })
  for (let at = 0; at < 400; at += 1) {
    writeFileSync(join(home.cwd, `f${at}.txt`), `file ${at}\n${'a line of text\n'.repeat(30)}`)
  }
  const begin = performance.now()
  const { exitCode, stderr } = await runPrint({
    home,
    prompts: ['go'],
    timeoutMs: 540_000,
    ...more(home.root),
  })
  server.check()
  if (exitCode !== 0 || stderr !== '') throw new Error(`pi ended with ${exitCode}: ${stderr}`)
  const turns = arrivals.slice(1).map((time, at) => time - (arrivals[at] as number))
  return { start: (arrivals[0] as number) - begin, turns, root: home.root }
}

function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((left, right) => left - right)
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0
}

const plain = await run(() => ({}))
const managed = await run((root) => withExtension(join(root, 'store', 'context.db')))
const timed = await run((root) => {
  const { env } = withExtension(join(root, 'store', 'context.db'))
  return { extension: TIMED, env: { ...env, TIMES: join(root, 'times.json') } }
})
const times: [string, number][] = JSON.parse(readFileSync(join(timed.root, 'times.json'), 'utf8'))

const row = (name: string, left: number, right: number): string =>
  `${name.padEnd(34)} ${left.toFixed(1).padStart(9)} ${right.toFixed(1).padStart(9)} ${(right / left).toFixed(2).padStart(7)}`
console.log(`${results} results, ${BATCH} with each model call; milliseconds`)
console.log(`${''.padEnd(34)} ${'plain Pi'.padStart(9)} ${'with it'.padStart(9)} ${'ratio'.padStart(7)}`)
console.log(row('start to first request', plain.start, managed.start))
const tenth = Math.max(1, Math.floor(plain.turns.length / 10))
for (const [name, from] of [
  ['first', 0],
  ['middle', Math.floor(plain.turns.length / 2)],
  ['last', plain.turns.length - tenth],
] as const) {
  const part = (turns: readonly number[]): number => percentile(turns.slice(from, from + tenth), 0.5)
  console.log(row(`a turn, median of the ${name} tenth`, part(plain.turns), part(managed.turns)))
}
console.log('\nhandlers of the extension, milliseconds (last half of the session)')
for (const event of ['context', 'tool_call', 'tool_result', 'turn_end']) {
  const all = times.filter(([name]) => name === event).map(([, time]) => time)
  const half = all.slice(all.length / 2)
  console.log(
    `${event.padEnd(14)} p50 ${percentile(half, 0.5).toFixed(2)}  p95 ${percentile(half, 0.95).toFixed(2)}`,
  )
}
await cleanUp()
