/** The canonical four sections as the layout of the real Pi's requests. */
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { cleanUp, messagesOf, readSession, startRpc } from '../../rig/pi.ts'
import { calls } from '../../rig/reply.ts'
import { resultsById } from '../../rig/request.ts'
import type { Api, ModelRequest } from '../../rig/exchange.ts'
import { command, handle, lines, openStore, put, setUp } from './support.ts'

afterEach(cleanUp)

/** The text of the last message: the active contents. */
function below(request: ModelRequest): string {
  return request.messages.at(-1)!.text
}

test.each([
  ['refuses changed reasoning', 'claude-opus-5.5', {}, {}, 0],
  ['is asked to drop it', 'claude-opus-5.5', { supportsMidConvoEffort: true }, {}, 0],
  ['takes any', 'claude-opus-4-5', {}, undefined, 5],
] as const)('on a model that %s, no request is refused', async (_, id, compat, strict, thinking) => {
  const { server, home, load } = await setUp(
    (_request, n) => ({ thinking: `thought ${n}`, ...(n % 2 === 0 ? calls(['read', { path: 'a.txt' }, `call_${n}`]) : { text: 'done' }) }),
    {
      ...{ api: 'anthropic-messages', context: { layout: 'sections' } },
      ...(strict !== undefined && { strict }),
      model: { id, reasoning: true, compat: { forceAdaptiveThinking: true, ...compat }, cost: { input: 4, output: 20, cacheRead: 0.2, cacheWrite: 5 } },
    },
  )
  put(home, 'a.txt', lines('a', 20))
  const rpc = await startRpc({ ...load, args: ['--model', `rig/${id}`, '--thinking', 'high'] })
  for (const prompt of ['one', 'two', 'three']) await rpc.prompt(prompt)
  expect(server.requests.map(({ verdict }) => verdict?.refusal)).toEqual(server.requests.map(() => undefined))
  expect(server.requests.at(-1)!.prompt.match(/thought \d/g)?.length ?? 0).toBe(thinking)
  expect(await rpc.close()).toEqual({ code: 0, signal: null })
})

