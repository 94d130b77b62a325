/**
 * Notices where nothing may be added within a turn come with the next prompt: one line for a file, against what the model knows
 * then, and the same ones if other processes carry the conversation on.
 */
import { createHash } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import type { ShapeName } from '../lib/projection/harness.ts'
import { folder, write } from './core/setup.ts'
import { written } from './hosts/conversation.ts'
import type { Step } from './hosts/conversation.ts'
import { MODEL, Processes } from './hosts/processes.ts'
import { cleanUp } from '../rig/cleanup.ts'

afterEach(cleanUp)

const NOTICE = /stale id=\w+ path=\S*?(\w+\.txt) (?:version=(\w{8})|(deleted))/g

/** The text of a file in a version. */
const text = (name: string, version: number): string => `version ${version} of ${name}\nline\n`

/** A host whose provider takes no notice within a turn. It keeps only its own messages, in a folder in which others write. */
class Host extends Processes {
  readonly #steps: Step[] = [{ user: 'begin' }]
  readonly #texts = new Map<string, string>()
  readonly #restarts: boolean
  model: string
  #calls = 0
  before: string[] = []

  constructor(shape: ShapeName, model: string, restarts: boolean, cwd: string) {
    super(shape, { cwd, model: () => ({ ...MODEL, name: this.model }) })
    this.model = model
    this.#restarts = restarts
  }

  /** Another program writes a file in a version. */
  put(name: string, version: number): void {
    const content = text(name, version)
    this.#texts.set(createHash('sha256').update(content).digest('hex').slice(0, 8), `${name} ${version}`)
    write(this.cwd, name, content)
  }

  delete(name: string): void {
    rmSync(join(this.cwd, name))
  }

  /** The model reads a file. */
  async read(name: string, version: number): Promise<void> {
    this.put(name, version)
    await this.#add({ id: `read_${name}_${version}`, name: 'read', args: { path: name }, output: text(name, version) })
  }

  /** The model writes a file. */
  async write(name: string, version: number): Promise<void> {
    this.put(name, version)
    await this.#add({ id: `write_${name}_${version}`, name: 'write', args: { path: name, content: text(name, version) }, output: 'written' })
  }

  /** The model calls another tool. */
  async call(): Promise<void> {
    this.#calls += 1
    await this.#add({ id: `call_${this.#calls}`, name: 'bash', args: { command: `run ${this.#calls}` }, output: 'done' })
  }

