/** `inspect --call -1` of a session of the gateway: the request that the provider got, beside what the agent wrote, without a gateway. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { lookAt } from '../../lib/gateway/page/look.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { startModelServer } from '../../rig/model-server.ts'
import { resultsById } from '../../rig/request.ts'
import { folder } from '../core/setup.ts'
import { cli } from '../replay/support.ts'
import { gatewayTo } from './support.ts'
import { AGENTS, ID, talk } from './wire-agents.ts'

afterEach(cleanUp)

interface Message {
  role: string
  toolCallId?: string
  content: { type: string; text: string; id: string }[]
}

describe.each(Object.entries(AGENTS))('%s', (_name, agent) => {
  test('has the outputs, calls and lines of the last request, and tells the same changes as the page', async () => {
    const server = await startModelServer(() => 'ok')
    const home = folder()
    const store = join(home, 'context.db')
    const { gateway } = await gatewayTo(server.url, { store: { kind: 'sqlite', path: store }, formsPath: join(home, 'forms'), upstreams: { anthropic: server.url, openai: `${server.url}/v1`, gemini: server.url } })
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
    const { messages } = JSON.parse(stdout) as { messages: Message[] }
    const shown = new Map(messages.flatMap(({ role, toolCallId = '', content }) => (role === 'toolResult' ? [[toolCallId, content.map(({ text }) => text).join('\n')] as const] : [])))
    const got = resultsById(server.requests.at(-1)!)
    expect(got.size).toBeGreaterThan(0)
    // Gemini's calls have other IDs on the wire, so its outputs are compared in their order.
    const brief = (texts: Iterable<string>): string[] => [...texts].map((text) => `${text.length} ${text.slice(0, 90)}`)
    expect(brief(shown.values())).toEqual(brief(got.values()))
    expect([...shown.values()].every((text, n) => text === [...got.values()][n])).toBe(true)
    expect([...shown.values()].some((text) => text.startsWith('toolcall_ref '))).toBe(true)

    const words = await cli(['inspect', '--call', '-1', session, '--store', store], env)
    expect(words.stdout.split('\n')[0]).toBe(`The last request of ${session}`)
    for (const kind of ['replaced', 'shortened', 'removed'] as const) {
      const count = changes.changes.filter((one) => one.kind === kind).length
      expect([kind, Number(new RegExp(`^${kind} +(\\d+) `, 'm').exec(words.stdout)?.[1] ?? 0)]).toEqual([kind, count])
    }
  })
})

test.each<[what: string, args: string[], told: RegExp]>([
  ['a call before the last one', [ID.slice(0, 7), '--call', '3'], /of other sessions the store has the last request: --call -1/],
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
