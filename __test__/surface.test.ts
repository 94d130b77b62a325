/** The package's classes as a user meets them: real classes, checked options, and a separate store. */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, expectTypeOf, test } from 'vitest'
import * as entry from '../lib/index.ts'
import { ContextManager, DrivenSession, Store } from '../lib/index.ts'
import type { Plan, SessionSummary, StoreHit, StoreOptions, Toolcall } from '../lib/index.ts'
import { folder, opened } from './core/setup.ts'
import { cleanUp } from '../rig/cleanup.ts'

afterEach(cleanUp)

const call: Toolcall = { id: 'c1', tool: 'bash', args: { command: 'ls' }, content: 'needle in a list', status: 'ok' }

describe('classes', () => {
  test('opened_instances_belong_to_their_classes', async () => {
    const manager = await opened({ cwd: folder() })
    expect(manager).toBeInstanceOf(ContextManager)
    expect(manager).toBeInstanceOf(DrivenSession)
    expect({} instanceof ContextManager).toBe(false)
    await using store = await Store.open({ kind: 'memory' })
    expect(store).toBeInstanceOf(Store)
    expect(store).not.toBeInstanceOf(ContextManager)
  })

  test('entry_exports_only_what_is_public', () => {
    expect(Object.keys(entry).sort()).toEqual(['ContextManager', 'DrivenSession', 'Projection', 'Store', 'defaultFilesystemId', 'defaultStorePath'])
  })

  test('instance_made_with_new_is_closed', async () => {
    const made = new (ContextManager as unknown as new () => ContextManager)()
    await expect(made.sessionSets()).rejects.toMatchObject({ code: 'CLOSED' })
    const store = new (Store as unknown as new () => Store)()
    await expect(store.sessions()).rejects.toMatchObject({ code: 'CLOSED' })
  })

  test('every_method_of_the_native_half_has_a_documented_override', () => {
    const methods = (prototype: object): string[] => Object.getOwnPropertyNames(prototype).filter((name) => name !== 'constructor')
    for (const [own, ...bases] of [[ContextManager, DrivenSession], [Store]] as const) {
      const native = Object.getPrototypeOf(bases[0] ?? own) as { prototype: object }
      const overridden = [own, ...bases].flatMap((one) => methods((one as { prototype: object }).prototype))
      expect(methods(native.prototype).filter((name) => name !== 'start' && !overridden.includes(name))).toEqual([])
    }
  })
})

