import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { findPi, isAtLeast, MINIMUM_NODE } from '../pi-runtime/index.mjs'
import { checkAllToolPairs, checkAppendOnly, checkUserMessages, NO_RESULT, total } from './rig/checks.ts'
import { readReference } from './rig/extension.ts'
import { startModelServer } from './rig/model-server.ts'
import {
  branchOf,
  cleanUp,
  createPiHome,
  messagesOf,
  onCleanUp,
  readSession,
  runPrint,
  startPrint,
  startRpc,
} from './rig/pi.ts'
import { call, calls, Gate } from './rig/reply.ts'
import type { Reply } from './rig/reply.ts'
import type { Api } from './rig/request.ts'
import { lastOf, resultsById } from './rig/request.ts'

afterEach(cleanUp)

const APIS: Api[] = ['openai-completions', 'anthropic-messages', 'openai-responses']

describe('print mode', () => {
  test.each(APIS)('%s: tools run, results come back in the order of the calls', async (api) => {
    const server = await startModelServer([
      {
        thinking: 'look around first',
        text: 'Looking.',
        calls: [
          { id: 'call_slow', name: 'bash', args: { command: 'cat notes.txt' } },
          { id: 'call_read', name: 'read', args: { path: 'notes.txt' } },
          { id: 'call_grep', name: 'grep', args: { pattern: 'needle', path: '.' } },
        ],
      },
      'The needle is on line 2.',
      'It is still there.',
    ])
    const home = createPiHome({ server, api, model: { reasoning: true } })
    writeFileSync(join(home.cwd, 'notes.txt'), 'hay\nneedle\nhay\n')
    const run = await runPrint({ home, prompts: ['Find the needle', '--check again'] })

    server.check()
    expect(run).toMatchObject({ exitCode: 0, stderr: '' })
    expect(run.stdout.trim()).toBe('It is still there.')
    expect(server.requests.map((request) => request.api)).toEqual([api, api, api])
    checkAllToolPairs(server.requests)
    checkAppendOnly(server.requests)
    checkUserMessages(server.requests[2]!, ['Find the needle', '--check again'])
    const results = [...resultsById(server.requests[1]!).values()]
    expect(results[0]).toContain('needle')
    expect(results[1]).toBe('hay\nneedle\nhay\n')
    expect(results[2]).toContain('notes.txt:2: needle')

    const stored = messagesOf(branchOf(readSession(run.sessionFile!).entries))
    expect(stored.map((message) => message['role'])).toEqual([
      'system',
      'user',
      'assistant',
      'toolResult',
      'toolResult',
      'toolResult',
      'assistant',
      'user',
      'assistant',
    ])
    expect(stored[2]!['content'][0]).toMatchObject({ type: 'thinking', thinking: 'look around first' })
    const { usage } = server.requests[2]!
    expect(stored.at(-1)!['usage']).toMatchObject(usage!)
    expect(usage!.cacheRead).toBeGreaterThan(usage!.input)
  })

  test('a refused request is an exit code with the sentence of the server', async () => {
    const server = await startModelServer([{ status: 400, error: 'no such thing here' }])
    const run = await runPrint({ home: createPiHome({ server }), prompts: ['hello'] })
    expect(run.exitCode).toBe(1)
    expect(run.stderr).toContain('no such thing here')
    expect(server.requests).toHaveLength(1)
  })

  test('a script that runs out is told, not waited for', async () => {
    const server = await startModelServer([calls(['bash', { command: 'true' }])])
    const run = await runPrint({ home: createPiHome({ server }), prompts: ['go'] })
    expect(run.exitCode).toBe(1)
    expect(() => server.check()).toThrow('no answer number 1')
  })
})

