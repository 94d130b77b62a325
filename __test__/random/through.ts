/** A host behind the gateway: it sends its conversation over HTTP after each event, asks on the side, and the gateway starts anew. */
import { cpSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { WIRES } from '../../rig/wires.ts'
import { written } from '../hosts/conversation.ts'
import type { Step } from '../hosts/conversation.ts'
import { ask, gatewayTo, JSON_TYPE, upstream } from '../gateway/support.ts'
import type { Seen } from '../gateway/support.ts'
import type { Gateway } from '../../lib/gateway/gateway.ts'
import type { StoreOptions } from '../../index.js'
import { folder } from '../core/setup.ts'
import { deadline } from '../../rig/cleanup.ts'
import type { Event, Host } from './host.ts'
import { fault } from './oracle.ts'
import type { Recalled } from './oracle.ts'
import { firstFault } from './faults.ts'
import type { Found } from './faults.ts'

/** Number of events between two checks that restore the text of a request's IDs. */
const RECALLS = 5

/** Long enough for a busy machine: a request that could not wait goes out in another form, which nothing here could repeat. */
const LIMIT_MS = 120_000

/** Time after which an answered request must be noted. */
const NOTED_MS = 60_000

/** The formats of the gateway. */
export const formats = Object.keys(WIRES) as (keyof typeof WIRES)[]

/** Runs events. Returns the first fault. */
export async function runGateway(
  events: Iterable<Event>,
  format: keyof typeof WIRES,
  place: { store: StoreOptions; formsPath: string },
): Promise<Found | undefined> {
  const world = new World(format, place)
  return firstFault(events, world, (host, isEdited, after) => world.pass(host, isEdited, after % RECALLS === 0))
}

/** A host's place behind a gateway. */
export class World {
  readonly #format: keyof typeof WIRES
  readonly #place: { store: StoreOptions; formsPath: string }
  #upstream!: { url: string; seen: Seen[] }
  #gateway!: Gateway
  #session = 0
  #now = Date.UTC(2026, 0, 1)
  #before: readonly object[] | undefined
  #named = new Set<string>()
  /** The rolls that the gateway has told of. */
  #rolls = 0

  constructor(format: keyof typeof WIRES, place: { store: StoreOptions; formsPath: string }) {
    this.#format = format
    this.#place = place
  }

  async open(): Promise<void> {
    this.#upstream = await upstream((_, response) => response.writeHead(200, JSON_TYPE).end('{}'))
    await this.#start()
  }

  close(): Promise<void> {
    return this.#gateway.close()
  }

  async #start(): Promise<void> {
    const { url } = this.#upstream
    this.#gateway = (
      await gatewayTo(url, { ...this.#place, upstreams: { anthropic: url, openai: `${url}/v1`, gemini: url }, now: () => this.#now, limitMs: LIMIT_MS })
    ).gateway
  }

  /**
   * Starts another gateway on a copy of what this one has stored, as if it had been killed now: the next request of the host finds the
   * same record and the same forms there.
   */
  async twin(): Promise<World> {
    const { store, formsPath } = this.#place
    if (store.kind !== 'sqlite') throw new Error('a store in memory has no copy')
    const path = folder()
    // Without the markers of its trackers, which come and go meanwhile.
    cpSync(dirname(store.path), path, { recursive: true, filter: (from) => basename(from) !== 'watch' })
    const twin = new World(this.#format, { store: { kind: 'sqlite', path: join(path, basename(store.path)) }, formsPath: join(path, basename(formsPath)) })
    twin.#session = this.#session
    twin.#now = this.#now
    await twin.open()
    return twin
  }

  /** Sends the conversation. Returns the body that arrives, and whether something was rolled in it. */
  async request({ steps }: Pick<Host, 'steps'>): Promise<{ body: Buffer; hasRolled: boolean }> {
    const { hasRolled } = await this.#send(steps)
    return { body: (this.#upstream.seen.at(-1) as Seen).body, hasRolled }
  }

  /** Does what happens beside the conversation. */
  async apply(event: Event): Promise<void> {
    this.#now += event.do === 'wait' ? 3_600_000 : 1_000
    if (event.do === 'aside') await this.#send([{ user: 'Give this a title' }])
    if (event.do === 'restart') {
      await this.close()
      await this.#start()
      this.#rolls = 0
    }
    if (event.do === 'fork') {
      this.#session += 1
      this.#before = undefined
      this.#named = new Set()
    }
  }

  /** Sends the conversation, and checks what arrives. */
  async pass({ steps }: Host, isEdited: boolean, recalls: boolean): Promise<string | undefined> {
    const messages = steps.flatMap((step) => written[this.#format](step, 1))
    const { sent, hasRolled } = await this.#send(steps)
    const before = isEdited || hasRolled ? undefined : this.#before
    this.#before = sent
    return fault({ steps, messages, sent, before, recall: recalls ? (id) => this.#recall(id) : undefined, named: this.#named })
  }

  /** Sends a conversation. Returns the messages that arrive, and whether something was rolled in it. */
  async #send(steps: readonly Step[]): Promise<{ sent: object[]; hasRolled: boolean }> {
    const { path, headers, body, list } = WIRES[this.#format]
    const { ledger, url } = this.#gateway
    const isNoted = new Promise<void>((resolve) => {
      const stop = ledger.listen(() => {
        stop()
        resolve()
      })
    })
    await ask(`${url}${path}`, {
      headers: { ...JSON_TYPE, ...headers(`random${this.#session}`) },
      body: JSON.stringify(body(steps.flatMap((step) => written[this.#format](step, 1)))),
    })
    await deadline(isNoted, NOTED_MS, () => 'the gateway has not noted a request')
    const rolls = ledger.sessions.reduce((sum, one) => sum + one.rolls.length, 0)
    const hasRolled = rolls !== this.#rolls
    this.#rolls = rolls
    return { sent: (JSON.parse((this.#upstream.seen.at(-1) as Seen).body.toString()) as Record<string, object[]>)[list] as object[], hasRolled }
  }

  /** Our tool's output for an ID. */
  async #recall(id: string): Promise<Recalled | undefined> {
    const params = { name: 'activate', arguments: { id }, _meta: { sessionId: `random${this.#session}` } }
    const { mcpUrl, secret } = this.#gateway
    const { text } = await ask(mcpUrl, {
      headers: { authorization: `Bearer ${secret}`, ...JSON_TYPE },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
    })
    const [content, args] = (JSON.parse(text) as { result: { content: { text: string }[] } }).result.content
    const given = args?.text.replace(/^arguments of the call: /, '')
    return content === undefined ? undefined : { content: content.text, ...(given === undefined ? {} : { args: JSON.parse(given) as unknown }) }
  }
}
