/** Sessions that move: exported here, imported there, under their own name or as a copy. */
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { inStore } from '../lib/cli/store.ts'
import { ContextManager } from '../lib/index.ts'
import type { StoreOptions } from '../lib/index.ts'
import { cleanUp, onCleanUp, temporaryFolder } from './rig/pi.ts'

afterEach(cleanUp)

async function open(folder: string, store: StoreOptions, sessionId = 's1'): Promise<ContextManager> {
  const manager = await ContextManager.open({ sessionId, cwd: folder, store, watch: false })
  onCleanUp(() => manager.close())
  return manager
}

async function fill(manager: ContextManager, folder: string): Promise<string> {
  await manager.setSystemPrompt('Be brief.')
  for (const text of ['one\n', 'two\n', 'one\n']) {
    writeFileSync(join(folder, 'a.txt'), text)
    await manager.indexFile('a.txt')
  }
  for (let turn = 0; turn < 3; turn += 1) {
    await manager.appendTurn({ role: 'user', content: `turn ${turn}` })
    await manager.recordToolcall({ id: `c${turn}`, tool: 'bash', args: { turn }, content: `out ${turn}`, status: 'ok' })
  }
  await manager.pin('c1')
  return (await manager.indexFile('a.txt')).id
}

test('an exported session is the same in another store', async () => {
  const folder = temporaryFolder('portable-')
  const here: StoreOptions = { kind: 'sqlite', path: join(folder, 'here', 'context.db') }
  const there: StoreOptions = { kind: 'sqlite', path: join(folder, 'there', 'context.db') }
  const original = await open(folder, here)
  const file = await fill(original, folder)
  const path = join(folder, 'session.jsonl')
  const written = await original.exportSession(path)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(written.objects).toBe(7)

  const moved = await ContextManager.importSession(path, { sessionId: 's1', cwd: folder, store: there, watch: false })
  onCleanUp(() => moved.close())
  expect(await moved.sessionSets()).toEqual(await original.sessionSets())
  expect((await moved.assemble()).text).toBe((await original.assemble()).text)
  const texts = (versions: { document: { content?: string | null }; validTime: string }[]) =>
    versions.map(({ document, validTime }) => [document.content, validTime])
  expect(texts(await moved.history(file))).toEqual(texts(await original.history(file)))
  expect((await moved.get('chat:s1'))?.content_hash).toBe((await original.get('chat:s1'))?.content_hash)
  await moved.close()
  expect(await inStore(there, (store) => store.verify())).toEqual([])
  expect((await inStore(there, (store) => store.import(path))).written).toBe(0)
})

test('under another ID an import is a copy that goes its own way', async () => {
  const folder = temporaryFolder('portable-')
  const store: StoreOptions = { kind: 'sqlite', path: join(folder, 'context.db') }
  const original = await open(folder, store)
  await fill(original, folder)
  const path = join(folder, 'session.jsonl')
  await original.exportSession(path)
  const before = await original.sessionSets()

  const copy = await ContextManager.importSession(path, { sessionId: 's2', cwd: folder, store, watch: false })
  onCleanUp(() => copy.close())
  expect(copy.sessionId).toBe('s2')
  expect(await copy.sessionSets()).toEqual(before)
  await copy.deactivate('c2')
  await copy.appendTurn({ role: 'user', content: 'another way' })
  expect(await original.sessionSets()).toEqual(before)
  expect((await original.get('chat:s1'))?.['turn_count']).toBe(3)
  expect((await copy.get('chat:s2'))?.['turn_count']).toBe(4)
})

test('a damaged export is refused and leaves the store as it was', async () => {
  const folder = temporaryFolder('portable-')
  const store: StoreOptions = { kind: 'sqlite', path: join(folder, 'context.db') }
  const original = await open(folder, store)
  await fill(original, folder)
  const path = join(folder, 'session.jsonl')
  await original.exportSession(path)
  const whole = readFileSync(path, 'utf8')
  const empty: StoreOptions = { kind: 'sqlite', path: join(folder, 'empty', 'context.db') }
  for (const broken of [whole.replace('out 1', 'out X'), whole.slice(0, -40), 'no export\n', '']) {
    writeFileSync(path, broken)
    await expect(inStore(empty, (store) => store.import(path))).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  }
  await expect(inStore(empty, (store) => store.import(join(folder, 'missing')))).rejects.toMatchObject({ code: 'IO' })
  await expect(inStore(empty, (store) => store.export(path, 's9'))).rejects.toMatchObject({ code: 'UNKNOWN_OBJECT' })
  const options = { sessionId: 's1', cwd: folder, store: empty, watch: false }
  await expect(ContextManager.importSession(path, options)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  const all = join(folder, 'all.jsonl')
  expect(await inStore(empty, (store) => store.export(all))).toEqual({ objects: 0, versions: 0, written: 0 })
})