describe('RPC mode', () => {
  test('two prompts, a state, an orderly end', async () => {
    const server = await startModelServer((request, n) => {
      if (n === 0) return calls(['write', { path: 'a.txt', content: 'one' }], ['ls', {}])
      return `answer to ${lastOf(request, 'user')!.text}`
    })
    const home = createPiHome({ server })
    const rpc = await startRpc({ home })
    const first = await rpc.prompt('first')
    await rpc.prompt('second')
    expect(first.filter((event) => event.type === 'tool_execution_end')).toHaveLength(2)
    expect(await rpc.command({ type: 'get_last_assistant_text' })).toEqual({ text: 'answer to second' })
    await expect(rpc.command({ type: 'switch_session' })).rejects.toThrow('switch_session')
    const { sessionFile } = await rpc.state()
    expect(await rpc.close()).toEqual({ code: 0, signal: null })
    server.check()
    checkAllToolPairs(server.requests)
    checkAppendOnly(server.requests)
    expect(messagesOf(readSession(sessionFile).entries, 'user')).toHaveLength(2)
  })

  test('kill -9 between two prompts, then the session goes on', async () => {
    const server = await startModelServer((request) => `noted: ${lastOf(request, 'user')!.text}`)
    const home = createPiHome({ server })
    const before = await startRpc({ home })
    await before.prompt('remember the number 17')
    const { sessionId } = await before.state()
    expect(await before.kill9()).toEqual({ code: null, signal: 'SIGKILL' })

    const after = await startRpc({ home, args: ['--continue'] })
    expect((await after.state())['sessionId']).toBe(sessionId)
    await after.prompt('which number was it?')
    await after.close()
    server.check()
    expect(server.requests).toHaveLength(2)
    checkUserMessages(server.requests[1]!, ['remember the number 17', 'which number was it?'])
    checkAppendOnly(server.requests)
  })

  test('kill -9 inside a tool: the call is kept, with a made-up result', async () => {
    const server = await startModelServer([calls(['bash', { command: 'sleep 600' }, 'call_long']), 'understood'])
    const home = createPiHome({ server })
    const before = await startRpc({ home })
    const from = before.mark
    await before.command({ type: 'prompt', message: 'wait' })
    await before.waitFor('tool_execution_start', from)
    await before.kill9()
    await expect(before.waitFor('agent_settled')).rejects.toThrow('ended before the expected event')

    const after = await startRpc({ home, args: ['--continue'] })
    await after.prompt('go on')
    await after.close()
    server.check()
    expect(resultsById(server.requests[1]!).get('call_long')).toBe(NO_RESULT)
    expect(() => checkAllToolPairs(server.requests)).toThrow('made-up')
    checkAllToolPairs(server.requests, { allowNoResult: true })
  })

  test('an abort while the answer is streaming', async () => {
    const gate = new Gate()
    const server = await startModelServer([{ parts: ['The answer is ', gate, 'never'] }, 'second answer'])
    const rpc = await startRpc({ home: createPiHome({ server }) })
    const from = rpc.mark
    await rpc.command({ type: 'prompt', message: 'tell me' })
    await rpc.waitFor((event) => event.type === 'message_update' && JSON.stringify(event).includes('answer is'), from)
    await gate.reached
    await rpc.command({ type: 'abort' })
    expect(await server.requests[0]!.aborted).toBe(true)
    await rpc.prompt('again')
    await rpc.close()
    server.check()
    expect(server.requests[1]!.messages.map((message) => message.role)).toEqual(['system', 'user', 'user'])
  })
})

describe('a failing server', () => {
  test.each<[string, Reply, number]>([
    ['503', { status: 503 }, 503],
    ['a stream that is cut', { parts: ['half an ans'], cut: true }, 200],
  ])('%s is retried with the same request', async (_name, failure, status) => {
    const server = await startModelServer([failure, failure, 'third time lucky'])
    const rpc = await startRpc({ home: createPiHome({ server }) })
    const events = await rpc.prompt('try')
    await rpc.close()
    server.check()
    expect(events.filter((event) => event.type === 'auto_retry_start')).toHaveLength(2)
    expect(server.requests.map((request) => request.status)).toEqual([status, status, 200])
    expect(server.requests[2]!.prompt).toBe(server.requests[0]!.prompt)
    checkAppendOnly(server.requests)
  })

  test('a server that hangs until it is released', async () => {
    const before = new Gate()
    const server = await startModelServer([{ before, text: 'at last' }])
    const rpc = await startRpc({ home: createPiHome({ server }) })
    const answered = rpc.prompt('hello?')
    await before.reached
    expect((await rpc.state())['isStreaming']).toBe(true)
    before.release()
    await answered
    expect(await rpc.command({ type: 'get_last_assistant_text' })).toEqual({ text: 'at last' })
    await rpc.close()
  })
})

test('a compaction request is told from the agent\'s own', async () => {
  const server = await startModelServer((request) => (request.kind === 'summary' ? 'SUMMARY' : 'x'.repeat(4000)))
  const home = createPiHome({ server, settings: { compaction: { keepRecentTokens: 500 } } })
  const rpc = await startRpc({ home })
  await rpc.prompt('one')
  await rpc.prompt('two')
  await rpc.command({ type: 'compact' })
  await rpc.prompt('three')
  await rpc.close()
  server.check()
  const summaries = server.requests.filter((request) => request.kind === 'summary')
  expect(summaries.length).toBeGreaterThan(0)
  expect(server.agentRequests).toHaveLength(3)
  expect(server.agentRequests[2]!.prompt).toContain('SUMMARY')
  checkAppendOnly(server.requests, [server.agentRequests[2]!.n])
})

