/** The class as a TypeScript harness uses it. */
import { readFileSync, rmSync, statSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { ContextManager, defaultStorePath } from '../lib/index.ts'
import type { IndexResult, StoreOptions, Version } from '../lib/index.ts'
import { shortName } from '../lib/ui/names.ts'
import { expectedHashes, FILESYSTEM, folder, modelCall, opened, sha256, shown, sqlite, write } from './core/setup.ts'
import { cleanUp } from '../rig/cleanup.ts'

afterEach(cleanUp)

const stores: [string, () => StoreOptions][] = [
  ['memory', () => ({ kind: 'memory' })],
  ['sqlite', sqlite],
]

const call = (id: string, content: string) => ({ id, tool: 'custom', args: {}, content, status: 'ok' as const })

describe.each(stores)('on %s', (kind, store) => {
  test('received and imported calls settle, and a plan has its point', async () => {
    const manager = await opened({ cwd: folder(), store: { ...store(), ...(kind === 'sqlite' && { durability: 'power' }) } })
    await manager.settle()
    for (const n of [1, 2]) {
      const { id } = await manager.receive(call(`c${n}`, `output ${n}`))
      const plan = await manager.advance([{ key: `${n}`, message: { role: 'user', content: `${n}` } }], modelCall)
      expect([plan.point, plan.pointTimes]).toEqual([await manager.point(), await manager.pointTimes()])
      await Promise.all([manager.settle(), manager.settle()])
      expect((await manager.get(id))?.content).toBe(`output ${n}`)
    }
  })

  test('a file is indexed, read again, changed and deleted', async () => {
    const cwd = folder()
    const manager = await opened({ cwd, store: store() })
    const path = write(cwd, 'src/a.ts', 'one')
    const first: IndexResult = await manager.indexFile('src/a.ts')
    expect(first).toMatchObject({ action: 'created', id: expect.stringMatching(/^[0-9a-f]{64}$/) })
    expect(await manager.indexFile(path)).toMatchObject({ action: 'unchanged', id: first.id })
    expect(await manager.indexFile(path, 'two')).toMatchObject({ action: 'updated' })
    expect(await manager.indexFile(path, Buffer.from([0, 1]))).toMatchObject({
      action: 'updated',
      reason: expect.stringContaining('NUL'),
    })
    expect(await manager.indexWritten(path)).toMatchObject({ action: 'updated' })
    rmSync(path)
    expect(await manager.indexFileDeletion(path)).toMatchObject({ action: 'deleted' })

    const history: Version[] = await manager.history(first.id)
    expect(history.map((version) => version.document.content)).toEqual(['one', 'two', null, 'one', null])
    for (const { document, txTime, validTime } of history) {
      expect(document).toMatchObject({ 'xt/id': first.id, type: 'file', file_type: 'ts', ...expectedHashes(document) })
      expect(document.source).toEqual({ type: 'filesystem', filesystemId: FILESYSTEM, path })
      expect(new Date(txTime).toISOString()).toBe(txTime)
      expect(new Date(validTime).toISOString()).toBe(validTime)
    }
    expect(history[2]!.document.source_hash).toBe(sha256(Buffer.from([0, 1])))
    const numbers = history.map((version) => version.txId)
    expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b))
  })

  test('versions as of a time, of a transaction, and the difference of two', async () => {
    const cwd = folder()
    const manager = await opened({ cwd, store: store() })
    const before = new Date(Date.now() - 60_000).toISOString()
    const { id } = await manager.indexFile('a', 'alpha\nbeta\n')
    await manager.indexFile('a', 'alpha\ngamma\n')
    const [one, two] = (await manager.history(id)).map((version) => version.txId)
    const content = async (at: Parameters<typeof manager.getAsOf>[1]) => (await manager.getAsOf(id, at))?.content
    expect(await content({ txId: one! })).toBe('alpha\nbeta\n')
    expect(await content({ txId: two! })).toBe('alpha\ngamma\n')
    for (const at of [new Date().toISOString(), { txTime: new Date().toISOString() }, {}]) {
      expect(await content(at), 'right after the writes').toBe('alpha\ngamma\n')
    }
    expect(await content(before)).toBeUndefined()
    expect(await content({ txTime: before })).toBeUndefined()
    expect(await manager.diff(id, one!, two!)).toContain('-beta\n+gamma\n')
    expect(await manager.diff(id, two!, two!)).toBe('')
    // A transaction that is still to come, or is older than the object, is none, however the object is named.
    for (const name of [id, shortName(id)]) {
      expect(await manager.diff(name, one!, two!)).toContain('+gamma\n')
      for (const [from, to] of [
        [one!, two! + 1_000],
        [two! + 1, two!],
        [0, two!],
        [one!, Number.MAX_SAFE_INTEGER],
      ] as const) {
        await expect(manager.diff(name, from, to), `${from} to ${to}`).rejects.toMatchObject({ code: 'UNKNOWN_OBJECT' })
      }
    }
  })

  test('many files at once', async () => {
    const cwd = folder()
    const manager = await opened({ cwd, store: store() })
    for (const name of ['a.md', 'b.md']) write(cwd, name, `text of ${name}`)
    const { indexed, refused } = await manager.indexFiles(['a.md', 'none.md', 'b.md', 'a\0'])
    const ids = indexed.map(({ id }) => id)
    expect(indexed.map(({ action }) => action)).toEqual(['created', 'created'])
    expect(refused).toEqual([
      { path: 'none.md', code: 'IO', message: expect.stringContaining('does not exist') },
      { path: 'a\0', code: 'INVALID_ARGUMENT', message: expect.any(String) },
    ])
    const sets = await manager.sessionSets()
    expect([...sets.metadataPool].sort()).toEqual([...ids].sort())
    expect(sets.activeSet).toEqual([])
    expect((await manager.get(ids[1]!))!.content).toBe('text of b.md')
    expect(await manager.indexFiles([])).toEqual({ indexed: [], refused: [] })
  })

  test('discovery, levels and pins', async () => {
    const cwd = folder()
    const manager = await opened({ cwd, store: store() })
    write(cwd, 'found', 'hidden')
    const [found] = await manager.discover(['found'])
    const id = found!.id
    expect(found!.action).toBe('created')
    expect(await manager.sessionSets()).toEqual({ sessionIndex: [id], metadataPool: [id], activeSet: [], pinnedSet: [] })
    expect(await manager.activate(id)).toMatchObject({ ok: true, id, content: 'hidden' })
    expect(await manager.activate(id, { lines: [1, 1] })).toMatchObject({ ok: true, content: 'hidden' })
    expect(await manager.pin(id)).toMatchObject({ ok: true })
    expect(await manager.sessionSets()).toEqual({
      sessionIndex: [id],
      metadataPool: [id],
      activeSet: [id],
      pinnedSet: [id],
    })
    expect(await manager.unpin(id)).toMatchObject({ ok: true })
    expect(await manager.deactivate(id)).toMatchObject({ ok: true })
    expect(await manager.demote(id)).toMatchObject({ ok: true })
    expect(await manager.sessionSets()).toEqual({ sessionIndex: [id], metadataPool: [], activeSet: [], pinnedSet: [] })
    expect(await manager.promote(id)).toMatchObject({ ok: true })
    expect((await manager.sessionSets()).metadataPool).toEqual([id])
  })

  test('the canonical view, byte for byte', async () => {
    const cwd = folder()
    const manager = await opened({ cwd, store: store(), systemPrompt: 'You help.' })
    await manager.appendTurn({ role: 'user', content: 'Look at a.' })
    const path = write(cwd, 'a.md', 'text of a')
    const { id } = await manager.indexFile(path)
    await manager.appendTurn({
      role: 'assistant',
      content: [
        { type: 'text', text: 'I look.' },
        { type: 'toolCall', id: 'call_1', name: 'custom', arguments: { deep: [1, null] } },
      ],
      model: 'm',
    })
    await manager.recordToolcall(call('call_1', 'output'))
    const reference = 'toolcall_ref id=call_1 tool=custom status=ok'
    const pool = `id=${id} type=file path=${path} file_type=md char_count=9\nid=call_1 type=toolcall tool=custom status=ok`
    const active = `ACTIVE_CONTENT id=${id}\ntext of a\n\nACTIVE_CONTENT id=call_1\noutput`
    const view = await manager.assemble()
    expect(view).toMatchObject({ systemPrompt: 'You help.', metadataPool: pool, activeContent: active })
    expect(view.text).toBe(
      `You help.\n\n${pool}\n\nuser: Look at a.\n\nassistant: I look.\n` +
        `tool_call id=call_1 tool=custom args={"deep":[1,null]}\n\n${reference}\n\n${active}`,
    )
    expect(view.chat).toEqual([
      { role: 'user', content: 'Look at a.' },
      { role: 'assistant', content: expect.any(Array) },
      {
        role: 'toolResult',
        toolCallId: 'call_1',
        toolName: 'custom',
        content: [{ type: 'text', text: reference }],
        isError: false,
      },
    ])
    expect(await manager.assemble()).toEqual(view)
    const figures = await manager.stats()
    expect(figures).toMatchObject({ objects: 2, rolls: 0, activeTokens: Math.ceil(9 / 4) + Math.ceil(6 / 4) })
    expect(figures.contextTokens).toBe(Math.ceil(view.text.length / 4))
  })

  test('questions to the whole store', async () => {
    const cwd = folder()
    const manager = await opened({ cwd, store: store() })
    const { id } = await manager.indexFile('dir/a.txt', 'the needle is here\n')
    await manager.indexFile('dir/a.txt', 'gone')
    await manager.indexFile('other', 'x')
    await manager.recordToolcall(call('c', 'a needle too'))
    const ids = (documents: { 'xt/id': string }[]) => documents.map((document) => document['xt/id'])
    expect(ids(await manager.query({ type: 'toolcall' }))).toEqual(['c'])
    expect(ids(await manager.query({ pathPrefix: 'dir' }))).toEqual([id])
    expect(ids(await manager.query({ pathPrefix: 'di' }))).toEqual([])
    expect(ids(await manager.query({ type: 'session' }))).toEqual(['session:s'])
    expect(await manager.query({ since: new Date(Date.now() + 60_000).toISOString() })).toEqual([])
    expect(ids(await manager.query({ sessionId: 'absent' }))).toEqual([])
    const hits = await manager.search('needle')
    expect(hits.map((hit) => hit.id).sort()).toEqual(['c', id].sort())
    expect(hits[0]).toMatchObject({ line: 1, snippet: expect.stringContaining('needle'), score: expect.any(Number) })
    expect(await manager.search('needle', { type: 'file', limit: 1 })).toHaveLength(1)
    const [own] = await manager.search('needle', { sessionId: 's', type: 'toolcall' })
    expect(own).toMatchObject({ id: 'c', type: 'toolcall', tool: expect.any(String), isLatest: true })
    expect((await manager.activate(own!.handle!)).id).toBe('c')
    expect(await manager.search('needle', { sessionId: 'absent' })).toEqual([])
    expect(await manager.get('absent')).toBeNull()
    expect(await manager.history('absent')).toEqual([])
  })

  test('a harness sends the result of transformContext', async () => {
    const manager = await opened({ cwd: folder(), store: store() })
    const messages = [
      { role: 'user', content: 'Hello', timestamp: 1 },
      { role: 'assistant', content: [{ type: 'toolCall', id: 'c', name: 'custom', arguments: {} }], timestamp: 2 },
      { role: 'toolResult', toolCallId: 'c', toolName: 'custom', content: [{ type: 'text', text: 'out' }], isError: false, timestamp: 3 },
    ]
    const copy = structuredClone(messages)
    const sent = await manager.transformContext(messages)
    expect(messages, 'the harness keeps its own').toEqual(copy)
    expect(sent).toHaveLength(3)
    expect((await manager.get('c'))?.content).toBe('out')
    const longer = await manager.transformContext([...messages, { role: 'user', content: 'Thanks', timestamp: 4 }])
    expect(longer.slice(0, 3), 'a request extends the last one').toEqual(sent)
  })
})

