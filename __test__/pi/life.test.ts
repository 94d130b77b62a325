/** Pi's life with the extension: models, aborts, retries, queued messages, images, odd ids, other extensions. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { referenceOf } from '../../lib/lines/index.ts'
import { checkAppendOnly, checkUserMessages } from '../../rig/checks.ts'
import { cleanUp, runPrint, startRpc, temporaryFolder } from '../../rig/pi.ts'
import { calls, Gate } from '../../rig/reply.ts'
import { lastOf, resultsById } from '../../rig/request.ts'
import type { Api } from '../../rig/exchange.ts'
import { command, lines, notices, openStore, referring, sessionIdOf, setUp, TOOLS_AT_ONCE, put } from './support.ts'
import { some } from '../rows.ts'

afterEach(cleanUp)

/** A picture of one red dot. */
const PNG = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==', 'base64')

const APIS: Api[] = ['openai-completions', 'anthropic-messages', 'openai-responses']

test.each(some(APIS, 2))('%s: each request extends the last, except at a roll; thinking, images and signatures pass', async (api) => {
  const { server, home, load } = await setUp(
    (request, n) => {
      if (n === 0) {
        return {
          thinking: 'first look at everything',
          text: 'Looking.',
          calls: [
            { id: 'call_slow', name: 'bash', args: { command: 'sleep 0.2; cat a.txt' } },
            { id: 'call_read', name: 'read', args: { path: 'b.txt' } },
            { id: 'call_dot', name: 'read', args: { path: 'dot.png' } },
          ],
        }
      }
      if (lastOf(request, 'user')!.text.includes('back') && request.messages.at(-1)!.role === 'user') {
        const { id } = referenceOf(resultsById(request).get('call_slow')!)!
        return { thinking: 'go back', calls: [{ id: 'call_back', name: 'activate', args: { id } }] }
      }
      return { thinking: `thought ${n}`, text: lines(`answer ${n}`, 200) }
    },
    { context: TOOLS_AT_ONCE, api, model: { reasoning: true } },
  )
  put(home, 'a.txt', lines('a', 60))
  put(home, 'b.txt', lines('b', 60))
  put(home, 'dot.png', PNG)
  const rpc = await startRpc({ ...load, args: ['--thinking', 'high'] })
  for (const prompt of ['look', 'one', 'two', 'three']) await rpc.prompt(prompt)
  await command(rpc, '/context roll')
  await rpc.prompt('four')
  await rpc.prompt('back')
  checkAppendOnly(server.requests, [5])
  const before = server.requests[4]!
  const after = server.requests[5]!
  expect(resultsById(after).get('call_slow')).toMatch(/^toolcall_ref id=[0-9a-f]{8} tool=bash status=ok(?: -> .+)?$/)
  expect(resultsById(server.requests.at(-1)!).get('call_back')).toContain(lines('a', 60))
  // Only the two results differ: every other message is the same, byte for byte.
  const changed = before.messages.filter((message, index) => message.json !== after.messages[index]!.json)
  expect(changed.flatMap((message) => message.results.map((result) => result.id))).toEqual(
    api === 'anthropic-messages' ? ['call_slow', 'call_read', 'call_dot'] : ['call_slow', 'call_read'],
  )
  expect(after.raw.toString()).toContain(PNG.toString('base64').slice(0, 40))
  expect(after.prompt).toContain(api === 'anthropic-messages' ? Buffer.from('thought 2').toString('base64') : 'thought 2')
})

