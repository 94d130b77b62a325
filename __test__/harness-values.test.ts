/** Messages with values that JSON does not have, and of classes: what is sent and recorded is what a provider would get of them. */
import { runInNewContext } from 'node:vm'
import { afterEach, expect, test } from 'vitest'
import { cleanUp } from '../rig/cleanup.ts'
import { folder, opened, sqlite } from './core/setup.ts'
import { shapes, written } from './hosts/conversation.ts'
import type { Step } from './hosts/conversation.ts'
import { some } from './rows.ts'

afterEach(cleanUp)

const MODEL = { name: 'm', contextWindow: 200_000, input: 3, cacheRead: 0.3, cacheWrite: 3.75 }

const lines = (name: string): string => Array.from({ length: 60 }, (_, line) => `${name} line ${line} of a text with some words in it`).join('\n')

/** Prompts with writes whose arguments and outputs leave in time. */
const talk = (args: (call: number) => Record<string, unknown>): Step[] =>
  Array.from({ length: 6 }, (_, turn): Step[] => [
    { user: `prompt ${turn}` },
    ...Array.from({ length: 6 }, (_, n): Step => {
      const call = turn * 6 + n
      return {
        calls: [
          { id: `c${call}`, name: 'write', args: { ...args(call), path: `f${call}`, content: lines(`argument ${call}`) }, output: lines(`output ${call}`) },
        ],
      }
    }),
    { text: 'done', calls: [] },
  ]).flat()

/** The arguments beside the usual ones, and how JSON has them. */
const VALUES: [string, Record<string, unknown>, Record<string, unknown>][] = [
  ['a number that is too large', { limit: Number.POSITIVE_INFINITY }, { limit: null }],
  ['no number', { range: [Number.NaN, 1] }, { range: [null, 1] }],
  ['a function', { done: () => 1, list: [() => 1] }, { list: [null] }],
  ['a symbol and an undefined value', { kind: Symbol('x'), other: undefined, list: [undefined] }, { list: [null] }],
  ['a map and a set', { seen: new Map([['a', 1]]), names: new Set(['b']) }, { seen: {}, names: {} }],
  ['an object that JSON has another form of', { place: new URL('https://x.test/a') }, { place: 'https://x.test/a' }],
  [
    'an object of a class',
    {
      at: new (class {
        limit = Number.POSITIVE_INFINITY
        name = 'x'
        done = () => 1
        get size() {
          return 3
        }
      })(),
    },
    { at: { limit: null, name: 'x' } },
  ],
  ['numbers in a typed array', { at: new Float64Array([Number.NaN, 1]) }, { at: { 0: null, 1: 1 } }],
  [
    'an object of a class that has another form in JSON',
    {
      at: new (class {
        get year() {
          return 1970
        }
        toJSON() {
          return 'ISO'
        }
      })(),
    },
    { at: 'ISO' },
  ],
  ['an object that says its form', { at: { toJSON: () => ({ deep: ['x'] }) } }, { at: { deep: ['x'] } }],
  ['a date', { at: new Date(0) }, { at: '1970-01-01T00:00:00.000Z' }],
  ['a large integer', { count: 12345678901234567890n }, { count: '12345678901234567890' }],
]

/** JSON as the record has it: a host's own serializer writes large integers in some way or other. */
const json = (value: unknown): unknown => JSON.parse(JSON.stringify(value, (_, one: unknown) => (typeof one === 'bigint' ? String(one) : one)))

const rows = (['anthropic', 'ai-sdk'] as const).flatMap((shape) => VALUES.map((row) => [shape, ...row] as const))

test.each(some(rows, 4))('%s, %s among the arguments: sent as JSON has it, and the same in a new process', async (shape, _name, added, plain) => {
  const [cwd, store] = [folder(), sqlite()]
  const all = (args: Record<string, unknown>): object[] => talk(() => args).flatMap((step) => written[shape](step, 1))
  const [odd, usual] = [all(added), all(plain)]
  const manager = await opened({ cwd, store, shape, model: MODEL })
  const other = await opened({ cwd, sessionId: 'usual', shape, model: MODEL })
  let last: unknown
  for (let length = 1; length <= odd.length; length += 1) {
    last = json(await manager.transformContext(odd.slice(0, length)))
    expect(last).toEqual(json(await other.transformContext(usual.slice(0, length))))
  }
  expect(JSON.stringify(last)).not.toContain('argument 0 line 40 ')
  await manager.close()
  const anew = await opened({ cwd, store, shape, model: MODEL })
  expect(json(await anew.transformContext(odd))).toEqual(last)
})