describe('options', () => {
  const base = { sessionId: 's', cwd: '/', store: { kind: 'memory' } } as const

  test.each<[string, object, RegExp]>([
    ['a misspelt option', { stroe: { kind: 'memory' } }, /no field "stroe"; it has sessionId, cwd, store/],
    ['a misspelt field of the store', { store: { kind: 'sqlite', path: '/x.db', durabilty: 'power' } }, /no field "durabilty"/],
    ['an unknown kind of store', { store: { kind: 'postgres' } }, /is memory, sqlite or xtdb, not "postgres"/],
    ['a store in memory by its SQLite name', { store: { kind: 'sqlite', path: ':memory:' } }, /pass \{ kind: 'memory' \}/],
    ['a URL as a path', { store: { kind: 'sqlite', path: 'file:x.db' } }, /plain path and no URL: pass "x.db"/],
    ['an empty path', { store: { kind: 'sqlite', path: '' } }, /store\.path/],
    ['a misspelt field of the window', { window: { perTurns: 3 } }, /window has no field "perTurns"/],
    ['a debt cap below 0', { stay: { debtCap: -0.1 } }, /stay\.debtCap is "none" or a share of what was spent/],
    ['a debt cap of another word', { stay: { debtCap: 'all' as never } }, /stay\.debtCap is "none" or a share of what was spent/],
    ['a misspelt field of stay', { stay: { prosa: 3 } }, /stay has no field "prosa"/],
    ['a misspelt field of a mount', { mounts: [{ prefix: '/' }] }, /a mount has no field "prefix"/],
    ['mounts that are no list', { mounts: {} }, /mounts is an array, not an object/],
    ['a window that is not an object', { window: 3 }, /window must be an object with perTurn and turnsBack, not 3/],
    ['a relative working directory', { cwd: 'src' }, /the working directory must be an absolute path, and "src" is none/],
    ['a relative prefix', { mounts: [{ agentPrefix: 'a', canonicalPrefix: '/b', filesystemId: 'f' }] }, /must be absolute paths, and "a" or "\/b" is none/],
    [
      'a negative context window',
      { model: { contextWindow: -1, input: 0, cacheRead: 0, cacheWrite: 0 } },
      /model\.contextWindow is a number of 0 or more, not -1/,
    ],
    ['a price that is not a number', { model: { contextWindow: 1, input: '3', cacheRead: 0, cacheWrite: 0 } }, /model\.input/],
    ['a layout that does not exist', { layout: 'columns' }, /layout is 'references' or 'sections'/],
  ])('open_refuses_%s', async (_, wrong, sentence) => {
    const options = { ...base, ...wrong } as never
    await expect(ContextManager.open(options)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(sentence) })
  })

  test.each<[string, unknown]>([
    ['null', null],
    ['an object', {}],
  ])('open refuses %s as a signal', async (_, signal) => {
    const opening = ContextManager.open(base as never, { signal: signal as never })
    await expect(opening).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(/control\.signal is an AbortSignal, not/) })
  })

  test.each(['', 'relative'])('a home "%s" in the environment is the one of the account', (HOME) => {
    const code = "import('./dist/index.js').then((all) => process.stdout.write(all.defaultStorePath()))"
    const { XDG_DATA_HOME: _, ...env } = process.env
    const path = execFileSync(process.execPath, ['-e', code], { env: { ...env, HOME }, encoding: 'utf8' })
    expect(path.startsWith(userInfo().homedir)).toBe(true)
  })

  test.each<[string, unknown]>([
    ['undefined', undefined],
    ['null', null],
    ['"s"', 's'],
    ['3', 3],
    ['an array', []],
    ['a function', () => 0],
  ])('open, watch and transformContext name the wrong value: %s', async (named, wrong) => {
    await expect(ContextManager.open(wrong as never)).rejects.toThrow(
      new RegExp(`^the options object of open must be an object with sessionId, .*, not ${named}$`),
    )
    const session = await opened({ cwd: folder() })
    if (typeof wrong !== 'function') expect(() => session.watch(wrong as never)).toThrow(`a listener must be a function, not ${named}`)
    if (!Array.isArray(wrong)) await expect(session.transformContext(wrong as never)).rejects.toThrow(`messages must be an array of messages, not ${named}`)
  })

  test('refused_options_leave_no_file_behind', async () => {
    const path = join(folder(), 'new.db')
    await expect(ContextManager.open({ ...base, store: { kind: 'sqlite', path }, stroe: 1 } as never)).rejects.toThrow('stroe')
    expect(existsSync(path)).toBe(false)
  })

  test('calls_refuse_fields_that_do_not_exist', async () => {
    const manager = await opened({ cwd: folder() })
    const refused = { code: 'INVALID_ARGUMENT' }
    await expect(manager.recordToolcall({ ...call, state: 'ok' } as never)).rejects.toMatchObject(refused)
    await expect(manager.activate('x', { line: [1, 2] } as never)).rejects.toMatchObject(refused)
    await expect(manager.search('x', { limits: 3 } as never)).rejects.toMatchObject(refused)
    await expect(manager.query({ kind: 'file' } as never)).rejects.toMatchObject(refused)
    await expect(manager.history('x', { form: 1 } as never)).rejects.toMatchObject(refused)
    await expect(manager.getAsOf('x', { tx: 1 } as never)).rejects.toMatchObject(refused)
  })

  test('model_calls_refuse_negative_figures', async () => {
    const manager = await opened({ cwd: folder() })
    const circumstances = {
      model: 'm',
      prices: { input: 1, cacheRead: 0.1, cacheWrite: 1 },
      contextWindow: 0,
      cacheTtlMs: 1,
      nowMs: 1,
      systemTokens: 0,
      onlyAtUserTurn: false,
      atUserTurn: true,
      rolls: true,
    }
    for (const wrong of [{ contextWindow: -1 }, { systemTokens: Number.NaN }, { prices: { input: -1, cacheRead: 0, cacheWrite: 0 } }]) {
      await expect(manager.advance([], { ...circumstances, ...wrong })).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        message: expect.stringMatching(/is a number of 0 or more, not/),
      })
    }
    await expect(manager.advance([], circumstances)).resolves.toMatchObject({ edits: [] })
  })
})

