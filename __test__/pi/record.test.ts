/** The record has every message once and in its turn, whatever failed on the way, and reports where it can't continue. */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { cleanUp, startRpc } from '../../rig/pi.ts'
import { calls } from '../../rig/reply.ts'
import type { Answer } from '../../rig/reply.ts'
import { command, lines, notices, openStore, put, setUp } from './support.ts'
import { some } from '../rows.ts'

afterEach(cleanUp)

const TRIGGER = fileURLToPath(new URL('trigger.ts', import.meta.url))
const FAULTY = fileURLToPath(new URL('faulty.ts', import.meta.url))

/** Lists in lists, this many levels. */
function nested(levels: number): unknown {
  let value: unknown = 'the innermost'
  for (let level = 0; level < levels; level += 1) value = [value]
  return value
}

/** A session's turns as the store has them: the user's words, the assistant's texts and the calls. */
async function turnsOf(store: string, session: string): Promise<unknown[]> {
  const manager = await openStore(store, session)
  const chat = (await manager.get(`chat:${session}`)) as any
  await manager.close()
  return chat.turns.map((turn: any) => ({
    user: turn.user.map((block: any) => block.text).join(''),
    answers: turn.assistant.flatMap(({ content }: any) =>
      content.map((block: any) => (block.type === 'text' ? block.text : block.type === 'toolCall' ? block.id : '')),
    ),
    calls: turn.toolcall_ids,
  }))
}

const WHOLE = [
  { user: 'one', answers: ['call_0', 'answer 1'], calls: ['call_0'] },
  { user: 'two', answers: ['call_2', 'answer 3'], calls: ['call_2'] },
  { user: 'three', answers: ['call_4', 'answer 5'], calls: ['call_4'] },
]

/** A model that runs a command and then answers, and lets `at` happen with the request of that number. */
function worker(at: number, happens: () => void, until: number, ends: () => void): (request: unknown, n: number) => Answer {
  return (_request, n) => {
    if (n === at) happens()
    if (n === until) ends()
    return n % 2 === 0 ? calls(['bash', { command: `cat ${n}.txt` }, `call_${n}`]) : `answer ${n}`
  }
}

test.each(
  some<[string, string, number, number, string]>(
    [
      // While the answer with the call is on its way the store fails, and is back when its result is.
      ['the end of a turn with a call', 'advance', 2, 3, 'IO'],
      ['the end of a turn with a call, halfway', 'advance:half', 2, 3, 'IO'],
      ['the end of a turn with a call, halfway and refused', 'advance:half', 2, 3, 'INVALID_ARGUMENT'],
      ['the end of the answer', 'advance', 3, 4, 'IO'],
      ['the next prompt', 'advance', 1, 2, 'IO'],
      ['the next prompt, halfway', 'advance:half', 1, 2, 'IO'],
      ['the end of a turn, and the store is told to be away', 'advance', 2, 3, 'STORE_UNAVAILABLE'],
      ['the end of a turn, halfway, and the store is told to be away', 'advance:half', 2, 3, 'STORE_UNAVAILABLE'],
    ],
    2,
  ),
)('a write that fails once loses nothing: %s', async (_name, fault, at, until, code) => {
  let toggle = ''
  const { home, store, load } = await setUp(
    worker(
      at,
      () => writeFileSync(toggle, ''),
      until,
      () => rmSync(toggle),
    ),
  )
  toggle = join(home.root, 'toggle')
  for (let n = 0; n < 6; n += 2) put(home, `${n}.txt`, lines(String(n), 40))
  const env = { ...load.env, FAULT: fault, FAULT_CODE: code, FAULT_WHILE: toggle }
  const rpc = await startRpc({ ...load, extension: FAULTY, env })
  const session = (await rpc.state())['sessionId']
  await rpc.prompt('one')
  await rpc.prompt('two')
  if (code === 'STORE_UNAVAILABLE') {
    expect(notices(rpc.events)).toEqual([expect.stringMatching(/stopped: advance fails on purpose/)])
    expect(await command(rpc, '/context on')).toEqual([expect.stringContaining('is on')])
  }
  await rpc.prompt('three')
  expect(await rpc.close()).toEqual({ code: 0, signal: null })
  expect(await turnsOf(store, session)).toEqual(WHOLE)
})

test.each(some(['IO', 'INVALID_ARGUMENT'], 1))('a failure that repeats (%s) ends the recording aloud, once', async (code) => {
  const { home, store, load } = await setUp((_request, n) => `answer ${n}`)
  const toggle = join(home.root, 'toggle')
  writeFileSync(toggle, '')
  const env = { ...load.env, FAULT: 'advance', FAULT_CODE: code, FAULT_WHILE: toggle }
  const rpc = await startRpc({ ...load, extension: FAULTY, env })
  const session = (await rpc.state())['sessionId']
  for (const prompt of ['one', 'two', 'three', 'four', 'five']) await rpc.prompt(prompt)
  expect(notices(rpc.events)).toEqual([
    expect.stringMatching(/^Context manager: advance fails on purpose/),
    expect.stringMatching(/^The context manager stopped: advance fails on purpose.*\/context on tries again\.$/),
  ])
  rmSync(toggle)
  expect(await command(rpc, '/context on')).toEqual([expect.stringContaining('is on')])
  await rpc.prompt('six')
  await rpc.close()
  const prompts = ['one', 'two', 'three', 'four', 'five', 'six']
  expect(await turnsOf(store, session)).toEqual(prompts.map((user, n) => ({ user, answers: [`answer ${n}`], calls: [] })))
})

