/** The bridge between the storage class and the toolcall objects of the main store. */
import { writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { ContextManager, indexContextDir, storeFileSystem, type ToolcallStore } from '../lib/storage.ts'
import { directory } from './storage/setup.ts'

type Call = Parameters<ToolcallStore['recordToolcall']>[0]

/** The rules of toolcall objects in a few lines: written once, an equal one is the same, another gets another ID. */
class Toolcalls implements ToolcallStore {
  readonly objects = new Map<string, Call>()

  async recordToolcall(call: Call): Promise<string> {
    const known = this.objects.get(call.id)
    const id = known === undefined || JSON.stringify(known) === JSON.stringify(call) ? call.id : `${call.id}~2`
    this.objects.set(id, call)
    return id
  }

  async get(id: string) {
    return this.objects.get(id) ?? null
  }

  async query() {
    return [...this.objects].map(([id, call]) => ({ 'xt/id': id, type: 'toolcall', ...call }))
  }
}

let store: Toolcalls
beforeEach(() => {
  store = new Toolcalls()
})

describe('a directory as toolcall objects', () => {
  test('each file is one object with the tool, the arguments and the result', async () => {
    const contextDir = await directory()
    const manager = new ContextManager({ contextDir })
    const text = await manager.saveContext('read', { path: 'a.ts' }, 'the text\n', 1, 'q')
    const object = await manager.saveContext('search', { query: 'x' }, { matches: [1, 2] })
    const outcome = await indexContextDir(store, contextDir)
    const ids = [text, object].map((path) => basename(path, '.json'))
    expect(outcome).toEqual({ indexed: [{ filepath: text, id: ids[0] }, { filepath: object, id: ids[1] }], skipped: [] })
    expect([...store.objects.values()]).toEqual([
      { id: ids[0], tool: 'read', args: { path: 'a.ts' }, content: 'the text\n', status: 'ok' },
      { id: ids[1], tool: 'search', args: { query: 'x' }, content: '{"matches":[1,2]}', status: 'ok' },
    ])
  })

  test('indexing again adds only what is new, and says what it skips', async () => {
    const contextDir = await directory()
    const manager = new ContextManager({ contextDir })
    for (let n = 0; n < 70; n += 1) await manager.saveContext('t', { n }, n)
    const damaged = manager.getAllPointers()[5]!.filepath
    await writeFile(damaged, '{"toolName":')
    await writeFile(join(contextDir, 'notes.json'), '{}')
    const first = await indexContextDir(store, contextDir)
    expect(first.indexed).toHaveLength(69)
    expect(first.skipped).toEqual([{ filepath: damaged, reason: expect.stringMatching(/\w/) }])
    await manager.saveContext('t', {}, 'new')
    expect((await indexContextDir(store, contextDir)).indexed).toHaveLength(70)
    expect(store.objects.size).toBe(70)
  })

  test('a directory that is none, and one that does not exist', async () => {
    const contextDir = await directory()
    await writeFile(join(contextDir, 'file'), '')
    await expect(indexContextDir(store, join(contextDir, 'file'))).rejects.toMatchObject({ code: 'IO' })
    await expect(indexContextDir(store, '')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    expect(await indexContextDir(store, join(contextDir, 'none'))).toEqual({ indexed: [], skipped: [] })
  })
})

describe('the main store as the file system', () => {
  const open = () => new ContextManager({ contextDir: '/outputs', fileSystem: storeFileSystem(store) })

  test('outputs are toolcall objects, and another instance on the store reads and restores them', async () => {
    const manager = open()
    const paths: string[] = []
    for (let n = 0; n < 5; n += 1) paths.push(await manager.saveContext('readFile', { path: `${n}.ts` }, { n }, n, 'q'))
    expect([...store.objects.keys()]).toEqual(paths)
    expect(store.objects.get(paths[2]!)).toMatchObject({ tool: 'readFile', args: { path: '2.ts' }, status: 'ok' })
    const other = open()
    expect(await other.restorePointers()).toBe(5)
    expect(other.getAllPointers()).toStrictEqual(manager.getAllPointers())
    expect((await other.loadContexts(paths.toReversed())).map(({ result }) => result)).toEqual([4, 3, 2, 1, 0].map((n) => ({ n })))
  })

  test('cleared outputs stay hidden, also from later instances, and the history stays', async () => {
    const manager = open()
    const paths = [await manager.saveContext('t', {}, 1), await manager.saveContext('t', {}, 2)]
    await store.recordToolcall({ id: 'call_1', tool: 'bash', args: {}, content: 'of the session', status: 'ok' })
    await manager.clear()
    expect(await open().loadContexts(paths)).toEqual([])
    expect(await open().restorePointers()).toBe(0)
    expect(store.objects.get(paths[0]!)?.content).toContain('"result":1')
    await manager.clear()
    const filepath = await manager.saveContext('t', {}, 3)
    expect((await open().loadContexts([filepath])).map(({ result }) => result)).toEqual([3])
    expect(store.objects.has('call_1')).toBe(true)
  })

  test('two directories of one store do not see each other', async () => {
    const [a, b] = ['/a', '/b'].map((contextDir) => new ContextManager({ contextDir, fileSystem: storeFileSystem(store) }))
    await a!.saveContext('t', {}, 1)
    const kept = await b!.saveContext('t', {}, 2)
    await a!.clear()
    expect((await b!.loadContexts([kept])).map(({ result }) => result)).toEqual([2])
  })

  test('it keeps the codes of a file system', async () => {
    const fs = storeFileSystem(store)
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
