/** A host that changes the arguments of a call: what its ID brings back later is the call as the host has it. */
import { afterEach, describe, expect, test } from 'vitest'
import { hasArguments } from '../lib/projection/changed.ts'
import type { ObjectDocument } from '../lib/index.ts'
import { folder, opened } from './core/setup.ts'
import { shapes, written } from './hosts/conversation.ts'
import type { Call, Step } from './hosts/conversation.ts'
import { lines as linesOf, MODEL, Processes } from './hosts/processes.ts'
import { cleanUp } from '../rig/cleanup.ts'
import { some } from './rows.ts'

afterEach(cleanUp)

const lines = (name: string): string => linesOf(name, 40)
const nested = (depth: number): unknown => (depth === 0 ? 'end' : { in: nested(depth - 1) })

/** The arguments of the call that is changed. */
const ARGS = { command: 'deploy --token s3cret', options: { env: ['a', 'b'], retries: 2 }, note: lines('note') }

/** Number of requests to the second process. */
const AFTER = 4

type Edit = (call: Call) => Call

const edits: [name: string, edit: Edit][] = [
  ['a value', (call) => ({ ...call, args: { ...ARGS, command: 'deploy --token ***' } })],
  ['a long value', (call) => ({ ...call, args: { ...ARGS, note: lines('redacted') } })],
  ['a value in a value', (call) => ({ ...call, args: { ...ARGS, options: { ...ARGS.options, env: ['a', '***'] } } })],
  ['a number', (call) => ({ ...call, args: { ...ARGS, options: { ...ARGS.options, retries: 0 } } })],
  ['a removed one', (call) => ({ ...call, args: { command: ARGS.command } })],
  ['an added one', (call) => ({ ...call, args: { ...ARGS, constructor: 'x' } })],
  ['all of them', (call) => ({ ...call, args: {} })],
]

