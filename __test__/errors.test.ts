/** Each error by its code, wrong arguments of every kind, and the page that explains the codes. */
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ContextManager, Projection } from '../lib/index.ts'
import { ContextManager as OutputFiles } from '../lib/storage/index.ts'
import type { ErrorCode } from '../lib/index.ts'
import { folder, NO_FILESYSTEM_IDS, opened, outcome, sqlite } from './core/setup.ts'
import { cleanUp } from '../rig/cleanup.ts'

afterEach(cleanUp)

const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8')

/** The codes of the type `ErrorCode`. */
function declared(): string[] {
  const union = /export type ErrorCode =([\s\S]*?)\n\n/.exec(read('../index.d.ts'))![1]!
  return [...union.matchAll(/'([A-Z_]+)'/g)].map((match) => match[1]!)
}

test('every code is explained, and no other', () => {
  const explained = [...read('../docs/errors.md').matchAll(/^## `([A-Z_]+)`$/gm)].map((match) => match[1]!)
  expect(explained).toEqual(declared())
  expect(declared().length).toBeGreaterThan(10)
})

/** A session with a file and a call in it. */
async function session() {
  const cwd = folder()
  const manager = await opened({ cwd })
  const { id } = await manager.indexFile('file', 'text')
  await manager.recordToolcall({ id: 'call', tool: 't', args: {}, content: 'text', status: 'ok' })
  return { cwd, manager, id }
}

/** Returns the state that a refused call must not change. */
async function state(manager: ContextManager) {
  const [sets, view, point] = [await manager.sessionSets(), await manager.assemble(), await manager.point()]
  return { sets, view, point }
}

const call = { id: 'c', tool: 't', args: {}, content: '', status: 'ok' }
const cyclic: { self?: unknown } = {}
cyclic.self = cyclic
const deep = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels))