test('a step to another branch, and a fork', async () => {
  const [cwd, store] = [folder(), sqlite()]
  const manager = await opened({ cwd, store, sessionId: 'parent' })
  await manager.appendTurn({ role: 'user', content: 'first' })
  await manager.recordToolcall(call('a', 'a'))
  const [point, view] = [await manager.point(), await manager.assemble()]
  await manager.appendTurn({ role: 'user', content: 'second' })
  await manager.recordToolcall(call('b', 'b'))
  await manager.restore('parent', point)
  expect(await manager.assemble()).toEqual(view)
  expect((await manager.sessionSets()).sessionIndex).toEqual(['a', 'b'])
  const fork = await opened({ cwd, store, sessionId: 'fork' })
  await fork.restore('parent', point)
  expect((await fork.assemble()).text).toBe(view.text)
  expect((await fork.get('chat:fork'))?.['session_ref']).toBe('session:fork')
})

test('an export never replaces the store that it is made of', async () => {
  const [cwd, store] = [folder(), sqlite()]
  const manager = await opened({ cwd, store, sessionId: 'kept' })
  await manager.recordToolcall(call('c', 'out'))
  for (const path of [store.path, `${store.path}-wal`, `${store.path}-journal`]) {
    await expect(manager.exportSession(path)).rejects.toMatchObject({ code: 'IO', message: expect.stringContaining('name another file') as unknown })
  }
  await manager.close()
  await using again = await opened({ cwd, store, sessionId: 'kept' })
  expect((await again.get('c'))?.content).toBe('out')
})

