/**
 * One chat of a host that names no session stays one session: over new processes, and after the host has written its own
 * history in another form. Gemini CLI 0.61.0 does what these changes do; a run of it showed them.
 */
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import type { Gateway } from '../../lib/gateway/gateway.ts'
import { inStore } from '../../lib/native/index.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { startModelServer } from '../../rig/model-server.ts'
import type { ModelServer } from '../../rig/model-server.ts'
import { WIRES } from '../../rig/wires.ts'
import type { Wire } from '../../rig/wires.ts'
import { folder } from '../core/setup.ts'
import { gatewayTo, long } from './support.ts'
import { AGENTS, doubled, sendIn } from './wire-agents.ts'
import type { WireAgent } from './wire-agents.ts'

afterEach(cleanUp)

/** A host's chats behind gateways that have one store. */
class Chats {
  readonly server: ModelServer
  readonly agent: WireAgent
  readonly #home = folder()
  readonly #store: { kind: 'sqlite'; path: string }
  gateway: Gateway | undefined

  constructor(server: ModelServer, agent: WireAgent) {
    this.server = server
    this.agent = agent
    this.#store = { kind: 'sqlite', path: join(this.#home, 'context.db') }
  }

  /** Starts a new process of the host, with a new gateway. */
  async start(): Promise<void> {
    await this.gateway?.close()
    const { url } = this.server
    ;({ gateway: this.gateway } = await gatewayTo(url, { store: this.#store, formsPath: join(this.#home, 'forms'), cwd: this.#home }))
  }

  /** Sends a conversation, without the header that names a session. */
  send(messages: readonly object[]): Promise<void> {
    return sendIn(this.gateway!, this.agent.wire, messages)
  }

  get wire(): Wire {
    return WIRES[this.agent.wire]
  }

  /** A prompt with some calls, and the model's last word. `output` gives the output of a call by its file. */
  async turn(messages: object[], prompt: string, names: readonly string[], output: (name: string) => string = (name) => long(name, 30)): Promise<void> {
    const { said, called, returned, answered } = this.wire
    messages.push(said(prompt))
    await this.send(messages)
    for (const name of names) {
      messages.push(called(`call_${name}`, `cat ${name}`), returned(`call_${name}`, output(name)))
      await this.send(messages)
    }
    messages.push(answered(`that was ${prompt}`))
  }

  /** The sessions of the store: the first words of each, and how often its user has spoken. The latest used is the first. */
  async ended(): Promise<(readonly [prompt: string | undefined, turns: number])[]> {
    await this.gateway?.close()
    const all = await inStore(this.#store, (store) => store.sessions())
    return all.map(({ firstPrompt, turns }) => [firstPrompt, turns] as const)
  }
}

async function chatsOf(name: string): Promise<Chats> {
  const chats = new Chats(await startModelServer(() => 'ok'), AGENTS[name]!)
  await chats.start()
  return chats
}

/** Replaces texts anywhere in a message. */
function replaced(message: object, from: RegExp, to: string): object {
  return JSON.parse(JSON.stringify(message, (_, value: unknown) => (typeof value === 'string' ? value.replace(from, to) : value))) as object
}

/** The first outputs masked, as Gemini CLI does it when they are many. */
const masked = (messages: readonly object[], names: readonly string[]): object[] =>
  messages.map((message) =>
    names.reduce((one, name) => replaced(one, new RegExp(`^${name} line 0[^]*`), '<tool_output_masked>\nSaved to a file.\n</tool_output_masked>'), message),
  )

const resumed = (messages: readonly object[], names: readonly string[]): object[] => masked(messages, names).map(doubled)

describe.each(Object.keys(AGENTS))('a chat in the format of %s', (name) => {
  test('stays one session over three processes, each of which writes the history anew', async () => {
    const chats = await chatsOf(name)
    let messages: object[] = []
    await chats.turn(messages, 'read the files', ['a0', 'a1', 'a2', 'a3'])
    await chats.start()
    messages = resumed(messages, ['a0', 'a1'])
    await chats.turn(messages, 'tell me of birds', ['b0', 'b1', 'b2'])
    expect(chats.gateway!.ledger.sessions.length).toBe(1)
    await chats.start()
    messages = resumed(messages, ['a0', 'a1', 'a2', 'b0'])
    await chats.turn(messages, 'and of trees', ['c0', 'c1'])
    expect(chats.gateway!.ledger.sessions.length).toBe(1)
    expect(await chats.ended()).toEqual([['read the files', 3]])
  })

  test('stays one session if its host masks outputs in the middle of a turn', async () => {
    const chats = await chatsOf(name)
    const messages: object[] = []
    await chats.turn(messages, 'read the files', ['a0', 'a1', 'a2', 'a3'])
    messages.splice(0, messages.length, ...masked(messages, ['a0', 'a1']))
    await chats.turn(messages, 'tell me of birds', ['b0', 'b1', 'b2'])
    messages.splice(0, messages.length, ...masked(messages, ['a2', 'a3']))
    await chats.turn(messages, 'and of trees', ['c0', 'c1'])
    expect(chats.gateway!.ledger.sessions.length).toBe(1)
    expect(await chats.ended()).toEqual([['read the files', 3]])
  })

  test('stays one session if its host has lost the first prompt', async () => {
    const chats = await chatsOf(name)
    let messages: object[] = []
    await chats.turn(messages, 'read the files', ['a0', 'a1', 'a2', 'a3'])
    await chats.start()
    messages = [chats.wire.said('<system-reminder>\nanother day\n</system-reminder>'), ...messages.slice(1).map(doubled)]
    await chats.turn(messages, 'tell me of birds', ['b0'])
    expect((await chats.ended()).map(([prompt]) => prompt)).toEqual(['read the files'])
  })

  test('is another one than a new chat with the same prompt, the same calls and other outputs', async () => {
    const chats = await chatsOf(name)
    const [one, other]: object[][] = [[], []]
    await chats.turn(one!, 'read the files', ['a0', 'a1'])
    await chats.start()
    await chats.turn(other!, 'read the files', ['a0', 'a1'], (file) => long(`other ${file}`, 30))
    await chats.turn(one!, 'tell me of birds', ['b0'])
    await chats.turn(other!, 'tell me of fish', ['c0'])
    expect((await chats.ended()).toSorted()).toEqual([
      ['read the files', 2],
      ['read the files', 2],
    ])
  })

  test('is another one than a chat that begins with the same call', async () => {
    const chats = await chatsOf(name)
    const one: object[] = []
    await chats.turn(one, 'read the files', ['a0'])
    one.pop()
    await chats.start()
    const { said, called, returned } = chats.wire
    // It has run where no gateway saw it.
    const other = [said('say what is here'), called('call_a0', 'cat a0'), returned('call_a0', long('a0', 30)), chats.wire.answered('much')]
    await chats.turn(other, 'tell me of birds', ['b0'])
    expect((await chats.ended()).map(([prompt]) => prompt).toSorted()).toEqual(['read the files', 'say what is here'])
  })
})

test('two chats at a time with the same prompt and calls, and other outputs, stay two, and each has its own outputs', async () => {
  const chats = await chatsOf('OpenCode')
  const all: { messages: object[]; mark: string }[] = ['x', 'y'].map((mark) => ({ messages: [], mark }))
  const { said, called, returned } = chats.wire
  for (const { messages } of all) messages.push(said('read the files'))
  for (const name of ['a0', 'a1', 'a2', 'a3', 'a4', 'a5']) {
    for (const { messages, mark } of all) {
      messages.push(called(`call_${name}`, `cat ${name}`), returned(`call_${name}`, long(`${mark} ${name}`, 30)))
      await chats.send(messages)
      const { raw } = chats.server.requests.at(-1)!
      expect(raw.includes(`${mark} ${name} line 3 `)).toBe(true)
      expect(raw.includes(`${mark === 'x' ? 'y' : 'x'} a`)).toBe(false)
    }
  }
  expect((await chats.ended()).length).toBe(2)
})
