/**
 * In OpenAI's Responses format an answer is a list of items, and nothing stands between it and the next one. An answer that came in a
 * request of its own stays an answer of its own: after a restart, in a fork, and where the host changes something else.
 */
import { afterEach, describe, expect, test } from 'vitest'
import { Projection } from '../lib/projection/harness.ts'
import { ContextManager } from '../lib/index.ts'
import type { StoreOptions } from '../lib/index.ts'
import { FILESYSTEM, folder, sqlite } from './core/setup.ts'
import { cleanUp } from '../rig/cleanup.ts'

afterEach(cleanUp)

const MODEL = { name: 'm', contextWindow: 60_000, input: 3, cacheRead: 0.3, cacheWrite: 3.75 }
const ROUNDS = 8
/** Requests grow by less than this where nothing that has left comes back: the outputs of one round have ten times as much. */
const SMALL = 800

const said = (text: string): object => ({ type: 'message', role: 'assistant', content: [{ type: 'output_text', text, annotations: [] }] })
const thought = (text: string): object => ({ type: 'reasoning', id: `rs_${text}`, summary: [{ type: 'summary_text', text }], encrypted_content: 'c2ln' })
const called = (id: string): object[] => [
  { type: 'function_call', call_id: id, name: 'bash', arguments: JSON.stringify({ command: `run ${id}` }) },
  { type: 'function_call_output', call_id: id, output: `${id}\n${'a line of some output\n'.repeat(400)}` },
]

/** What the host adds before each request of a round. */
const HOSTS: Record<string, (round: number) => object[][]> = {
  'a text, then a call': (n) => [[said(`text ${n}`)], called(`c${n}`)],
  'two texts, then a call': (n) => [[said(`one ${n}`)], [said(`two ${n}`)], called(`c${n}`)],
  'equal texts, then a call': (n) => [[said('yes')], [said('yes')], called(`c${n}`)],
  'a text, then a text with a call': (n) => [[said(`text ${n}`)], [said(`more ${n}`), ...called(`c${n}`)]],
  'reasoning each time': (n) => [[thought(`a${n}`), said(`text ${n}`)], [thought(`b${n}`), ...called(`c${n}`)]],
  'a text in one field': (n) => [[{ role: 'assistant', content: `text ${n}` }], called(`c${n}`)],
  'the names of the Agents SDK': (n) => [
    [{ type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: `text ${n}` }] }],
    [
      { type: 'function_call', callId: `c${n}`, name: 'bash', arguments: '{}', status: 'completed' },
      { type: 'function_call_result', callId: `c${n}`, name: 'bash', status: 'completed', output: { type: 'text', text: `c${n}\n${'a line of some output\n'.repeat(400)}` } },
    ],
  ],
  'one answer with a text and a call': (n) => [[said(`text ${n}`), ...called(`c${n}`)]],
  'first whole, later in parts': (n) => (n < 3 ? [[said(`text ${n}`), ...called(`c${n}`)]] : [[said(`text ${n}`)], called(`c${n}`)]),
}

/** A host with its session, which may start anew. */
class Host {
  readonly messages: object[] = []
  readonly #store: StoreOptions = sqlite()
  readonly #cwd = folder()
  #id = 's'
  #now = 0
  #manager!: ContextManager
  #projection!: Projection

  async open(): Promise<void> {
    this.#manager = await ContextManager.open({ sessionId: this.#id, cwd: this.#cwd, store: this.#store, filesystemId: FILESYSTEM, watch: false })
    this.#projection = new Projection(this.#manager, { shape: 'openai-responses', model: MODEL, shortens: true, now: () => this.#now, onWarning: (warning) => expect.unreachable(warning) })
  }

  async close(): Promise<void> {
    await this.#manager.close()
  }

  async fork(): Promise<void> {
    const [parent, point] = [this.#id, await this.#manager.point()]
    await this.close()
    this.#id = 'fork'
    await this.open()
    await this.#manager.restore(parent, point)
  }

  /** The messages that are sent with these added. */
  async send(added: readonly object[] = []): Promise<string[]> {
    this.#now += 600_000
    this.messages.push(...added)
    return (await this.#projection.transform(this.messages)).map((one) => JSON.stringify(one))
  }
}

const HAPPENINGS: Record<string, (host: Host) => Promise<void>> = {
  'starts anew': async (host) => {
    await host.close()
    await host.open()
  },
  'forks': (host) => host.fork(),
  'changes the first prompt': async ({ messages }) => void (messages[0] = { role: 'user', content: 'begin, on another day' }),
  'starts anew and changes the first prompt': async (host) => {
    await host.close()
    await host.open()
    host.messages[0] = { role: 'user', content: 'begin, on another day' }
  },
  'changes a text that stands before a call': async ({ messages }) => {
    const at = messages.findIndex((one) => JSON.stringify(one).includes('"assistant"'))
    messages[at] = said('another text')
  },
  'goes back by one call': async ({ messages }) => void messages.splice(-2),
}

describe.each(Object.entries(HOSTS))('%s', (_, round) => {
  test.each(Object.entries(HAPPENINGS))('the host %s', async (_, happens) => {
    const host = new Host()
    await host.open()
    await host.send([{ role: 'user', content: 'begin' }])
    let before: string[] = []
    for (let n = 0; n < ROUNDS; n += 1) {
      for (const added of round(n)) before = await host.send(added)
      before = await host.send([{ role: 'user', content: `prompt ${n}` }])
    }
    const length = (sent: readonly string[]): number => sent.join('\n').length
    expect(length(before)).toBeLessThan(length(host.messages.map((one) => JSON.stringify(one))) / 2)
    await happens(host)
    const sent = await host.send()
    expect(length(sent) - length(before)).toBeLessThan(SMALL)
    await host.close()
  })
})
