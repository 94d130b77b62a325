/** Opening and closing, aborting, the end of the process, threads. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { ContextManager } from '../lib/index.ts'
import { folder, modelCall, opened, outcome, sqlite, write } from './core/setup.ts'
import { cleanUp } from '../rig/cleanup.ts'

afterEach(cleanUp)

const execute = promisify(execFile)
const native = new URL('../dist/index.js', import.meta.url).href

const call = { id: 'c', tool: 't', args: {}, content: '', status: 'ok' as const }

/** Every method, with arguments that would be fine. */
const calls: Record<string, (manager: ContextManager) => unknown> = {
  indexFile: (m) => m.indexFile('a', 'x'),
  indexWritten: (m) => m.indexWritten('a', 'x'),
  indexFileDeletion: (m) => m.indexFileDeletion('a'),
  indexFiles: (m) => m.indexFiles(['a']),
  discover: (m) => m.discover(['a']),
  recordToolcall: (m) => m.recordToolcall(call),
  appendTurn: (m) => m.appendTurn({ role: 'user', content: 'x' }),
  setSystemPrompt: (m) => m.setSystemPrompt('x'),
  activate: (m) => m.activate('a'),
  deactivate: (m) => m.deactivate('a'),
  pin: (m) => m.pin('a'),
  unpin: (m) => m.unpin('a'),
  promote: (m) => m.promote('a'),
  demote: (m) => m.demote('a'),
  sessionSets: (m) => m.sessionSets(),
  orphaned: (m) => m.orphaned(),
  assemble: (m) => m.assemble(),
  get: (m) => m.get('a'),
  getAsOf: (m) => m.getAsOf('a', {}),
  history: (m) => m.history('a'),
  diff: (m) => m.diff('a', 1, 2),
  query: (m) => m.query({}),
  search: (m) => m.search('a'),
  stats: (m) => m.stats(),
  watch: (m) => m.watch(() => {}),
  watchTouches: (m) => m.watchTouches(() => {}),
  reconcile: (m) => m.reconcile(),
  flush: (m) => m.flush(),
  pause: (m) => m.pause(),
  exportSession: (m) => m.exportSession('/nowhere/x'),
  receive: (m) => m.receive(call),
  advance: (m) => m.advance([], modelCall),
  look: (m) => m.look(),
  settle: (m) => m.settle(),
  resync: (m) => m.resync([], 0, modelCall),
  answerRead: (m) => m.answerRead('a'),
  checkEdit: (m) => m.checkEdit('a'),
  guardEdit: (m) => m.guardEdit('a'),
  checkArguments: (m) => m.checkArguments({}),
  staleNotices: (m) => m.staleNotices(),
  rollNow: (m) => m.rollNow(modelCall),
  undoRoll: (m) => m.undoRoll(),
  receipts: (m) => m.receipts(),
  restore: (m) => m.restore('s', 1),
  goBack: (m) => m.goBack(1),
  keepBeginning: (m) => m.keepBeginning(1),
  point: (m) => m.point(),
  pointTimes: (m) => m.pointTimes(),
  storeState: (m) => m.storeState(),
  verify: (m) => (m as unknown as { verify(): unknown }).verify(),
  transformContext: (m) => m.transformContext([{ role: 'user', content: 'x' }]),
}

describe('after close', () => {
  test('the list of calls is complete', () => {
    const methods = Object.getOwnPropertyNames(ContextManager.prototype)
    const others = ['constructor', 'sessionId', 'close']
    const missing = methods.filter((name) => !(name in calls) && !others.includes(name))
    expect(missing).toEqual([])
  })

  test.each(Object.keys(calls).filter((name) => name in ContextManager.prototype))('%s is CLOSED', async (name) => {
    const manager = await opened({ cwd: folder() })
    await manager.close()
    expect(await outcome(() => calls[name]!(manager))).toMatchObject({ code: 'CLOSED', threw: name.startsWith('watch') })
  })

  test('closing again, at once or later, is fine', async () => {
    const manager = await opened({ cwd: folder(), store: sqlite(), watch: true })
    await Promise.all([manager.close(), manager.close(), manager.close()])
    await manager.close()
    expect(manager.sessionId).toBe('s')
  })

  test('calls under way are finished or CLOSED, and nothing of them is half done', async () => {
    const [cwd, store] = [folder(), sqlite()]
    const manager = await opened({ cwd, store })
    const recording = Array.from({ length: 50 }, (_, n) => outcome(() => manager.recordToolcall({ ...call, id: `c${n}`, content: `${n}` })))
    await manager.close()
    const outcomes = await Promise.all(recording)
    for (const { code } of outcomes) expect([undefined, 'CLOSED']).toContain(code)
    const again = await opened({ cwd, store })
    const recorded = outcomes.filter(({ code }) => code === undefined).length
    expect((await again.sessionSets()).sessionIndex).toHaveLength(recorded)
  })
})

test('await using closes', async () => {
  let kept: ContextManager
  {
    await using manager = await ContextManager.open({ sessionId: 's', cwd: folder(), store: { kind: 'memory' } })
    kept = manager
    expect(await manager.point()).toBeGreaterThan(0)
  }
  expect(await outcome(() => kept.point())).toMatchObject({ code: 'CLOSED' })
})

