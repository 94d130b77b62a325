/**
 * Each ID and marker in each request of a host on the library brings back the original bytes by our tool, output and arguments: in
 * the conversation, in a new process, after going back, and in forks of both kinds.
 */
import { afterEach, expect, test } from 'vitest'
import { recallTexts } from '../lib/projection/index.ts'
import { Projection } from '../lib/projection/harness.ts'
import { ContextManager } from '../lib/index.ts'
import { cleanUp } from '../rig/cleanup.ts'
import { FILESYSTEM, folder, sqlite } from './core/setup.ts'
import { beginning, checkNamed, longCall, shapes, written } from './hosts/conversation.ts'
import type { Step } from './hosts/conversation.ts'

afterEach(cleanUp)

const MODEL = { name: 'm', contextWindow: 60_000, input: 3, cacheRead: 0.3, cacheWrite: 3.75 }

test.each(shapes)('%s', async (shape) => {
  const [cwd, store] = [folder(), sqlite()]
  let now = Date.UTC(2026, 0, 1)
  let named = 0
  const open = async (sessionId: string): Promise<{ manager: ContextManager; projection: Projection }> => {
    const manager = await ContextManager.open({ sessionId, cwd, store, filesystemId: FILESYSTEM, watch: false, stay: { weight: 0.3 } })
    return { manager, projection: new Projection(manager, { shape, model: MODEL, shortens: true, now: () => now }) }
  }
  const send = async ({ manager, projection }: Awaited<ReturnType<typeof open>>, steps: readonly Step[]): Promise<void> => {
    now += 1_000
    const sent = JSON.stringify(await projection.transform(steps.flatMap((step) => written[shape](step, 1))))
    named += await checkNamed(sent, steps, (id) => recallTexts(manager, { id }))
  }
  let first = await open('first')
  const steps: Step[] = []
  for (let n = 0; n < 20; n += 1) {
    if (n % 4 === 0) {
      // Behind a pause the cache is dead, so that everything old leaves.
      now += 3_600_000
      steps.push(...(n === 0 ? [] : [{ text: `answer ${n}`, calls: [] }]), { user: `prompt ${n}` })
      await send(first, steps)
    }
    steps.push(longCall(n))
    await send(first, steps)
  }
  expect(named).toBeGreaterThan(0)
  const point = await first.manager.point()
  for (const isRestarted of [false, true]) {
    if (isRestarted) {
      await first.manager.close()
      first = await open('first')
    }
    for (const share of [0.8, 0.45]) {
      const fork = beginning(steps, share)
      for (const kind of ['back', 'fork', 'messages'] as const) {
        const session = kind === 'back' ? first : await open(`${kind} ${share} ${isRestarted}`)
        if (kind === 'fork') await session.manager.restore('first', point)
        const before = named
        await send(session, [...fork, { user: 'one' }])
        await send(session, [...fork, { user: 'one' }, { text: 'ok', calls: [] }, { user: 'two' }])
        now += 3_600_000
        await send(session, [...fork, { user: 'one' }, { text: 'ok', calls: [] }, { user: 'two' }, { text: 'ok', calls: [] }, { user: 'three' }])
        expect(named, `${kind}, ${share}, ${isRestarted}`).toBeGreaterThan(before)
        if (kind !== 'back') await session.manager.close()
      }
    }
  }
  await first.manager.close()
})
