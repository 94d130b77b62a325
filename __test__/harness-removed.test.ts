/**
 * A host that changes a message and removes the newest ones, in one process or in the next: what has left a request stays out, is
 * recorded once, and what the host has changed is sent as it is now.
 */
import { afterEach, describe, expect, test } from 'vitest'
import { shapes, written } from './hosts/conversation.ts'
import type { Step } from './hosts/conversation.ts'
import { LastingHost, lengthOf } from './hosts/lasting.ts'
import { cleanUp } from '../rig/cleanup.ts'
import { some } from './rows.ts'

afterEach(cleanUp)

const ROUNDS = 10
/** Requests grow by less than this where nothing that has left returns: an output has ten times as much. */
const SMALL = 800

type Change = (steps: Step[]) => void

const first: Change = (steps) => void (steps[0] = { user: 'begin, on another day' })
const middle: Change = (steps) => void (steps[11] = { text: 'CHANGED', calls: [] })
const inserted: Change = (steps) => void steps.splice(6, 0, { user: 'INSERTED' })
const removed: Change = (steps) => void steps.splice(3, 1)
const back =
  (count: number): Change =>
  (steps) =>
    void steps.splice(-count)

/** The events between two requests. A name is a change of the conversation or a restart. */
const HAPPENINGS: Record<string, (Change | 'request' | 'restart')[]> = {
  'the first prompt, and one step back': [first, back(1)],
  'the first prompt, and four steps back': [first, back(4)],
  'an answer, and two steps back': [middle, back(2)],
  'two messages, and five steps back': [first, middle, back(5)],
  'a prompt more, and two steps back': [inserted, back(2)],
  'a step less, and two steps back': [removed, back(2)],
  'the same after a restart': ['restart', first, back(2)],
  'an answer after a restart': ['restart', middle, back(5)],
  'a change, then a step back': [first, 'request', back(2)],
  'a change, a restart, a step back': [middle, 'request', 'restart', back(2)],
  'a restart between two steps back': [back(2), 'restart', first, back(2)],
}

describe.each(shapes)('%s', (shape) => {
  test.each(some(Object.entries(HAPPENINGS), 3, shapes.indexOf(shape)))('%s', async (_, happenings) => {
    const steps: Step[] = [{ user: 'begin' }]
    const host = new LastingHost(shape)
    const send = (): Promise<object[]> => {
      host.messages.splice(0, Infinity, ...steps.flatMap((step) => written[shape](step, 1)))
      return host.send()
    }
    await send()
    for (let n = 0; n < ROUNDS; n += 1) {
      const output = `output ${n}\n${'a line of some output\n'.repeat(400)}`
      steps.push({ text: `say ${n}`, calls: [{ id: `c${n}`, name: 'bash', args: { command: `run ${n}` }, output }] })
      await send()
      steps.push({ text: `answer ${n}`, calls: [] }, { user: `prompt ${n}` })
      await send()
    }
    const before = lengthOf(await send())
    expect(before).toBeLessThan(lengthOf(host.messages) / 4)
    for (const one of happenings) {
      if (one === 'restart') await host.restart()
      else if (one === 'request') await send()
      else one(steps)
    }
    const sent = await send()
    expect(lengthOf(sent)).toBeLessThan(before + SMALL)
    for (const words of ['on another day', 'CHANGED', 'INSERTED']) expect(JSON.stringify(sent).includes(words)).toBe(JSON.stringify(steps).includes(words))
    // The next request continues that one.
    steps.push({ user: 'next' })
    const next = await send()
    expect(next.slice(0, sent.length)).toEqual(sent)
    for (let n = 0; n < ROUNDS - 3; n += 1) expect(await host.outputs(`c${n}`)).toHaveLength(1)
  })
})