describe('ids of tool calls', () => {
  const long = `call_${'x|+/='.repeat(90)}`

  test.each(
    some<[string, string[]]>(
      [
        ['repeated', ['call_0', 'call_0', 'call_0']],
        ['empty', ['', '', '']],
        ['of 450 characters', [`${long}1`, `${long}2`, `${long}3`]],
        ['that look like others', ['session:x', 'chat:x', 'a'.repeat(64)]],
        ['with line breaks', ['a\nid=b type=toolcall', 'c\u2028d', 'e\u202ef']],
      ],
      2,
    ),
  )('%s', async (_name, ids) => {
    const { server, home, store, load } = await setUp((_request, n) => (n < 3 ? calls(['read', { path: `${n}.txt` }, ids[n]!]) : lines(`answer ${n}`, 100)), {
      context: TOOLS_AT_ONCE,
    })
    for (const n of [0, 1, 2]) put(home, `${n}.txt`, lines(`file ${n}`, 40))
    const rpc = await startRpc(load)
    for (const prompt of ['look', 'two', 'three', 'four']) await rpc.prompt(prompt)
    const { sessionId } = await rpc.state()
    await command(rpc, '/context roll')
    await rpc.prompt('five')
    const shown = server.requests.at(-1)!.messages.flatMap((message) => message.results)
    expect(shown).toHaveLength(3)
    const handles = shown.map((result) => /^toolcall_ref id=([0-9a-f]{8,}) tool=read status=ok(?: -> .+)?$/.exec(result.text)?.[1])
    expect(new Set(handles).size).toBe(3)
    expect(handles).not.toContain(undefined)
    server.script(handles.map((id) => calls(['activate', { id }])).concat([{ text: 'done' }]))
    await rpc.prompt('back')
    await rpc.close()
    const back = server.requests
      .at(-1)!
      .messages.flatMap((message) => message.results)
      .slice(3)
    expect(back.map((result) => result.text.replace(/^id=.*\n/, ''))).toEqual([0, 1, 2].map((n) => lines(`file ${n}`, 40)))
    const toolcalls = (await (await openStore(store, sessionId, home.cwd)).query({ type: 'toolcall', sessionId })) as any[]
    expect(toolcalls.filter((one) => one.tool === 'read').map((one) => one.content)).toEqual([0, 1, 2].map((n) => lines(`file ${n}`, 40)))
  })
})