test('a session moves to another store as a file', async () => {
  const cwd = folder()
  const manager = await opened({ cwd, sessionId: 'moved' })
  await manager.appendTurn({ role: 'user', content: 'Hello' })
  const { id } = await manager.indexFile(write(cwd, 'a', 'one'))
  await manager.indexFile(write(cwd, 'a', 'two'))
  await manager.recordToolcall(call('c', 'out'))
  const file = join(cwd, 'session.jsonl')
  expect(await manager.exportSession(file)).toMatchObject({ objects: 5 })
  if (process.platform !== 'win32') expect(statSync(file).mode & 0o777).toBe(0o600)
  for (const sessionId of ['moved', 'copied']) {
    const options = { sessionId, cwd, store: sqlite(), filesystemId: FILESYSTEM, watch: false }
    await using imported = await ContextManager.importSession(file, options)
    expect(imported.sessionId).toBe(sessionId)
    expect((await imported.assemble()).text).toBe((await manager.assemble()).text)
    const contents = async (from: ContextManager) => (await from.history(id)).map(({ document }) => document)
    expect(await contents(imported)).toEqual(await contents(manager))
    // From here on it goes its own way.
    await imported.appendTurn({ role: 'user', content: 'another way' })
    expect([await manager.get('chat:moved'), await imported.get(`chat:${sessionId}`)]).toMatchObject([{ turn_count: 1 }, { turn_count: 2 }])
  }
  write(cwd, 'session.jsonl', readFileSync(file, 'utf8').replace('"out"', '"OUT"'))
  const options = { sessionId: 'moved', cwd, store: sqlite(), watch: false }
  await expect(ContextManager.importSession(file, options)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  await expect(ContextManager.importSession(join(cwd, 'missing'), options)).rejects.toMatchObject({ code: 'IO' })
})

test('a sandboxed agent has its own paths', async () => {
  const cwd = folder()
  write(cwd, 'src/a.ts', 'x')
  const manager = await opened({
    cwd: '/workspace',
    mounts: [{ agentPrefix: '/workspace', canonicalPrefix: cwd, filesystemId: FILESYSTEM }],
  })
  const { id } = await manager.indexFile('src/a.ts')
  expect((await manager.get(id))?.source).toMatchObject({ filesystemId: FILESYSTEM, path: shown(join(cwd, 'src/a.ts')) })
  expect((await manager.assemble()).metadataPool).toContain(' path=/workspace/src/a.ts ')
})

test('the default store is in the user’s data directory', () => {
  const before = process.env['XDG_DATA_HOME']
  try {
    process.env['XDG_DATA_HOME'] = '/data'
    expect(defaultStorePath()).toBe(join('/data', 'pi-context-manager', 'context.db'))
    process.env['XDG_DATA_HOME'] = 'relative is not allowed'
    expect(isAbsolute(defaultStorePath())).toBe(true)
    expect(shown(defaultStorePath())).toMatch(/\/pi-context-manager\/context\.db$/)
  } finally {
    if (before === undefined) delete process.env['XDG_DATA_HOME']
    else process.env['XDG_DATA_HOME'] = before
  }
})

test('the types that ship are those of the native module', () => {
  const types = readFileSync(new URL('../index.d.ts', import.meta.url), 'utf8')
  const methods = [...types.matchAll(/^ {2}(?:static )?(\w+)\(/gm)].map((match) => match[1]!)
  const known = Object.getOwnPropertyNames(ContextManager.prototype)
  for (const name of ['open', 'importSession', 'constructor']) expect(known.includes(name)).toBe(name === 'constructor')
  const begin = types.indexOf('export declare class ContextManager')
  const own = [...types.slice(begin, types.indexOf('\n}\n', begin)).matchAll(/^ {2}(\w+)\(/gm)]
  for (const match of own) expect(match[1]! in ContextManager.prototype, match[1]).toBe(true)
  expect(methods.length).toBeGreaterThan(30)
})
