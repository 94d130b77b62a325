/** A large output is cut when it is new, also within a turn in which nothing that was sent may change. */
import { afterEach, expect, test } from 'vitest'
import { Projection } from '../lib/projection/harness.ts'
import { folder, opened } from './core/setup.ts'
import { shapes, written } from './hosts/conversation.ts'
import type { Call, Step } from './hosts/conversation.ts'
import { cleanUp } from '../rig/cleanup.ts'

afterEach(cleanUp)

const MODEL = { name: 'm', contextWindow: 200_000, input: 3, cacheRead: 0.3, cacheWrite: 3.75 }
const lines = (name: string, count: number): string => Array.from({ length: count }, (_, n) => `${name} line ${n}: lorem ipsum dolor sit amet`).join('\n')
const one = (id: string, count: number): Call => ({ id, name: 'bash', args: { command: id }, output: lines(id, count) })
const call = (id: string, count: number): Step => ({ calls: [one(id, count)] })

test.each(shapes)('%s', async (shape) => {
  const manager = await opened({ cwd: folder() })
  let canRecall = true
  const projection = new Projection(manager, {
    shape,
    model: MODEL,
    shortens: true,
    canRecall: () => canRecall,
    onWarning: (warning) => expect.unreachable(warning),
  })
  const messages: object[] = []
  const send = async (...steps: Step[]): Promise<string> => {
    messages.push(...steps.flatMap((step) => written[shape](step, 1)))
    return JSON.stringify(await projection.transform(messages))
  }
  await send({ user: 'begin' })
  await send(call('small', 3))
  const first = await send(call('large', 1_500))
  expect(first).toContain('large line 0:')
  expect(first).not.toContain('large line 700:')
  const [id] = /(?<=id=)[0-9a-f]{8}/.exec(first) ?? []
  expect((await manager.get(id!))?.content).toBe(lines('large', 1_500))
  // Two in one answer, one of them large.
  const second = await send({ calls: [one('tiny', 2), one('huge', 2_000)] })
  expect(second).toContain('tiny line 1:')
  expect(second).not.toContain('huge line 1000:')
  expect(second.startsWith(first.slice(0, -1)), 'nothing that was sent has changed').toBe(true)
  // Without the tool that brings them back, outputs go out whole.
  canRecall = false
  expect(await send(call('whole', 1_500))).toContain('whole line 700:')
})