describe('aborting', () => {
  const options = () => ({ sessionId: 's', cwd: folder(), store: sqlite(), watch: false })

  test('an aborted signal rejects with its reason and opens nothing', async () => {
    const reason = new Error('not today')
    const open = vi.fn()
    await expect(ContextManager.open(options(), { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    expect(open).not.toHaveBeenCalled()
  })

  test('aborting while it opens rejects, and the store can be opened again', async () => {
    const [controller, wanted] = [new AbortController(), options()]
    const opening = ContextManager.open(wanted, { signal: controller.signal })
    controller.abort()
    await expect(opening).rejects.toMatchObject({ name: 'AbortError' })
    const manager = await opened(wanted)
    expect(await manager.point()).toBeGreaterThan(0)
  })

  test('aborting later does nothing, and leaves the handler of the signal alone', async () => {
    const controller = new AbortController()
    const handler = vi.fn()
    controller.signal.onabort = handler
    const manager = await ContextManager.open(options(), { signal: controller.signal })
    controller.abort()
    expect(handler).toHaveBeenCalledOnce()
    expect(await manager.point()).toBeGreaterThan(0)
    await manager.close()
  })
})

describe('the process', () => {
  const start = (store: object, cwd: string, then: string) => `
    import { ContextManager } from ${JSON.stringify(native)}
    const manager = await ContextManager.open(${JSON.stringify({ sessionId: 's', cwd, store })})
    await manager.indexFile('file', 'text')
    ${then}`
  const run = (script: string, flags: string[] = []) => execute(process.execPath, [...flags, '--input-type=module', '-e', script], { timeout: 60_000 })

  test('ends by itself with an open session and a watcher', async () => {
    const [cwd, store] = [folder(), sqlite()]
    write(cwd, 'file', 'text')
    const { stdout } = await run(start(store, cwd, `manager.watch(() => {}); console.log('last line')`))
    expect(stdout).toBe('last line\n')
    const again = await opened({ cwd, store })
    expect((await again.sessionSets()).activeSet, 'what was acknowledged is there').toHaveLength(1)
  })

  test('prints nothing by itself', async () => {
    const [cwd, store] = [folder(), sqlite()]
    write(cwd, 'file', 'text')
    const script = start(store, cwd, `await manager.indexFile('missing').catch(() => {}); await manager.close()`)
    expect(await run(script)).toMatchObject({ stdout: '', stderr: '' })
  })

  test('survives the collection of open instances', async () => {
    const script = start(
      { kind: 'memory' },
      folder(),
      `for (let n = 0; n < 200; n++) {
         const other = await ContextManager.open({ sessionId: 's' + n, cwd: '/', store: { kind: 'memory' } })
         other.watch(() => {})
         if (n % 20 === 0) globalThis.gc()
       }
       globalThis.gc()
       console.log((await manager.sessionSets()).activeSet.length)`,
    )
    expect((await run(script, ['--expose-gc'])).stdout).toBe('1\n')
  })

  test('survives a listener that throws', async () => {
    const [cwd, manager] = [folder(), await opened({ cwd: folder() })]
    await manager.close()
    const watching = await opened({ cwd, watch: true })
    const path = write(cwd, 'a', '1')
    await watching.indexFile(path)
    const warned = new Promise<Error>((resolve) => process.once('warning', resolve))
    const seen = new Promise<string>((resolve) => {
      watching.watch(() => {
        throw new Error('a listener')
      })
      watching.watch((event) => resolve(event.action))
    })
    write(cwd, 'a', '2')
    expect(await seen).toBe('updated')
    expect((await warned).message).toBe('a listener')
    expect(await watching.point()).toBeGreaterThan(0)
  })
})

describe('threads', () => {
  const worker = (store: object, cwd: string, name: string) => {
    const script = `
      const { parentPort } = require('node:worker_threads')
      import(${JSON.stringify(native)}).then(async ({ ContextManager }) => {
        const manager = await ContextManager.open(${JSON.stringify({ sessionId: name, cwd, store })})
        for (let n = 0; n < 20; n++) {
          await manager.indexFile('shared', 'version ' + n)
          await manager.recordToolcall({ id: '${name}' + n, tool: 't', args: {}, content: '' + n, status: 'ok' })
        }
        parentPort.postMessage(await manager.sessionSets())
        if (${JSON.stringify(name)} === 'one') await manager.close()
      })`
    return new Promise<{ sessionIndex: string[] }>((resolve, reject) => {
      let sets: { sessionIndex: string[] }
      const thread = new Worker(script, { eval: true })
      thread.once('message', (message) => (sets = message as typeof sets))
      thread.once('error', reject)
      thread.once('exit', (code) => (code === 0 ? resolve(sets) : reject(new Error(`exit ${code}`))))
    })
  }

  test('two workers share a store, and end with or without closing it', async () => {
    const [cwd, store] = [folder(), sqlite()]
    const [one, two] = await Promise.all([worker(store, cwd, 'one'), worker(store, cwd, 'two')])
    expect(one.sessionIndex).toHaveLength(21)
    expect(two.sessionIndex).toHaveLength(21)
    expect(one.sessionIndex[0]).toBe(two.sessionIndex[0])
    const manager = await opened({ cwd, store, sessionId: 'three' })
    expect((await manager.query({ type: 'toolcall' })).length).toBe(40)
    expect((await manager.get(one.sessionIndex[0]!))?.content).toBe('version 19')
  })
})
