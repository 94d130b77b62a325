/** `inspect --call` of a session of the gateway: the requests that the provider got, beside what the agent wrote, without a gateway. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { lookAt } from '../../lib/gateway/page/look.ts'
import { ContextManager } from '../../lib/index.ts'
import { recordedRequest } from '../../lib/inspect/index.ts'
import { inStore } from '../../lib/native/index.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import type { ModelRequest } from '../../rig/exchange.ts'
import { startModelServer } from '../../rig/model-server.ts'
import { resultsById } from '../../rig/request.ts'
import { folder } from '../core/setup.ts'
import { cli } from '../replay/support.ts'
import { gatewayTo } from './support.ts'
import { AGENTS, ID, talk } from './wire-agents.ts'
import { some } from '../rows.ts'

afterEach(cleanUp)

interface Message {
  role: string
  toolCallId?: string
  content: { type: string; text: string; id: string }[]
}

describe.each(some(Object.entries(AGENTS), 1))('%s', (_name, agent) => {
  test('has the outputs, calls and lines of the last request, and tells the same changes as the page', async () => {
    const server = await startModelServer(() => 'ok')
    const home = folder()
    const store = join(home, 'context.db')
    const { gateway } = await gatewayTo(server.url, {
      store: { kind: 'sqlite', path: store },
      formsPath: join(home, 'forms'),
    })
    await talk(gateway, agent, { prompts: 20, calls: 5 })
    const [conversation] = gateway.conversations.all
    const { changes } = await lookAt(conversation!)
    await gateway.close()
    // Nothing but the store is needed.
    rmSync(join(home, 'forms'), { recursive: true, force: true })

    const env = { PI_CODING_AGENT_DIR: join(home, 'no-pi') }
    const session = conversation!.id
    const { stdout, stderr, code } = await cli(['inspect', session, '--call', '-1', '--json', '--store', store], env)
    expect([code, stderr]).toEqual([0, ''])
    const shown = outputsIn(stdout)
    expectSame(shown, server.requests.at(-1)!)
    expect(shown.some((text) => text.startsWith('toolcall_ref '))).toBe(true)

    const words = await cli(['inspect', '--call', '-1', session, '--store', store], env)
    expect(words.stdout.split('\n')[0]).toBe(`Call ${server.requests.length - 1} of ${server.requests.length}, counted from 0: ${session}`)
    for (const kind of ['replaced', 'shortened', 'removed'] as const) {
      const count = changes.changes.filter((one) => one.kind === kind).length
      expect([kind, Number(new RegExp(`^${kind} +(\\d+) `, 'm').exec(words.stdout)?.[1] ?? 0)]).toEqual([kind, count])
    }
  })

  test('has the outputs of every earlier request, as they were in it', async () => {
    const server = await startModelServer(() => 'ok')
    const home = folder()
    const store = join(home, 'context.db')
    const options = {
      store: { kind: 'sqlite', path: store } as const,
      formsPath: join(home, 'forms'),
    }
    const { gateway } = await gatewayTo(server.url, options)
    const messages = await talk(gateway, agent, { prompts: 7, calls: 5 })
    const sessionId = gateway.conversations.all[0]!.id
    await gateway.close()
    // A second gateway continues, and the user goes back once. A session without an ID is another one then.
    const { gateway: next } = await gatewayTo(server.url, options)
    await talk(next, agent, { prompts: 3, calls: 5, from: 7, messages })
    if (agent.wire !== 'gemini') await talk(next, agent, { prompts: 1, calls: 2, from: 50, messages: messages.slice(0, -2 * 5 - 2) })
    await next.close()

    const { requests } = server
    const file = join(home, 'session.jsonl')
    await inStore(options.store, (one) => one.export(file, sessionId))
    let collapsed = 0
    for (const [call, request] of requests.entries()) {
      if (call % 6 !== 0 && call < requests.length - 4) continue
      const manager = await ContextManager.importSession(file, {
        sessionId,
        cwd: '/',
        store: { kind: 'memory' },
        filesystemId: 'inspect',
        watch: false,
        watchUnmapped: false,
      })
      const { calls, request: found } = await recordedRequest(manager, call)
      await manager.close()
      expect(calls).toBe(requests.length)
      const shown = outputsIn(JSON.stringify({ messages: found!.sent }))
      expectSame(shown, request, call)
      collapsed += call < requests.length - 10 && shown.some((text) => text.startsWith('toolcall_ref ')) ? 1 : 0
    }
    expect(collapsed).toBeGreaterThan(0)
  })
})

/** The texts of a request's outputs, in their order: Gemini's calls have other IDs on the wire. */
function outputsIn(json: string): string[] {
  const { messages } = JSON.parse(json) as { messages: Message[] }
  return messages.flatMap(({ role, content }) => (role === 'toolResult' ? [content.map(({ text }) => text).join('\n')] : []))
}

function expectSame(shown: readonly string[], request: ModelRequest, call = -1): void {
  const got = [...resultsById(request).values()]
  const brief = (texts: readonly string[]): string[] => texts.map((text) => `${text.length} ${text.slice(0, 90)}`)
  expect([call, ...brief(shown)]).toEqual([call, ...brief(got)])
  expect(shown.every((text, n) => text === got[n])).toBe(true)
}

test.each<[what: string, args: string[], told: RegExp]>([
  ['a call that does not exist', [ID.slice(0, 7), '--call', '3'], /has 2 calls, counted from 0, so call 3 does not exist/],
  ['one before the first', [ID.slice(0, 7), '--call', '-3'], /has 2 calls, counted from 0, so call -1 does not exist/],
  ['a session that is in no store', ['0199aaaa', '--call', '-1'], /has no session 0199aaaa/],
  ['no session', ['--call', '-1'], /--call needs --session or --pi-session/],
])('%s is told', async (_what, args, told) => {
  const server = await startModelServer(() => 'ok')
  const store = join(folder(), 'context.db')
  const { gateway } = await gatewayTo(server.url, { store: { kind: 'sqlite', path: store } })
  await talk(gateway, AGENTS['Claude Code']!, { prompts: 1, calls: 1 })
  await gateway.close()
  const { stderr, code } = await cli(['inspect', ...args, '--store', store], { PI_CODING_AGENT_DIR: folder() })
  expect([code !== 0, stderr]).toEqual([true, expect.stringMatching(told)])
})
