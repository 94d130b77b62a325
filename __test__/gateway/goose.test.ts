/**
 * Goose's requests through the gateway, as its source writes them (block/goose, crates/goose/src/providers/formats/openai.rs and
 * agents/moim.rs): the program itself can't be had from a registry. Before the newest answer stands a note about the time and
 * the folder, which is new in each request, and answers of one turn without words of their own are merged into its first one.
 */
import { afterEach, expect, test } from 'vitest'
import { cleanUp } from '../../rig/cleanup.ts'
import { startModelServer } from '../../rig/model-server.ts'
import { refusals } from '../../rig/valid.ts'
import { ask, broughtBack, gatewayTo, JSON_TYPE, long } from './support.ts'

afterEach(cleanUp)

const SESSION = '20261129_3'
const NAMES = ['developer__shell', 'developer__text_editor', 'context__activate', 'context__search']
const TOOLS = NAMES.map((name) => ({ type: 'function', function: { name, description: name, parameters: { type: 'object', properties: {} } } }))

interface Call {
  id: string
  type: 'function'
  function: { name: string; arguments: string }
}

/** A message as Goose sends it. */
interface Sent {
  role: string
  content?: string | null
  tool_calls?: Call[]
  tool_call_id?: string
}

/** One conversation. */
class GooseLoop {
  readonly messages: Sent[] = []
  readonly url: string
  /** The requests, as they came. */
  readonly bodies: string[] = []

  constructor(url: string) {
    this.url = url
  }

  async call(id: string, command: string, output: string): Promise<void> {
    const call: Call = { id, type: 'function', function: { name: 'developer__shell', arguments: JSON.stringify({ command }) } }
    this.messages.push({ role: 'assistant', content: null, tool_calls: [call] }, { role: 'tool', content: output, tool_call_id: id })
    await this.send()
  }

  /** The messages of the next request. */
  get sent(): Sent[] {
    const all = structuredClone(this.messages)
    const place = Math.max(
      0,
      all.findLastIndex(({ role }) => role === 'assistant'),
    )
    all.splice(place, 0, { role: 'user', content: `<info-msg>\nIt is currently 2026-11-29 12:00:${this.bodies.length}\nWorking directory: /w\n</info-msg>` })
    const merged: Sent[] = []
    for (const message of all) {
      const first = merged.findLastIndex(({ role }) => role !== 'tool')
      const before = merged[first]
      const isSplit = before?.tool_calls !== undefined && merged.length - first > 1 && message.tool_calls !== undefined && message.content === null
      if (isSplit) before.tool_calls!.push(...message.tool_calls!)
      else merged.push(message)
    }
    return [{ role: 'system', content: 'You are a general-purpose AI agent called goose, created by Block.' }, ...merged]
  }

  async send(): Promise<void> {
    this.bodies.push(JSON.stringify({ model: 'gpt-5.1', stream: true, messages: this.sent, tools: TOOLS }))
    const { status, text } = await ask(`${this.url}/v1/chat/completions`, {
      headers: { ...JSON_TYPE, 'user-agent': 'goose/1.30.0', 'agent-session-id': SESSION, authorization: 'Bearer sk-secret' },
      body: this.bodies.at(-1)!,
    })
    expect([status, text]).toEqual([200, expect.any(String)])
  }
}

test('outputs leave and come back, in one session, and no request is refused', async () => {
  const server = await startModelServer(() => 'ok')
  const { gateway, warnings } = await gatewayTo(server.url)
  const loop = new GooseLoop(`${new URL(gateway.url).origin}/openai`)
  for (let turn = 0; turn < 10; turn += 1) {
    loop.messages.push({ role: 'user', content: `prompt ${turn}` })
    await loop.send()
    for (let n = 0; n < 4; n += 1) await loop.call(`call_${turn}_${n}`, `cat n${turn}_${n}`, long(`n${turn}_${n}`))
    loop.messages.push({ role: 'assistant', content: `done ${turn}` })
  }
  server.check()
  expect(warnings).toEqual([])
  for (const request of server.requests) expect(refusals(request, [])).toEqual([])
  expect(gateway.ledger.sessions.map(({ session }) => session)).toEqual([`goose:${SESSION}`])
  const names = (await broughtBack(gateway, server.requests.at(-1)!)).map((text) => /(n\d+_\d+) line 0 /.exec(text)?.[1])
  expect(names).toEqual([...new Set(names)])
  const own = server.requests.reduce((sum, { raw }) => sum + raw.length, 0)
  const plain = loop.bodies.reduce((sum, body) => sum + body.length, 0)
  process.stderr.write(`Goose's format: ${(own / plain).toFixed(2)} of the plain bytes, ${gateway.ledger.sessions[0]!.rolls.length} rolls\n`)
  expect(own / plain).toBeLessThan(0.6)
})

test('a subagent that has the name of its session leaves the conversation alone', async () => {
  const server = await startModelServer(() => 'ok')
  const { gateway } = await gatewayTo(server.url)
  const url = `${new URL(gateway.url).origin}/openai`
  const [main, other] = [new GooseLoop(url), new GooseLoop(url)]
  for (const [loop, prompt] of [
    [main, 'mend the tests\nand say why they failed\nbefore you begin'],
    [other, 'look for the word "lamp"\nin all files\nand count it'],
  ] as const) {
    loop.messages.push({ role: 'user', content: prompt })
    await loop.send()
    for (let n = 0; n < 3; n += 1) await loop.call(`call_${prompt.slice(0, 4)}_${n}`, `cat n${n}`, long(`n${n}`))
  }
  expect(server.requests.map(({ raw }) => raw.toString())).toEqual([...main.bodies, ...other.bodies])
  // It is a separate conversation.
  expect(gateway.conversations.all.map(({ raw }) => JSON.stringify(raw).includes('lamp'))).toEqual([false, true])
})