// Calls as JavaScript can make them, whatever the types say.
const wrong: [string, (manager: any, id: string) => unknown][] = [
  ['indexFile without a path', (m) => m.indexFile()],
  ['indexFile of a number', (m) => m.indexFile(5)],
  ['indexFile of null', (m) => m.indexFile(null)],
  ['indexFile of an empty path', (m) => m.indexFile('')],
  ['indexFile of a path with NUL', (m) => m.indexFile('a\0b')],
  ['indexFile of a path without end', (m) => m.indexFile('a/'.repeat(5000))],
  ['indexFile with an object as content', (m) => m.indexFile('a', {})],
  ['indexFile with a number as content', (m) => m.indexFile('a', 5)],
  ['indexFile with an ArrayBuffer', (m) => m.indexFile('a', new ArrayBuffer(3))],
  ['indexWritten of an array', (m) => m.indexWritten(['a'])],
  ['indexFileDeletion without a path', (m) => m.indexFileDeletion()],
  ['discover of a text', (m) => m.discover('a')],
  ['discover of numbers', (m) => m.discover([1])],
  ['discover with one impossible path', (m) => m.discover(['a', ''])],
  ['recordToolcall of nothing', (m) => m.recordToolcall()],
  ['recordToolcall of a text', (m) => m.recordToolcall('call')],
  ['recordToolcall without a tool', (m) => m.recordToolcall({ ...call, tool: undefined })],
  ['recordToolcall with an empty tool', (m) => m.recordToolcall({ ...call, tool: '' })],
  ['recordToolcall with a list as arguments', (m) => m.recordToolcall({ ...call, args: [] })],
  ['recordToolcall with a text as arguments', (m) => m.recordToolcall({ ...call, args: 'x' })],
  ['recordToolcall with null as arguments', (m) => m.recordToolcall({ ...call, args: null })],
  ['recordToolcall with NaN in its arguments', (m) => m.recordToolcall({ ...call, args: { a: NaN } })],
  ['recordToolcall with a function in its arguments', (m) => m.recordToolcall({ ...call, args: { a() {} } })],
  ['recordToolcall with a symbol in its arguments', (m) => m.recordToolcall({ ...call, args: { a: Symbol('a') } })],
  ['recordToolcall with cyclic arguments', (m) => m.recordToolcall({ ...call, args: cyclic })],
  ['recordToolcall with arguments too deep to store', (m) => m.recordToolcall({ ...call, args: { a: deep(101) } })],
  ['recordToolcall with arguments deeper than the stack', (m) => m.recordToolcall({ ...call, args: { a: deep(7000) } })],
  [
    'recordToolcall with a getter that throws',
    (m) =>
      m.recordToolcall({
        ...call,
        get args() {
          throw new Error('a getter')
        },
      }),
  ],
  ['recordToolcall with another status', (m) => m.recordToolcall({ ...call, status: 'maybe' })],
  ['recordToolcall without content', (m) => m.recordToolcall({ ...call, content: undefined })],
  ['recordToolcall with a text as references', (m) => m.recordToolcall({ ...call, fileRefs: 'a' })],
  ['appendTurn of nothing', (m) => m.appendTurn()],
  ['appendTurn of a text', (m) => m.appendTurn('Hello')],
  ['appendTurn of a result', (m) => m.appendTurn({ role: 'toolResult', content: [] })],
  ['appendTurn of a number', (m) => m.appendTurn({ role: 'user', content: 5 })],
  ['appendTurn without content', (m) => m.appendTurn({ role: 'assistant' })],
  ['appendTurn of a cyclic message', (m) => m.appendTurn({ role: 'user', content: cyclic })],
  ['appendTurn of a message too deep to store', (m) => m.appendTurn({ role: 'user', content: deep(101) })],
  ['setSystemPrompt of nothing', (m) => m.setSystemPrompt()],
  ['activate of a number', (m) => m.activate(1)],
  ['activate with one line number', (m, id) => m.activate(id, { lines: [1] })],
  ['activate with half a line', (m, id) => m.activate(id, { lines: [1.5, 2] })],
  ['activate with a negative line', (m, id) => m.activate(id, { lines: [-1, 2] })],
  ['activate with lines and a text', (m, id) => m.activate(id, { lines: [1, 1], grep: 'x' })],
  ['deactivate of nothing', (m) => m.deactivate()],
  ['pin of an object', (m) => m.pin({})],
  ['get of a number', (m) => m.get(1)],
  ['getAsOf without a time', (m, id) => m.getAsOf(id)],
  ['getAsOf of yesterday', (m, id) => m.getAsOf(id, 'yesterday')],
  ['getAsOf of a number', (m, id) => m.getAsOf(id, 5)],
  ['getAsOf of a date', (m, id) => m.getAsOf(id, { txTime: new Date() })],
  ['getAsOf of two bounds', (m, id) => m.getAsOf(id, { txId: 1, txTime: new Date().toISOString() })],
  ['getAsOf of a negative transaction', (m, id) => m.getAsOf(id, { txId: -1 })],
  ['getAsOf of half a transaction', (m, id) => m.getAsOf(id, { txId: 1.5 })],
  ['getAsOf of NaN', (m, id) => m.getAsOf(id, { txId: NaN })],
  ['getAsOf beyond exact integers', (m, id) => m.getAsOf(id, { txId: 2 ** 53 })],
  ['diff of texts', (m, id) => m.diff(id, '1', '2')],
  ['diff of half transactions', (m, id) => m.diff(id, 0.5, 1)],
  ['query of nothing', (m) => m.query()],
  ['query of an unknown type', (m) => m.query({ type: 'image' })],
  ['query since sometime', (m) => m.query({ since: 'sometime' })],
  ['search of nothing', (m) => m.search()],
  ['search without a word', (m) => m.search(' - ')],
  ['search with a negative limit', (m) => m.search('x', { limit: -1 })],
  ['search with half a limit', (m) => m.search('x', { limit: 0.5 })],
  ['search of an unknown type', (m) => m.search('x', { type: 'image' })],
  ['restore of no session', (m) => m.restore('', 1)],
  ['restore of half a transaction', (m) => m.restore('s', 0.5)],
  ['going back to half a transaction', (m) => m.goBack(0.5)],
  ['keeping half a message', (m) => m.keepBeginning(0.5)],
  ['transformContext of a text', (m) => m.transformContext('Hello')],
  ['transformContext of null', (m) => m.transformContext([null])],
  ['transformContext of nothing and numbers', (m) => m.transformContext([undefined, 1])],
  ['history after half a transaction', (m, id) => m.history(id, { after: 0.5 })],
  ['history with a negative limit', (m, id) => m.history(id, { limit: -1 })],
  ['a method of another object', (m) => m.get.call({}, 'x')],
]

