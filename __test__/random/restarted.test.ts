/**
 * Two gateways on one record, one that runs on and one that has just been started on a copy of it: after each edit of a host
 * they send the same bytes.
 */
import { afterEach, expect, test } from 'vitest'
import { lasting } from '../gateway/support.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { events, GATEWAY, Host } from './host.ts'
import type { Event } from './host.ts'
import { formats, World } from './through.ts'
import { some } from '../rows.ts'

afterEach(cleanUp)

/** Number of turns before the edit; each has a prompt and three calls. */
const TURNS = 8

const EDITS: readonly [name: string, event: Event][] = [
  ['nothing', { do: 'retry' }],
  ['a changed prompt early on', { do: 'change', what: 'prompt', at: 0.2, size: 3 }],
  ['a changed first prompt', { do: 'change', what: 'prompt', at: 0, size: 3 }],
  ['a changed answer', { do: 'change', what: 'answer', at: 0.5, size: 3 }],
  ['a redacted output', { do: 'change', what: 'output', at: 0.3, size: 2 }],
  ['a redacted argument', { do: 'change', what: 'argument', at: 0.6, size: 1 }],
  ['an inserted prompt', { do: 'insert', what: 'prompt', at: 0.4, size: 2 }],
  ['inserted calls', { do: 'insert', what: 'calls', at: 0.3, size: 12 }],
  ['a removed message', { do: 'remove', at: 0.5 }],
  ['a step back', { do: 'back', at: 0.8 }],
  ['an hour later, the same again', { do: 'wait' }],
  ['another session with the same messages', { do: 'fork' }],
]

/** The host's steps before its edit: enough for several outputs to have left. */
function* before(): Generator<Event> {
  for (let turn = 0; turn < TURNS; turn += 1) {
    yield { do: 'prompt', size: 2 }
    for (let call = 0; call < 3; call += 1)
      yield { do: 'calls', ids: [`c${turn}_${call}`], size: 60, args: call === 0 ? 'long' : 'short', says: call, reasons: false }
    yield { do: 'answer', size: 2 }
  }
  yield { do: 'prompt', size: 2 }
}

/** Returns the first place in which two requests differ, with the text around it in each; undefined if they are equal. */
function difference(one: Buffer, other: Buffer): string | undefined {
  if (one.equals(other)) return undefined
  const at = one.findIndex((byte, place) => byte !== other[place])
  const around = (bytes: Buffer): string => bytes.toString('latin1', Math.max(0, at - 120), at + 200)
  return `${one.length} and ${other.length} bytes, from byte ${at} on:\n${around(one)}\n---\n${around(other)}`
}

/** A format whose sessions have no IDs: there, a change early on begins a new conversation. */
const NAMELESS = ['nothing', 'a changed first prompt', 'a step back', 'an hour later, the same again']

const rows = formats.flatMap((format) =>
  EDITS.filter(([name]) => format !== 'gemini' || NAMELESS.includes(name)).map(([name, event]) => [format, name, event] as const),
)

test.each(some(rows, 8))('%s, %s', { timeout: 120_000 }, async (format, _name, edit) => {
  const steady = new World(format, lasting())
  await steady.open()
  const host = new Host()
  for (const event of before()) {
    host.apply(event)
    await steady.apply(event)
    await steady.request(host)
  }
  const calls = (n: number): Event => ({ do: 'calls', ids: [`after_${n}`], size: 12, args: 'short', says: 0, reasons: false })
  const after: readonly Event[] = [edit, calls(1), calls(2), calls(3), { do: 'answer', size: 1 }]
  for (const event of after) {
    host.apply(event)
    await steady.apply(event)
    const anew = await steady.twin()
    const [one, other] = [await steady.request(host), await anew.request(host)]
    await anew.close()
    expect([event.do, one.hasRolled, other.hasRolled, difference(one.body, other.body)]).toEqual([event.do, one.hasRolled, one.hasRolled, undefined])
  }
  await steady.close()
})

/** Steps of a random host. */
const STEPS = 40

/** The seeds of random hosts. */
const SEEDS = [5, 6, 7, 8]

const hosts = formats.flatMap((format) => SEEDS.map((seed) => [format, seed] as const))

test.each(some(hosts, 2))('%s, a random host of seed %i', { timeout: 300_000 }, async (format, seed) => {
  const steady = new World(format, lasting())
  await steady.open()
  const host = new Host()
  const different: string[] = []
  let steps = 0
  for (const event of events(seed, GATEWAY)) {
    if ((steps += 1) > STEPS) break
    host.apply(event)
    await steady.apply(event)
    if (host.steps.length === 0) continue
    const anew = await steady.twin()
    const [one, other] = [await steady.request(host), await anew.request(host)]
    await anew.close()
    if (difference(one.body, other.body) !== undefined) different.push(`${steps} ${event.do}: ${one.body.length} and ${other.body.length} bytes`)
  }
  await steady.close()
  expect(different).toEqual([])
})
