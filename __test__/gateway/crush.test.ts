/**
 * Crush's requests through the gateway, as its source writes them for Anthropic's format (charmbracelet/crush,
 * internal/agent/agent.go): markers on the last tool, the last part of the system prompt and the last two messages, tools of MCP
 * servers as `mcp_SERVER_TOOL`, and no session. The program itself is fetched from outside of the registry.
 */
import { afterEach, expect, test } from 'vitest'
import { cleanUp } from '../../rig/cleanup.ts'
import { startModelServer } from '../../rig/model-server.ts'
import { refusals } from '../../rig/valid.ts'
import { ask, broughtBack, gatewayTo, JSON_TYPE, long } from './support.ts'

afterEach(cleanUp)

const MARK = { cache_control: { type: 'ephemeral' } }
const TOOLS = ['bash', 'view', 'mcp_context_search', 'mcp_context_activate'].map((name) => ({ name, description: name, input_schema: { type: 'object' } }))

/** The body of a request with these messages. */
function bodyOf(messages: readonly { role: string; content: object[] }[]): object {
  const marked = messages.map((message, at) =>
    at < messages.length - 2
      ? message
      : { ...message, content: message.content.map((block, n) => (n < message.content.length - 1 ? block : { ...block, ...MARK })) },
  )
  return {
    model: 'claude-sonnet-4-5',
    max_tokens: 1000,
    stream: true,
    system: [{ type: 'text', text: 'You are Crush, a powerful AI assistant that runs in the CLI.', ...MARK }],
    tools: TOOLS.map((tool, at) => (at < TOOLS.length - 1 ? tool : { ...tool, ...MARK })),
    messages: marked,
  }
}

test('outputs leave and come back, markers stay, and no request is refused', async () => {
  const server = await startModelServer(() => 'ok')
  const { gateway, warnings } = await gatewayTo(server.url)
  const messages: { role: string; content: object[] }[] = []
  let plain = 0
  const send = async (): Promise<void> => {
    const body = JSON.stringify(bodyOf(messages))
    plain += body.length
    const { status } = await ask(`${gateway.url}/v1/messages`, { headers: { ...JSON_TYPE, 'user-agent': 'Charm-Crush/0.96.1', 'x-api-key': 'k' }, body })
    expect(status).toBe(200)
  }
  for (let turn = 0; turn < 10; turn += 1) {
    messages.push({ role: 'user', content: [{ type: 'text', text: `prompt ${turn}` }] })
    await send()
    for (let n = 0; n < 4; n += 1) {
      const id = `call_${turn}_${n}`
      messages.push(
        { role: 'assistant', content: [{ type: 'tool_use', id, name: 'bash', input: { command: `cat n${turn}_${n}`, description: 'shows' } }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: [{ type: 'text', text: long(`n${turn}_${n}`) }] }] },
      )
      await send()
    }
    messages.push({ role: 'assistant', content: [{ type: 'text', text: `done ${turn}` }] })
  }
  server.check()
  expect(warnings).toEqual([])
  for (const request of server.requests) {
    expect(refusals(request, [])).toEqual([])
    expect(request.raw.toString().split('"cache_control"').length - 1).toBe(Math.min(4, 2 + request.body.messages.length))
  }
  const own = server.requests.reduce((sum, { raw }) => sum + raw.length, 0)
  const [session, ...others] = gateway.ledger.sessions
  expect([session!.host, others]).toEqual(['crush', []])
  const names = (await broughtBack(gateway, server.requests.at(-1)!)).map((text) => /(n\d+_\d+) line 0 /.exec(text)?.[1])
  expect(names).toEqual([...new Set(names)])
  process.stderr.write(`Crush's format: ${(own / plain).toFixed(2)} of the plain bytes, ${session!.rolls.length} rolls\n`)
  expect(own / plain).toBeLessThan(0.6)
})
