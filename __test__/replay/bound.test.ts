/** Requests that a provider would refuse that binds reasoning to everything before it. */
import { describe, expect, test } from 'vitest'
import { textBlock } from '../../lib/recordings/blocks.ts'
import type { ReplayBlock } from '../../lib/recordings/blocks.ts'
import { BoundReasoning } from '../../lib/replay/bound-reasoning.ts'
import { openRecording } from '../../lib/recordings/open.ts'
import { replaySession } from '../../lib/replay/run.ts'
import { survey } from '../../lib/replay/survey.ts'
import { fixture, options } from './support.ts'

const text = (name: string): ReplayBlock => textBlock(name, 'user', name)
const thought = (name: string): ReplayBlock => ({ bytes: `thought ${name}`, units: 10, label: 'thinking', texts: [], thinking: name, key: name })

/** A conversation of three answers, each with reasoning: what is sent with the fourth request. */
const TALK = [
  text('system'),
  text('one'),
  thought('a'),
  text('call a'),
  text('result a'),
  thought('b'),
  text('call b'),
  text('result b'),
  thought('c'),
  text('done'),
]

/** Sends the conversation as it grows, and then what has become of it. Returns how many requests are refused. */
function refused(...later: ReplayBlock[][]): number {
  const check = new BoundReasoning()
  for (const [from, to] of [
    [2, 4],
    [5, 7],
    [8, 10],
  ] as const) {
    check.send(TALK.slice(0, from))
    check.answered(TALK.slice(from, to))
  }
  for (const blocks of later) check.send(blocks)
  return check.refused
}
const without = (...places: number[]): ReplayBlock[] => TALK.filter((_, place) => !places.includes(place))
const changed = (place: number, blocks = TALK): ReplayBlock[] => blocks.map((block, at) => (at === place ? text('short') : block))

test.each<[string, ReplayBlock[], number]>([
  ['as it was', TALK, 0],
  ['with more at its end', [...TALK, text('more')], 0],
  ['a changed result before reasoning', changed(4), 1],
  ['a changed text after all reasoning', changed(9), 0],
  ['without the first reasoning', without(2), 0],
  ['without the first two', without(2, 5), 0],
  ['without the last', without(8), 0],
  ['without any, and with a changed result', changed(4).filter(({ thinking }) => thinking === undefined), 0],
  ['without one in the middle', without(5), 1],
  ['with a changed result and only the reasoning before it', changed(4).filter(({ key }) => key !== 'b' && key !== 'c'), 0],
  ['with a text between', [...TALK.slice(0, 4), text('inserted'), ...TALK.slice(4)], 1],
])('%s', (_, blocks, count) => expect(refused(blocks)).toBe(count))

test('each request with reasoning that does not fit is one', () => {
  expect(refused(changed(4), TALK, changed(7))).toBe(2)
})

describe('a recorded session', () => {
  const replayed = async (binding: 'none' | 'refuses') => {
    const recording = await openRecording(fixture('claude-code.jsonl'))
    const manager = { ...options().manager, binding, open: { stay: { debtCap: 'none' as const, weight: 0.3 } } }
    const { policies } = await replaySession(recording, await survey(recording, () => {}), options({ policies: ['append', 'pi-context-manager'], manager }))
    return policies
  }

  test('is refused after a roll where nothing is known of its binding, and never where it is', async () => {
    const [none, refuses] = [await replayed('none'), await replayed('refuses')]
    expect([none.append?.refused, refuses.append?.refused]).toEqual([0, 0])
    expect(none['pi-context-manager']?.rolls).toBeGreaterThan(0)
    expect(none['pi-context-manager']?.refused).toBeGreaterThan(0)
    expect(refuses['pi-context-manager']).toMatchObject({ refused: 0, reasoningLostRunning: 0 })
  })
})
