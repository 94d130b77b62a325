/**
 * The cost of a store's size: opening a session, resuming one, recording and searching, in a small store and in a large one (100 MB
 * and 10 GB on disk as docs/performance.md has them).
 *
 *     node benches/ts.mjs benches/sizes.ts [small MB] [large MB]
 *
 * Both stores have sessions of the same length. SIZES_PLACE names a folder that has the room; the stores are removed, unless
 * SIZES_KEEP is set: then the next run with the same sizes takes them as they are, or continues to fill them.
 */
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ContextManager } from '../lib/index.ts'
import { median, percentile, print, text, timed } from './figure.ts'

/** Tool calls of a session, and the bytes of each output. */
const [CALLS, BYTES] = [200, 50_000]
const ROUNDS = 9

const [small = 100, large = 10_000] = process.argv.slice(3).map(Number)
const keeps = process.env['SIZES_KEEP'] !== undefined
const folder = process.env['SIZES_PLACE'] ?? tmpdir()
const root = realpathSync(keeps ? folder : mkdtempSync(join(folder, 'sizes-')))

interface Store {
  path: string
  sessions: number
}

function open({ path }: Store, sessionId: string): Promise<ContextManager> {
  return ContextManager.open({ sessionId, cwd: root, store: { kind: 'sqlite', path }, filesystemId: 'sizes', watch: false })
}

/** Sizes of the file and its log, in MB. */
function onDisk({ path }: Store): number {
  return statSync(path).size / 1e6
}

function output(number: number): string {
  // A word that no other output has, as a hash or an ID in a log.
  return `only_${number}\n${text(BYTES, number)}`
}

async function record(manager: ContextManager, number: number): Promise<void> {
  await manager.recordToolcall({ id: `call_${number}`, tool: 'bash', args: { command: `make ${number}` }, content: output(number), status: 'ok' })
}

async function fill(megabytes: number): Promise<Store> {
  const store: Store = { path: join(root, `${megabytes}.db`), sessions: 0 }
  const start = performance.now()
  if (keeps && existsSync(`${store.path}.sessions`)) store.sessions = Number(readFileSync(`${store.path}.sessions`, 'utf8'))
  while (!existsSync(store.path) || onDisk(store) < megabytes) {
    const manager = await open(store, `session-${store.sessions}`)
    for (let n = 0; n < CALLS; n += 20) {
      await Promise.all(Array.from({ length: 20 }, (_, k) => record(manager, store.sessions * CALLS + n + k)))
    }
    await manager.flush()
    await manager.close()
    store.sessions += 1
  }
  const seconds = (performance.now() - start) / 1000
  process.stderr.write(`${onDisk(store).toFixed(0)} MB on disk: ${store.sessions * CALLS} outputs in ${seconds.toFixed(0)} s\n`)
  writeFileSync(`${store.path}.sessions`, `${store.sessions}`)
  return store
}

interface Times {
  open: number[]
  resume: number[]
  record: number[]
  rare: number[]
  common: number[]
}

const NONE = (): Times => ({ open: [], resume: [], record: [], rare: [], common: [] })

/** One round. The session that is resumed is another one in each, as long ago as the round says. */
async function measure(store: Store, round: number, times: Times): Promise<void> {
  const place = Math.floor((store.sessions * round) / ROUNDS)
  let manager!: ContextManager
  times.resume.push(await timed(async () => (manager = await open(store, `session-${place}`))))
  await manager.close()
  times.open.push(await timed(async () => (manager = await open(store, `new-${process.pid}-${round}`))))
  for (let n = 0; n < 20; n += 1) {
    times.record.push(await timed(() => record(manager, 1e9 + round * 20 + n)))
  }
  const known = place * CALLS + 7
  for (const words of [`only_${known}`, `only_${known} value_17`]) times.rare.push(await timed(() => manager.search(words)))
  for (const words of ['value_17', 'value_4711 value_12']) times.common.push(await timed(() => manager.search(words)))
  await manager.close()
}

try {
  const stores = [await fill(small), await fill(large)] as const
  const [little, much] = [NONE(), NONE()]
  // In turns, so that the machine's other load is the same for both.
  for (let round = 0; round < ROUNDS; round += 1) {
    await measure(stores[0], round, little)
    await measure(stores[1], round, much)
  }
  for (const [what, unit] of Object.entries({
    open: 'a new session',
    resume: 'a session of before',
    record: 'an output of 50 KB',
    rare: 'a search for a word of one output',
    common: 'a search for a word of many outputs',
  })) {
    const [ours, beside] = [much[what as keyof Times], little[what as keyof Times]]
    print({
      figure: what,
      what: `${unit} at ${large} MB`,
      ours: median(ours),
      peer: `at ${small} MB`,
      beside: median(beside),
      unit: 'ms',
      good: 1.5,
      note: `p95 ${percentile(ours, 0.95).toFixed(1)} beside ${percentile(beside, 0.95).toFixed(1)} ms`,
    })
  }
} finally {
  if (!keeps) rmSync(root, { recursive: true })
}
