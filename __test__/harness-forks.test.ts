/** A fork that goes back before its own beginning continues in the form that was sent last, in its process and in a later one. */
import { afterEach, describe, expect, test } from 'vitest'
import { Projection } from '../lib/projection/harness.ts'
import { ContextManager } from '../lib/index.ts'
import { FILESYSTEM, folder, sqlite } from './core/setup.ts'
import { shapes, written } from './hosts/conversation.ts'
import type { Step } from './hosts/conversation.ts'
import { cleanUp, onCleanUp } from '../rig/cleanup.ts'
import { some } from './rows.ts'

afterEach(cleanUp)

const MODEL = { name: 'm', contextWindow: 200_000, input: 3, cacheRead: 0.3, cacheWrite: 3.75 }
const lines = (name: string, count: number): string => Array.from({ length: count }, (_, n) => `${name} line ${n}: lorem ipsum dolor sit amet`).join('\n')

describe.each(some(shapes, 2))('%s', (shape) => {
  async function conversation() {
    const [cwd, store] = [folder(), sqlite()]
    const steps: Step[] = []
    let now = Date.UTC(2026, 0, 1)
    let session = 0
    let open: { manager: ContextManager; projection: Projection }
    const start = async (): Promise<void> => {
      const manager = await ContextManager.open({ sessionId: `s${session}`, cwd, store, filesystemId: FILESYSTEM, watch: false })
      onCleanUp(() => manager.close())
      open = {
        manager,
        projection: new Projection(manager, { shape, model: MODEL, shortens: true, now: () => now, onWarning: (warning) => expect.unreachable(warning) }),
      }
    }
    const send = async (...added: Step[]): Promise<string[]> => {
      steps.push(...added)
      now += 1_000
      return (await open.projection.transform(steps.flatMap((step) => written[shape](step, 1)))).map((message) => JSON.stringify(message))
    }
    await start()
    let sent: string[] = []
    for (let round = 0; round < 20; round += 1) {
      if (round === 16) now += 3_600_000
      await send({ user: `prompt ${round}` })
      sent = await send({ calls: [{ id: `call_${round}`, name: 'bash', args: { command: `run ${round}` }, output: lines(`output ${round}`, 60) }] })
    }
    expect(sent.join('\n')).not.toContain('output 3 line 30')
    return {
      steps,
      send,
      sent,
      restart: async (): Promise<void> => {
        await open.manager.close()
        await start()
      },
      /** A session that takes over the state of the last one. */
      fork: async (): Promise<void> => {
        const { manager } = open
        const [parent, point] = [manager.sessionId, await manager.point()]
        await manager.close()
        session += 1
        await start()
        await open.manager.restore(parent, point)
      },
    }
  }
  type Conversation = Awaited<ReturnType<typeof conversation>>

  const FORKS: [string, (one: Conversation) => Promise<void>][] = [
    ['a fork', (one) => one.fork()],
    [
      'a fork in a later process',
      async (one) => {
        await one.fork()
        await one.send({ text: 'yes', calls: [] }, { user: 'in the fork' })
        await one.restart()
      },
    ],
    [
      'a fork of a fork',
      async (one) => {
        await one.fork()
        await one.send({ text: 'yes', calls: [] }, { user: 'in the fork' })
        await one.fork()
      },
    ],
  ]

  test.each(FORKS)('%s', async (_, begin) => {
    const one = await conversation()
    await begin(one)
    await one.send({ text: 'yes', calls: [] }, { user: 'on' })
    one.steps.length = 30
    const now = await one.send({ user: 'another prompt' })
    const at = now.findIndex((message) => message.includes('another prompt'))
    expect(at).toBeGreaterThan(10)
    expect(now.slice(0, at)).toEqual(one.sent.slice(0, at))
    expect(now.join('\n')).not.toContain('output 3 line 30')
    // It continues from there, also in a further process.
    const then = await one.send({ text: 'yes', calls: [] }, { user: 'on' })
    await one.restart()
    expect((await one.send({ text: 'yes', calls: [] }, { user: 'and on' })).slice(0, then.length)).toEqual(then)
  })
})
