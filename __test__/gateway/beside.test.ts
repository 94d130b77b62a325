/**
 * Requests beside a conversation: questions on the side, and steps back. A gateway that starts anew before each request sends the bytes
 * that one sends that has seen all of them.
 */
import { afterEach, expect, test } from 'vitest'
import { cleanUp } from '../../rig/cleanup.ts'
import type { Step } from '../hosts/conversation.ts'
import { formats, World } from '../random/through.ts'
import { some } from '../rows.ts'
import { lasting, long } from './support.ts'

afterEach(cleanUp)

/** Number of turns before the first request beside the conversation; each has a prompt and three calls. */
const TURNS = 6

const called = (name: string, lines = 60): Step => ({
  calls: [{ id: `call_${name}`, name: 'bash', args: { command: `run ${name}` }, output: long(name, lines) }],
})
const turn = (n: number): Step[] => [{ user: `prompt ${n}` }, ...[0, 1, 2].map((call) => called(`${n}_${call}`)), { text: `that was ${n}`, calls: [] }]
const main: readonly Step[] = [...Array.from({ length: TURNS }, (_, n) => turn(n)).flat(), { user: 'and now' }]
/** The conversation with as many calls behind it. */
const on = (count: number): Step[] => [...main, ...Array.from({ length: count }, (_, n) => called(`on_${n}`))]
const asked = (steps: readonly Step[], question: string): Step[] => [...steps, { text: 'yes', calls: [] }, { user: question }]
/** The conversation without its last messages, and with others. */
const back = (steps: readonly Step[], by: number, name: string, count: number): Step[] => [
  ...steps.slice(0, -by),
  { user: `instead, ${name}` },
  ...Array.from({ length: count }, (_, n) => called(`${name}_${n}`)),
]

/** The conversations that a host sends, one after the other, once the first turns are over. */
const HOSTS: Record<string, readonly Step[][]> = {
  'a question on the side': [on(1), asked(on(1), 'why?'), on(2), on(3)],
  'two questions on the side': [on(1), asked(on(1), 'why?'), asked(on(1), 'how?'), asked(on(1), 'why?'), on(2), on(3)],
  'a question on the side that continues': [on(1), asked(on(1), 'why?'), [...asked(on(1), 'why?'), called('because')], on(2), on(3)],
  'a step back': [on(2), back(on(2), 2, 'b', 0), back(on(2), 2, 'b', 1), back(on(2), 2, 'b', 2)],
  'a step back, and what it left continues': [on(2), back(on(2), 2, 'b', 0), back(on(2), 2, 'b', 1), on(3), back(on(2), 2, 'b', 2), on(4)],
  'two steps back, and both that they left continue': [
    on(2),
    back(on(2), 1, 'b', 0),
    back(on(2), 1, 'b', 1),
    back(on(2), 3, 'c', 0),
    back(on(2), 3, 'c', 1),
    on(3),
    back(on(2), 1, 'b', 2),
    back(on(2), 3, 'c', 2),
  ],
  'questions and steps back in turn': [
    on(1),
    asked(on(1), 'why?'),
    back(on(1), 2, 'b', 0),
    asked(on(1), 'how?'),
    back(on(1), 2, 'b', 1),
    asked(back(on(1), 2, 'b', 1), 'why?'),
    back(on(1), 2, 'b', 2),
    on(2),
    on(3),
  ],
}

/** The bodies that reach the provider. `anew`: before each request from one on, the gateway starts anew. */
async function bodies(format: (typeof formats)[number], host: readonly Step[][], anew: number): Promise<string[]> {
  const world = new World(format, lasting())
  await world.open()
  const sent: string[] = []
  const start = main.flatMap((step, n) => ('user' in step || step.calls.length > 0 ? [main.slice(0, n + 1)] : []))
  for (const [n, steps] of [...start, ...host].entries()) {
    await world.apply({ do: n >= start.length + anew ? 'restart' : 'retry' })
    // An hour later nothing is cached, so that text may leave at once where a request continues its conversation.
    if (n > start.length) await world.apply({ do: 'wait' })
    sent.push((await world.request({ steps })).body.toString())
  }
  await world.close()
  return sent.slice(start.length)
}

const rows = formats.flatMap((format) => Object.keys(HOSTS).map((name) => [format, name] as const))

test.each(some(rows, 8))('%s: %s', { timeout: 300_000 }, async (format, name) => {
  const host = HOSTS[name] as Step[][]
  const one = await bodies(format, host, Infinity)
  // Something has left before, so that the form of the first messages is not the host's.
  expect((one[0] as string).length).toBeLessThan(0.7 * JSON.stringify(host[0]).length)
  expect(await bodies(format, host, 0)).toEqual(one)
  // One that has seen the first of them, and no other.
  expect(await bodies(format, host, 1)).toEqual(one)
})
