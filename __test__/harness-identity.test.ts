/** Messages and calls are told apart by their content, whatever their fields, IDs and places are called. */
import { afterEach, describe, expect, test } from 'vitest'
import { Projection } from '../lib/projection/harness.ts'
import { fingerprint, isEqual, keep, likeness } from '../lib/projection/identity.ts'
import { shapeNamed } from '../lib/projection/shapes.ts'
import { engineCall, hostArguments } from '../lib/tools/index.ts'
import { folder, opened } from './core/setup.ts'
import type { ContextManager } from '../lib/index.ts'
import { shapes, written } from './hosts/conversation.ts'
import type { Call, Step } from './hosts/conversation.ts'
import { cleanUp } from '../rig/cleanup.ts'
import { some } from './rows.ts'
import { MODEL } from './hosts/processes.ts'

afterEach(cleanUp)

/** The names of the properties that every object, list, text and function has. Each may be the name of an argument. */
const INHERITED = [...new Set([Object.prototype, Array.prototype, String.prototype, Function.prototype].flatMap((one) => Object.getOwnPropertyNames(one)))]

/** An object with a field of any name, as JSON makes it. */
const having = (name: string, value: unknown): object => JSON.parse(`{${JSON.stringify(name)}:${JSON.stringify(value)}}`)

