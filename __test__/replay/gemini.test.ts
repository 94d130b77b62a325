/** Sessions of Gemini CLI: its two forms of a file, lines that change what came before, and what is damaged. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { idInName, openAny, openRecording, sessionFiles } from '../../lib/recordings/open.ts'
import { callsOf, isCall, textOf } from '../../lib/recordings/recording.ts'
import type { Step } from '../../lib/recordings/recording.ts'
import { chargesOf } from '../../lib/usage/charges.ts'
import type { Charge } from '../../lib/usage/charges.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { entriesOf, temporaryFolder } from './support.ts'

afterEach(cleanUp)

const ID = '0199beef-1234-4234-8234-1234567890ab'
const HEADER = { sessionId: ID, projectHash: 'f00', startTime: '2026-03-01T10:00:00.000Z', lastUpdated: '2026-03-01T10:00:00.000Z', kind: 'main' }

let minute = 0
const time = (): string => new Date(Date.parse('2026-03-01T10:00:00.000Z') + 60_000 * (minute += 1)).toISOString()
const user = (id: string, text: string): object => ({ id, timestamp: time(), type: 'user', content: [{ text }] })
const tokens = (input: number, cached: number): object => ({ input, output: 20, cached, thoughts: 30, tool: 0, total: input + 50 })
const call = (id: string, output: string | undefined, name = 'read_file', status = 'success'): object => ({
  ...{ id, name, args: { file_path: 'a.ts' }, status, timestamp: time() },
  ...(output !== undefined && { result: [{ functionResponse: { id, name, response: status === 'success' ? { output } : { error: output } } }] }),
})
const answer = (id: string, text: string, more: object = {}): object => ({
  id,
  timestamp: time(),
  type: 'gemini',
  content: text,
  thoughts: [],
  model: 'gemini-2.5-pro',
  ...more,
})

/** The file of a session in Gemini CLI's own folder. */
function given(lines: readonly object[], name = `session-2026-03-01T10-00-${ID.slice(0, 8)}.jsonl`): string {
  const project = join(temporaryFolder(), 'tmp', 'shop')
  const file = join(project, 'chats', name)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(join(project, '.project_root'), '/home/dev/shop')
  writeFileSync(file, name.endsWith('.json') ? JSON.stringify(lines[0]) : [HEADER, ...lines].map((line) => `${JSON.stringify(line)}\n`).join(''))
  return file
}

async function stepsOf(file: string): Promise<Step[]> {
  const steps: Step[] = []
  for await (const step of (await openRecording(file)).steps(() => {})) steps.push(step)
  return steps
}

async function chargesIn(file: string): Promise<Charge[]> {
  const charges: Charge[] = []
  for await (const charge of chargesOf(await openAny(file), new Set())) charges.push(charge)
  return charges
}

const shape = (steps: Step[]): unknown[] =>
  entriesOf(steps).map(({ message }) => [message.role, textOf(message), callsOf(message).map(({ name, arguments: args }) => [name, args])])

/** A prompt, a call whose record is written three times, and its result. */
const TALK = [
  user('u1', 'why?'),
  answer('g1', 'I look.'),
  answer('g1', 'I look.', { tokens: tokens(1000, 600) }),
  answer('g1', 'I look.', { tokens: tokens(1000, 600), toolCalls: [call('c1', 'line 1\nline 2'), call('c2', 'no such file', 'run_shell_command', 'error')] }),
  { $set: { lastUpdated: 'later' } },
  { id: 'i1', timestamp: time(), type: 'info', content: 'Update available' },
  answer('g2', 'Because.', { tokens: tokens(2000, 1000) }),
]
const READ = [
  ['user', 'why?', []],
  [
    'assistant',
    'I look.',
    [
      ['read', { path: 'a.ts' }],
      ['bash', { file_path: 'a.ts' }],
    ],
  ],
  ['toolResult', 'line 1\nline 2', []],
  ['toolResult', 'no such file', []],
  ['assistant', 'Because.', []],
]

