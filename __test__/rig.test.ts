/** The rig itself: what it does where something is wrong, and that its checks can fail. Everything else is seen in the tests that use it. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { findPi, isAtLeast, MINIMUM_NODE } from '../pi-runtime/index.mjs'
import { checkAllToolPairs, checkAppendOnly, checkUserMessages, total } from '../rig/checks.ts'
import { startModelServer } from '../rig/model-server.ts'
import { cleanUp, createPiHome, messagesOf, onCleanUp, readSession, runPrint, startPrint, startRpc } from '../rig/pi.ts'
import { call, calls, Gate } from '../rig/reply.ts'
import { lastOf, resultsById } from '../rig/request.ts'

afterEach(cleanUp)

describe('print mode', () => {
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

  test("a home is private: nothing of the user's configuration or keys gets in", async () => {
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

  test('a run that does not end fails with the output of Pi, and is ended', async () => {
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

  test('the meter counts the common part with the best earlier prompt', () => {
    const first = 'a'.repeat(400)
    const sum = total([{ prompt: first }, { prompt: 'b'.repeat(40) }, { prompt: first + 'c'.repeat(400) }])
    expect(sum).toMatchObject({ calls: 3, prompt: 100 + 10 + 200, cached: 100, peak: 200 })
    expect(sum.cost).toBeCloseTo(100 * 0.1 + 210 * 1.25)
    expect(total([])).toMatchObject({ calls: 0, cachedShare: 0 })
  })
})