test('messages that Pi has summarized before the record are recorded anyway, once and in order', async () => {
  const answer = (n: number): string => lines(`answer ${n}`, 150)
  let asked = 0
  const { server, home, store, load } = await setUp(
    (request) => {
      if (request.kind === 'summary') return 'SUMMARY'
      asked += 1
      return asked === 3 ? calls(['bash', { command: 'cat a.txt' }, 'call_a']) : answer(asked)
    },
    { settings: { compaction: { keepRecentTokens: 2000 } } },
  )
  put(home, 'a.txt', lines('a', 40))
  const toggle = join(home.root, 'toggle')
  const env = { ...load.env, FAULT: 'advance', FAULT_CODE: 'STORE_UNAVAILABLE', FAULT_WHILE: toggle }
  const rpc = await startRpc({ ...load, extension: FAULTY, env })
  const session = (await rpc.state())['sessionId']
  await rpc.prompt('one')
  writeFileSync(toggle, '')
  for (const prompt of ['two', 'three', 'four', 'five']) await rpc.prompt(prompt)
  expect(notices(rpc.events)).toEqual([expect.stringMatching(/stopped: advance fails on purpose/)])
  await rpc.command({ type: 'compact' })
  rmSync(toggle)
  expect(await command(rpc, '/context on')).toEqual([expect.stringContaining('is on')])
  await rpc.prompt('six')
  expect(await rpc.close()).toEqual({ code: 0, signal: null })
  expect(server.requests.at(-1)!.prompt).toContain('SUMMARY')
  expect(server.requests.at(-1)!.prompt).not.toContain('answer 2 line')
  expect(await turnsOf(store, session)).toEqual([
    { user: 'one', answers: [answer(1)], calls: [] },
    { user: 'two', answers: [answer(2)], calls: [] },
    { user: 'three', answers: ['call_a', answer(4)], calls: ['call_a'] },
    { user: 'four', answers: [answer(5)], calls: [] },
    { user: 'five', answers: [answer(6)], calls: [] },
    { user: 'six', answers: [answer(7)], calls: [] },
  ])
  const manager = await openStore(store, session)
  expect((await manager.get('call_a'))!['content']).toBe(lines('a', 40))
  await manager.close()
})

test('a message that the engine refuses is recorded as far as that goes, and stops none after it', async () => {
  const { home, store, load } = await setUp((_request, n) =>
    n === 0 ? calls(['bash', { command: 'cat a.txt', deep: nested(150) }, 'call_deep']) : `answer ${n}`,
  )
  put(home, 'a.txt', lines('a', 40))
  const rpc = await startRpc(load)
  const session = (await rpc.state())['sessionId']
  for (const prompt of ['one', 'two', 'three']) await rpc.prompt(prompt)
  expect(notices(rpc.events)).toEqual([])
  await rpc.close()
  expect(await turnsOf(store, session)).toEqual([
    { user: 'one', answers: ['call_deep', 'answer 1'], calls: ['call_deep'] },
    { user: 'two', answers: ['answer 2'], calls: [] },
    { user: 'three', answers: ['answer 3'], calls: [] },
  ])
  const manager = await openStore(store, session)
  const call = await manager.get('call_deep')
  expect(JSON.stringify(call!['args'])).toContain('the innermost')
})

test('a run that begins without a prompt belongs to the turn before it, and its outputs collapse like others', async () => {
  const { home, store, load } = await setUp((_request, n) => (n === 1 ? calls(['bash', { command: 'cat a.txt' }, 'call_a']) : `answer ${n}`))
  put(home, 'a.txt', lines('a', 60))
  const rpc = await startRpc({ ...load, extension: [load.extension, TRIGGER] })
  const session = (await rpc.state())['sessionId']
  await rpc.prompt('one')
  const from = rpc.mark
  await rpc.command({ type: 'prompt', message: '/trigger by itself' })
  await rpc.waitFor('agent_settled', from)
  for (const prompt of ['two', 'three', 'four']) await rpc.prompt(prompt)
  expect((await command(rpc, '/context roll')).at(-1)).toMatch(/^Rolled: 1 item/)
  expect(notices(rpc.events.slice(0, from))).toEqual([])
  expect(await rpc.close()).toEqual({ code: 0, signal: null })
  expect(await turnsOf(store, session)).toEqual([
    { user: 'one', answers: ['answer 0', 'call_a', 'answer 2'], calls: ['call_a'] },
    { user: 'two', answers: ['answer 3'], calls: [] },
    { user: 'three', answers: ['answer 4'], calls: [] },
    { user: 'four', answers: ['answer 5'], calls: [] },
  ])
})
