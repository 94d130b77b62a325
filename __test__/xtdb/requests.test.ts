/** The requests of a turn to the node: counted by a proxy between the two. */
import { createServer, request as send } from 'node:http'
import type { IncomingMessage, Server } from 'node:http'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { ContextManager } from '../../lib/index.ts'
import type { ModelCall } from '../../lib/index.ts'
import { cleanUp, onCleanUp, temporaryFolder } from '../../rig/pi.ts'
import { listening } from '../../rig/listening.ts'
import { freshNode, tick, withoutXtdb } from '../../rig/xtdb.ts'

afterEach(cleanUp)

const missing = withoutXtdb('xtdb/requests: 2 tests against a real XTDB were')

/** A proxy that writes down each request's endpoint before it passes the request on. */
async function recording(port: number): Promise<{ url: string; seen: string[] }> {
  const seen: string[] = []
  const server: Server = createServer((incoming: IncomingMessage, outgoing) => {
    seen.push((incoming.url ?? '').replace(/^\/_xtdb\/|\?.*$/g, ''))
    const { method, url: path, headers } = incoming
    const passed = send({ host: '127.0.0.1', port, method, path, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(outgoing)
    })
    passed.on('error', () => outgoing.destroy())
    incoming.pipe(passed)
  })
  return { url: await listening(server), seen }
}

/** Requests that the sender of the queue makes for itself; all other requests are reads for which a caller waits. */
const SENDING = ['submit-tx', 'tx-committed', 'await-tx', 'latest-completed-tx']

const call = (nowMs: number): ModelCall => ({
  model: 'm',
  prices: { input: 3, cacheRead: 0.3, cacheWrite: 3.75 },
  contextWindow: 200_000,
  cacheTtlMs: 300_000,
  nowMs,
  systemTokens: 1000,
  onlyAtUserTurn: false,
  atUserTurn: true,
  rolls: true,
})

const TURNS = 6
const CALLS = 5

test.skipIf(missing)('a turn reads once, whatever it calls, and is one transaction', async () => {
  const node = await freshNode()
  const proxy = await recording(node.port)
  const folder = temporaryFolder('requests-')
  const store = { kind: 'xtdb' as const, url: proxy.url, journal: join(folder, '.store', 'journal.db') }
  const manager = await ContextManager.open({ sessionId: 's', cwd: folder, store, watch: false })
  onCleanUp(() => manager.close())
  await manager.setSystemPrompt('Be brief.')
  await manager.flush()
  // The list of what the node has is read once, at the start. From then on it says what the node lacks, without a request.
  let other = 0
  const requestsForNew = async (): Promise<string[]> => {
    const from = proxy.seen.length
    await manager.indexFile(join(folder, `early-${(other += 1)}.txt`), `${other}\n`)
    return proxy.seen.slice(from).filter((name) => !SENDING.includes(name))
  }
  await expect.poll(requestsForNew, { timeout: 30_000 }).toEqual([])
  const asked = performance.now()
  await manager.advance([], call(900_000))
  await manager.flush()
  // A turn that takes longer than a second is sent in parts, and the sender then asks in the middle of it.
  const quick: string[][] = []
  const submitted: number[] = []
  let key = 0
  for (let turn = 0; turn < TURNS; turn += 1) {
    const from = proxy.seen.length
    const start = performance.now()
    const nowMs = 1_000_000 + 60_000 * turn
    const user = { role: 'user', content: `turn ${turn}`, timestamp: nowMs }
    // As Pi does: before the prompt, before the call, each tool's result, and at the end of the turn.
    await manager.advance([], call(nowMs))
    // Writes in one millisecond about one object can't be in one transaction.
    tick()
    await manager.advance([{ key: `k${(key += 1)}`, message: user }], call(nowMs + 10))
    const ids = Array.from({ length: CALLS }, (_, n) => `call_${turn}_${n}`)
    for (const [n, id] of ids.entries()) {
      const path = `file-${turn}-${n}.txt`
      writeFileSync(join(folder, path), `text ${turn} ${n}\n`.repeat(50))
      tick()
      await manager.receive({ id, tool: 'read', args: { path }, content: `text ${turn} ${n}\n`.repeat(50), status: 'ok' })
    }
    const content = ids.map((id, n) => ({ type: 'toolCall', id, name: 'read', arguments: { path: `file-${turn}-${n}.txt` } }))
    const results = ids.map((id, n) => ({
      key: `k${(key += 1)}`,
      message: { role: 'toolResult', toolCallId: id, toolName: 'read', content: [{ type: 'text', text: `text ${turn} ${n}\n`.repeat(50) }], isError: false },
    }))
    tick()
    await manager.advance([{ key: `k${(key += 1)}`, message: { role: 'assistant', content } }, ...results], call(nowMs + 500))
    const reads = proxy.seen.slice(from).filter((name) => !SENDING.includes(name))
    if (performance.now() - start < 900) quick.push(reads)
    await manager.flush()
    submitted.push(proxy.seen.slice(from).filter((name) => name === 'submit-tx').length)
  }
  expect(quick.length).toBeGreaterThan(0)
  // It asks for others' changes in the namespace of its files, and for those of the session itself every half a minute.
  const halfMinutes = Math.floor((performance.now() - asked) / 30_000)
  expect(new Set(quick.flat())).toEqual(new Set(['entity']))
  expect(quick.flat().length - quick.length).toBeLessThanOrEqual(halfMinutes)
  // The last call writes the chat more than once, perhaps in one millisecond.
  expect(submitted.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(2 * TURNS)
  expect((await manager.sessionSets()).sessionIndex).toHaveLength(2 * TURNS * CALLS + other)
})

test.skipIf(missing)('the writes of another machine are seen at the next turn that begins after they were fetched', async () => {
  const node = await freshNode()
  const folder = temporaryFolder('requests-')
  const open = async (name: string): Promise<ContextManager> => {
    const store = { kind: 'xtdb' as const, url: node.url, journal: join(folder, name, 'journal.db') }
    const manager = await ContextManager.open({ sessionId: name, cwd: folder, filesystemId: 'shared', store, watch: false })
    onCleanUp(() => manager.close())
    return manager
  }
  // Both are on one file system: what the other one has stored is compared with the disk.
  const write = (text: string): void => writeFileSync(join(folder, 'a.txt'), text)
  const one = await open('one')
  write('one\n')
  const { id } = await one.indexFile('a.txt', 'one\n')
  await one.flush()
  const two = await open('two')
  // Known to the database, so neither created nor made twice.
  expect(await two.indexFile('a.txt', 'one\n')).toMatchObject({ id, action: 'unchanged' })
  write('two\n')
  expect(await two.indexFile('a.txt', 'two\n')).toMatchObject({ id, action: 'updated' })
  await two.flush()
  // A turn waits half a second for others' changes. A node that is slower is waited for by none, and a later turn sees them.
  let nowMs = 5_000_000
  const nextTurn = async (): Promise<string | null | undefined> => {
    await one.advance([], call((nowMs += 1_000)))
    return (await one.get(id))?.content
  }
  await expect.poll(nextTurn, { timeout: 30_000 }).toBe('two\n')
  expect((await one.history(id)).map(({ document }) => document.content)).toEqual(['one\n', 'two\n'])
})
