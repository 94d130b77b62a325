/** The events of a listener to the session's files. */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import type { ContextManager, WatchEvent } from '../lib/index.ts'
import { folder, opened, shown, sqlite, write } from './core/setup.ts'
import { cleanUp, deadline } from '../rig/cleanup.ts'

afterEach(cleanUp)

/** Listens, and waits for events. */
function listen(manager: ContextManager) {
  const events: WatchEvent[] = []
  const waiting = new Set<() => void>()
  const end = manager.watch((event) => {
    events.push(event)
    for (const look of waiting) look()
  })
  const heard = (action: WatchEvent['action'], id: string) => events.find((event) => event.action === action && event.id === id)
  const until = (action: WatchEvent['action'], id: string): Promise<WatchEvent> => {
    const arrived = new Promise<WatchEvent>((resolve) => {
      const look = () => {
        const event = heard(action, id)
        if (event === undefined) return
        waiting.delete(look)
        resolve(event)
      }
      waiting.add(look)
      look()
    })
    return deadline(arrived, 60_000, () => `no ${action} of ${id} in ${JSON.stringify(events)}`)
  }
  return { events, end, until }
}

async function tracked() {
  const cwd = folder()
  const manager = await opened({ cwd, store: sqlite(), watch: true })
  const path = write(cwd, 'dir/a', '1')
  const { id } = await manager.indexFile(path)
  return { cwd, manager, path, id }
}

test('a change, a deletion and a new beginning', async () => {
  const { manager, path, id } = await tracked()
  const { until, events } = listen(manager)
  writeFileSync(path, '2')
  expect(await until('updated', id)).toEqual({ id, path, action: 'updated' })
  events.length = 0
  rmSync(path)
  expect(await until('deleted', id)).toMatchObject({ path })
  events.length = 0
  writeFileSync(path, '3')
  await until('updated', id)
  await manager.flush()
  expect((await manager.get(id))?.content).toBe('3')
})

test('a touch is told before the file is read, and ends when it is asked to', async () => {
  const { manager, path, id } = await tracked()
  const heard: string[] = []
  const touched = new Promise<WatchEvent>((resolve) => {
    const end = manager.watchTouches((event) => {
      heard.push(event.action)
      end()
      resolve(event)
    })
  })
  const { until } = listen(manager)
  const updated = until('updated', id).then(() => heard.push('updated'))
  writeFileSync(path, '2')
  expect(await touched).toEqual({ id, path, action: 'touched' })
  await updated
  writeFileSync(path, '3')
  await manager.flush()
  expect(heard).toEqual(['touched', 'updated'])
})

test('unsubscribing stops only that listener', async () => {
  const { manager, path, id } = await tracked()
  const [one, two] = [listen(manager), listen(manager)]
  one.end()
  one.end()
  writeFileSync(path, '2')
  await two.until('updated', id)
  expect(one.events).toEqual([])
})

test('another client’s version is news', async () => {
  const [cwd, store] = [folder(), sqlite()]
  const one = await opened({ cwd, store, sessionId: 'one' })
  const two = await opened({ cwd, store, sessionId: 'two' })
  const { id } = await one.indexFile('inside', 'first')
  await two.indexFile('inside', 'first')
  const { until } = listen(two)
  await one.indexFile('inside', 'second')
  await two.appendTurn({ role: 'user', content: 'next' })
  expect(await until('updated', id)).toMatchObject({ path: shown(join(cwd, 'inside')) })
})

test('without watch a comparison finds the changes', async () => {
  const cwd = folder()
  const manager = await opened({ cwd, watch: false })
  const { id } = await manager.indexFile(write(cwd, 'a', '1'))
  const { id: other } = await manager.indexFile(write(cwd, 'b', '1'))
  expect(await manager.reconcile()).toEqual([])
  write(cwd, 'a', '2')
  rmSync(join(cwd, 'b'))
  const results = await manager.reconcile()
  expect(results.map(({ id, action }) => `${action} ${id}`).sort()).toEqual([`deleted ${other}`, `updated ${id}`])
  expect((await manager.get(id))?.content).toBe('2')
})
