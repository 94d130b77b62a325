/** A host that goes back in its conversation, before a roll: what has collapsed stays so, as the provider has it cached. */
import { afterEach, describe, expect, test } from 'vitest'
import type { ContextManager } from '../lib/index.ts'
import { Projection } from '../lib/harness.ts'
import type { ProjectedModel } from '../lib/harness.ts'
import { folder, opened } from './core/setup.ts'
import { output } from './hosts/script.ts'
import { cleanUp } from './rig/cleanup.ts'
import { SOON } from './rig/extension.ts'
import { startModelServer } from './rig/model-server.ts'
import { PlainLoop } from './rig/plain-loop.ts'
import { calls } from './rig/reply.ts'
import type { ModelRequest } from './rig/request.ts'
import { lossOf } from './rig/strict.ts'

afterEach(cleanUp)

const PRICES = { contextWindow: 200_000, input: 4, cacheRead: 0.2, cacheWrite: 5 }
const MODELS: Record<string, ProjectedModel> = {
  'a model that binds its reasoning': { ...PRICES, name: 'claude-opus-5-5' },
  'a model that does not': { ...PRICES, name: 'claude-opus-4-6' },
}

/** Thinks before each answer; a prompt `show a b` calls twice, one after the other. */
function thinker(request: ModelRequest) {
  const at = request.messages.findLastIndex(({ role, text }) => role === 'user' && text.startsWith('show '))
  const words = (request.messages[at]?.text ?? '').split(/\s/).slice(1)
  const word = words[request.messages.slice(at + 1).filter(({ role }) => role === 'assistant').length]
  const thinking = `thought ${request.n} ${'hm '.repeat(50)}`
  return word === undefined ? { thinking, text: `done ${request.n}` } : { thinking, ...calls(['show', { name: word }, `call_${request.n}`]) }
}

const wordsOf = (turn: string | number) => `show ${Array.from({ length: 4 }, (_, n) => `n${turn}_${n}`).join(' ')}`

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
    // And goes on: in a further process, too.
    await loop.prompt(wordsOf('x'))
    const then = last()
    if (restarts) await restart()
    await loop.prompt(wordsOf('y'))
    expect(last().slice(0, then.length)).toEqual(then)
    expect(lossOf(server.requests).refused).toBe(0)
    server.check()
  })
})
