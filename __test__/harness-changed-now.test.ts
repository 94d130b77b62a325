/** A file that changes on disk right before a model call is told with that call, with real trackers. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Projection } from '../lib/projection/harness.ts'
import { folder, opened, sqlite, write } from './core/setup.ts'
import { cleanUp } from '../rig/cleanup.ts'
import { written } from './hosts/conversation.ts'

// A request waits for the look at the disk for a limited time, so that a hung disk does not hold it up. A busy machine may need longer: here
// no time passes, and each request waits until the look is over.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))

afterEach(async () => {
  vi.useRealTimers()
  await cleanUp()
})

const CHANGES = 20

test.each([
  ['a prompt', (n: number) => ({ user: `prompt ${n}` })],
  ['a result', (n: number) => ({ calls: [{ id: `run_${n}`, name: 'bash', args: { command: `true ${n}` }, output: `done ${n}` }] })],
])('%s tells of a change that another program made just before it', async (_name, step) => {
  const cwd = folder()
  const manager = await opened({ cwd, store: sqlite(), watch: true })
  const projection = new Projection(manager, {
    shape: 'openai-chat',
    model: { name: 'm', contextWindow: 200_000, input: 3, cacheRead: 0.3, cacheWrite: 3.75 },
    onWarning: (warning) => expect.unreachable(warning),
  })
  write(cwd, 'a.txt', 'text 0\n')
  const messages: object[] = written['openai-chat']({ user: 'read it' }, 1)
  messages.push(...written['openai-chat']({ calls: [{ id: 'read', name: 'read', args: { path: 'a.txt' }, output: 'text 0\n' }] }, 1))
  await projection.transform(messages)
  const counts: number[] = []
  for (let n = 1; n <= CHANGES; n += 1) {
    messages.push(...written['openai-chat'](step(n), 1))
    write(cwd, 'a.txt', `text ${n}\n`)
    const sent = JSON.stringify(await projection.transform(messages))
    counts.push(sent.match(/stale id=/g)?.length ?? 0)
  }
  expect(counts).toEqual(Array.from({ length: CHANGES }, (_, n) => n + 1))
})
