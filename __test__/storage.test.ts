/** The document's class: constructor, saving, pointers, loading, lifecycle. */
import * as nodeFileSystem from 'node:fs/promises'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { describe, expect, expectTypeOf, test } from 'vitest'
import golden from '../fixtures/golden/outputs.json' with { type: 'json' }
import { canonical } from '../benches/storage/plain.ts'
import { ContextManager, type ContextPointer, type IFileSystem, type StorageOptions } from '../lib/storage/index.ts'
import { directory, memoryFileSystem } from './storage/setup.ts'

const NAME = /^[A-Za-z0-9_][A-Za-z0-9_-]*_[0-9a-f]{6}_\d{13}_\d+_[0-9a-z]{4}\.json$/

const fileSystems: [string, () => IFileSystem | undefined][] = [
  ['local files', () => undefined],
  ['node:fs/promises', () => nodeFileSystem],
  ['a file system in memory', memoryFileSystem],
]

describe.each(fileSystems)('with %s', (_, fileSystem) => {
  async function open(options: StorageOptions = {}) {
    const contextDir = await directory()
    const messages: { message: string; data: unknown }[] = []
    const onDebug = (message: string, data?: unknown) => messages.push({ message, data })
    const fs = fileSystem()
    const common: StorageOptions = { contextDir, onDebug, ...(fs && { fileSystem: fs }), ...options }
    const skipped = () => messages.filter(({ message }) => message === 'skipped a tool output').map(({ data }) => data)
    return { manager: new ContextManager(common), contextDir, messages, skipped, fs, common }
  }

  test('a save gives the path of a file in the stored format', async () => {
    const { manager, contextDir } = await open()
    const before = Date.now()
    const filepath = await manager.saveContext('readFile', { path: 'src/a.ts', line: 3 }, { text: 'x' }, 7, 'q1')
    expect(resolve(filepath, '..')).toBe(contextDir)
    expect(basename(filepath)).toMatch(NAME)
    const [context] = await manager.loadContexts([filepath])
    expect(context).toStrictEqual({
      toolName: 'readFile',
      toolDescription: 'read file src/a.ts',
      args: { path: 'src/a.ts', line: 3 },
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      taskId: 7,
      queryId: 'q1',
      result: { text: 'x' },
    })
    const saved = Date.parse(context!.timestamp)
    expect(saved).toBeGreaterThanOrEqual(before)
    expect(saved).toBeLessThanOrEqual(Date.now())
    expect(basename(filepath)).toContain(`_${saved}_0_`)
  })

  test('ids that are not given are in neither the file nor the pointer', async () => {
    const { manager } = await open()
    const filepath = await manager.saveContext('ls', {}, 1)
    const [context] = await manager.loadContexts([filepath])
    expect(Object.keys(context!)).toEqual(['toolName', 'toolDescription', 'args', 'timestamp', 'result'])
    expect(manager.getAllPointers()).toStrictEqual([{ filepath, filename: basename(filepath), toolName: 'ls', toolDescription: 'ls', args: {} }])
  })

  test('the name has the hash of the canonical arguments and counts the saves', async () => {
    const { manager } = await open()
    const a = await manager.saveContext('grep', { b: 1, a: { d: 2, c: [3] } }, 1)
    const b = await manager.saveContext('grep', { a: { c: [3], d: 2 }, b: 1 }, 1)
    const fields = (filepath: string) => basename(filepath, '.json').split('_')
    expect(fields(a)[1]).toBe(fields(b)[1])
    expect([fields(a)[3], fields(b)[3]]).toEqual(['0', '1'])
    for (const [text, hash] of golden.args as [string, string][]) {
      expect(fields(await manager.saveContext('t', JSON.parse(text), null))[1], text).toBe(hash)
    }
  })

  test('results of every JSON kind come back equal', async () => {
    const { manager } = await open()
    const results = [null, true, 0, -1.5, 1e21, '', 'é😀\u2028\0\ud800', [], [1, [2]], {}, { a: { b: null } }, undefined]
    const paths: string[] = []
    for (const result of results) paths.push(await manager.saveContext('t', {}, result))
    const loaded = await manager.loadContexts(paths)
    expect(loaded.map((context) => context.result)).toStrictEqual([...results.slice(0, -1), null])
  })

  test('all outputs go to the disk, whatever their size', async () => {
    const { manager, common } = await open({ persistThreshold: 1000, cacheBytes: 1e6 })
    const paths = [await manager.saveContext('t', {}, 'small'), await manager.saveContext('t', {}, 'x'.repeat(100_000))]
    const other = new ContextManager(common)
    expect((await other.loadContexts(paths)).map(({ result }) => (result as string).length)).toEqual([5, 100_000])
  })

  test('saves the values of the moment of the call', async () => {
    const { manager } = await open()
    const [args, result] = [{ path: 'before' }, { lines: ['before'] }]
    const saving = manager.saveContext('read', args, result)
    args.path = 'after'
    result.lines[0] = 'after'
    const [context] = await manager.loadContexts([await saving])
    expect([context!.args, context!.result]).toEqual([{ path: 'before' }, { lines: ['before'] }])
    expect(manager.getAllPointers()[0]!.args).toEqual({ path: 'before' })
  })

  test('pointers are in the order of the calls, and found by query and by task', async () => {
    const { manager } = await open()
    const queryId = ContextManager.hashQuery('why does the login fail?')
    const save = (n: number) => manager.saveContext('t', { n }, 'x'.repeat(n % 3 === 0 ? 300_000 : 3), n % 4, n % 2 ? queryId : 'other')
    const paths = await Promise.all(Array.from({ length: 24 }, (_, n) => save(n)))
    expect(manager.size).toBe(24)
    const pathsOf = (pointers: ContextPointer[]) => pointers.map((pointer) => pointer.filepath)
    expect(pathsOf(manager.getAllPointers())).toEqual(paths)
    expect(pathsOf(manager.getPointersForQuery(queryId))).toEqual(paths.filter((_, n) => n % 2))
    expect(pathsOf(manager.getPointersForTask(3))).toEqual(paths.filter((_, n) => n % 4 === 3))
    expect(manager.getPointersForQuery('none')).toEqual([])
    expect(manager.getPointersForTask(99)).toEqual([])
  })

  test("a caller's changes to what it was given do not reach the instance", async () => {
    const { manager } = await open()
    const filepath = await manager.saveContext('t', {}, { a: 1 })
    manager.getAllPointers().length = 0
    expect(manager.size).toBe(1)
    expect(() => Object.assign(manager.getAllPointers()[0]!, { toolName: 'u' })).toThrow(TypeError)
    const [first] = await manager.loadContexts([filepath])
    Object.assign(first!.result as object, { a: 2 })
    expect((await manager.loadContexts([filepath]))[0]!.result).toEqual({ a: 1 })
  })

  test('outputs are loaded in the order asked for, each as often as asked for', async () => {
    const { manager } = await open()
    const paths: string[] = []
    for (let n = 0; n < 5; n += 1) paths.push(await manager.saveContext('t', {}, n))
    const asked = [4, 0, 4, 2].map((n) => paths[n]!)
    expect((await manager.loadContexts(asked)).map(({ result }) => result)).toEqual([4, 0, 4, 2])
    expect(await manager.loadContexts([])).toEqual([])
  })

  test('missing, damaged and foreign files are skipped with a message, the others returned in order', async () => {
    const { manager, contextDir, skipped, fs } = await open()
    const paths: string[] = []
    for (let n = 0; n < 6; n += 1) paths.push(await manager.saveContext('t', {}, n))
    const text = fs ? await fs.readFile(paths[1]!, 'utf8') : await readFile(paths[1]!, 'utf8')
    const damage = async (path: string, damaged: string) => {
      await (fs ? fs.unlink(path) : rm(path))
      const write = { encoding: 'utf8', flag: 'wx', mode: 0o600, flush: false } as const
      await (fs ? fs.writeFile(path, damaged, write) : writeFile(path, damaged))
    }
    await damage(paths[1]!, text.slice(0, -3))
    await damage(paths[2]!, '{"toolName":"t"}')
    await (fs ? fs.unlink(paths[4]!) : rm(paths[4]!))
    const outside = ['/etc/passwd', join(contextDir, '..', 'other.json'), join(contextDir, 'sub', basename(paths[0]!)), '', join(contextDir, 'notes.json')]
    const loaded = await manager.loadContexts([paths[0]!, paths[1]!, ...outside, paths[2]!, paths[3]!, paths[4]!, paths[5]!])
    expect(loaded.map(({ result }) => result)).toEqual([0, 3, 5])
    expect(skipped()).toEqual([paths[1], ...outside, paths[2], paths[4]].map((filepath) => ({ filepath, reason: expect.stringMatching(/\w/) })))
  })

  test('a path that leads back into the directory is the file there', async () => {
    const { manager, contextDir } = await open()
    const filepath = await manager.saveContext('t', {}, 'found')
    const winding = `${contextDir}/sub/../${basename(filepath)}`
    expect((await manager.loadContexts([winding]))[0]?.result).toBe('found')
  })

  test('clearPointers forgets the pointers and keeps the files', async () => {
    const { manager } = await open()
    const filepath = await manager.saveContext('t', {}, 1)
    manager.clearPointers()
    expect([manager.size, manager.getAllPointers()]).toEqual([0, []])
    expect(await manager.loadContexts([filepath])).toHaveLength(1)
  })

  test('clearContextDir removes the files and keeps the pointers', async () => {
    const { manager, skipped } = await open({ cacheBytes: 1e6 })
    const filepath = await manager.saveContext('t', {}, 1)
    await manager.clearContextDir()
    expect(manager.size).toBe(1)
    expect(await manager.loadContexts([filepath])).toEqual([])
    expect(skipped()).toHaveLength(1)
    await manager.clearContextDir()
  })

  test('clear does both, waits for saves under way, and the instance continues', async () => {
    const { manager } = await open()
    const saving = Array.from({ length: 10 }, (_, n) => manager.saveContext('t', { n }, n))
    const cleared = manager.clear()
    const later = manager.saveContext('t', {}, 'later')
    const paths = await Promise.all(saving)
    await cleared
    expect(await manager.loadContexts(paths)).toEqual([])
    expect((await manager.loadContexts([await later]))[0]!.result).toBe('later')
    expect(manager.getAllPointers().map(({ filepath }) => filepath)).toEqual([await later])
  })

  test('a new instance starts without pointers; the files are still there', async () => {
    const { manager, common } = await open()
    const filepath = await manager.saveContext('t', {}, 'kept')
    const resumed = new ContextManager(common)
    expect([resumed.size, resumed.getAllPointers()]).toEqual([0, []])
    expect((await resumed.loadContexts([filepath]))[0]!.result).toBe('kept')
  })

  test('restorePointers brings the pointers back, once each and oldest first', async () => {
    const { manager, common, fs, skipped } = await open()
    for (let n = 0; n < 12; n += 1) await manager.saveContext('readFile', { path: `file ${n}` }, 'x'.repeat(9999), n, `q${n}`)
    const resumed = new ContextManager(common)
    expect(await resumed.restorePointers()).toBe(12)
    expect(resumed.getAllPointers()).toStrictEqual(manager.getAllPointers())
    expect(await resumed.restorePointers()).toBe(0)
    const late = resumed.saveContext('t', {}, 1)
    expect(await resumed.restorePointers()).toBe(0)
    await late
    expect(resumed.size).toBe(13)
    const damaged = manager.getAllPointers()[3]!.filepath
    await (fs ? fs.unlink(damaged) : rm(damaged))
    const write = { encoding: 'utf8', flag: 'wx', mode: 0o600, flush: false } as const
    await (fs ? fs.writeFile(damaged, '{"toolName":', write) : writeFile(damaged, '{"toolName":'))
    expect(await new ContextManager(common).restorePointers()).toBe(12)
    expect(skipped()).toEqual([{ filepath: damaged, reason: expect.stringMatching(/\w/) }])
    expect(resumed.selectRelevantContexts('file', resumed.getAllPointers())).toHaveLength(12)
  })

  test('bad input is refused with a code and changes nothing', async () => {
    const { manager } = await open()
    const cycle: Record<string, unknown> = {}
    cycle['self'] = cycle
    const deep: unknown = JSON.parse('{"a":'.repeat(200) + '1' + '}'.repeat(200))
    const bad: unknown[][] = [
      ['t', deep, 1],
      [1, {}, 1],
      ['t', null, 1],
      ['t', [], 1],
      ['t', undefined, 1],
      ['t', { n: 1n }, 1],
      ['t', cycle, 1],
      ['t', {}, cycle],
      ['t', {}, 1n],
      ['t', {}, 1, 'task'],
      ['t', {}, 1, Number.NaN],
      ['t', {}, 1, 1, 5],
    ]
    for (const input of bad) {
      const save = manager.saveContext(...(input as Parameters<ContextManager['saveContext']>))
      await expect(save).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(/must|pass/u) })
    }
    await expect(manager.loadContexts('x' as never)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    expect(manager.size).toBe(0)
    expect(await manager.restorePointers()).toBe(0)
    expect(basename(await manager.saveContext('t', {}, 1))).toMatch(/_1_[0-9a-z]{4}\.json$/)
    const [context] = await manager.loadContexts([await manager.saveContext('t', {}, deep)])
    expect(context!.result).toEqual(deep)
  })

  test('close is the end of saves and loads, and keeps the files', async () => {
    const { manager, common } = await open()
    const filepath = await manager.saveContext('t', {}, 1)
    await manager.close()
    await manager.close()
    const closed = { code: 'CLOSED' }
    await expect(manager.saveContext('t', {}, 1)).rejects.toMatchObject(closed)
    await expect(manager.loadContexts([filepath])).rejects.toMatchObject(closed)
    await expect(manager.restorePointers()).rejects.toMatchObject(closed)
    await expect(manager.clear()).rejects.toMatchObject(closed)
    await expect(manager.clearContextDir()).rejects.toMatchObject(closed)
    expect(await new ContextManager(common).loadContexts([filepath])).toHaveLength(1)
  })

  test("autoCleanup removes the instance's own files at its end, and no others", async () => {
    const { manager, common } = await open()
    const others = await manager.saveContext('t', {}, 'other')
    const session = new ContextManager({ ...common, autoCleanup: true })
    const saving = [session.saveContext('t', {}, 1), session.saveContext('t', {}, 2)]
    await session[Symbol.asyncDispose]()
    expect(session.size).toBe(0)
    const paths = await Promise.all(saving)
    expect((await manager.loadContexts([...paths, others])).map(({ result }) => result)).toEqual(['other'])
  })

  test('the cache spares reads below the threshold only, and is bounded by bytes', async () => {
    const { manager, fs } = await open({ cacheBytes: 5000, persistThreshold: 2000 })
    const remove = (path: string) => (fs ? fs.unlink(path) : rm(path))
    const [small, large] = [await manager.saveContext('t', {}, 'small'), await manager.saveContext('t', {}, 'x'.repeat(2000))]
    await remove(small)
    await remove(large)
    expect((await manager.loadContexts([small, large])).map(({ result }) => result)).toEqual(['small'])
    // Four outputs of some 1,300 bytes each do not fit into 5,000 with it: the one used last stays.
    const paths: string[] = []
    for (let n = 0; n < 4; n += 1) {
      paths.push(await manager.saveContext('t', { n }, `${n}`.repeat(1200)))
      await remove(paths[n]!)
      expect(await manager.loadContexts([small])).toHaveLength(1)
    }
    expect((await manager.loadContexts(paths)).map(({ args }) => args['n'])).toEqual([1, 2, 3])
    await manager.clearContextDir()
    expect(await manager.loadContexts([small, ...paths])).toEqual([])
  })

  test('a value read once is cached', async () => {
    const { manager, common, fs } = await open()
    const filepath = await manager.saveContext('t', {}, 'read')
    const reader = new ContextManager({ ...common, cacheBytes: 1e6 })
    await reader.loadContexts([filepath])
    await (fs ? fs.unlink(filepath) : rm(filepath))
    expect((await reader.loadContexts([filepath]))[0]!.result).toBe('read')
    expect(await manager.loadContexts([filepath])).toEqual([])
  })
})