describe('the parts of the rig', () => {
  test.each([
    ['22.19.0', true],
    ['v22.23.3', true],
    ['24.0.0', true],
    ['22.18.9', false],
    ['20.20.2', false],
  ])('Node %s runs Pi: %s', (version, enough) => {
    expect(isAtLeast(version, MINIMUM_NODE)).toBe(enough)
  })

  test('Pi demands no newer Node than the one that is looked for', () => {
    const { root } = findPi()
    const { engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
    expect(engines.node).toBe(`>=${MINIMUM_NODE}`)
  })

  test('a home is private: nothing of the user\'s configuration or keys gets in', async () => {
    const server = await startModelServer([calls(['bash', { command: 'env' }]), 'done'])
    process.env['SCRIPTED_API_KEY'] = 'secret'
    onCleanUp(() => void delete process.env['SCRIPTED_API_KEY'])
    const home = createPiHome({ server })
    await runPrint({ home, prompts: ['show'], env: { EXTRA: 'wanted' } })
    const env = [...resultsById(server.requests[1]!).values()][0]!
    expect(env).toContain(`HOME=${home.home}\n`)
    expect(env).toContain('EXTRA=wanted\n')
    expect(env).not.toContain('SCRIPTED_API_KEY')
  })

  test('a run that does not end fails with what Pi wrote, and is ended', async () => {
    const server = await startModelServer([{ before: new Gate() }])
    const run = startPrint({ home: createPiHome({ server }), prompts: ['hang'], timeoutMs: 2_000 })
    await expect(run.result).rejects.toThrow(/after 2 s: pi -p .* has not ended/)
    expect(await run.process.ended).toEqual({ code: null, signal: 'SIGKILL' })
  })

  test('a torn last line of a session file is told apart', async () => {
    const server = await startModelServer(['fine'])
    const { sessionFile } = await runPrint({ home: createPiHome({ server }), prompts: ['hello'] })
    const whole = readSession(sessionFile!)
    expect(whole.torn).toBeUndefined()
    writeFileSync(sessionFile!, readFileSync(sessionFile!).subarray(0, -20))
    const torn = readSession(sessionFile!)
    expect(torn.entries).toEqual(whole.entries.slice(0, -1))
    expect(torn.torn).toMatch(/^\{/)
  })

  test.each([
    ['toolcall_ref id=call_1 tool=bash status=ok', { id: 'call_1', tool: 'bash' }],
    ['\ntoolcall_ref id=a|b+/= tool=read status=fail', { id: 'a|b+/=', tool: 'read' }],
    ['a text that mentions toolcall_ref id=call_1', undefined],
    ['a file\'s text\ntoolcall_ref id=call_1 tool=bash', undefined],
    ['toolcall_ref without one', undefined],
    ['', undefined],
  ])('the reference in %j', (text, expected) => {
    expect(readReference(text)).toEqual(expected)
  })
})

describe('the checks themselves', () => {
  test('answer a broken order of messages', async () => {
    const server = await startModelServer([{ parts: [call('ls', {}, 'a'), call('ls', {}, 'b')] }, 'done'])
    await runPrint({ home: createPiHome({ server }), prompts: ['list'] })
    const [first, second] = server.requests as [(typeof server.requests)[0], (typeof server.requests)[0]]
    checkAllToolPairs([first, second])
    const swap = { ...second, messages: second.messages.toSpliced(3, 2, second.messages[4]!, second.messages[3]!) }
    expect(() => checkAllToolPairs([swap])).toThrow('were answered by ["b","a"]')
    const short = { ...second, messages: second.messages.toSpliced(4, 1) }
    expect(() => checkAllToolPairs([short])).toThrow('were answered by ["a"]')
    const stray = { ...second, messages: second.messages.toSpliced(2, 1) }
    expect(() => checkAllToolPairs([stray])).toThrow('follows no call')
    expect(() => checkAppendOnly([second, first])).toThrow('rewrite the prompt')
    expect(() => checkAppendOnly([first, second], [second.n])).toThrow('and did not')
    expect(() => checkUserMessages(second, ['list', 'more'])).toThrow('no user message "more"')
  })

  test('the meter counts what is common with the best earlier prompt', () => {
    const first = 'a'.repeat(400)
    const sum = total([{ prompt: first }, { prompt: 'b'.repeat(40) }, { prompt: first + 'c'.repeat(400) }])
    expect(sum).toMatchObject({ calls: 3, prompt: 100 + 10 + 200, cached: 100, peak: 200 })
    expect(sum.cost).toBeCloseTo(100 * 0.1 + 210 * 1.25)
    expect(total([])).toMatchObject({ calls: 0, cachedShare: 0 })
  })
})
