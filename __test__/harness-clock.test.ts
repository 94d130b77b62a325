/** The death of a provider's cache, however a host counts time: in every shape, and with stamps of every kind. */
import { afterEach, expect, test } from 'vitest'
import { Projection } from '../lib/projection/harness.ts'
import type { ShapeName } from '../lib/projection/harness.ts'
import { folder, opened } from './core/setup.ts'
import { shapes, written } from './hosts/conversation.ts'
import type { Step } from './hosts/conversation.ts'
import { cleanUp } from '../rig/cleanup.ts'

afterEach(cleanUp)

const START = 1_800_000_000_000
const MINUTE = 60_000
const ROUNDS = 7

const output = (round: number): string => Array.from({ length: 60 }, (_, n) => `output ${round} line ${n} ${'lorem ipsum '.repeat(3)}`).join('\n')

const round = (n: number): Step => ({ calls: [{ id: `call_${n}`, name: 'bash', args: { command: `run ${n}` }, output: output(n) }] })

/** The stamps on messages, for hosts that have them. */
const STAMPS: [string, (at: number) => number][] = [
  ['milliseconds', (at) => at],
  ['seconds', (at) => Math.floor(at / 1000)],
  ['zero', () => 0],
  ['always the same', () => START - 86_400_000],
]

const cases = shapes.flatMap((shape) => (shape === 'pi' ? STAMPS : STAMPS.slice(0, 1)).map(([name, stamp]) => [shape, name, stamp] as const))

test.each(cases)('%s, %s: outputs stay for some calls, and leave after an idle hour', async (shape, _, stamp) => {
  const manager = await opened({ cwd: folder() })
  let now = START
  const model = { name: 'm', contextWindow: 200_000, input: 3, cacheRead: 0.3, cacheWrite: 3.75, cacheTtlMs: 5 * MINUTE }
  const projection = new Projection(manager, { shape, model, now: () => now })
  const messages: object[] = [...written[shape as ShapeName]({ user: 'begin' }, stamp(now))]
  let sent = await projection.transform(messages)
  for (let n = 1; n <= ROUNDS; n += 1) {
    now += MINUTE
    messages.push(...written[shape as ShapeName](round(n), stamp(now)))
    sent = await projection.transform(messages)
    expect(JSON.stringify(sent)).toContain('output 1 line 30')
  }
  now += 60 * MINUTE
  messages.push(...written[shape as ShapeName]({ user: 'continue' }, stamp(now)))
  sent = await projection.transform(messages)
  expect(JSON.stringify(sent)).not.toContain('output 1 line 30')
  expect(JSON.stringify(sent)).toContain(`output ${ROUNDS} line 30`)
})
