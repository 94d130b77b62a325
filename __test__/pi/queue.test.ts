/** Pi on XTDB while the node is away, frozen, killed and back: turns continue, and everything arrives once. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { inStore } from '../../lib/native/in-store.ts'
import type { StoreOptions } from '../../index.js'
import { ContextManager } from '../../lib/index.ts'
import { checkAllToolPairs, checkAppendOnly } from '../../rig/checks.ts'
import { withExtension } from '../../rig/extension.ts'
import { startModelServer } from '../../rig/model-server.ts'
import { cleanUp, createPiHome, onCleanUp, startRpc } from '../../rig/pi.ts'
import type { PiHome, PiRpc } from '../../rig/pi.ts'
import { calls } from '../../rig/reply.ts'
import { resultsById } from '../../rig/request.ts'
import { noPostgres, startPostgres } from '../../rig/postgres.ts'
import { lastingNode, withoutXtdb, XtdbNode } from '../../rig/xtdb.ts'
import { command, header, lines, notices, put } from './support.ts'

afterEach(cleanUp)

const missing = withoutXtdb('pi/queue: 6 tests of Pi on XTDB were')

/** A model that reads a file of the prompt's name at each user turn. */
async function setting(url: string): Promise<{
  server: Awaited<ReturnType<typeof startModelServer>>
  home: PiHome
  journal: string
  load: { home: PiHome; extension: string; env: Record<string, string> }
}> {
  const server = await startModelServer((request) => {
    const last = request.messages.at(-1)!
    if (last.role !== 'user') return 'done'
    const name = last.text.trim()
    if (name === 'read one') return calls(['read', { path: 'one.txt' }])
    return calls(['bash', { command: `cat ${name}.txt` }, `call_${name}`])
  })
  const home = createPiHome({ server })
  const journal = join(home.root, 'store', 'journal.db')
  // No roll, so that each output can be looked for in the last request.
  writeFileSync(join(home.agentDir, 'context-manager.json'), '{ "turnsBack": 99 }')
  for (const name of ['one', 'two', 'three', 'four', 'five']) put(home, `${name}.txt`, lines(name, 10))
  return { server, home, journal, load: { home, ...withExtension({ url, journal }) } }
}

/** The line of `/context` about the store. */
async function storeLine(rpc: PiRpc): Promise<string> {
  const [report] = await command(rpc, '/context')
  return /^Store: .*$/m.exec(report ?? '')?.[0] ?? ''
}

/** Asks until everything has been sent; the rig's deadline ends it where that never happens. */
async function allSent(rpc: PiRpc): Promise<void> {
  await lineWith(rpc, 'everything sent')
}