describe('a session is the same conversation in the words of Pi', () => {
  test('in lines, with several for one message', async () => {
    const file = given(TALK)
    expect((await openRecording(file)).origin).toEqual({ format: 'gemini-cli', version: 0, id: ID, cwd: '/home/dev/shop' })
    const steps = await stepsOf(file)
    expect(shape(steps)).toEqual(READ)
    expect(entriesOf(steps).map(({ message }) => message.isError)).toEqual([undefined, undefined, false, true, undefined])
  })

  test('in one document, as earlier versions wrote it', async () => {
    const messages = [...new Map(TALK.filter((line) => 'id' in line).map((line) => [(line as { id: string }).id, line])).values()]
    const file = given([{ ...HEADER, messages }], `session-2026-03-01T10-00-${ID.slice(0, 8)}.json`)
    expect(shape(await stepsOf(file))).toEqual(READ)
    const found: string[] = []
    for await (const one of sessionFiles(dirname(dirname(file)))) found.push(one)
    expect(found).toEqual([file])
  })
})

test('the prompt’s count includes the cached part, and the answer’s not the thoughts', async () => {
  const charges = await chargesIn(given(TALK))
  expect(charges.map(({ tokens: used, model, session, folder }) => [used.input, used.cacheRead, used.cacheWrite, used.output, model, session, folder])).toEqual(
    [
      [400, 600, 0, 50, 'google/gemini-2.5-pro', ID, '/home/dev/shop'],
      [1000, 1000, 0, 50, 'google/gemini-2.5-pro', ID, '/home/dev/shop'],
    ],
  )
  // Of gemini-2.5-pro: fresh 1.25, cached 0.125, written by the model 10 dollars a million.
  expect(charges[0]?.cost).toBeCloseTo((400 * 1.25 + 600 * 0.125 + 50 * 10) / 1e6, 9)
})

test('a conversation that went back is a branch, and the calls that left it were paid for', async () => {
  const steps = await stepsOf(given([...TALK, user('u2', 'wrong'), answer('g3', 'No.', { tokens: tokens(3000, 0) }), { $rewindTo: 'u2' }, user('u3', 'right')]))
  expect(steps.findLast((step) => step.kind === 'branch')).toMatchObject({ keys: ['u1', 'g1', 'g1-c1', 'g1-c2', 'g2'] })
  expect(entriesOf(steps).filter(({ message }) => isCall(message))).toHaveLength(3)
})

test('a summary in place of earlier messages is a compaction', async () => {
  const kept = [answer('g2', 'Because.'), user('u2', 'and then?')]
  const steps = await stepsOf(
    given([
      ...TALK,
      user('u2', 'and then?'),
      { $set: { messages: [user('s1', 'a summary'), { id: 's2', timestamp: time(), type: 'gemini', content: 'Got it.' }, ...kept] } },
      answer('g4', 'Done.', { tokens: tokens(700, 0) }),
    ]),
  )
  expect(steps.filter((step) => step.kind === 'compaction')).toMatchObject([{ summary: 'a summary', firstKept: 'g2' }])
  expect(shape(steps).at(-1)).toEqual(['assistant', 'Done.', []])
  expect(entriesOf(steps).filter(({ message }) => isCall(message))).toHaveLength(3)
})

describe('a resume in the same file', () => {
  const response = (id: string, output: string): object => ({ functionResponse: { id, name: 'read_file', response: { output } } })
  // The first lines are those of a new session; then the whole conversation stands in one, each result twice.
  const resumed = (again: readonly object[]): object[] => {
    const [first, answered, last] = [TALK[0] as object, TALK[3] as { id: string }, TALK.at(-1) as object]
    const beside = { ...user('r1', ''), content: [response('c1', 'line 1\nline 2'), response('c2', 'no such file')] }
    const list = [first, answered, { ...beside, id: answered.id }, beside, last]
    return [
      ...TALK.slice(0, 4),
      beside,
      ...TALK.slice(4),
      HEADER,
      { $set: { messages: [first] } },
      { $set: { sessionId: ID } },
      { $set: { messages: list } },
      ...again,
    ]
  }

  test('has all of the conversation, and the results twice, as the program sends them', async () => {
    const steps = await stepsOf(given(resumed([user('u2', 'and then?'), answer('g3', 'Done.', { tokens: tokens(4000, 100) })])))
    const branch = steps.findLast((step) => step.kind === 'branch')
    expect(branch).toMatchObject({ keys: ['u1', 'g1', 'g1-c1', 'g1-c2', 'r1', 'g2'] })
    const again = entriesOf(steps).filter(({ key }) => key === 'r1')
    expect(again.map(({ message }) => [message.role, textOf(message)])).toEqual([['custom', 'line 1\nline 2\nno such file']])
    expect(shape(steps).slice(-2)).toEqual([
      ['user', 'and then?', []],
      ['assistant', 'Done.', []],
    ])
    expect(shape(steps).slice(0, 5)).toEqual(READ)
  })

  test('is paid for once, and a second one has each result twice, not three times', async () => {
    const once = resumed([user('u2', 'and then?'), answer('g3', 'Done.', { tokens: tokens(4000, 100) })])
    const file = given([...once, ...resumed([]).slice(-4), user('u3', 'more'), answer('g4', 'Yes.', { tokens: tokens(5000, 100) })])
    expect((await chargesIn(file)).map(({ calls }) => calls)).toEqual([1, 1, 1, 1])
    expect(entriesOf(await stepsOf(file)).filter(({ key }) => key === 'r1')).toHaveLength(1)
  })
})

