/** Notices stand in a later process where they stood before, in the same order, so that the provider still has them cached. */
import { afterEach, describe, expect, test } from 'vitest'
import type { ShapeName } from '../lib/projection/harness.ts'
import { write } from './core/setup.ts'
import { shapes, written } from './hosts/conversation.ts'
import type { Step } from './hosts/conversation.ts'
import { MODEL, Processes } from './hosts/processes.ts'
import { cleanUp } from '../rig/cleanup.ts'

afterEach(cleanUp)

/** A host that keeps only its own messages, in a folder in which others write. */
class Host extends Processes {
  readonly messages: object[] = []
  model: string
  #changes = 0

  constructor(shape: ShapeName, model = 'm') {
    super(shape, { model: () => ({ ...MODEL, name: this.model }) })
    this.model = model
  }

  /** Another program writes a file. */
  change(name: string): void {
    this.#changes += 1
    write(this.cwd, name, `text ${this.#changes} of ${name}\n`)
  }

  /** Adds steps, and returns the messages that go out, as texts. */
  async send(...steps: Step[]): Promise<string[]> {
    this.messages.push(...steps.flatMap((step) => written[this.shape](step, 1)))
    await (await this.running()).manager.reconcile()
    return this.transform(this.messages)
  }

  /** Reads files. */
  async read(...names: string[]): Promise<string[]> {
    for (const name of names) write(this.cwd, name, `text of ${name}\n`)
    return this.send({ calls: names.map((name) => ({ id: `read_${name}`, name: 'read', args: { path: name }, output: `text of ${name}\n` })) })
  }
}

const noticesIn = (sent: readonly string[]): string[] =>
  sent.flatMap((message) => [...message.matchAll(/stale id=\w+ path=\S*?(\w+\.txt)/g)].map(([, name]) => name as string))

describe.each(shapes)('%s', (shape) => {
  test.each([
    ['in one request', [['b.txt', 'a.txt']]],
    ['in two', [['b.txt'], ['a.txt']]],
    ['in three, of a file that changes again', [['b.txt'], ['a.txt', 'c.txt'], ['b.txt']]],
  ])('several at one place, %s', async (_, changes) => {
    const host = new Host(shape)
    await host.send({ user: 'begin' })
    await host.read('a.txt', 'b.txt', 'c.txt')
    let before = await host.send({ text: 'read', calls: [] }, { user: 'on' })
    for (const names of changes) {
      for (const name of names) host.change(name)
      before = await host.send()
    }
    expect(noticesIn(before).length).toBeGreaterThanOrEqual(2)
    await host.restart()
    const now = await host.send({ text: 'seen', calls: [] }, { user: 'and on' })
    expect(now.slice(0, before.length)).toEqual(before)
  })

  test.each([[[]], [[1]], [[2]], [[3]], [[1, 2, 3]]])(
    'one that could not be added within a turn comes behind it; new processes: %j',
    async (restarts: number[]) => {
      const host = new Host(shape)
      let before: string[] = []
      const next = async (number: number, changed: string | undefined, ...steps: Step[]): Promise<void> => {
        if (restarts.includes(number)) await host.restart()
        if (changed !== undefined) host.change(changed)
        const now = await host.send(...steps)
        expect(now.slice(0, before.length), `request ${number}`).toEqual(before)
        before = now
      }
      await host.send({ user: 'begin' })
      await host.read('a.txt', 'b.txt')
      await next(0, 'a.txt', { calls: [{ id: 'one', name: 'bash', args: { command: 'one' }, output: 'one' }] })
      await next(1, 'b.txt', { calls: [{ id: 'two', name: 'bash', args: { command: 'two' }, output: 'two' }] })
      await next(2, undefined, { text: 'seen', calls: [] }, { user: 'on' })
      await next(3, undefined, { text: 'yes', calls: [] }, { user: 'and on' })
      expect(noticesIn(before).toSorted()).toEqual(['a.txt', 'b.txt'])
    },
  )
})