describe('interruptions of a turn', () => {
  test('an abort inside of a tool', async () => {
    const { server, home, store, load } = await setUp(
      (_request, n) => {
        if (n === 0)
          return calls(
            ['read', { path: 'a.txt' }, 'call_a'],
            // The word is not in the command: events also have the arguments, and come before the output.
            ['bash', { command: 'echo beg""un; sleep 600' }, 'call_long'],
          )
        return 'fine'
      },
      { allowNoResult: true },
    )
    put(home, 'a.txt', lines('a', 40))
    const rpc = await startRpc(load)
    const from = rpc.mark
    await rpc.command({ type: 'prompt', message: 'go' })
    await rpc.waitFor((event) => event.type === 'tool_execution_end' && event['toolCallId'] === 'call_a', from)
    await rpc.waitFor((event) => event.type === 'tool_execution_update' && JSON.stringify(event).includes('begun'), from)
    await rpc.command({ type: 'abort' })
    await rpc.waitFor('agent_settled', from)
    await rpc.prompt('again')
    const { sessionId } = await rpc.state()
    expect(await rpc.close()).toEqual({ code: 0, signal: null })
    checkAppendOnly(server.requests)
    expect(notices(rpc.events)).toEqual([])
    const manager = await openStore(store, sessionId, home.cwd)
    expect(await manager.get('call_long')).toMatchObject({
      status: 'fail',
      content: expect.stringContaining('begun'),
    })
    expect((await manager.get('call_a'))!.content).toBe(lines('a', 40))
  })

  test('an abort while the answer streams', async () => {
    const gate = new Gate()
    const { server, load } = await setUp([{ parts: ['The answer is ', gate, 'never'] }, 'second', 'third'])
    const rpc = await startRpc(load)
    const from = rpc.mark
    await rpc.command({ type: 'prompt', message: 'tell me' })
    await gate.reached
    await rpc.waitFor((event) => event.type === 'message_update' && JSON.stringify(event).includes('answer is'), from)
    await rpc.command({ type: 'abort' })
    await rpc.waitFor('agent_settled', from)
    await rpc.prompt('again')
    await rpc.prompt('and again')
    checkAppendOnly(server.requests)
    expect(notices(rpc.events)).toEqual([])
    checkUserMessages(server.requests[2]!, ['tell me', 'again', 'and again'])
  })

  test('a provider that fails twice', async () => {
    const { server, home, load } = await setUp([
      calls(['bash', { command: 'cat a.txt' }, 'call_a']),
      { status: 503 },
      { parts: ['half an ans'], cut: true },
      'at last',
      'and on',
    ])
    put(home, 'a.txt', lines('a', 900))
    const rpc = await startRpc(load)
    await rpc.prompt('try')
    await rpc.prompt('more')
    checkAppendOnly(server.requests)
    expect(server.requests[2]!.prompt).toBe(server.requests[1]!.prompt)
    expect(server.requests[3]!.prompt).toBe(server.requests[1]!.prompt)
    expect(notices(rpc.events)).toEqual([])
  })

  test('steering and follow-up', async () => {
    const { server, home, store, load } = await setUp((request, n) => {
      if (n === 0) return calls(['read', { path: 'a.txt' }, 'call_a'], ['bash', { command: 'sleep 0.5' }, 'call_b'])
      return `heard ${lastOf(request, 'user')!.text}`
    })
    put(home, 'a.txt', lines('a', 40))
    const rpc = await startRpc(load)
    const from = rpc.mark
    await rpc.command({ type: 'prompt', message: 'go' })
    await rpc.waitFor('tool_execution_start', from)
    await rpc.command({ type: 'steer', message: 'rather this' })
    await rpc.command({ type: 'follow_up', message: 'then that' })
    await rpc.waitFor('agent_settled', from)
    const { sessionId } = await rpc.state()
    await rpc.close()
    checkAppendOnly(server.requests)
    checkUserMessages(server.requests.at(-1)!, ['go', 'rather this', 'then that'])
    const chat = (await (await openStore(store, sessionId, home.cwd)).get(`chat:${sessionId}`)) as any
    expect(chat.turns.map((turn: any) => turn.user[0].text)).toEqual(['go', 'rather this', 'then that'])
  })

  test("the user's own commands, with and without the model's knowledge", async () => {
    const { server, load } = await setUp(['one', 'two', 'three'])
    const rpc = await startRpc(load)
    await rpc.prompt('hello')
    await rpc.command({ type: 'bash', command: 'echo for the model' })
    await rpc.command({ type: 'bash', command: 'echo for me alone', excludeFromContext: true })
    await rpc.prompt('what did I do?')
    await rpc.prompt('continue')
    checkAppendOnly(server.requests)
    expect(server.requests[2]!.prompt).toContain('for the model')
    expect(server.requests[2]!.prompt).not.toContain('for me alone')
    expect(notices(rpc.events)).toEqual([])
  })
})

test('another model is another cache: stale text leaves at once', async () => {
  const { server, home, load } = await setUp((_request, n) => (n === 0 ? calls(['read', { path: 'a.txt' }, 'call_a']) : lines(`answer ${n}`, 300)))
  put(home, 'a.txt', lines('a', 60))
  const models = join(home.agentDir, 'models.json')
  const catalogue = JSON.parse(readFileSync(models, 'utf8'))
  catalogue.providers.rig.models.push({ ...catalogue.providers.rig.models[0], id: 'other' })
  writeFileSync(models, JSON.stringify(catalogue))
  const rpc = await startRpc(load)
  for (const prompt of ['look', 'two', 'three', 'four']) await rpc.prompt(prompt)
  expect(resultsById(server.requests.at(-1)!).get('call_a')).toContain(lines('a', 60))
  await rpc.command({ type: 'set_model', provider: 'rig', modelId: 'other' })
  await rpc.prompt('five')
  expect(server.requests.at(-1)!.body.model).toBe('other')
  expect(resultsById(server.requests.at(-1)!).get('call_a')).toMatch(referring('call_a', 'read'))
})