test.each<['ai-sdk' | 'gemini', (data: object) => object[]]>([
  [
    'ai-sdk',
    (value) => [
      { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'c', toolName: 'query', input: {} }] },
      { role: 'tool', content: [{ type: 'tool-result', toolCallId: 'c', toolName: 'query', output: { type: 'json', value } }] },
    ],
  ],
  [
    'gemini',
    (response) => [
      { role: 'model', parts: [{ functionCall: { id: 'c', name: 'query', args: {} } }] },
      { role: 'user', parts: [{ functionResponse: { id: 'c', name: 'query', response } }] },
    ],
  ],
])('%s: data of a result with a large integer are recorded', async (shape, messages) => {
  const manager = await opened({ cwd: folder(), shape, model: MODEL })
  const [prompt] = written[shape]({ user: 'go' }, 1)
  await manager.transformContext([prompt as object, ...messages({ rows: lines('row'), id: 12345678901234567890n })])
  expect(JSON.stringify((await manager.get('c'))?.content)).toContain('12345678901234567890')
})

test.each(['anthropic', 'pi'] as const)('%s: what an edited message has besides stays the host’s own', async (shape) => {
  const manager = await opened({ cwd: folder(), shape, model: MODEL })
  const extra = new (class {
    get size() {
      return 3
    }
    toJSON() {
      return 'own'
    }
  })()
  const all = talk(() => ({}))
    .flatMap((step) => written[shape](step, 1))
    .map((message) => ({ ...message, extra }))
  let sent: { extra?: object }[] = []
  for (let length = 1; length <= all.length; length += 1) sent = await manager.transformContext(all.slice(0, length))
  expect(JSON.stringify(sent)).not.toContain('argument 0 line 40 ')
  expect(sent.every((message) => message.extra === extra)).toBe(true)
})

/** An object of a class whose fields are getters, as those of generated clients are. */
function instance(fields: object): object {
  class Instance {}
  for (const [name, value] of Object.entries(fields)) {
    const own: unknown = Array.isArray(value) ? value.map((one: unknown) => (typeof one === 'object' && one !== null ? instance(one) : one)) : value
    Object.defineProperty(Instance.prototype, name, { get: () => own, configurable: true })
  }
  return new Instance()
}

test.each(shapes)('%s: messages of classes whose fields are getters are treated as plain ones', async (shape) => {
  const cwd = folder()
  const plain = talk(() => ({})).flatMap((step) => written[shape](step, 1))
  const own = plain.map(instance)
  const manager = await opened({ cwd, shape, model: MODEL })
  const other = await opened({ cwd, sessionId: 'plain', shape, model: MODEL })
  const fieldsOf = (message: object, like: object): unknown =>
    Object.fromEntries(Object.keys(like).map((name) => [name, (message as Record<string, unknown>)[name]]))
  for (let length = 1; length <= own.length; length += 1) {
    const [sent, expected] = [await manager.transformContext(own.slice(0, length)), await other.transformContext(plain.slice(0, length))]
    expect(sent).toHaveLength(expected.length)
    for (const [at, message] of sent.entries()) {
      if (own.includes(message)) continue
      expect(fieldsOf(message, expected[at] as object)).toEqual(expected[at])
    }
    expect(sent.filter((message) => own.includes(message))).toHaveLength(expected.filter((message) => plain.includes(message)).length)
  }
  // A message that has changed is another one.
  own[0] = instance({ ...plain[0], ...written[shape]({ user: 'another prompt' }, 1)[0] })
  expect((await manager.transformContext(own))[0]).toBe(own[0])
})

test('objects of another realm are plain ones, as those of a test in a separate context', async () => {
  const plain = talk(() => ({})).flatMap((step) => written.anthropic(step, 1))
  const foreign = runInNewContext('JSON.parse(text)', { text: JSON.stringify(plain) }) as object[]
  const cwd = folder()
  const [one, other] = [await opened({ cwd, shape: 'anthropic', model: MODEL }), await opened({ cwd, sessionId: 'plain', shape: 'anthropic', model: MODEL })]
  // The list itself is of this realm.
  expect(JSON.stringify(await one.transformContext(Array.from(foreign)))).toBe(JSON.stringify(await other.transformContext(plain)))
})