describe('Store', () => {
  async function filled(): Promise<StoreOptions> {
    const store = { kind: 'sqlite', path: join(folder(), 'context.db') } as const
    const manager = await opened({ sessionId: 's1', cwd: folder(), store })
    await manager.appendTurn({ role: 'user', content: 'where is it?' })
    await manager.recordToolcall(call)
    await manager.close()
    return store
  }

  test('one_open_store_serves_many_questions', async () => {
    await using store = await Store.open(await filled())
    expect(await store.state()).toMatchObject({ kind: 'sqlite' })
    expect((await store.sessions()).map(({ id }) => id)).toEqual(['s1'])
    const [hit] = await store.search('needle')
    expect(hit).toMatchObject({ id: 'c1', tool: 'bash', args: { command: 'ls' }, isLatest: true })
    expect(await store.find('c1')).toEqual(['c1'])
    expect((await store.get('c1'))?.document.content).toBe('needle in a list')
    expect((await store.history('chat:s1')).at(-1)?.document['turns']).toMatchObject([{}])
    expect(await store.verify()).toEqual([])
    await expect(store.search('needle', { sessionId: 's2' })).rejects.toMatchObject({ code: 'UNKNOWN_OBJECT' })
  })

  test('export_and_import_move_a_history', async () => {
    const file = join(folder(), 'export.jsonl')
    await using from = await Store.open(await filled())
    const { versions } = await from.export(file)
    await Store.checkExport(file)
    await using to = await Store.open({ kind: 'sqlite', path: join(folder(), 'other.db') })
    expect((await to.import(file)).written).toBe(versions)
    expect((await to.search('needle')).map(({ id }) => id)).toEqual(['c1'])
  })

  test('forget_prune_and_limits_change_the_store', async () => {
    await using store = await Store.open(await filled())
    expect(await store.limits()).toEqual({})
    await store.setLimits({ maxDays: 30 })
    expect(await store.limits()).toEqual({ maxDays: 30 })
    expect((await store.prune({ olderThanDays: 1, dryRun: true })).sessions).toEqual([])
    expect((await store.forget([{ text: 'needle in a list' }], 'a test')).texts).toBe(1)
    expect((await store.get('c1'))?.erased?.why).toBe('a test')
  })

  test('closed_store_and_wrong_fields_are_refused', async () => {
    const store = await Store.open({ kind: 'memory' })
    await expect(store.prune({ age: 3 } as never)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    await expect(store.forget([{ words: 'x' }] as never, 'why')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    await expect(store.limits()).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    await expect(store.find(1 as never)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    await store.close()
    await store.close()
    await expect(store.sessions()).rejects.toMatchObject({ code: 'CLOSED' })
    await expect(Store.open({ kind: 'sqlite', path: ':memory:' })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  })
})

test('types_are_those_that_users_see', () => {
  expectTypeOf(ContextManager.open).returns.toEqualTypeOf<Promise<ContextManager>>()
  expectTypeOf<ContextManager['advance']>().returns.toEqualTypeOf<Promise<Plan>>()
  expectTypeOf<ContextManager>().toExtend<AsyncDisposable>()
  expectTypeOf<ContextManager['transformContext']>().toEqualTypeOf<<T>(messages: T[]) => Promise<T[]>>()
  expectTypeOf(Store.open).parameter(0).toEqualTypeOf<StoreOptions | undefined>()
  expectTypeOf<Store['sessions']>().returns.toEqualTypeOf<Promise<SessionSummary[]>>()
  expectTypeOf<Store['search']>().returns.toEqualTypeOf<Promise<StoreHit[]>>()
  expectTypeOf<StoreHit['args']>().toEqualTypeOf<Record<string, unknown> | undefined>()
  // @ts-expect-error the constructor is private
  void (() => new ContextManager())
})
