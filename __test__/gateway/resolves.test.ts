/**
 * Each ID and marker in each request brings back the original bytes, output and arguments, in every format: in the conversation
 * itself, after going back, in forks of its first messages, and in a new gateway on the same store.
 */
import { afterEach, expect, test } from 'vitest'
import type { Gateway } from '../../lib/gateway/gateway.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { longCall, NAMED, written } from '../hosts/conversation.ts'
import type { Step } from '../hosts/conversation.ts'
import { WIRES } from './wires.ts'
import { ask, gatewayTo, JSON_TYPE, lasting, upstream } from './support.ts'

afterEach(cleanUp)

/** Long enough for a busy machine: a request that could not wait goes out in another form. */
const LIMIT_MS = 120_000

class Host {
  readonly #format: keyof typeof WIRES
  #gateway!: Gateway
  readonly #place = lasting()
  readonly #upstream = upstream((_, response) => response.writeHead(200, JSON_TYPE).end('{}'))
  #now = Date.UTC(2026, 0, 1)
  /** The number of IDs that the requests named. */
  named = 0

  constructor(format: keyof typeof WIRES) {
    this.#format = format
  }

  /** Starts a gateway on the store, in place of the one that runs. */
  async start(): Promise<void> {
    await this.#gateway?.close()
    const { url } = await this.#upstream
    const upstreams = { anthropic: url, openai: `${url}/v1`, gemini: url }
    this.#gateway = (await gatewayTo(url, { ...this.#place, upstreams, now: () => this.#now, limitMs: LIMIT_MS })).gateway
  }

  /** Sends a conversation, and checks what each ID in the request brings back. */
  async send(session: string, steps: readonly Step[]): Promise<void> {
    const { path, headers, body } = WIRES[this.#format]
    this.#now += 1_000
    const messages = steps.flatMap((step) => written[this.#format](step, 1))
    const { status } = await ask(`${this.#gateway.url}${path}`, { headers: { ...JSON_TYPE, ...headers(session) }, body: JSON.stringify(body(messages)) })
    expect(status).toBe(200)
    const sent = (await this.#upstream).seen.at(-1)!.body.toString()
    for (const id of new Set([...sent.matchAll(NAMED)].map((found) => found[1]!))) {
      this.named += 1
      const [output, given] = await this.#recalled(session, id)
      const found = steps.flatMap((step) => ('user' in step ? [] : step.calls)).find((one) => one.output === output)
      expect(found, `${id} brings back ${output?.slice(0, 80)}`).toBeDefined()
      const isShown = [found!.args['content'], (found!.args['edits'] as { newText: string }[])[0]!.newText].every((text) => isIn(sent, String(text)))
      if (isShown) continue
      expect(given, `the arguments of ${id}`).toBeDefined()
      expect(JSON.parse(given!.replace('arguments of the call: ', ''))).toEqual(found!.args)
    }
  }

  async #recalled(session: string, id: string): Promise<string[]> {
    const meta = this.#format === 'gemini' ? {} : { _meta: { sessionId: session } }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'activate', arguments: { id }, ...meta } })
    const { text } = await ask(this.#gateway.mcpUrl, { headers: { authorization: `Bearer ${this.#gateway.secret}`, ...JSON_TYPE }, body })
    return (JSON.parse(text) as { result: { content: { text: string }[] } }).result.content.map((one) => one.text)
  }
}

/** True if a body has a text whole; the formats of OpenAI have arguments as JSON within JSON. */
function isIn(body: string, text: string): boolean {
  const once = JSON.stringify(text).slice(1, -1)
  return body.includes(once) || body.includes(JSON.stringify(once).slice(1, -1))
}

test.each(Object.keys(WIRES) as (keyof typeof WIRES)[])('%s', async (format) => {
  const host = new Host(format)
  await host.start()
  const steps: Step[] = []
  for (let n = 0; n < 20; n += 1) {
    if (n % 4 === 0) {
      steps.push(...(n === 0 ? [] : [{ text: `answer ${n}`, calls: [] }]), { user: `prompt ${n}` })
      await host.send('first', steps)
    }
    steps.push(longCall(n))
    await host.send('first', steps)
  }
  expect(host.named).toBeGreaterThan(0)
  for (const isRestarted of [false, true]) {
    if (isRestarted) await host.start()
    for (const share of [0.8, 0.45]) {
      const fork = steps.slice(
        0,
        steps.findIndex((step, at) => at > share * steps.length && 'user' in step),
      )
      // Going back in the same session, and in a new one that begins with the same messages.
      for (const session of ['first', `fork ${share} ${isRestarted}`]) {
        const before = host.named
        await host.send(session, [...fork, { user: 'one' }])
        await host.send(session, [...fork, { user: 'one' }, { text: 'ok', calls: [] }, { user: 'two' }])
        expect(host.named, `${session}, ${share}, ${isRestarted}`).toBeGreaterThan(before)
      }
    }
  }
})
