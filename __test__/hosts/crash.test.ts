/** A host whose process is killed between any two steps loses nothing: real processes, real SIGKILL. */
import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test } from 'vitest'
import { ContextManager } from '../../lib/index.ts'
import { findRuntime } from '../../pi-runtime/index.mjs'
import { folder, FILESYSTEM, sqlite } from '../core/setup.ts'
import { cleanUp, deadline, onCleanUp } from '../../rig/cleanup.ts'
import { startModelServer } from '../../rig/model-server.ts'
import type { ModelServer } from '../../rig/model-server.ts'
import { Gate, partsOf } from '../../rig/reply.ts'
import type { Reply } from '../../rig/reply.ts'
import type { ChildMessage, ChildOptions } from './crash-child.ts'
import { drivers } from './drivers.ts'
import { obedient, output } from './script.ts'

afterEach(cleanUp)

/** The moments at which the process is killed. */
const STEPS = {
  'before the first answer': ({ server, from }) => server.request(() => true, from),
  'in the middle of an answer': ({ held }) => held.reached,
  'while a tool runs': ({ child }) => child.said('tool'),
  'as the result arrives': async ({ child }) => {
    await child.said('tool')
    child.send('go')
  },
  'before the second answer': async ({ server, from, child }) => {
    await child.said('tool')
    child.send('go')
    await server.request(() => true, from + 1)
  },
  'after the turn': async ({ child }) => {
    for (let n = 0; n < 3; n += 1) {
      await child.said('tool')
      child.send('go')
    }
    await child.said('done')
  },
} satisfies Record<string, (at: { server: ModelServer; child: Child; from: number; held: Gate }) => Promise<unknown>>

/** Each step where the conversation is kept at each model call, and some where it is kept at the end of a turn. */
const KILLS: readonly (readonly [keyof typeof STEPS, isEachCall: boolean])[] = [
  ...(Object.keys(STEPS) as (keyof typeof STEPS)[]).map((step) => [step, true] as const),
  ['before the second answer', false],
  ['after the turn', false],
  ['in the middle of an answer', false],
]

/** A host in its own process. */
class Child {
  readonly process: ChildProcess
  readonly warnings: string[] = []
  readonly #ended: Promise<void>
  #said: ChildMessage[] = []
  #listen = (): void => {}

  constructor(options: ChildOptions) {
    const script = fileURLToPath(new URL('crash-child.ts', import.meta.url))
    this.process = fork(script, [JSON.stringify(options)], {
      execPath: findRuntime().node,
      execArgv: ['--experimental-strip-types', '--disable-warning=ExperimentalWarning'],
    })
    this.#ended = new Promise((resolve) => this.process.once('exit', () => resolve()))
    this.process.on('message', (message: ChildMessage) => {
      if ('warning' in message) this.warnings.push(message.warning)
      this.#said.push(message)
      this.#listen()
    })
    onCleanUp(() => this.kill9())
  }

  send(message: { prompt: string } | 'go'): void {
    this.process.send(message, () => {})
  }

  /** Waits until the process has said this. Forgets its earlier messages. */
  async said(what: string): Promise<void> {
    const found = new Promise<void>((resolve, reject) => {
      this.#listen = () => {
        const failed = this.#said.find((one) => 'failed' in one)
        if (failed !== undefined) return reject(new Error(`the host failed: ${JSON.stringify(failed)}`))
        const at = this.#said.findIndex((one) => what in one)
        if (at < 0) return
        this.#said = this.#said.slice(at + 1)
        this.#listen = () => {}
        resolve()
      }
      this.#listen()
    })
    const ended = this.#ended.then(() => Promise.reject(new Error(`the host ended before it said ${what}`)))
    await deadline(Promise.race([found, ended]), 60_000, () => `the host has not said ${what}, but ${JSON.stringify(this.#said)}`)
  }

  async kill9(): Promise<void> {
    this.process.kill('SIGKILL')
    await this.#ended
  }
}

describe.each(Object.keys(drivers))('%s', (host) => {
  test('killed between any two steps', { timeout: 400_000 }, async () => {
    let held: Gate | undefined
    const names = new Map<string, string>()
    const server = await startModelServer((request) => {
      const reply = obedient(request) as Reply
      for (const part of typeof reply === 'string' ? [] : partsOf(reply, request.n)) {
        if ('call' in (part as object)) {
          const { id, args } = (part as { call: { id: string; args: { name?: string } } }).call
          if (args.name !== undefined) names.set(id, args.name)
        }
      }
      if (held === undefined) return reply
      const gate = held
      held = undefined
      return { parts: ['a beginning ', gate, ' and an end'] }
    })
    const [store, cwd] = [sqlite().path, folder()]
    const options = { host, url: server.baseUrl('openai-completions'), cwd, store, filesystemId: FILESYSTEM, file: join(cwd, 'kept.json'), isEachCall: true }
    for (const [n, [step, isEachCall]] of KILLS.entries()) {
      const child = new Child({ ...options, isEachCall })
      await child.said('ready')
      const [from, gate] = [server.requests.length, new Gate()]
      if (step === 'in the middle of an answer') held = gate
      child.send({ prompt: `show r${n} s${n}+t${n}` })
      await STEPS[step]({ server, child, from, held: gate })
      await child.kill9()
      gate.release()
      expect(child.warnings, step).toEqual([])
    }
    const child = new Child(options)
    await child.said('ready')
    child.send({ prompt: 'say end' })
    await child.said('done')
    await child.kill9()
    expect(child.warnings).toEqual([])

    const manager = await ContextManager.open({ sessionId: 's', cwd, store: { kind: 'sqlite', path: store }, filesystemId: FILESYSTEM, watch: false })
    onCleanUp(() => manager.close())
    // Every output that the model was ever shown is there, byte for byte, whatever became of the host's conversation.
    const shown = new Set(server.requests.flatMap(({ messages }) => messages.flatMap(({ results }) => results.map(({ id }) => id))))
    expect(shown.size).toBeGreaterThan(3)
    for (const id of shown) {
      const versions = await manager.history(id)
      expect(
        versions.map(({ document }) => document.content),
        id,
      ).toContain(output(names.get(id)!))
    }
    // And the record is the conversation that the host has now.
    const last = server.requests.at(-1)!.messages
    const chat = (await manager.get('chat:s'))!['turns'] as { user: unknown; toolcall_ids: string[] }[]
    const said = chat.map(({ user }) => (typeof user === 'string' ? user : (user as { text: string }[]).map((one) => one.text).join('')))
    expect(said).toEqual(last.flatMap(({ role, text }) => (role === 'user' ? [text] : [])))
    const recorded = chat.flatMap((turn) => turn.toolcall_ids)
    expect(recorded).toEqual(expect.arrayContaining(last.flatMap(({ results }) => results.map(({ id }) => id))))
    for (const id of recorded) expect((await manager.get(id))!.content).toBe(output(names.get(id)!))
  })
})
