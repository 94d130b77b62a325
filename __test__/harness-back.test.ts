/** A host that goes back in its conversation, before a roll: what has collapsed stays so, as the provider has it cached. */
import { afterEach, describe, expect, test } from 'vitest'
import type { ContextManager } from '../lib/index.ts'
import { Projection } from '../lib/projection/harness.ts'
import type { ProjectedModel } from '../lib/projection/harness.ts'
import { folder, opened } from './core/setup.ts'
import { output } from './hosts/script.ts'
import { cleanUp } from '../rig/cleanup.ts'
import { SOON } from '../rig/extension.ts'
import { random } from '../rig/random.ts'
import { startModelServer } from '../rig/model-server.ts'
import { PlainLoop } from '../rig/plain-loop.ts'
import { lossOf } from '../rig/strict.ts'
import { thinker } from '../rig/thinker.ts'
import { some } from './rows.ts'

afterEach(cleanUp)

const PRICES = { contextWindow: 200_000, input: 4, cacheRead: 0.2, cacheWrite: 5 }
const MODELS: Record<string, ProjectedModel> = {
  'a model that binds its reasoning': { ...PRICES, name: 'claude-opus-5-5' },
  'a model that does not': { ...PRICES, name: 'claude-opus-4-6' },
}

const wordsOf = (turn: string | number, count = 4) => `show ${Array.from({ length: count }, (_, n) => `n${turn}_${n}`).join(' ')}`

/** Number of items that two lists have in common at their beginnings. */
function commonOf(one: readonly string[], other: readonly string[]): number {
  const different = one.findIndex((item, index) => item !== other[index])
  return different < 0 ? one.length : different
}

describe.each(Object.entries(MODELS))('%s', (_, model) => {
  /** A conversation until its first roll, which came with the last prompt; what a later request would share with that one. */
  async function rolled() {
    const server = await startModelServer(thinker, model === MODELS['a model that does not'] ? { account: 'old' } : {})
    const open = { cwd: folder(), stay: SOON, store: { kind: 'sqlite', path: `${folder()}/store.db` } as const, sessionId: 's' }
    let rolls = 0
    let sent: object[] = []
    const projected = (manager: ContextManager, sentMs?: number) =>
      new Projection(manager, { shortens: true, systemTokens: 3000, model, onRoll: () => (rolls += 1), ...(sentMs === undefined ? {} : { sentMs }) })
    let manager = await opened(open)
    let projection = projected(manager)
    const prepare = async (messages: readonly object[]) => (sent = structuredClone(await projection.transform(messages)))
    const loop = new PlainLoop({ server, api: 'anthropic-messages', run: (__, { name }) => output(name), prepare })
    const starts: number[] = []
    for (let turn = 0; rolls === 0; turn += 1) {
      expect(turn).toBeLessThan(40)
      starts.push(loop.messages.length)
      await loop.prompt(wordsOf(turn))
    }
    return {
      server,
      loop,
      manager: () => manager,
      last: () => sent,
      /** Removes this many prompts, with all that followed. */
      back: (prompts: number) => void loop.messages.splice(starts.at(-prompts) as number),
      restart: async () => {
        await manager.close()
        manager = await opened(open)
        projection = projected(manager, Date.now())
      },
    }
  }

  test.each([
    [1, false],
    [2, false],
    [1, true],
  ])('%i prompts back; in a new process: %s', async (prompts, restarts) => {
    const { server, loop, manager, last, back, restart } = await rolled()
    const before = last()
    back(prompts)
    const kept = loop.messages.length
    if (restarts) await restart()
    await loop.prompt('another prompt')
    const now = last()
    // As far as the conversation is the same, so are its bytes.
    const same = now.findIndex((message) => JSON.stringify(message).includes('another prompt'))
    expect(same).toBeLessThan(kept)
    expect(now.slice(0, same)).toEqual(before.slice(0, same))
    expect(JSON.stringify(now.slice(0, same))).toContain('toolcall_ref')
    expect((await manager().receipts()).length).toBe(1)
    // The conversation continues, also in a further process.
    await loop.prompt(wordsOf('x'))
    const then = last()
    if (restarts) await restart()
    await loop.prompt(wordsOf('y'))
    expect(last().slice(0, then.length)).toEqual(then)
    expect(lossOf(server.requests).refused).toBe(0)
    server.check()
  })
})

