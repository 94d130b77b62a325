/** Messages and calls are told apart by what they hold, whatever their fields, IDs and places are called. */
import { afterEach, describe, expect, test } from 'vitest'
import { Projection } from '../lib/harness.ts'
import { fingerprint, isEqual, keep, likeness } from '../lib/harness/identity.ts'
import { shapeNamed } from '../lib/harness/shapes.ts'
import { engineCall, hostArguments } from '../lib/host-tools/tools.ts'
import { folder, opened } from './core/setup.ts'
import { shapes, written } from './hosts/conversation.ts'
import type { Step } from './hosts/conversation.ts'
import { cleanUp } from './rig/cleanup.ts'

afterEach(cleanUp)

const MODEL = { name: 'm', contextWindow: 200_000, input: 3, cacheRead: 0.3, cacheWrite: 3.75 }

/** The names of what every object, list, text and function has, of which each may be the name of an argument. */
const INHERITED = [...new Set([Object.prototype, Array.prototype, String.prototype, Function.prototype].flatMap((one) => Object.getOwnPropertyNames(one)))]

/** An object with a field of any name, as JSON makes it. */
const having = (name: string, value: unknown): object => JSON.parse(`{${JSON.stringify(name)}:${JSON.stringify(value)}}`)

describe('fields that are called like what every object inherits', () => {
  test.each(INHERITED)('%s', (name) => {
    const values = ['a', 1, null, {}, [], { b: 1 }, having(name, 'a')]
    for (const value of values) {
      const [one, deep] = [having(name, value), { args: [having(name, value)] }]
      for (const own of [one, deep]) {
        const kept = keep(own)
        expect(JSON.stringify(kept)).toBe(JSON.stringify(own))
        expect(likeness(kept, own)).toBe('same')
        expect(fingerprint(kept)).toBe(fingerprint(own))
        const others = [{}, { args: [{}] }, { args: [having('other', value)] }, ...values.flatMap((other) => [having(name, other), { args: [having(name, other)] }])]
        for (const other of others) {
          if (JSON.stringify(other) === JSON.stringify(own)) continue
          expect(isEqual(own, other)).toBe(false)
          expect(isEqual(other, own)).toBe(false)
          expect(fingerprint(other)).not.toBe(fingerprint(own))
        }
      }
    }
    expect(({} as Record<string, unknown>)['b']).toBeUndefined()
  })

  // An edit of Claude Code may have `replaceAll`, which the engine calls otherwise.
  test.each(INHERITED.filter((name) => name !== 'replaceAll'))('%s, among the arguments of a tool whose arguments have other names in the engine', (name) => {
    for (const tool of ['Read', 'Edit', 'Bash', 'MultiEdit']) {
      const args = { ...having(name, 'value'), edits: [{ old_string: 'a', ...having(name, 'value') }] }
      const { args: engine } = engineCall(tool, args)
      expect(JSON.parse(JSON.stringify(engine))).toMatchObject({ edits: [{}] })
      expect(Object.entries(engine)).toContainEqual([name, 'value'])
      expect(JSON.stringify(hostArguments(tool, args, engine))).toBe(JSON.stringify(args))
    }
  })

  test.each(shapes)('a conversation with such arguments is read once: %s', async (shape) => {
    let reads = 0
    const own = shapeNamed(shape)
    const manager = await opened({ cwd: folder() })
    const counting = { ...own, read: (messages: readonly object[], at: number) => ((reads += 1), own.read(messages, at)) }
    const projection = new Projection(manager, { shape: counting, model: MODEL })
    const messages = written[shape]({ user: 'begin' }, 0)
    for (const [at, name] of INHERITED.entries()) {
      const step: Step = { calls: [{ id: `call_${at}`, name: 'bash', args: { command: `run ${at}`, ...having(name, { value: at }) } as Record<string, unknown>, output: `output ${at}` }] }
      messages.push(...written[shape](step, at))
      // What the host sends is a new copy at each call.
      await projection.transform(messages.map((message) => JSON.parse(JSON.stringify(message))))
    }
    expect(reads).toBeLessThanOrEqual(messages.length)
  })
})
