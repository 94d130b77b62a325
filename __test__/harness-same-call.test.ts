/** The very same call several times, with one ID, the same arguments and the same output: all of them leave, stay out and come back. */
import { afterEach, describe, expect, test } from 'vitest'
import { shapes, written } from './hosts/conversation.ts'
import type { Step } from './hosts/conversation.ts'
import { lines } from './hosts/processes.ts'
import { Host } from './hosts/restarted.ts'
import { cleanUp } from '../rig/cleanup.ts'
import { some } from './rows.ts'

afterEach(cleanUp)

const OUTPUT = lines('same', 60)
const call = { id: 'call_0', name: 'bash', args: { command: 'run it' }, output: OUTPUT }
const same: Step = { calls: [call] }
const other = (n: number): Step => ({ calls: [{ id: `other_${n}`, name: 'bash', args: { command: `run ${n}` }, output: lines(`other ${n}`, 60) }] })

/** The number of times that a request has the whole output. */
const whole = (sent: readonly string[]): number => sent.join('\n').split('same line 30:').length - 1

/** Plays prompts with other calls until what came before has collapsed; the cache is gone meanwhile. */
async function age(host: Host, from: number): Promise<string[]> {
  let sent: string[] = []
  for (let round = from; round < from + 14; round += 1) {
    if (round === from + 12) host.wait()
    await host.send({ user: `prompt ${round}` })
    sent = await host.send(other(round))
  }
  return sent
}

const PLACES = {
  adjacent: (count: number): Step[] => Array.from({ length: count }, () => same),
  apart: (count: number): Step[] => Array.from({ length: count }, (_, n): Step[] => [same, { text: `seen ${n}`, calls: [] }, { user: `again ${n}` }]).flat(),
  'in pairs': (count: number): Step[] =>
    Array.from({ length: count }, (_, n): Step[] => (n % 2 === 0 ? [same] : [same, { text: `seen ${n}`, calls: [] }, { user: `again ${n}` }])).flat(),
  'with others between': (count: number): Step[] => Array.from({ length: count }, (_, n): Step[] => [same, other(100 + n)]).flat(),
}

type Place = keyof typeof PLACES

describe.each(some(shapes, 3))('%s', (shape) => {
  // Each shape takes its own way into the record only at the start.
  const turn = shapes.indexOf(shape)

  describe.each(some(Object.keys(PLACES) as Place[], 1, turn))('%s', (place) => {
    const COUNTS = some([2, 3, 4, 5], 1, turn + Object.keys(PLACES).indexOf(place))

    async function played(count: number): Promise<{ host: Host; sent: string[] }> {
      const host = new Host(shape)
      await host.send({ user: 'begin' })
      for (const step of PLACES[place](count)) await host.send(step)
      const sent = await age(host, 0)
      expect(whole(sent), 'all of them have left').toBe(0)
      return { host, sent }
    }

    test.each(COUNTS)('%i of them stay out in a new process, and in another after it', async (count) => {
      const { host, sent } = await played(count)
      for (const _ of [1, 2]) {
        await host.restart()
        const now = await host.send({ text: 'yes', calls: [] }, { user: 'on' })
        expect(now.slice(0, sent.length)).toEqual(sent)
      }
      const ids = new Set([...sent.join('\n').matchAll(/id=([0-9a-f]{8})\b/g)].map(([, id]) => id as string))
      expect(await Promise.all([...ids].map((id) => host.content(id)))).toContain(OUTPUT)
    })

    test.each(COUNTS)('%i of them stay out for a host that goes back, with and without a new process', async (count) => {
      const { host, sent } = await played(count)
      for (const restarts of [false, true]) {
        if (restarts) await host.restart()
        host.steps.splice(-2)
        const kept = host.steps.flatMap((step) => written[shape](step, 1)).length
        const now = await host.send({ user: 'another prompt' })
        expect(kept).toBeGreaterThan(0)
        const at = now.findIndex((message) => message.includes('another prompt'))
        expect(now.slice(0, at)).toEqual(sent.slice(0, at))
        expect(whole(now)).toBe(0)
      }
    })

    test.each(COUNTS)('%i of them stay out in a fork', async (count) => {
      const { host, sent } = await played(count)
      await host.fork()
      const now = await host.send({ text: 'yes', calls: [] }, { user: 'on' })
      expect(now.slice(0, sent.length)).toEqual(sent)
    })

    test.each(COUNTS)('of %i, the one that comes last, after a roll, stays whole', async (count) => {
      const { host } = await played(count - 1)
      const before = await host.send({ user: 'once more' }, same)
      expect(whole(before)).toBe(1)
      const at = before.findIndex((message) => message.includes('same line 30:'))
      await host.restart()
      const now = await host.send({ text: 'yes', calls: [] }, { user: 'on' })
      expect(now.slice(0, before.length)).toEqual(before)
      expect(now[at]).toContain('same line 30:')
    })
  })

  test('two in one answer', async () => {
    const host = new Host(shape)
    await host.send({ user: 'begin' })
    await host.send({ calls: [call, call] })
    const sent = await age(host, 0)
    expect(whole(sent)).toBe(0)
    await host.restart()
    expect((await host.send({ text: 'yes', calls: [] }, { user: 'on' })).slice(0, sent.length)).toEqual(sent)
  })
})