describe.each(['openai-chat', 'ai-sdk'] as const)('%s, for a model whose provider wants an answer behind results', (shape) => {
  test.each([[[]], [[1]], [[2]], [[3]], [[1, 2, 3]]])('one waits for the next prompt; new processes: %j', async (restarts: number[]) => {
    const host = new Host(shape, 'mistralai/devstral-2')
    let before: string[] = []
    const rolesOf = (sent: readonly string[]): string[] => sent.map((message) => (JSON.parse(message) as { role: string }).role)
    const next = async (number: number, changed: string | undefined, ...steps: Step[]): Promise<void> => {
      if (restarts.includes(number)) await host.restart()
      if (changed !== undefined) host.change(changed)
      const now = await host.send(...steps)
      expect(now.slice(0, before.length), `request ${number}`).toEqual(before)
      expect(rolesOf(now).join(' '), `request ${number}`).not.toContain('tool user')
      before = now
    }
    await host.send({ user: 'begin' })
    await host.read('a.txt', 'b.txt')
    await next(0, 'a.txt', { calls: [{ id: 'one', name: 'bash', args: { command: 'one' }, output: 'one' }] })
    host.messages.push({ role: 'system', content: 'a reminder' })
    await next(1, 'b.txt', { calls: [{ id: 'two', name: 'bash', args: { command: 'two' }, output: 'two' }] })
    expect(noticesIn(before)).toEqual([])
    await next(2, undefined, { text: 'seen', calls: [] }, { user: 'on' })
    expect(noticesIn(before).toSorted()).toEqual(['a.txt', 'b.txt'])
    await next(3, undefined, { text: 'yes', calls: [] }, { user: 'and on' })
    expect(noticesIn(before).toSorted()).toEqual(['a.txt', 'b.txt'])
  })
})

test.each([['openai-chat'], ['ai-sdk']] as const)('%s: one that came behind results waits once such a model takes over', async (shape) => {
  for (const restarts of [[], [2], [2, 3, 4]]) {
    const host = new Host(shape)
    const rolesOf = (sent: readonly string[]): string => sent.map((message) => (JSON.parse(message) as { role: string }).role).join(' ')
    const next = async (number: number, ...steps: Step[]): Promise<string[]> => {
      if (restarts.includes(number)) await host.restart()
      return host.send(...steps)
    }
    const call = (id: string): Step => ({ calls: [{ id, name: 'bash', args: { command: id }, output: id }] })
    await host.send({ user: 'begin' })
    await host.read('a.txt')
    host.change('a.txt')
    const told = await next(1, call('one'))
    expect([rolesOf(told).endsWith('tool user'), noticesIn(told)]).toEqual([true, ['a.txt']])
    host.model = 'mistralai/devstral-2'
    const waiting = await next(2, call('two'))
    expect([rolesOf(waiting).includes('tool user'), noticesIn(waiting)]).toEqual([false, []])
    const again = await next(3, { text: 'seen', calls: [] }, { user: 'on' })
    expect([rolesOf(again).includes('tool user'), noticesIn(again), again.slice(0, waiting.length)]).toEqual([false, ['a.txt'], waiting])
    const later = await next(4, call('three'))
    expect([later.slice(0, again.length), noticesIn(later)]).toEqual([again, ['a.txt']])
    host.model = 'm'
    const back = await next(5, { text: 'done', calls: [] }, { user: 'and on' })
    expect(noticesIn(back)).toEqual(['a.txt'])
  }
})

test('one before the messages of the system at the end is there in a later process, too', async () => {
  const host = new Host('openai-chat')
  await host.send({ user: 'begin' })
  await host.read('a.txt')
  await host.send({ text: 'read', calls: [] }, { user: 'on' })
  host.messages.push({ role: 'system', content: 'a reminder' })
  host.change('a.txt')
  const before = await host.send()
  expect(noticesIn(before)).toEqual(['a.txt'])
  expect(before.at(-1)).toContain('a reminder')
  await host.restart()
  expect((await host.send({ text: 'yes', calls: [] }, { user: 'on' })).slice(0, before.length)).toEqual(before)
})