test('an output that the host masks later is read as it was', async () => {
  const masked = [answer('g1', 'I look.', { toolCalls: [call('c1', '[masked]')] })]
  const steps = await stepsOf(given([...TALK, { $set: { messages: [TALK[0] as object, ...masked, TALK.at(-1) as object] } }]))
  expect(shape(steps)).toEqual(READ)
  expect(steps.filter((step) => step.kind !== 'message')).toEqual([])
})

test('a subagent’s file belongs to the session that started it', async () => {
  const file = given([], `${ID}/0199cafe-1234-4234-8234-1234567890ab.jsonl`)
  writeFileSync(
    file,
    [{ ...HEADER, sessionId: '0199cafe-1234-4234-8234-1234567890ab', kind: 'subagent' }, ...TALK].map((line) => `${JSON.stringify(line)}\n`).join(''),
  )
  expect((await openAny(file)).origin).toMatchObject({ id: ID, agent: '0199cafe-1234-4234-8234-1234567890ab', cwd: '/home/dev/shop' })
  await expect(openRecording(file)).rejects.toThrow('the conversation of a subagent of Gemini CLI’s session'.replace('’', "'"))
})

test('a session that is in two files counts once', async () => {
  const [lines, again] = [given(TALK), given(TALK)]
  const charged = new Set<string>()
  const counts: number[] = []
  for (const file of [lines, again]) {
    let calls = 0
    for await (const charge of chargesOf(await openAny(file), charged)) calls += charge.calls
    counts.push(calls)
  }
  expect(counts).toEqual([2, 0])
})

test.each<[what: string, lines: unknown[]]>([
  ['lines that are no objects', [1, 'x', null, []]],
  [
    'messages without parts, calls and times',
    [
      { id: 'a', type: 'user' },
      { id: 'b', type: 'gemini' },
      { id: 'c', type: 'gemini', toolCalls: 'x', thoughts: 7, tokens: [] },
    ],
  ],
  ['calls without names and results', [{ id: 'b', type: 'gemini', model: 'm', toolCalls: [{}, null, { id: 1, result: 5, args: 'x' }] }]],
  ['counts that can’t be', [{ id: 'b', type: 'gemini', model: 'm', content: 'x', tokens: { input: -1, output: 'x', cached: 1e300 } }]],
  ['changes of other shapes', [{ $set: 1 }, { $set: { messages: 'x' } }, { $set: { messages: [1, { id: 2 }] } }, { $rewindTo: 5 }, { $rewindTo: 'unknown' }]],
])('a file with %s is read as far as it goes', async (_what, lines) => {
  const file = given([TALK[0] as object, ...(lines as object[]), TALK.at(-1) as object])
  expect((await chargesIn(file)).reduce((sum, { tokens: used }) => sum + used.cacheRead, 0)).toBeGreaterThanOrEqual(1000)
})

test('the name of a file has the beginning of the ID', () => {
  expect(idInName('/x/session-2026-03-01T10-00-0199beef.jsonl')).toBe('0199beef')
  expect(idInName('/x/session-2026-03-01T10-00-0199beef.json')).toBe('0199beef')
})
