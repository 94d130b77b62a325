/** Random hosts on the library and behind the gateway: see host.ts for what they do, and oracle.ts for what must be true. */
import { readFileSync } from 'node:fs'
import { afterEach, describe, expect, test } from 'vitest'
import { folder, sqlite } from '../core/setup.ts'
import { lasting } from '../gateway/support.ts'
import { shapes } from '../hosts/conversation.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { events, GATEWAY } from './host.ts'
import type { Event } from './host.ts'
import { LIBRARY, runLibrary } from './library.ts'
import type { Found } from './faults.ts'
import { formats, runGateway } from './through.ts'

afterEach(cleanUp)

/** Steps of all hosts together: some in `npm test`, ten thousand in CI, a million in the long run. */
const { CONTEXT_LONG, CONTEXT_FULL, CI } = process.env
const STEPS = CONTEXT_LONG === '1' ? 1_000_000 : CONTEXT_FULL === '1' || CI !== undefined ? 10_000 : 1_000
/** The share of them behind the gateway: over HTTP each event takes several times as long. */
const BEHIND = 0.1
/** Number of events between two checks that restore texts, which take longer than all else. */
const RECALLS = 4
/** Number of events of a host: a step costs as much as its conversation is long, so few hosts run for long. */
const SHORT = 40
const LONG = 160
/** One host of this many runs for long. */
const LONG_EVERY = 12
/** Number of hosts that run at once: each waits for its store and its requests most of the time. */
const AT_ONCE = 4
const FIRST = Number(process.env['CONTEXT_SEED'] ?? 1)

/** Faults found before, as events that are repeated. */
const FOUND = readFileSync(new URL('found.jsonl', import.meta.url), 'utf8')
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => JSON.parse(line) as Sample)

/** Time that a failing run looks for fewer events. */
const SHRINKING_MS = 20_000

interface Sample {
  target: 'library' | 'gateway'
  shape: (typeof shapes)[number]
  why: string
  events: Event[]
}

function firstOf(all: Iterable<Event>, count: number): Event[] {
  const some: Event[] = []
  for (const event of all) if (some.push(event) >= count) break
  return some
}

/** Runs hosts until they have had this many events, several at once, and shrinks the first that has a fault. */
async function hunt(
  target: Sample['target'],
  shape: Sample['shape'],
  steps: number,
  run: (events: readonly Event[], seed: number) => Promise<Found | undefined>,
): Promise<void> {
  const kinds = target === 'library' ? LIBRARY : GATEWAY
  for (let left = steps, seed = FIRST; left > 0;) {
    const hosts: { seed: number; all: Event[] }[] = []
    for (; hosts.length < AT_ONCE && left > 0; seed += 1) {
      const all = firstOf(events(seed, kinds), Math.min(left, seed % LONG_EVERY === 0 ? LONG : SHORT))
      left -= all.length
      hosts.push({ seed, all })
    }
    const found = await Promise.all(hosts.map(({ all, seed }) => run(all, seed)))
    const failing = hosts[found.findIndex((one) => one !== undefined)]
    if (failing === undefined) continue
    const { events: few, fault } = await shrunk(failing.all, (some) => run(some, failing.seed))
    expect.unreachable(`seed ${failing.seed}: ${fault}\n${JSON.stringify({ target, shape, why: fault, events: few })}`)
  }
}

/** The fewest events that still lead to a fault. */
async function shrunk(all: readonly Event[], run: (events: readonly Event[]) => Promise<Found | undefined>): Promise<{ events: Event[]; fault: string }> {
  let found = (await run(all)) as Found
  let left = all.slice(0, found.after)
  const end = Date.now() + SHRINKING_MS
  for (let size = Math.ceil(left.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = left.length - size; at >= 0; at -= size) {
      const fewer = left.toSpliced(at, size)
      if (Date.now() > end) return { events: left, fault: found.fault }
      const again = await run(fewer)
      if (again !== undefined) [left, found] = [fewer.slice(0, again.after), again]
    }
  }
  return { events: left, fault: found.fault }
}

const AS_LONG_AS_IT_TAKES = { timeout: 24 * 3_600_000 }

test.each(FOUND.map((sample) => [sample.target, sample.why, sample] as const))('found before, %s: %s', async (target, _, { events: all, shape }) => {
  const run = target === 'library' ? runLibrary(all, shape, folder(), sqlite()) : runGateway(all, shape as (typeof formats)[number], lasting())
  expect(await run).toBeUndefined()
})

describe('the library', () => {
  test.each(shapes)('%s', AS_LONG_AS_IT_TAKES, async (shape) => {
    const cwd = folder()
    // Every fourth host starts anew now and then, which takes a store on disk.
    const steps = Math.ceil((STEPS * (1 - BEHIND)) / shapes.length)
    await hunt('library', shape, steps, (some, seed) => runLibrary(some, shape, cwd, seed % 4 === 0 ? sqlite() : { kind: 'memory' }, RECALLS))
  })
})

describe('the gateway', () => {
  test.each(formats)('%s', AS_LONG_AS_IT_TAKES, async (format) => {
    await hunt('gateway', format, Math.ceil((STEPS * BEHIND) / formats.length), (some) => runGateway(some, format, lasting()))
  })
})