  /** The host replaces the read of a file, or removes it. */
  change(name: string, by: 'redacted' | 'removed'): void {
    const at = this.#steps.findIndex((step) => 'calls' in step && step.calls[0]?.args['path'] === name)
    const call = { id: (this.#steps[at] as { calls: { id: string }[] }).calls[0]!.id, name: 'read', args: { path: 'none.txt' }, output: '[redacted]' }
    this.#steps.splice(at, 1, ...(by === 'removed' ? [] : [{ calls: [call] }]))
  }

  /** The host changes what another tool has answered. */
  reword(): void {
    const at = this.#steps.findIndex((step) => 'calls' in step && step.calls[0]?.name === 'bash')
    const [call] = (this.#steps[at] as { calls: { output: string }[] }).calls
    this.#steps[at] = { calls: [{ ...call, output: `${call!.output}, redacted` } as never] }
  }

  /** The user speaks. Returns the notices in the request: the file and its version. */
  async prompt(words = 'on'): Promise<string[]> {
    await this.send({ text: 'done', calls: [] }, { user: words })
    return this.notices
  }

  get notices(): string[] {
    return this.before.flatMap((message) =>
      [...message.matchAll(NOTICE)].map(([, name, version, deleted]) => (deleted === undefined ? this.#texts.get(version ?? '') : `${name} deleted`) ?? '?'),
    )
  }

  async send(...steps: Step[]): Promise<string[]> {
    if (this.#restarts) await this.restart()
    this.#steps.push(...steps)
    await (await this.running()).manager.reconcile()
    this.before = await this.transform(this.#steps.flatMap((step) => written[this.shape](step, 1)))
    return this.before
  }

  async #add(call: { id: string; name: string; args: Record<string, unknown>; output: string }): Promise<void> {
    await this.send({ calls: [call] })
  }
}

/** The events after another program has changed `a.txt` and the model has called a tool. */
const changed =
  (then: (host: Host) => unknown) =>
  async (host: Host): Promise<void> => {
    host.put('a.txt', 2)
    await host.call()
    await then(host)
  }

/** The events between the first read of `a.txt` and `b.txt`, both in version 1, and the next prompt; and the notices then. */
const HAPPENS: [string, (host: Host) => Promise<void>, string[]][] = [
  [
    'the host redacts something else, three times',
    changed(async (host) => {
      for (let time = 0; time < 3; time += 1) {
        host.reword()
        await host.call()
      }
    }),
    ['a.txt 2'],
  ],
  [
    'a file changes at each call',
    async (host) => {
      for (let version = 2; version < 9; version += 1) {
        host.put('a.txt', version)
        await host.call()
      }
    },
    ['a.txt 8'],
  ],
  [
    'two files change, one of them twice',
    async (host) => {
      for (const [name, version] of [
        ['b.txt', 2],
        ['a.txt', 2],
        ['b.txt', 3],
      ] as const) {
        host.put(name, version)
        await host.call()
      }
    },
    ['a.txt 2', 'b.txt 3'],
  ],
  ...(['redacted', 'removed'] as const).map((by): [string, (host: Host) => Promise<void>, string[]] => [
    `the host has ${by} a read`,
    async (host) => {
      host.put('a.txt', 2)
      host.put('b.txt', 2)
      await host.call()
      host.change('a.txt', by)
      await host.call()
    },
    ['b.txt 2'],
  ]),
  [
    'the host redacts a read right before the prompt',
    changed(async (host) => {
      host.change('a.txt', 'redacted')
    }),
    [],
  ],
  [
    'the model reads it again',
    changed(async (host) => {
      await host.read('a.txt', 2)
    }),
    [],
  ],
  [
    'the model reads it again, and it changes once more',
    changed(async (host) => {
      await host.read('a.txt', 2)
      host.put('a.txt', 3)
      await host.call()
    }),
    ['a.txt 3'],
  ],
  [
    'the model writes it',
    changed(async (host) => {
      await host.write('a.txt', 3)
    }),
    [],
  ],
  [
    'it changes back',
    changed(async (host) => {
      host.put('a.txt', 1)
      await host.call()
    }),
    [],
  ],
  [
    'it is deleted, and there again',
    async (host) => {
      host.delete('a.txt')
      await host.call()
      host.put('a.txt', 1)
      await host.call()
    },
    [],
  ],
  [
    'it changes, and is deleted',
    changed(async (host) => {
      host.delete('a.txt')
      await host.call()
    }),
    ['a.txt deleted'],
  ],
  [
    'another process takes over in a fork',
    changed(async (host) => {
      await host.fork()
      host.put('b.txt', 2)
      await host.call()
    }),
    ['a.txt 2', 'b.txt 2'],
  ],
]

const HOSTS: [ShapeName, string][] = [
  ['gemini', 'm'],
  ['openai-chat', 'mistralai/devstral-2'],
]

/**
 * Runs a host that has read `a.txt` and `b.txt`, once in one process and once with a new one before each request: both send the same.
 * `run` returns the request that is compared.
 */
async function inBoth(shape: ShapeName, model: string, run: (host: Host, restarts: boolean) => Promise<string[]>): Promise<void> {
  const [requests, cwd]: [string[][], string] = [[], folder()]
  for (const restarts of [false, true]) {
    const host = new Host(shape, model, restarts, cwd)
    host.put('b.txt', 1)
    await host.send()
    await host.read('a.txt', 1)
    await host.read('b.txt', 1)
    requests.push(await run(host, restarts))
  }
  expect(requests[1]).toEqual(requests[0])
}

describe.each(HOSTS)('%s, %s', (shape, model) => {
  test.each(HAPPENS)('%s: one line for a file that the model knows otherwise', (_name, happens, expected) =>
    inBoth(shape, model, async (host, restarts) => {
      await host.call()
      await happens(host)
      expect(host.notices).toEqual([])
      expect((await host.prompt()).toSorted(), `restarts: ${restarts}`).toEqual(expected)
      const before = host.before
      await host.restart()
      expect(await host.send()).toEqual(before)
      await host.call()
      expect(host.before.slice(0, before.length)).toEqual(before)
      expect((await host.prompt('and on')).toSorted()).toEqual(expected)
      return before
    }),
  )
})

test.each(['openai-chat', 'ai-sdk'] as const)('%s: one that another model got within the turn names no read that the host has changed', async (shape) => {
  for (const by of ['redacted', 'removed'] as const)
    await inBoth(shape, 'm', async (host) => {
      host.put('a.txt', 2)
      host.put('b.txt', 2)
      await host.call()
      expect(host.notices.toSorted()).toEqual(['a.txt 2', 'b.txt 2'])
      host.model = 'mistralai/devstral-2'
      await host.call()
      expect(host.notices).toEqual([])
      host.change('a.txt', by)
      await host.call()
      expect(await host.prompt(), by).toEqual(['b.txt 2'])
      return host.before
    })
})

test.each(HOSTS)('%s, %s: one that was told leaves with the read that the host has changed', (shape, model) =>
  inBoth(shape, model, async (host) => {
    host.put('a.txt', 2)
    host.put('b.txt', 2)
    expect((await host.prompt()).toSorted()).toEqual(['a.txt 2', 'b.txt 2'])
    host.change('a.txt', 'redacted')
    await host.call()
    expect(host.notices).toEqual([])
    expect(await host.prompt('and on')).toEqual(['b.txt 2'])
    return host.before
  }),
)