/** Asks until the line about the store has these words. */
async function lineWith(rpc: PiRpc, words: string): Promise<string> {
  const until = Date.now() + 60_000
  for (;;) {
    const line = await storeLine(rpc)
    if (line.includes(words)) return line
    if (Date.now() > until) throw new Error(`never "${words}": ${line}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

/** Each object with the valid times of its versions, as a store has them. */
async function versionsOf(store: StoreOptions, folder: string): Promise<Map<string, string[]>> {
  const file = join(folder, `${store.kind}.jsonl`)
  await inStore(store, (store) => store.export(file))
  const versions = new Map<string, string[]>()
  for (const line of readFileSync(file, 'utf8').trim().split('\n')) {
    const { object, valid_time: time } = JSON.parse(line) as { object?: string; valid_time?: string }
    if (object !== undefined && time !== undefined) versions.set(object, [...(versions.get(object) ?? []), time])
  }
  return new Map([...versions].sort())
}

describe.skipIf(missing)('Pi on XTDB', () => {
  test('a frozen node, then a killed one: turns continue, and every version is there once', async () => {
    const node = await lastingNode()
    const { server, home, journal, load } = await setting(node.url)
    let rpc = await startRpc(load)
    await rpc.prompt('one')
    await allSent(rpc)
    node.freeze(true)
    await rpc.prompt('two')
    await rpc.prompt('three')
    // The sender's request has its own time limit.
    const line = await lineWith(rpc, 'last error')
    expect(line).toMatch(new RegExp(`^Store: xtdb ${node.url}, \\d+ transactions waiting since 20\\S+Z, no answer, last error: .*${node.url}`))
    node.freeze(false)
    await allSent(rpc)
    await node.kill9()
    await rpc.prompt('four')
    expect(await storeLine(rpc)).toMatch(/transactions? waiting since/)
    expect(notices(rpc.events).filter((text) => !text.startsWith('Context:'))).toEqual([])
    expect(await rpc.close()).toEqual({ code: 0, signal: null })
    // A new process, while the node is still away.
    rpc = await startRpc({ ...load, args: ['--continue'] })
    await rpc.prompt('five')
    expect(await storeLine(rpc)).toMatch(/transactions waiting since/)
    await node.restart()
    await allSent(rpc)
    expect(notices(rpc.events).filter((text) => !text.startsWith('Context:'))).toEqual([])
    const { sessionId } = (await rpc.state()) as { sessionId: string }
    expect(await rpc.close()).toEqual({ code: 0, signal: null })
    server.check()
    checkAllToolPairs(server.requests)
    checkAppendOnly(server.requests)
    const results = resultsById(server.requests.at(-1)!)
    for (const name of ['one', 'two', 'three', 'four', 'five']) expect(results.get(`call_${name}`)).toBe(`${header(`call_${name}`)}\n${lines(name, 10)}`)
    const there = await versionsOf({ kind: 'xtdb', url: node.url }, home.root)
    expect(there).toEqual(await versionsOf({ kind: 'sqlite', path: journal }, home.root))
    for (const name of ['one', 'two', 'three', 'four', 'five']) expect(there.get(`call_${name}`)).toHaveLength(1)
    expect(there.get(`chat:${sessionId}`)!.length).toBeGreaterThan(5)
  })

  test('no node at the very first start: Pi says so once, continues without, and /context on works later', async () => {
    const node = await lastingNode()
    await node.kill9()
    const { server, load } = await setting(node.url)
    const rpc = await startRpc(load)
    await rpc.prompt('one')
    expect(notices(rpc.events)).toEqual([
      expect.stringMatching(/^The context manager could not start: .*no XTDB node answers at http.*\/context on tries again\.$/),
    ])
    expect(resultsById(server.requests[1]!).get('call_one')).toBe(lines('one', 10))
    await node.restart()
    expect(await command(rpc, '/context on')).toEqual([expect.stringContaining('is on')])
    await rpc.prompt('two')
    await allSent(rpc)
    await rpc.close()
    server.check()
    const manager = await ContextManager.open({
      sessionId: 'other',
      cwd: '/',
      store: { kind: 'xtdb', url: node.url, journal: join(load.home.root, 'other.db') },
      watch: false,
    })
    onCleanUp(() => manager.close())
    expect((await manager.get('call_two'))!.content).toBe(lines('two', 10))
    // The earlier calls are also imported.
    expect((await manager.get('call_one'))!.content).toBe(lines('one', 10))
  })

  test('a node for fail-over takes over, and the report names it', async () => {
    const [first, second] = await Promise.all([lastingNode(), lastingNode()])
    const { server, load } = await setting(`${first.url} ${second.url}`)
    await first.kill9()
    const rpc = await startRpc(load)
    await rpc.prompt('one')
    await allSent(rpc)
    expect(await storeLine(rpc)).toBe(`Store: xtdb ${second.url}, everything sent`)
    expect(await rpc.close()).toEqual({ code: 0, signal: null })
    server.check()
  })

  test.skipIf(noPostgres() !== undefined)('two Pis on two nodes of one database share a file; one node is killed', async () => {
    const postgres = await startPostgres()
    const nodes = await Promise.all([XtdbNode.start({ postgres }), XtdbNode.start({ postgres })])
    for (const node of nodes) onCleanUp(() => node.end())
    const [first, second] = nodes as [XtdbNode, XtdbNode]
    const { server, home, load } = await setting(`${first.url} ${second.url}`)
    // Each Pi learns of the other's writes through the database alone.
    writeFileSync(join(home.agentDir, 'context-manager.json'), '{ "turnsBack": 99, "watch": false }')
    const env = { ...load.env, CONTEXT_XTDB_URL: `${second.url} ${first.url}`, CONTEXT_XTDB_JOURNAL: join(home.root, 'b.db') }
    const [one, two] = [await startRpc(load), await startRpc({ ...load, env })]
    const change = async (rpc: PiRpc, text: string): Promise<void> => {
      put(home, 'one.txt', text)
      await rpc.prompt('read one')
      await allSent(rpc)
    }
    const noticesOf = (): string[] =>
      server.requests.at(-1)!.messages.flatMap(({ role, text }) => (role === 'user' ? (text.match(/^stale id=.*$/gm) ?? []) : []))
    await one.prompt('read one')
    await allSent(one)
    await change(two, `new\n${lines('one', 10)}`)
    await first.caughtUp()
    await one.prompt('two')
    expect(noticesOf()).toEqual([expect.stringMatching(/one\.txt version=[0-9a-f]{8} \+1 -0$/)])
    await allSent(one)
    await first.kill9()
    await change(two, `newer\nnew\n${lines('one', 10)}`)
    await second.caughtUp()
    await one.prompt('three')
    expect(noticesOf()).toHaveLength(2)
    await allSent(one)
    expect(await storeLine(one)).toBe(`Store: xtdb ${second.url}, everything sent`)
    for (const rpc of [one, two]) expect(await rpc.close()).toEqual({ code: 0, signal: null })
    server.check()
  })

  test('another machine sees at its next turn the writes of this one', async () => {
    const node = await lastingNode()
    const { server, home, load } = await setting(node.url)
    const other = await startRpc({ ...load, env: { ...load.env, CONTEXT_XTDB_JOURNAL: join(home.root, 'other.db') } })
    const rpc = await startRpc(load)
    await rpc.prompt('one')
    await allSent(rpc)
    const id = (await rpc.state())['sessionId'] as string
    await other.prompt('two')
    await allSent(other)
    const manager = await ContextManager.open({
      sessionId: 'third',
      cwd: '/',
      store: { kind: 'xtdb', url: node.url, journal: join(home.root, 'third.db') },
      watch: false,
    })
    onCleanUp(() => manager.close())
    expect((await manager.get(`chat:${id}`))!['turn_count']).toBe(1)
    await rpc.prompt('three')
    await allSent(rpc)
    await manager.assemble()
    expect((await manager.get(`chat:${id}`))!['turn_count']).toBe(2)
    await Promise.all([rpc.close(), other.close()])
    server.check()
  })

  test('a session of the default store continues in XTDB, and back', async () => {
    const node = await XtdbNode.start()
    onCleanUp(() => node.end())
    const { server, home, journal, load } = await setting(node.url)
    const path = join(home.root, 'sqlite.db')
    const sqlite = { ...load, env: withExtension(path).env }
    let rpc = await startRpc(sqlite)
    await rpc.prompt('one')
    await rpc.close()
    const file = join(home.root, 'moving.jsonl')
    await inStore({ kind: 'sqlite', path }, (store) => store.export(file))
    await inStore({ kind: 'xtdb', url: node.url, journal }, (store) => store.import(file))
    rpc = await startRpc({ ...load, args: ['--continue'] })
    await rpc.prompt('two')
    await allSent(rpc)
    await rpc.close()
    await inStore({ kind: 'xtdb', url: node.url }, (store) => store.export(file))
    await inStore({ kind: 'sqlite', path }, (store) => store.import(file))
    rpc = await startRpc({ ...sqlite, args: ['--continue'] })
    await rpc.prompt('three')
    const id = (await rpc.state())['sessionId'] as string
    await rpc.close()
    server.check()
    checkAllToolPairs(server.requests)
    checkAppendOnly(server.requests)
    const manager = await ContextManager.open({ sessionId: id, cwd: home.cwd, store: { kind: 'sqlite', path }, watch: false })
    onCleanUp(() => manager.close())
    expect((await manager.get(`chat:${id}`))!['turn_count']).toBe(3)
    expect((await manager.sessionSets()).sessionIndex).toEqual(expect.arrayContaining(['call_one', 'call_two', 'call_three']))
  })
})