/** The record then has more than the conversation. */
test.each([
  ['its first prompt', 0, 10],
  ['a call in the middle', 13, 2],
])('a host that has removed %s goes back', async (_, from, count) => {
  const manager = await opened({ cwd: folder(), stay: SOON })
  let rolls = 0
  const projection = new Projection(manager, { shortens: true, model: { ...PRICES, name: 'claude-opus-4-6' }, onRoll: () => (rolls += 1) })
  const messages: object[] = []
  const prompt = async (name: string): Promise<void> => {
    messages.push({ role: 'user', content: `prompt ${name}` })
    for (let n = 0; n < 4; n += 1) {
      messages.push({ role: 'assistant', content: [{ type: 'tool_use', id: `${name}_${n}`, name: 'show', input: { name: `${name}_${n}` } }] })
      messages.push({ role: 'user', content: [{ type: 'tool_result', tool_use_id: `${name}_${n}`, content: output(`${name}_${n}`) }] })
      await projection.transform(messages)
    }
    messages.push({ role: 'assistant', content: [{ type: 'text', text: `done ${name}` }] })
  }
  await prompt('a')
  await prompt('b')
  messages.splice(from, count)
  let turn = 0
  while (rolls === 0) {
    expect(turn).toBeLessThan(40)
    await prompt(`t${(turn += 1)}`)
  }
  const before = (await projection.transform(messages)).map((one) => JSON.stringify(one))
  const index = (await manager.sessionSets()).sessionIndex.length
  messages.splice(-10)
  rolls = 0
  messages.push({ role: 'user', content: 'another prompt' })
  const now = (await projection.transform(messages)).map((one) => JSON.stringify(one))
  expect(rolls).toBe(0)
  expect(now.slice(0, -1)).toEqual(before.slice(0, now.length - 1))
  expect(now.join()).toContain('toolcall_ref')
  expect((await manager.sessionSets()).sessionIndex.length).toBe(index)
})

/** Whatever is removed from the end, asked again, said again or sent again, only a roll and the host itself change what was sent. */
test.each(some([9, 10, 11, 12, 14], 2))('random conversation %i that goes back and forth, in several processes', async (seed) => {
  const { below, pick } = random(seed)
  const [binds, name] = seed % 2 === 0 ? [true, 'claude-opus-5-5'] : [false, 'claude-opus-4-6']
  const server = await startModelServer(thinker, binds ? {} : { account: 'old' })
  const open = { cwd: folder(), stay: SOON, store: { kind: 'sqlite', path: `${folder()}/store.db` } as const, sessionId: 's' }
  let rolls = 0
  const projected = (manager: ContextManager, sentMs?: number) =>
    new Projection(manager, {
      shortens: true,
      systemTokens: 3000,
      model: { ...PRICES, name },
      onRoll: () => (rolls += 1),
      ...(sentMs === undefined ? {} : { sentMs }),
    })
  let manager = await opened(open)
  let projection = projected(manager)
  let last = { raw: [] as string[], sent: [] as string[], rolls: 0 }
  const size = (messages: readonly string[]): number => messages.reduce((sum, { length }) => sum + length, 0)
  const prepare = async (messages: readonly object[]) => {
    const sent = structuredClone(await projection.transform(messages))
    const now = { raw: messages.map((one) => JSON.stringify(one)), sent: sent.map((one) => JSON.stringify(one)), rolls }
    if (now.rolls === last.rolls) {
      const news = size(now.raw.slice(commonOf(last.raw, now.raw)))
      expect(size(now.sent.slice(commonOf(last.sent, now.sent)))).toBeLessThanOrEqual(news)
    }
    last = now
    // A host that tries again, or has asked before only to count tokens, gets the same.
    if (below(3) === 0) expect(await projection.transform(messages)).toEqual(sent)
    return sent
  }
  const loop = new PlainLoop({ server, api: 'anthropic-messages', run: (_, { name }) => output(name), prepare })
  const said: string[] = []
  let starts: number[] = []
  for (let step = 0; step < 60; step += 1) {
    starts = starts.filter((start) => start < loop.messages.length)
    const kind = starts.length < 3 ? 0 : below(14)
    if (kind < 10) {
      const isSaidAgain = below(4) === 0 && said.length > 0
      const text = isSaidAgain ? pick(said) : `${wordsOf(step, 1 + below(5))}\n${below(3) === 0 ? `words of ${step} `.repeat(150) : ''}`
      said.push(text)
      starts.push(loop.messages.length)
      await loop.prompt(text)
    } else if (kind < 12) loop.messages.splice(starts.at(-1 - below(Math.min(4, starts.length - 1))) as number)
    else if (kind === 12) {
      loop.messages.pop()
      await loop.resume()
    } else {
      await manager.close()
      manager = await opened(open)
      projection = projected(manager, Date.now())
    }
  }
  expect(rolls).toBeGreaterThan(0)
  expect(lossOf(server.requests).refused).toBe(0)
  server.check()
})