test.each<Api>(['openai-completions', 'anthropic-messages'])(
  '%s: reads are confirmed, contents stand behind the conversation, the pool before it',
  async (api) => {
    const { server, home, store, load } = await setUp(
      (request, n) => {
        if (n === 0) return calls(['read', { path: 'a.txt' }, 'call_a'], ['bash', { command: 'cat b.txt' }, 'call_b'])
        if (n === 1) return calls(['edit', { path: 'a.txt', edits: [{ oldText: 'a line 2:', newText: 'second:' }] }, 'call_e'])
        if (n === 6) return calls(['activate', { id: handle('call_b') }, 'call_back'])
        return `answer ${request.n}`
      },
      { api, context: { layout: 'sections' } },
    )
    // 598 tokens of four characters: half a token would round up or down with the length of Pi's own prompt.
    const [a, b] = [lines('a', 40), `${lines('b', 40)}.\n`]
    put(home, 'a.txt', a)
    put(home, 'b.txt', b)
    const rpc = await startRpc(load)
    for (const prompt of ['one', 'two', 'three', 'four', 'five']) await rpc.prompt(prompt)
    const [report] = await command(rpc, '/context')
    // Names that people understand, and the short ids that every command takes.
    expect(report).toContain(`  cat b.txt  full, 598 tokens, bash, id=${handle('call_b')}`)
    expect(report).toContain('  a.txt  full, 597 tokens, file, id=')
    expect(report).toContain('  cat b.txt  full, 15 tokens, activate, id=')
    expect(report).not.toContain('id=call_')
    const { sessionFile, sessionId } = await rpc.state()
    expect(await rpc.close()).toEqual({ code: 0, signal: null })

    const manager = await openStore(store, sessionId, home.cwd)
    const [file] = await manager.query({ type: 'file', pathPrefix: join(home.cwd, 'a.txt') })
    const id = file!['xt/id']
    const first = server.requests[1]!
    expect(first.tools).toEqual(expect.arrayContaining(['activate', 'pin', 'search_context']))
    expect(resultsById(first).get('call_a')).toBe('toolcall_ref id=call_a tool=read status=ok')
    expect(resultsById(first).get('call_b')).toBe('toolcall_ref id=call_b tool=bash status=ok')
    const pool = first.messages.find((message) => message.role === 'user')!.text
    expect(pool).toContain(`id=${id} type=file path=${join(home.cwd, 'a.txt')} file_type=txt char_count=${a.length}`)
    expect(pool).toContain('id=call_b type=toolcall tool=bash status=ok')
    expect(below(first)).toContain(`ACTIVE_CONTENT id=${id}\n${a}`)
    expect(below(first)).toContain(`ACTIVE_CONTENT id=call_b\n${b}`)
    expect(below(first)).toContain(`${join(home.cwd, 'a.txt')} is active: its text is below, in ACTIVE_CONTENT id=${id}`)
    // After the edit the newest text, and only that.
    const edited = a.replace('a line 2:', 'second:')
    expect(below(server.requests[2]!)).toContain(`ACTIVE_CONTENT id=${id}\n${edited}`)
    expect(server.requests[2]!.prompt).not.toContain('a line 2: lorem')
    // Three turns later the output is inactive, and its id restores it; the file stays.
    const [later, back] = [server.requests[6]!, server.requests[7]!]
    expect(below(later)).not.toContain('b line 1:')
    expect(below(later)).toContain(edited)
    expect(resultsById(back).get('call_back')).toBe('toolcall_ref id=call_back tool=activate status=ok')
    expect(below(back)).toContain(`ACTIVE_CONTENT id=call_b\n${b}`)
    expect(below(back)).toMatch(/^[0-9a-f]{8} is active; its content is below, under its full id$/m)
    // The request has the canonical view, and the user's session file has the texts.
    const stored = messagesOf(readSession(sessionFile).entries, 'toolResult')
    expect(stored[1]!['content'][0].text).toBe(b)
    expect(report).toContain('active contents')
  },
)

test('off is plain Pi; on again, the sections are there at once', async () => {
  const { server, home, load } = await setUp((_request, n) => (n === 0 ? calls(['bash', { command: 'cat a.txt' }, 'call_a']) : 'fine'), {
    context: { layout: 'sections' },
  })
  put(home, 'a.txt', lines('a', 40))
  const rpc = await startRpc(load)
  await rpc.prompt('one')
  await command(rpc, '/context off')
  await rpc.prompt('two')
  await command(rpc, '/context on')
  await rpc.prompt('three')
  const [, one, two, three] = server.requests
  expect(below(one!)).toContain(lines('a', 40))
  expect(resultsById(two!).get('call_a')).toBe(lines('a', 40))
  expect(below(two!)).toBe('two')
  expect(below(three!)).toContain(`ACTIVE_CONTENT id=call_a\n${lines('a', 40)}`)
})

test('the pool keeps within its budget and says how much more there is', async () => {
  const { server, home, load } = await setUp([calls(['bash', { command: 'ls' }, 'call_ls'], ['ls', {}, 'call_names']), 'fine'], {
    context: { layout: 'sections' },
  })
  for (let n = 0; n < 200; n += 1) put(home, `file-${n}.txt`, 'x')
  const rpc = await startRpc(load)
  await rpc.prompt('one')
  const pool = server.requests[1]!.messages.find((message) => message.role === 'user')!.text.split('\n')
  expect(pool.join('\n').length).toBeLessThan(10_000)
  const hidden = Number(/^\.\.\. (\d+) more, search_context$/.exec(pool.at(-1)!)?.[1])
  expect(hidden + pool.length - 1).toBe(202)
  // Active objects are always listed.
  expect(pool).toContain('id=call_ls type=toolcall tool=bash status=ok')
})
