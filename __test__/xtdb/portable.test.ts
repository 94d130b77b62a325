/** A session that leaves the store of one machine for a database of many, where its files are not, and returns. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { inStore } from '../../lib/native/in-store.ts'
import { ContextManager } from '../../lib/index.ts'
import type { OpenOptions, StoreOptions } from '../../lib/index.ts'
import { cleanUp, onCleanUp, temporaryFolder } from '../../rig/pi.ts'
import { freshNode, tick, withoutXtdb } from '../../rig/xtdb.ts'

afterEach(cleanUp)

const missing = withoutXtdb('xtdb/portable: 1 test against a real XTDB was')

test.skipIf(missing)('paused on SQLite, resumed on XTDB without its files, and back', async () => {
  const folder = temporaryFolder('portable-')
  const node = await freshNode()
  const here: StoreOptions = { kind: 'sqlite', path: join(folder, 'here', 'context.db') }
  const there: StoreOptions = { kind: 'xtdb', url: node.url, journal: join(folder, 'there', 'journal.db') }
  const atHome: OpenOptions = { sessionId: 's1', cwd: folder, filesystemId: 'home', store: here, watch: false }
  // The same paths are other files on the other machine.
  const abroad: OpenOptions = { ...atHome, filesystemId: 'abroad', store: there }
  const write = (text: string): void => writeFileSync(join(folder, 'a.txt'), text)
  const open = async (options: OpenOptions): Promise<ContextManager> => {
    const manager = await ContextManager.open(options)
    onCleanUp(() => manager.close())
    return manager
  }

  // Something that is not part of the session, so that the transactions have other numbers elsewhere.
  await (await open({ ...atHome, sessionId: 's0' })).close()
  let manager = await open(atHome)
  await manager.setSystemPrompt('Be brief.')
  write('one')
  const { id } = await manager.indexFile('a.txt')
  write('two')
  await manager.indexFile('a.txt')
  await manager.appendTurn({ role: 'user', content: 'first' })
  await manager.recordToolcall({ id: 'c1', tool: 'bash', args: { n: 1 }, content: 'out 1', status: 'ok' })
  await manager.pin('c1')
  const [point, times, early] = [await manager.point(), await manager.pointTimes(), await manager.sessionSets()]
  // The clock advances first: the point must not have the time of later writes.
  tick(Math.max(...times.map((time) => Date.parse(time))))
  await manager.appendTurn({ role: 'user', content: 'second' })
  await manager.recordToolcall({ id: 'c2', tool: 'bash', args: { n: 2 }, content: 'out 2', status: 'fail' })
  await manager.unpin('c1')
  const [sets, view, turns] = [await manager.sessionSets(), await manager.assemble(), (await manager.get('chat:s1'))!['turn_count'] as number]
  await manager.pause()
  const file = join(folder, 'session.jsonl')
  await manager.exportSession(file)
  await manager.close()
  write('three')

  manager = await ContextManager.importSession(file, abroad)
  onCleanUp(() => manager.close())
  expect(await manager.storeState()).toMatchObject({ kind: 'xtdb', url: node.url, connected: true })
  expect(await manager.sessionSets()).toEqual(sets)
  expect((await manager.assemble()).chat).toEqual(view.chat)
  expect((await manager.assemble()).blocks).toEqual(view.blocks)
  // Orphaned: the last version stays, whatever lies at the path here.
  expect((await manager.get(id))!.content).toBe('two')
  expect((await manager.history(id)).map(({ document }) => document.content)).toEqual(['one', 'two'])
  const other = await manager.indexFile('a.txt')
  expect(other).toMatchObject({ action: 'created' })
  expect(other.id).not.toBe(id)
  // A point of the other store, by its time; its number means something else here, or nothing.
  await manager.restore('s1', point, times)
  expect((await manager.sessionSets()).pinnedSet).toEqual(early.pinnedSet)
  expect((await manager.get('chat:s1'))!['turn_count']).toBe(1)
  const never = ['2001-01-01T00:00:00.000Z', times[1]]
  await expect(manager.restore('s1', point, never)).rejects.toMatchObject({ code: 'UNKNOWN_OBJECT' })
  await manager.appendTurn({ role: 'user', content: 'abroad' })
  await manager.recordToolcall({ id: 'c3', tool: 'bash', args: {}, content: 'out 3', status: 'ok' })
  await manager.flush()
  expect(await manager.storeState()).toMatchObject({ queued: 0, connected: true })
  const moved = await manager.sessionSets()
  await manager.close()

  // Straight out of the database, as a machine without the journal does it.
  await inStore({ kind: 'xtdb', url: node.url }, (store) => store.export(file, 's1'))
  expect((await inStore(here, (store) => store.import(file))).written).toBeGreaterThan(0)
  expect((await inStore(here, (store) => store.import(file))).written).toBe(0)
  manager = await open(atHome)
  expect(await manager.sessionSets()).toEqual(moved)
  expect((await manager.get('chat:s1'))!['turn_count']).toBe(2)
  expect((await manager.get('c3'))!.content).toBe('out 3')
  expect((await manager.get(other.id))!.content).toBe('three')
  // The file is reachable again, and compared with what is known of it.
  expect((await manager.history(id)).map(({ document }) => document.content)).toEqual(['one', 'two', 'three'])
  const texts = (await manager.history('chat:s1')).map(({ document }) => (document['turns'] as unknown[]).length)
  expect(texts).toContain(turns)
  await manager.close()
  expect(await inStore(here, (store) => store.verify())).toEqual([])
  expect(await inStore({ kind: 'xtdb', url: node.url }, (store) => store.verify())).toEqual([])
})
