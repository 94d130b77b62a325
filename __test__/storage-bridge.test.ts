/** The bridge between the storage class and the toolcall objects of the main store. */
import { writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { ContextManager as Session } from '../lib/index.ts'
import { ContextManager, indexContextDir, storeFileSystem } from '../lib/storage/index.ts'
import { directory } from './storage/setup.ts'

/** A session of the main entry, on an SQLite file of the directory. */
async function session(dir: string, sessionId = 's1'): Promise<Session> {
  const store = { kind: 'sqlite', path: join(dir, 'store.db') } as const
  const opened = await Session.open({ sessionId, cwd: dir, store, watch: false })
  onTestFinished(async () => void (await opened.close()))
  return opened
}

describe('a directory as toolcall objects', () => {
  test('each file is one object with the tool, the arguments and the result', async () => {
    const contextDir = await directory()
    const manager = new ContextManager({ contextDir })
    const text = await manager.saveContext('read', { path: 'a.ts' }, 'the text\n', 1, 'q')
    const object = await manager.saveContext('search', { query: 'x' }, { matches: [1, 2] })
    const store = await session(await directory())
    const outcome = await indexContextDir(store, contextDir)
    const ids = [text, object].map((path) => basename(path, '.json'))
    expect(outcome).toEqual({
      indexed: [
        { filepath: text, id: ids[0] },
        { filepath: object, id: ids[1] },
      ],
      skipped: [],
    })
    expect(await store.get(ids[0]!)).toMatchObject({ type: 'toolcall', tool: 'read', args: { path: 'a.ts' }, content: 'the text\n', status: 'ok' })
    expect(await store.get(ids[1]!)).toMatchObject({ type: 'toolcall', tool: 'search', args: { query: 'x' }, content: '{"matches":[1,2]}', status: 'ok' })
    expect(await store.sessionSets()).toMatchObject({ sessionIndex: ids, metadataPool: ids, activeSet: [] })
  })

  test('indexing again adds only new entries, and names the ones it skips', async () => {
    const contextDir = await directory()
    const manager = new ContextManager({ contextDir })
    for (let n = 0; n < 70; n += 1) await manager.saveContext('t', { n }, n)
    const damaged = manager.getAllPointers()[5]!.filepath
    await writeFile(damaged, '{"toolName":')
    await writeFile(join(contextDir, 'notes.json'), '{}')
    const store = await session(await directory())
    const first = await indexContextDir(store, contextDir)
    expect(first.indexed).toHaveLength(69)
    expect(first.skipped).toEqual([{ filepath: damaged, reason: expect.stringMatching(/\w/) }])
    const { id } = first.indexed[0]!
    expect(await store.activate(id)).toMatchObject({ ok: true })
    const filepath = await manager.saveContext('t', {}, 'new')
    const again = await indexContextDir(store, contextDir)
    expect(again.indexed).toEqual([{ filepath, id: basename(filepath, '.json') }])
    expect(await store.query({ type: 'toolcall' })).toHaveLength(70)
    expect((await store.sessionSets()).activeSet).toEqual([id])
  })

  test('each session has a separate object for an output', async () => {
    const contextDir = await directory()
    const dir = await directory()
    await new ContextManager({ contextDir }).saveContext('t', {}, 'shared')
    const [one, two] = [await session(dir, 'one'), await session(dir, 'two')]
    const indexed = [...(await indexContextDir(one, contextDir)).indexed, ...(await indexContextDir(two, contextDir)).indexed]
    expect(new Set(indexed).size).toBe(2)
    expect(await one.query({ type: 'toolcall' })).toHaveLength(2)
    expect((await two.sessionSets()).metadataPool).toHaveLength(1)
  })

  test('a directory that is none, and one that does not exist', async () => {
    const contextDir = await directory()
    const store = await session(contextDir)
    await writeFile(join(contextDir, 'file'), '')
    await expect(indexContextDir(store, join(contextDir, 'file'))).rejects.toMatchObject({ code: 'IO' })
    await expect(indexContextDir(store, '')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    expect(await indexContextDir(store, join(contextDir, 'none'))).toEqual({ indexed: [], skipped: [] })
  })
})

describe('the main store as the file system', () => {
  const open = (store: Session) => new ContextManager({ contextDir: '/outputs', fileSystem: storeFileSystem(store) })

  test('outputs are toolcall objects, and another instance on the store reads and restores them', async () => {
    const dir = await directory()
    const store = await session(dir)
    const manager = open(store)
    const paths: string[] = []
    for (let n = 0; n < 5; n += 1) paths.push(await manager.saveContext('readFile', { path: `${n}.ts` }, { n }, n, 'q'))
    expect(await store.sessionSets()).toMatchObject({ metadataPool: paths, activeSet: [] })
    expect(await store.get(paths[2]!)).toMatchObject({ tool: 'readFile', args: { path: '2.ts' }, status: 'ok' })
    const other = open(await session(dir, 'another'))
    expect(await other.restorePointers()).toBe(5)
    expect(other.getAllPointers()).toStrictEqual(manager.getAllPointers())
    expect((await other.loadContexts(paths.toReversed())).map(({ result }) => result)).toEqual([4, 3, 2, 1, 0].map((n) => ({ n })))
  })

  test('cleared outputs stay hidden, also from later instances, and the history stays', async () => {
    const dir = await directory()
    const store = await session(dir)
    const manager = open(store)
    const paths = [await manager.saveContext('t', {}, 1), await manager.saveContext('t', {}, 2)]
    await store.recordToolcall({ id: 'call_1', tool: 'bash', args: {}, content: 'of the session', status: 'ok' })
    await manager.clear()
    const another = open(await session(dir, 'another'))
    expect(await another.loadContexts(paths)).toEqual([])
    expect(await another.restorePointers()).toBe(0)
    expect((await store.sessionSets()).metadataPool).toEqual(['call_1'])
    expect((await store.get(paths[0]!))?.content).toContain('"result":1')
    await manager.clear()
    const filepath = await manager.saveContext('t', {}, 3)
    expect((await open(store).loadContexts([filepath])).map(({ result }) => result)).toEqual([3])
    expect((await store.get('call_1'))?.content).toBe('of the session')
  })

  test('two directories of one store do not see each other', async () => {
    const store = await session(await directory())
    const [a, b] = ['/a', '/b'].map((contextDir) => new ContextManager({ contextDir, fileSystem: storeFileSystem(store) }))
    await a!.saveContext('t', {}, 1)
    const kept = await b!.saveContext('t', {}, 2)
    await a!.clear()
    expect((await b!.loadContexts([kept])).map(({ result }) => result)).toEqual([2])
  })

  test('it keeps the codes of a file system', async () => {
    const fs = storeFileSystem(await session(await directory()))
    const write = { encoding: 'utf8', flag: 'wx', mode: 0o600, flush: true } as const
    const missing = { code: 'ENOENT' }
    await expect(fs.readFile('/o/x', 'utf8')).rejects.toMatchObject(missing)
    await expect(fs.stat('/o/x')).rejects.toMatchObject(missing)
    await expect(fs.unlink('/o/x')).rejects.toMatchObject(missing)
    await expect(fs.rename('/o/x', '/o/y')).rejects.toMatchObject(missing)
    const text = JSON.stringify({ toolName: 't', toolDescription: 't', args: {}, timestamp: 'now', result: 1 })
    await fs.writeFile('/o/.x.tmp', text, write)
    await expect(fs.writeFile('/o/.x.tmp', text, write)).rejects.toMatchObject({ code: 'EEXIST' })
    await fs.rename('/o/.x.tmp', '/o/x')
    await expect(fs.writeFile('/o/x', text, write)).rejects.toMatchObject({ code: 'EEXIST' })
    expect([await fs.readFile('/o/x', 'utf8'), (await fs.stat('/o/x')).isFile()]).toEqual([text, true])
    await fs.unlink('/o/x')
    await expect(fs.readFile('/o/x', 'utf8')).rejects.toMatchObject(missing)
    await fs.writeFile('/o/.x.tmp', text, write)
    await expect(fs.rename('/o/.x.tmp', '/o/x')).rejects.toMatchObject({ code: 'EEXIST' })
    await fs.unlink('/o/.x.tmp')
    await fs.writeFile('/o/.z.tmp', 'no JSON', write)
    await expect(fs.rename('/o/.z.tmp', '/o/z')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  })
})
