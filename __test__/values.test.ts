/** Values that cross the border to the native part: any JSON, however large, and histories that share as much as they can. */
import { afterEach, describe, expect, test } from 'vitest'
import type { ContextManager, IncomingMessage, ModelCall } from '../lib/index.ts'
import { expectedHashes, folder, opened, sqlite } from './core/setup.ts'
import { cleanUp } from '../rig/cleanup.ts'

afterEach(cleanUp)

/** More than a million values; each was counted and refused beyond that. */
const MANY = 1_100_000

const call = (id: string, args: object) => ({ id, tool: 'custom', args, content: 'out', status: 'ok' as const })

describe('values', () => {
  test('an own field named __proto__ returns unchanged, at any depth and by every way', async () => {
    const manager = await opened({ cwd: folder() })
    const text = '{"__proto__":{"polluted":true},"list":[{"__proto__":null}],"toJSON":1}'
    const args = JSON.parse(text) as object
    await manager.recordToolcall(call('c', args))
    await manager.appendTurn({ role: 'user', content: args })
    const { activeContent, chat } = await manager.assemble()
    const document = (await manager.get('c'))!
    const [version] = await manager.history('c')
    const [queried] = await manager.query({ type: 'toolcall' })
    const found = [document['args'], version!.document['args'], queried!['args'], (chat.at(-1) as { content: unknown }).content]
    for (const one of found) {
      expect(Object.keys(one as object).sort()).toEqual(['__proto__', 'list', 'toJSON'])
      expect(Object.getPrototypeOf(one)).toBe(Object.prototype)
      expect(JSON.parse(JSON.stringify(one))).toEqual(JSON.parse(text))
      expect(JSON.stringify((one as { list: unknown }).list)).toBe('[{"__proto__":null}]')
    }
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
    expect(activeContent).toContain('out')
    expect(document['content_hash']).toBe(expectedHashes(document).content_hash)
  })

  test('converts values JSON cannot represent', async () => {
    const manager = await opened({ cwd: folder() })
    const date = new Date(0)
    await manager.recordToolcall(call('c', { date, small: 12n, large: 2n ** 80n, gap: [undefined], nothing: undefined, zero: -0, big: 2 ** 53 }))
    expect((await manager.get('c'))?.['args']).toEqual({ date: date.toISOString(), small: 12, large: `${2n ** 80n}`, gap: [null], zero: 0, big: 2 ** 53 })
  })

  test('objects that hold each other more often than memory could are refused', async () => {
    const manager = await opened({ cwd: folder() })
    let args: object = {}
    for (let level = 0; level < 60; level += 1) args = { a: args, b: args }
    await expect(manager.recordToolcall(call('c', args))).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  })
})

const CALL: ModelCall = {
  model: 'm',
  prices: { input: 3, cacheRead: 0.3, cacheWrite: 3.75 },
  contextWindow: 200_000,
  cacheTtlMs: 300_000,
  nowMs: 1,
  systemTokens: 0,
  onlyAtUserTurn: false,
  atUserTurn: true,
  rolls: true,
}

/** An object with twice the fields that are taken, which notes how many of them are looked at. */
function widest(): { args: object; looked: () => number } {
  const names = Array.from({ length: 200_000 }, (_, n) => `k${n}`)
  let count = 0
  const args = new Proxy({} as Record<string, number>, {
    ownKeys: () => names,
    getOwnPropertyDescriptor: () => {
      count += 1
      return { value: 1, enumerable: true, configurable: true, writable: true }
    },
    get: (target, name) => {
      if (typeof name === 'symbol' || name === 'toJSON') return Reflect.get(target, name)
      count += 1
      return 1
    },
  })
  return { args, looked: () => count }
}