/** Words of the binding, which mean nothing to a caller. */
const BINDING = /rust|napi|`|Failed to|Value is none|Illegal/i

describe('wrong arguments reject and change nothing', () => {
  let made: Awaited<ReturnType<typeof session>>
  beforeEach(async () => {
    made = await session()
  })

  test.each(wrong)('%s', async (_, attempt) => {
    const before = await state(made.manager)
    const result = await outcome(() => attempt(made.manager, made.id))
    expect(result).toMatchObject({ code: 'INVALID_ARGUMENT', threw: false })
    expect(result.message).not.toBe('')
    expect(result.message).not.toMatch(BINDING)
    expect(await state(made.manager)).toEqual(before)
  })

  test.each([undefined, null, 'listener', {}])('watch(%o) throws', async (listener) => {
    const result = await outcome(() => (made.manager as any).watch(listener))
    expect(result).toMatchObject({ code: 'INVALID_ARGUMENT', threw: true })
  })
})

const fine = { sessionId: 's', cwd: '/', store: { kind: 'memory' } }
test.each<[string, unknown]>([
  ['nothing', undefined],
  ['null', null],
  ['a text', 's'],
  ['no session', { ...fine, sessionId: undefined }],
  ['an empty session', { ...fine, sessionId: '' }],
  ['a session with a line break', { ...fine, sessionId: 'a\nb' }],
  ['a very long session', { ...fine, sessionId: 'x'.repeat(513) }],
  ['no directory', { ...fine, cwd: undefined }],
  ['a relative directory', { ...fine, cwd: 'work' }],
  ['a relative home', { ...fine, home: 'me' }],
  ['a store without a path', { ...fine, store: { kind: 'sqlite' } }],
  ['an unknown durability', { ...fine, store: { kind: 'sqlite', path: '/nowhere/x', durability: 'some' } }],
  ...NO_FILESYSTEM_IDS.flatMap((filesystemId): [string, unknown][] => [
    [`the filesystem ${JSON.stringify(filesystemId).slice(0, 20)}`, { ...fine, filesystemId }],
    [`a mount of ${JSON.stringify(filesystemId).slice(0, 20)}`, { ...fine, mounts: [{ agentPrefix: '/a', canonicalPrefix: '/a', filesystemId }] }],
  ]),
  ['a mount without prefixes', { ...fine, mounts: [{}] }],
  ['a relative mount', { ...fine, mounts: [{ agentPrefix: 'a', canonicalPrefix: '/a', filesystemId: 'f' }] }],
  ['a negative window', { ...fine, window: { perTurn: -1 } }],
  ['half a window', { ...fine, window: { turnsBack: 1.5 } }],
])('opening with %s rejects', async (_, options) => {
  const result = await outcome(() => ContextManager.open(options as never))
  expect(result).toMatchObject({ code: 'INVALID_ARGUMENT', threw: false })
  expect(result.message).not.toMatch(BINDING)
})

test.each([undefined, null, {}, new OutputFiles({ contextDir: join(tmpdir(), 'never-written') })])('a projection of %o is refused', (given) => {
  expect(() => new Projection(given as never)).toThrow(/^a projection needs a session that ContextManager\.open of pi-context-manager has opened, not /)
})

test.each<[string, (manager: any) => unknown]>([
  ['an argument must be a text, not 5', (m) => m.get(5)],
  ['an argument must be a text, not undefined', (m) => m.search()],
  ['an argument must be a text, not an array', (m) => m.indexFile(['a'])],
  ['content must be a text or bytes (a Uint8Array)', (m) => m.indexFile('a', 5)],
  ['the field "tool" is missing', (m) => m.recordToolcall({ ...call, tool: undefined })],
  ['fileRefs must be an array', (m) => m.recordToolcall({ ...call, fileRefs: 'a' })],
  ['sessionId must be a text, not 5', () => ContextManager.open({ ...fine, sessionId: 5 } as never)],
  ['watch must be true or false', () => ContextManager.open({ ...fine, watch: 'yes' } as never)],
  ['mounts: the field "agentPrefix" is missing', () => ContextManager.open({ ...fine, mounts: [{}] } as never)],
  ['store.path must be the path of the database file, and it is missing', () => ContextManager.open({ ...fine, store: { kind: 'sqlite' } } as never)],
])('%s', async (sentence, attempt) => {
  const { manager } = await session()
  expect((await outcome(() => attempt(manager))).message).toBe(sentence)
})

describe('refusals made for the model are answers', () => {
  test.each<[string, ErrorCode, (made: { manager: ContextManager; id: string; cwd: string }) => unknown]>([
    ['an unknown id', 'UNKNOWN_OBJECT', ({ manager }) => manager.activate('absent')],
    ['the chat', 'NOT_CONTENT', ({ manager }) => manager.activate('chat:s')],
    ['the session', 'NOT_CONTENT', ({ manager }) => manager.pin('session:s')],
    ['an inactive object', 'NOT_ACTIVE', async ({ manager, id }) => (await manager.deactivate(id), manager.deactivate(id))],
    ['a deleted file', 'NULL_CONTENT', async ({ manager, id }) => (await manager.indexFileDeletion('file'), manager.activate(id))],
    ['a version before the first', 'UNKNOWN_OBJECT', ({ manager, id }) => manager.activate(`${id}@0`)],
    ['lines that are not there', 'INVALID_ARGUMENT', ({ manager, id }) => manager.activate(id, { lines: [7, 5] })],
  ])('%s', async (_, code, attempt) => {
    const answer = (await attempt(await session())) as { ok: boolean; code: ErrorCode; message: string }
    expect(answer).toMatchObject({ ok: false, code })
    expect(answer.message).toMatch(/\w/)
  })
})

test('a file that is not there is IO, with the reason', async () => {
  const { manager } = await session()
  const before = await state(manager)
  const result = await outcome(() => manager.indexFile('missing'))
  expect(result).toMatchObject({ code: 'IO', message: expect.stringContaining('does not exist') })
  expect(await state(manager)).toEqual(before)
})

describe('stores', () => {
  const open = (path: string) => outcome(() => opened({ cwd: '/', store: { kind: 'sqlite', path } }))

  test('a directory', async () => {
    expect(await open(folder())).toMatchObject({ code: 'STORE_UNAVAILABLE' })
  })

  test('a store of a newer version', async () => {
    const store = sqlite()
    const manager = await opened({ cwd: '/', store })
    await manager.close()
    const bytes = readFileSync(store.path)
    // SQLite's user_version, which holds the number of the schema.
    bytes.writeInt32BE(1_000_000, 60)
    writeFileSync(store.path, bytes)
    expect(await open(store.path)).toMatchObject({ code: 'STORE_NEWER', message: expect.stringMatching(/update/i) })
  })

  test('a damaged store returns nothing that is damaged', async () => {
    const store = sqlite()
    const manager = await opened({ cwd: '/', store })
    const content = 'a content that is long enough to be found in the file '.repeat(50)
    await manager.recordToolcall({ id: 'c', tool: 't', args: {}, content, status: 'ok' })
    await manager.close()
    const bytes = readFileSync(store.path)
    const place = bytes.indexOf('long enough')
    bytes.write('LONG', place)
    chmodSync(store.path, 0o600)
    writeFileSync(store.path, bytes)
    const again = await opened({ cwd: '/', store })
    expect(await outcome(() => again.get('c'))).toMatchObject({ code: 'STORE_CORRUPT' })
    expect(await outcome(() => again.sessionSets())).toEqual({ threw: false })
  })

  test('errors reveal no stored text', async () => {
    const { manager } = await session()
    const secret = 'correct horse battery staple'
    await manager.recordToolcall({ ...call, id: 'secret', content: secret, status: 'ok' })
    for (const [, attempt] of wrong) {
      const { message } = await outcome(() => attempt(manager, 'secret'))
      expect(message).not.toContain(secret)
    }
  })
})