describe('fields with the names of inherited properties', () => {
  test.each(INHERITED)('%s', (name) => {
    const values = ['a', 1, null, {}, [], { b: 1 }, having(name, 'a')]
    for (const value of values) {
      const [one, deep] = [having(name, value), { args: [having(name, value)] }]
      for (const own of [one, deep]) {
        const kept = keep(own)
        expect(JSON.stringify(kept)).toBe(JSON.stringify(own))
        expect(likeness(kept, own)).toBe('same')
        expect(fingerprint(kept)).toBe(fingerprint(own))
        const others = [
          {},
          { args: [{}] },
          { args: [having('other', value)] },
          ...values.flatMap((other) => [having(name, other), { args: [having(name, other)] }]),
        ]
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

  test.each(some(shapes, 2))('a conversation with such arguments is read once: %s', async (shape) => {
    let reads = 0
    const own = shapeNamed(shape)
    const manager = await opened({ cwd: folder() })
    const counting = { ...own, read: (messages: readonly object[], at: number) => ((reads += 1), own.read(messages, at)) }
    const projection = new Projection(manager, { shape: counting, model: MODEL })
    const messages = written[shape]({ user: 'begin' }, 0)
    for (const [at, name] of INHERITED.entries()) {
      const step: Step = {
        calls: [
          { id: `call_${at}`, name: 'bash', args: { command: `run ${at}`, ...having(name, { value: at }) } as Record<string, unknown>, output: `output ${at}` },
        ],
      }
      messages.push(...written[shape](step, at))
      // The host sends a new copy at each call.
      await projection.transform(messages.map((message) => JSON.parse(JSON.stringify(message))))
    }
    expect(reads).toBeLessThanOrEqual(messages.length)
  })
})

/** The output of a call, with words that occur nowhere else. */
const output = (words: string): string => Array.from({ length: 60 }, (_, line) => `${words} line ${line}, and what else it says`).join('\n')

/** The objects that a request names in place of text, with what each brings back. */
async function recalled(manager: ContextManager, sent: unknown): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  for (const [, id] of JSON.stringify(sent).matchAll(/(?:\bid=|#)([0-9a-f]{8,11})\b/g)) {
    const { ok, content } = await manager.activate(id as string)
    expect(ok).toBe(true)
    found.set(id as string, String(content))
  }
  return found
}

describe.each(some(shapes, 2))('call IDs that come again: %s', (shape) => {
  const args: Record<string, (words: string) => Record<string, unknown>> = {
    custom: (words) => ({ query: words }),
    bash: (words) => ({ command: words }),
    // The engine has other names for these.
    Read: (words) => ({ file_path: `/w/${words}` }),
    Bash: (words) => ({ command: words, description: 'looks' }),
    none: () => ({}),
  }
  const call = (tool: string, words: string): Call => ({ id: 'call_0', name: tool, args: args[tool]!(words), output: output(words) })
  const pairs = [
    ['custom', 'bash'],
    ['bash', 'bash'],
    ['Read', 'Read'],
    ['bash', 'Bash'],
    ['none', 'none'],
  ] as const

  /** The host's edits of the newest call before it sends the conversation again. */
  const edits: [name: string, edit: (call: Call) => Call][] = [
    ['an argument is redacted', (call) => ({ ...call, args: { ...call.args, token: '***' } })],
    ['all arguments are gone', (call) => ({ ...call, args: {} })],
    ['an argument is called __proto__', (call) => ({ ...call, args: { ...call.args, ...having('__proto__', '***') } })],
    ['the tool has another name', (call) => ({ ...call, name: 'renamed' })],
    ['nothing', (call) => call],
  ]

  test.each(edits)('%s: its reference brings back its own output', async (_, edit) => {
    for (const [older, newer] of pairs) {
      const manager = await opened({ cwd: folder() })
      let now = 0
      const projection = new Projection(manager, { model: MODEL, shortens: true, now: () => now })
      const write = (steps: readonly Step[]): object[] => steps.flatMap((step) => written[shape](step, 1))
      await projection.transform(write([{ user: 'begin' }, { calls: [call(older, 'old')] }]))
      // All of it leaves, and the host continues from here.
      const before: Step[] = [{ user: 'summary' }, { text: 'yes', calls: [] }, { user: 'on' }]
      await projection.transform(write([...before, { calls: [call(newer, 'fresh')] }]))
      const steps: Step[] = [...before, { calls: [edit(call(newer, 'fresh'))] }]
      let sent: object[] = []
      for (let round = 0; round < 6; round += 1) {
        // Nothing is in the provider's cache, so that whatever may leave does.
        now += 3_600_000
        steps.push({ user: `on ${round}` })
        await projection.transform(write(steps))
        steps.push({ calls: [call('bash', `round ${round}`)] })
        sent = await projection.transform(write(steps))
      }
      const back = [...(await recalled(manager, sent)).values()]
      expect(back.length).toBeGreaterThan(0)
      expect(back.filter((text) => text.includes('old line'))).toEqual([])
      expect(JSON.stringify(sent).includes('fresh line 30') || back.includes(output('fresh'))).toBe(true)
      await manager.close()
    }
  })
})

describe.each(some(shapes, 2))('messages that a host puts into the past: %s', (shape) => {
  const said = (words: string): string => output(`${words} says`)
  const call = (words: string): Step => ({
    text: said(`model with ${words}`),
    calls: [{ id: `id_${words}`, name: 'bash', args: { command: words }, output: output(words) }],
  })

  const edits: [name: string, edit: (steps: Step[]) => void][] = [
    ['a prompt is inserted', (steps) => void steps.splice(6, 0, { user: said('new') })],
    ['a prompt is changed', (steps) => void (steps[7] = { user: said('new') })],
    ['a prompt is inserted at the beginning', (steps) => void steps.unshift({ user: said('new') })],
    ['an answer is inserted', (steps) => void steps.splice(6, 0, { text: said('new'), calls: [] }, { user: 'and' })],
    ['an answer is changed', (steps) => void (steps[8] = { ...(steps[8] as { calls: Call[] }), text: said('new') })],
    ['a call is inserted', (steps) => void steps.splice(6, 0, call('new'))],
    [
      'an output is changed',
      (steps) => void ((steps[8] as { calls: Call[] }).calls[0] = { ...(steps[8] as { calls: Call[] }).calls[0]!, output: output('new') }),
    ],
  ]

  test.each(edits)('%s: it is sent whole, and its later replacement restores it', async (_, edit) => {
    const manager = await opened({ cwd: folder() })
    let now = 0
    const projection = new Projection(manager, { model: MODEL, shortens: true, now: () => now })
    const write = (steps: readonly Step[]): object[] => steps.flatMap((step) => written[shape](step, 1))
    const pass = async (steps: readonly Step[]): Promise<object[]> => ((now += 3_600_000), projection.transform(write(steps)))
    const steps: Step[] = [{ user: 'begin' }]
    for (let round = 0; round < 10; round += 1) {
      steps.push({ user: said(`user ${round}`) }, call(`round ${round}`))
      await pass(steps)
    }
    edit(steps)
    const news = (messages: readonly object[]): string[] => [...JSON.stringify(messages).matchAll(/new[^"]*? line (\d+),/g)].map(([text]) => text)
    const lines = news(write(steps))
    expect(lines.length).toBeGreaterThan(50)
    expect(news(await pass(steps))).toEqual(lines)
    for (let round = 10; round < 22; round += 1) {
      steps.push({ user: said(`user ${round}`) }, call(`round ${round}`))
      const sent = await pass(steps)
      if (round < 21) continue
      const back = [...(await recalled(manager, sent)).values(), JSON.stringify(sent)]
      expect(lines.filter((line) => !back.some((text) => text.includes(line)))).toEqual([])
    }
  })
})