describe('other tools', () => {
  const OTHER = `export default function (pi) {
    pi.registerTool({
      name: 'read', label: 'read', description: 'Reads, differently.',
      parameters: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
      async execute(_id, { path }) { return { content: [{ type: 'text', text: 'theirs: ' + path + ' ' + 'x'.repeat(400) }], details: undefined } },
    })
  }`

  test.each([
    ['by itself', []],
    ['in observe mode', ['--context-tools', 'observe']],
  ])('an extension with its own read, %s', async (_name, args) => {
    const { server, home, store, load } = await setUp([calls(['read', { path: 'a.txt' }, 'call_a']), 'done'])
    put(home, 'a.txt', lines('a', 40))
    const other = join(temporaryFolder('other-'), 'other.ts')
    writeFileSync(other, OTHER)
    for (const extension of [
      [other, load.extension],
      [load.extension, other],
    ]) {
      server.script([calls(['read', { path: 'a.txt' }, 'call_a']), 'done'])
      const run = await runPrint({ ...load, extension, prompts: ['look'], args })
      expect(run).toMatchObject({ exitCode: 0, stderr: '' })
      const shown = `theirs: a.txt ${'x'.repeat(400)}`
      // The second session has its own object for the equal call.
      expect(resultsById(server.requests.at(-1)!).get('call_a')).toMatch(new RegExp(`^id=[0-9a-f]{8,}\\n${shown}$`))
      const manager = await openStore(store, sessionIdOf(run.sessionFile!), home.cwd)
      expect((await manager.get('call_a'))!.content).toBe(shown)
    }
  })

  test('observe mode overrides nothing and misses nothing', async () => {
    const { home, store, load } = await setUp([
      calls(['read', { path: 'a.txt' }, 'call_a']),
      calls(['write', { path: 'b.txt', content: 'bee' }, 'call_b']),
      'done',
    ])
    put(home, 'a.txt', lines('a', 40))
    writeFileSync(join(home.agentDir, 'context-manager.json'), '{"tools": "observe"}')
    const run = await runPrint({ ...load, prompts: ['look'] })
    expect(run).toMatchObject({ exitCode: 0, stderr: '' })
    const manager = await openStore(store, sessionIdOf(run.sessionFile!), home.cwd)
    expect(await manager.query({ type: 'file', pathPrefix: home.cwd })).toMatchObject([{ content: lines('a', 40) }, { content: 'bee' }])
  })

  test.each<[string, string, object, boolean]>([
    ['read has outputs back by their id', 'read,ls', { modelTools: 'start' }, true],
    ['without a way back nothing collapses', 'bash,ls', {}, false],
  ])('tools that are switched off stay off: %s', async (_name, tools, context, collapses) => {
    const [tool] = tools.split(',') as [string]
    const { server, home, load } = await setUp(
      (_request, n) => (n === 0 ? calls([tool, tool === 'read' ? { path: 'a.txt' } : { command: 'cat a.txt' }, 'call_a']) : lines(`answer ${n}`, 2)),
      { context },
    )
    put(home, 'a.txt', lines('a', 400))
    const args = ['--tools', tools]
    const run = await runPrint({ ...load, args, prompts: ['look', 'two', 'three', 'four', 'five', 'six', 'seven'] })
    expect(run).toMatchObject({ exitCode: 0, stderr: '' })
    for (const request of server.requests) expect(request.tools).toEqual(tools.split(','))
    const last = resultsById(server.requests.at(-1)!).get('call_a')!
    if (collapses) expect(last.length).toBeLessThan(lines('a', 400).length / 4)
    else {
      checkAppendOnly(server.requests)
      expect(last).toContain(lines('a', 400))
    }
  })

  test('writes and reads of one file in one answer are in order', async () => {
    const { server, home, load } = await setUp([
      calls(['write', { path: 'n.txt', content: 'new text' }, 'call_w'], ['read', { path: 'n.txt' }, 'call_r']),
      calls(['edit', { path: 'n.txt', edits: [{ oldText: 'new', newText: 'newer' }] }, 'call_e'], ['read', { path: 'n.txt' }, 'call_s']),
      'done',
    ])
    const run = await runPrint({ ...load, prompts: ['go'] })
    expect(run).toMatchObject({ exitCode: 0, stderr: '' })
    expect(readFileSync(join(home.cwd, 'n.txt'), 'utf8')).toBe('newer text')
    const results = resultsById(server.requests[2]!)
    expect(results.get('call_r')).toBe('new text')
    expect(results.get('call_s')).toMatch(/^newer text$/)
  })
})
