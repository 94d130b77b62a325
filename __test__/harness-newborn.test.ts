/** A large output is cut when it is new, also within a turn in which nothing that was sent may change. */
import { afterEach, expect, test } from 'vitest'
import { shapes } from './hosts/conversation.ts'
import type { Call, Step } from './hosts/conversation.ts'
import { lines } from './hosts/processes.ts'
import { Host } from './hosts/restarted.ts'
import { cleanUp } from '../rig/cleanup.ts'

afterEach(cleanUp)

const one = (id: string, count: number): Call => ({ id, name: 'bash', args: { command: id }, output: lines(id, count) })
const call = (id: string, count: number): Step => ({ calls: [one(id, count)] })

test.each(shapes)('%s', async (shape) => {
  const host = new Host(shape)
  await host.send({ user: 'begin' })
  await host.send(call('small', 3))
  const first = await host.send(call('large', 1_500))
  expect(first.join()).toContain('large line 0:')
  expect(first.join()).not.toContain('large line 700:')
  const [id] = /(?<=id=)[0-9a-f]{8}/.exec(first.join()) ?? []
  expect(await host.content(id!)).toBe(lines('large', 1_500))
  // Two in one answer, one of them large.
  const second = await host.send({ calls: [one('tiny', 2), one('huge', 2_000)] })
  expect(second.join()).toContain('tiny line 1:')
  expect(second.join()).not.toContain('huge line 1000:')
  expect(second.slice(0, first.length), 'nothing that was sent has changed').toEqual(first)
  // Without the tool that brings them back, outputs go out whole.
  host.canRecall = false
  expect((await host.send(call('whole', 1_500))).join()).toContain('whole line 700:')
})
