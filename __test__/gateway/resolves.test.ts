/**
 * Each ID and marker in each request brings back the original bytes, output and arguments, in every format: in the conversation
 * itself, after going back, in forks of its first messages, and in a new gateway on the same store.
 */
import { afterEach, expect, test } from 'vitest'
import type { Gateway } from '../../lib/gateway/gateway.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { WIRES } from '../../rig/wires.ts'
import { sendIn } from './wire-agents.ts'
import { beginning, checkNamed, longCall, written } from '../hosts/conversation.ts'
import type { Step } from '../hosts/conversation.ts'
import { textsOfTool, gatewayTo, JSON_TYPE, lasting, upstream } from './support.ts'
import { some } from '../rows.ts'

afterEach(cleanUp)

/** Long enough for a busy machine: a request that could not wait goes out in another form. */
const LIMIT_MS = 120_000

class Host {
  readonly #format: keyof typeof WIRES
  #gateway!: Gateway
  readonly #place = lasting()
  readonly #upstream = upstream((_, response) => response.writeHead(200, JSON_TYPE).end('{}'))
  #now = Date.UTC(2026, 0, 1)
  /** The number of IDs that the requests named, and of marks in place of arguments. */
  named = 0
  marks = 0

  constructor(format: keyof typeof WIRES) {
    this.#format = format
  }

  /** Starts a gateway on the store, in place of the one that runs. */
  async start(): Promise<void> {
    await this.#gateway?.close()
    // A later one rolls less by itself: what goes out collapsed is in the form that the first one sent.
    const open = this.#gateway === undefined ? {} : { open: { store: this.#place.store } }
    const { url } = await this.#upstream
    this.#gateway = (await gatewayTo(url, { ...this.#place, ...open, now: () => this.#now, limitMs: LIMIT_MS })).gateway
  }

  /** Sends a conversation, and checks what each ID in the request brings back. */
  async send(session: string, steps: readonly Step[]): Promise<void> {
    this.#now += 1_000
    const messages = steps.flatMap((step) => written[this.#format](step, 1))
    await sendIn(this.#gateway, this.#format, messages, WIRES[this.#format].headers(session))
    const sent = (await this.#upstream).seen.at(-1)!.body.toString()
    this.marks += sent.split('[collapsed #').length - 1
    const meta = this.#format === 'gemini' ? {} : { sessionId: session }
    this.named += await checkNamed(sent, steps, (id) => textsOfTool(this.#gateway, 'activate', { id }, meta))
  }
}

test.each(some(Object.keys(WIRES) as (keyof typeof WIRES)[], 1))('%s', async (format) => {
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
  expect(Math.min(host.named, host.marks)).toBeGreaterThan(0)
  for (const isRestarted of [false, true]) {
    if (isRestarted) await host.start()
    for (const share of [0.8, 0.45]) {
      const fork = beginning(steps, share)
      // Going back in the same session, and in a new one that begins with the same messages.
      for (const session of ['first', `fork ${share} ${isRestarted}`]) {
        const before = { ...host }
        await host.send(session, [...fork, { user: 'one' }])
        await host.send(session, [...fork, { user: 'one' }, { text: 'ok', calls: [] }, { user: 'two' }])
        expect([host.named > before.named, host.marks > before.marks], `${session}, ${share}, ${isRestarted}`).toEqual([true, true])
      }
    }
  }
})