test('the default directory is ~/.agent/context, and paths become absolute', () => {
  expect(new ContextManager().getContextDir()).toBe(join(homedir(), '.agent', 'context'))
  expect(new ContextManager({ contextDir: '~/x' }).getContextDir()).toBe(join(homedir(), 'x'))
  expect(new ContextManager({ contextDir: 'some/dir/' }).getContextDir()).toBe(resolve('some/dir'))
  expect(new ContextManager({ contextDir: '/~a' }).getContextDir()).toBe('/~a')
})

test('constructing and looking touch nothing', async () => {
  const parent = await directory()
  const manager = new ContextManager({ contextDir: join(parent, 'later') })
  expect(await manager.loadContexts([join(parent, 'later', 'x.json')])).toEqual([])
  expect(await manager.restorePointers()).toBe(0)
  await manager.clear()
  await manager.close()
  expect(await readdir(parent)).toEqual([])
})

test('hashQuery matches the golden vectors', () => {
  for (const [query, hash] of golden.queries as [string, string][]) expect(ContextManager.hashQuery(query)).toBe(hash)
  expect(() => ContextManager.hashQuery(1 as never)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
  expect(canonical({ b: 1, a: ['é'] })).toBe('{"a":["é"],"b":1}')
})

test.each([
  ['readFile', { path: 'src/a.ts' }, 'read file src/a.ts'],
  ['search_code', { query: 'login error', limit: 5, deep: { not: 'this' } }, 'search code login error'],
  ['HTTPGet-v2', {}, 'http get v2'],
  ['', { a: 'only' }, 'only'],
  ['write', { path: 'a', content: 'x'.repeat(500) }, `write a ${'x'.repeat(200)}`],
  ['write', { content: `${'x'.repeat(199)}😀` }, `write ${'x'.repeat(199)}`],
])('%s %j is described as its words and its string arguments', async (toolName, args, description) => {
  const manager = new ContextManager({ contextDir: '/c', fileSystem: memoryFileSystem() })
  await manager.saveContext(toolName, args, null)
  expect(manager.getAllPointers()[0]!.toolDescription).toBe(description)
})

test("the caller's description is used, and the default one where it fails", async () => {
  const messages: string[] = []
  const described: unknown[] = []
  const manager = new ContextManager({
    contextDir: '/c',
    fileSystem: memoryFileSystem(),
    onDebug: (message) => messages.push(message),
    describe: (toolName, args) => {
      described.push([toolName, args])
      if (args['fail']) throw new Error('no words')
      return `about ${toolName}`
    },
  })
  await manager.saveContext('ls', { a: 1 }, null)
  await manager.saveContext('ls', { fail: 'now' }, null)
  expect(described).toEqual([
    ['ls', { a: 1 }],
    ['ls', { fail: 'now' }],
  ])
  expect(manager.getAllPointers().map(({ toolDescription }) => toolDescription)).toEqual(['about ls', 'ls now'])
  expect(messages.filter((message) => message.startsWith('describe failed'))).toHaveLength(1)
})

test('a throwing debug listener fails no call', async () => {
  const onDebug = () => {
    throw new Error('full disk of the logger')
  }
  const manager = new ContextManager({ contextDir: '/c', fileSystem: memoryFileSystem(), onDebug })
  const filepath = await manager.saveContext('t', {}, 1)
  expect(await manager.loadContexts([filepath, '/nowhere'])).toHaveLength(1)
})

test.each<[string, StorageOptions]>([
  ['contextDir', { contextDir: '' }],
  ['contextDir', { contextDir: 'a\0b' }],
  ['contextDir', { contextDir: 1 as never }],
  ['persistThreshold', { persistThreshold: -1 }],
  ['cacheBytes', { cacheBytes: Number.NaN }],
  ['rankerTimeoutMs', { rankerTimeoutMs: '1' as never }],
  ['durability', { durability: 'never' as never }],
  ['ranker', { ranker: {} as never }],
])('a wrong %s is refused: %j', (name, options) => {
  const refusal = expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(name) })
  expect(() => new ContextManager(options)).toThrow(refusal)
})

test('the types are those of the document', () => {
  expectTypeOf(nodeFileSystem).toExtend<IFileSystem>()
  expectTypeOf<ContextManager['getContextDir']>().returns.toEqualTypeOf<string>()
  expectTypeOf<ContextManager['size']>().toEqualTypeOf<number>()
  expectTypeOf<ContextManager['saveContext']>().toEqualTypeOf<
    (toolName: string, args: Record<string, unknown>, result: unknown, taskId?: number, queryId?: string) => Promise<string>
  >()
  expectTypeOf<ContextManager['selectRelevantContexts']>().returns.toEqualTypeOf<string[]>()
  expectTypeOf<ContextManager['clear']>().returns.toEqualTypeOf<Promise<void>>()
})