/** Plays a conversation in two processes: the host edits a call before the second one. Returns the calls that its IDs bring back. */
async function played(
  shape: (typeof shapes)[number],
  edit: Edit,
  rounds: { before: number; at: number; hasIds?: boolean; isRestarted?: boolean },
  args: Record<string, unknown> = ARGS,
): Promise<{ steps: Step[]; back: ObjectDocument[]; recorded: number; withheld: unknown[] }> {
  const host = new Processes(shape, { model: { ...MODEL, contextWindow: 60_000 } })
  const steps: Step[] = []
  const pass = (): Promise<string[]> => {
    host.now += 3_600_000
    return host.transform(steps.flatMap((step) => written[shape](step, 1)))
  }
  const add = async (round: number, own: Record<string, unknown>): Promise<string[]> => {
    steps.push({ user: `prompt ${round}` })
    await pass()
    steps.push({ calls: [{ id: rounds.hasIds === false ? '' : `call_${round}`, name: 'run', args: own, output: lines(`call_${round}`) }] })
    return pass()
  }
  for (let round = 0; round < rounds.before; round += 1) {
    await add(round, round === rounds.at ? args : { command: `run ${round}` })
  }
  if (rounds.isRestarted !== false) await host.restart()
  const place = 2 * rounds.at + 1
  steps[place] = { calls: (steps[place] as { calls: Call[] }).calls.map(edit) }
  let sent = await pass()
  for (let round = rounds.before; round < rounds.before + AFTER; round += 1) {
    sent = await add(round, { command: `run ${round}` })
  }
  const ids = new Set([...sent.join().matchAll(/(?:\bid=|\[collapsed #)([0-9a-f]{8,})/g)].map(([, id]) => id as string))
  const { manager, projection } = await host.running()
  const back: ObjectDocument[] = []
  for (const id of ids) {
    expect([id, await projection.permits(id)]).toEqual([id, true])
    const document = await manager.get(id)
    if (document?.type === 'toolcall') back.push(document)
  }
  const recorded = (await manager.sessionSets()).sessionIndex
  const withheld: unknown[] = []
  for (const id of recorded) if (!(await projection.permits(id))) withheld.push((await manager.get(id))?.['args'])
  return { steps, back, recorded: recorded.length, withheld }
}

/** The arguments of all calls of a conversation. */
const argsIn = (steps: readonly Step[]): unknown[] => steps.flatMap((step) => ('calls' in step ? step.calls.map(({ args }) => args) : []))

describe.each(some(shapes, 2))('changed while no process ran: %s', (shape) => {
  test.each(edits)('%s', async (_, edit) => {
    for (const rounds of [
      { before: 3, at: 2 },
      { before: 5, at: 1 },
    ]) {
      const { steps, back, recorded, withheld } = await played(shape, edit, rounds)
      expect(back.length).toBeGreaterThan(1)
      for (const { args } of back) expect(argsIn(steps)).toContainEqual(args)
      expect(recorded, 'the changed call is recorded once more, and no other one is').toBe(rounds.before + AFTER + 1)
      expect(withheld, 'what was changed does not come back by the name that it had').toEqual([ARGS])
    }
  })

  test.each<[string, Record<string, unknown>]>([
    ['as they were', ARGS],
    ['in another order', { note: ARGS.note, options: { retries: 2, env: ['a', 'b'] }, command: ARGS.command }],
    ['nested deeply', { deep: nested(80) }],
    ['half of a character', { text: `\ud83d ${lines('x')}` }],
    ['called __proto__', JSON.parse('{"__proto__":{"a":1},"toString":"b"}')],
    ['none', {}],
  ])('nothing is recorded again where arguments are the same: %s', async (_, args) => {
    const rounds = { before: 4, at: 1 }
    const { recorded, withheld } = await played(shape, (call) => ({ ...call, args: Object.fromEntries(Object.entries(call.args).reverse()) }), rounds, args)
    expect([recorded, withheld]).toEqual([rounds.before + AFTER, []])
  })
})

describe('calls of Gemini without IDs, which are named by what they ask and what they got', () => {
  const more: [string, Edit][] = [...edits, ['its output', (call) => ({ ...call, output: lines('redacted') })]]

  test.each(
    some(
      more.flatMap(([name, edit]) => [true, false].map((isRestarted) => [name, isRestarted, edit] as const)),
      3,
    ),
  )('%s is changed; another process: %s', async (_, isRestarted, edit) => {
    const { steps, back } = await played('gemini', edit, { before: 4, at: 1, hasIds: false, isRestarted })
    expect(back.length).toBeGreaterThan(1)
    const calls = steps.flatMap((step) => ('calls' in step ? step.calls.map(({ args, output }) => ({ args, output })) : []))
    for (const { args, content } of back) expect(calls).toContainEqual({ args, output: content })
  })
})

describe('the recorded arguments of a call', () => {
  const long = lines('long')
  const recorded = { path: '/w/a/b.txt', edits: [{ oldText: long, newText: 'short' }], content: long }
  const mark = (name: string): string => `[collapsed #${name}: 2000 chars]`

  test.each<[boolean, string, (own: string, other: string) => { args?: object; now: object; redacted?: true }]>([
    [true, 'the same', () => ({ now: recorded })],
    [true, 'our marks', (own) => ({ now: { ...recorded, content: mark(own), edits: [{ oldText: mark(own), newText: 'short' }] } })],
    [true, 'our mark of a command', (own) => ({ args: { command: long }, now: { command: `[collapsed #${own}: 2000 chars, begins "long line 0"]` } })],
    [false, 'the mark of another call', (_, other) => ({ now: { ...recorded, content: mark(other) } })],
    [false, 'the mark of no call', () => ({ now: { ...recorded, content: mark('00000000') } })],
    [false, 'a mark in other words', (own) => ({ now: { ...recorded, content: `see ${mark(own)}` } })],
    [true, 'a path below the directory', () => ({ now: { ...recorded, path: 'a/b.txt' } })],
    [false, 'another path', () => ({ now: { ...recorded, path: '/w/c.txt' } })],
    [false, 'an empty path', () => ({ now: { ...recorded, path: '' } })],
    [false, 'one more', () => ({ now: { ...recorded, other: 1 } })],
    [false, 'one less', () => ({ now: { path: recorded.path } })],
    [true, 'one that is undefined', () => ({ now: { ...recorded, other: undefined } })],
    [true, 'nested too deeply to be recorded as they are', () => ({ args: { deep: JSON.stringify({ a: [1] }) }, now: { deep: { a: [1] } } })],
    [true, 'a forgotten text', () => ({ args: { content: 'a [erased] c' }, now: { content: 'a b c' } })],
    [
      true,
      'a secret, which the record does not have',
      () => ({ args: { content: 'key [redacted: aws-access-token] end' }, now: { content: 'key AKIA end' }, redacted: true }),
    ],
    [
      true,
      'a secret of several lines',
      () => ({ args: { content: 'key [redacted: private-key]\n\n end' }, now: { content: 'key a\nb\nc end' }, redacted: true }),
    ],
    [
      false,
      'another text beside a secret',
      () => ({ args: { content: 'key [redacted: aws-access-token] end' }, now: { content: 'none AKIA end' }, redacted: true }),
    ],
    [false, 'words that look like a mark of a secret', () => ({ args: { content: 'key [redacted: x] end' }, now: { content: 'key AKIA end' } })],
  ])('%s: %s', async (isSame, _, given) => {
    const manager = await opened({ cwd: folder() })
    const [own, other] = await Promise.all(['own', 'other'].map((id) => manager.receive({ id, tool: 'write', args: recorded, content: id, status: 'ok' })))
    const { args = recorded, now, redacted } = given(own!.handle, other!.handle)
    const document = { ...((await manager.get(own!.id)) as ObjectDocument), args, ...(redacted === undefined ? {} : { redacted: {} }) }
    expect(await hasArguments(manager, document, now)).toBe(isSame)
  })
})