describe('more fields of one object than are taken', () => {
  const message = (args: object): object => ({
    role: 'assistant',
    content: [
      { type: 'text', text: 'x' },
      { type: 'toolCall', id: 'c', name: 'custom', arguments: args },
    ],
    timestamp: 1,
  })

  test('are refused after the first one too many, and before anything is written', async () => {
    const manager = await opened({ cwd: folder() })
    for (const refused of [
      (args: object) => manager.recordToolcall(call('c', args)),
      (args: object) => manager.appendTurn({ role: 'user', content: args }),
      (args: object) => manager.advance([{ key: 'k', message: message(args) } as IncomingMessage], CALL),
      (args: object) => manager.transformContext([message(args)]),
    ]) {
      const { args, looked } = widest()
      await expect(refused(args)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('100000 fields') })
      expect(looked()).toBeLessThan(101_000)
    }
    expect((await manager.sessionSets()).sessionIndex).toEqual([])
    expect((await manager.get('chat:s'))!['turns']).toEqual([])
  })

  test('are listed once, however often the conversation is handed over', async () => {
    const manager = await opened({ cwd: folder() })
    const { args, looked } = widest()
    const messages = [{ role: 'user', content: 'x', timestamp: 1 }, message(args)]
    await expect(manager.transformContext(messages)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    const once = looked()
    await expect(manager.transformContext(messages)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    expect(looked()).toBe(once)
    expect(await manager.transformContext(messages.slice(0, 1))).toEqual(messages.slice(0, 1))
  })

  test('the last accepted value returns', async () => {
    const manager = await opened({ cwd: folder() })
    const args = Object.fromEntries(Array.from({ length: 100_000 }, (_, n) => [`k${n}`, n]))
    await manager.recordToolcall(call('c', args))
    const found = (await manager.get('c'))!['args'] as Record<string, number>
    expect([Object.keys(found).length, found['k99999']]).toEqual([100_000, 99_999])
  })
})

describe('more than a million values', () => {
  test('in the arguments of a call', async () => {
    const manager = await opened({ cwd: folder() })
    await manager.recordToolcall(call('c', { list: new Array<number>(MANY).fill(7) }))
    const { list } = (await manager.get('c'))!['args'] as { list: number[] }
    expect([list.length, list.at(-1)]).toEqual([MANY, 7])
  })

  test('in a message that is projected, in the view of it, and in a chat that is read', async () => {
    const manager = await opened({ cwd: folder() })
    const content = new Array<object>(MANY / 2).fill({ type: 'text' })
    const messages = [{ role: 'user', content, timestamp: 1 }]
    expect(await manager.transformContext(messages)).toEqual(messages)
    await manager.appendTurn({ role: 'user', content })
    const chat = (await manager.get('chat:s'))!['turns'] as { user: unknown[] }[]
    expect(chat.map(({ user }) => user.length)).toEqual([MANY / 2, MANY / 2])
    expect((await manager.assemble()).chat.map((message) => (message as { content: unknown[] }).content.length)).toEqual([MANY / 2, MANY / 2])
  })
})

describe('histories', () => {
  const TURNS = 60

  async function conversation(): Promise<ContextManager> {
    const manager = await opened({ cwd: folder(), store: sqlite() })
    for (let n = 0; n < TURNS; n += 1) {
      await manager.appendTurn({ role: 'user', content: `question ${n}` })
      await manager.appendTurn({ role: 'assistant', content: [{ type: 'text', text: `answer ${n}` }] })
    }
    return manager
  }

  test('the versions of a chat share their turns, so that memory follows the chat and not its square', async () => {
    const manager = await conversation()
    const history = await manager.history('chat:s')
    expect(history).toHaveLength(2 * TURNS + 1)
    const turns = new Set(history.flatMap(({ document }) => document['turns'] as object[]))
    // Each turn has one form with an answer and one without.
    expect(turns.size).toBe(2 * TURNS)
    for (const { document, txId } of history) {
      expect(document).toEqual(await manager.getAsOf('chat:s', { txId }))
      expect(document).toMatchObject(expectedHashes(document))
    }
  })

  test('a part has the requested versions, and the parts together are the history', async () => {
    const manager = await conversation()
    const whole = await manager.history('chat:s')
    const parts = []
    for (let after = 0; ; after = parts.at(-1)!.txId) {
      const part = await manager.history('chat:s', { after, limit: 25 })
      if (part.length === 0) break
      expect(part.length).toBeLessThanOrEqual(25)
      parts.push(...part)
    }
    expect(parts).toEqual(whole)
    expect(await manager.history('chat:s', { limit: 0 })).toEqual([])
    expect(await manager.history('chat:s', { after: whole.at(-1)!.txId })).toEqual([])
    expect(await manager.history('chat:s', { after: whole[9]!.txId, limit: 3 })).toEqual(whole.slice(10, 13))
    expect(await manager.history('absent', { limit: 3 })).toEqual([])
  })
})
