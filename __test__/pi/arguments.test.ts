/** Old calls without their long arguments, files that change from outside, and what a model makes of both. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { checkAppendOnly } from '../../rig/checks.ts'
import { cleanUp, messagesOf, readSession, startRpc } from '../../rig/pi.ts'
import { calls } from '../../rig/reply.ts'
import { resultsById } from '../../rig/request.ts'
import type { Api, ModelRequest } from '../../rig/exchange.ts'
import { command, handle, lines, openStore, put, setUp, TOOLS_AT_ONCE } from './support.ts'
import { some } from '../rows.ts'

afterEach(cleanUp)

const APIS: Api[] = ['openai-completions', 'anthropic-messages', 'openai-responses']

/** The arguments of a call as the model was sent them. */
function argumentsOf(request: ModelRequest, name: string): Record<string, any>[] {
  return request.messages.flatMap((message) => message.calls.filter((call) => call.name === name).map((call) => JSON.parse(call.args)))
}

test.each(some(APIS, 1))('%s: the arguments of an old write collapse with it, and can be had; a copy of them is refused', async (api) => {
  const text = lines('written', 120)
  let copied = ''
  const { server, home, store, load } = await setUp(
    (request, n) => {
      if (n === 0) {
        const write = { path: 'a.txt', content: text }
        return {
          text: 'Writing.',
          calls: [
            { name: 'write', args: write, id: 'call_w' },
            { name: 'ls', args: {}, id: 'call_l' },
          ],
        }
      }
      const said = request.messages.at(-1)!
      if (said.text === 'copy') {
        copied = argumentsOf(request, 'write')[0]!['content']
        return calls(['write', { path: 'b.txt', content: copied }, 'call_copy'])
      }
      if (said.text === 'back') return calls(['activate', { id: /^\[collapsed #([^:]+):/.exec(copied)?.[1] ?? 'none' }, 'call_back'])
      // The long text after it makes a roll too expensive to happen by itself.
      return n < 5 ? lines(`answer ${n}`, 300) : 'done'
    },
    { api, model: { reasoning: true }, context: TOOLS_AT_ONCE },
  )
  const rpc = await startRpc(load)
  for (const prompt of ['go', 'two', 'three', 'four']) await rpc.prompt(prompt)
  expect((await command(rpc, '/context roll')).at(-1)).toMatch(/^Rolled/)
  await rpc.prompt('copy')
  await rpc.prompt('back')
  const { sessionFile, sessionId } = await rpc.state()
  expect(await rpc.close()).toEqual({ code: 0, signal: null })
  checkAppendOnly(server.requests, [5])
  const [before, after] = [server.requests[4]!, server.requests[5]!]
  expect(argumentsOf(before, 'write')[0]).toEqual({ path: 'a.txt', content: text })
  expect(argumentsOf(after, 'write')[0]).toEqual({
    path: 'a.txt',
    content: expect.stringMatching(/^\[collapsed #[^\n]*\]$/),
  })
  expect(argumentsOf(after, 'ls')).toEqual(argumentsOf(before, 'ls'))
  expect(after.messages.find((message) => message.calls.length > 0)!.text).toContain('Writing.')
  const last = resultsById(server.requests.at(-1)!)
  const at = (name: string) => [...last].find(([id]) => id.startsWith(name))![1]
  expect(at('call_copy')).toMatch(/^Refused: the argument content is only the mark of a text/)
  expect(at('call_back')).toContain(JSON.stringify(text).slice(0, 2000))
  // The file of the session keeps what was said; the folder has no file that was made of a marker.
  const stored = messagesOf(readSession(sessionFile).entries, 'assistant')[0]!
  expect(stored['content'].find((block: any) => block.name === 'write').arguments.content).toBe(text)
  const manager = await openStore(store, sessionId, home.cwd)
  expect(await manager.query({ type: 'file', pathPrefix: join(home.cwd, 'b.txt') })).toEqual([])
})

test('a file that changes between two prompts is announced once, after the prompt', async () => {
  const { server, home, store, load } = await setUp((_request, n) => (n === 0 ? calls(['read', { path: 'a.txt' }, 'call_a']) : 'fine'))
  put(home, 'a.txt', lines('a', 40))
  const rpc = await startRpc(load)
  await rpc.prompt('look')
  const { sessionId } = await rpc.state()
  writeFileSync(join(home.cwd, 'a.txt'), `new\n${lines('a', 40)}`)
  // Another client of the same store sees the change first.
  const other = await openStore(store, `${sessionId}-other`, home.cwd)
  await other.indexFile(join(home.cwd, 'a.txt'))
  await rpc.prompt('two')
  await rpc.prompt('three')
  checkAppendOnly(server.requests)
  const users = (request: ModelRequest) => request.messages.filter((message) => message.role === 'user').map((message) => message.text)
  const notice = expect.stringMatching(/^stale id=[0-9a-f]{8} path=.*a\.txt version=[0-9a-f]{8} \+1 -0$/)
  const flat = users(server.requests[2]!).flatMap((text) => text.split('\n'))
  expect(flat).toEqual(['look', 'two', notice])
  expect(users(server.requests[3]!).flatMap((text) => text.split('\n'))).toEqual(['look', 'two', notice, 'three'])
})

test('activate of a text still in sight points there', async () => {
  const { server, home, load } = await setUp(
    (_request, n) => {
      if (n === 0) return calls(['bash', { command: 'cat a.txt' }, 'call_a'])
      if (n === 1) return calls(['activate', { id: handle('call_a') }, 'call_again'], ['activate', { id: 'call_a', lines: '2' }, 'call_part'])
      return 'done'
    },
    { context: TOOLS_AT_ONCE },
  )
  put(home, 'a.txt', lines('a', 40))
  const rpc = await startRpc(load)
  await rpc.prompt('look')
  const results = resultsById(server.requests[2]!)
  expect(results.get('call_again')).toMatch(/^[0-9a-f]{8} is active; its text is in the result id=[0-9a-f]{8}; activate it again/)
  expect(results.get('call_part')).toContain(lines('a', 40).split('\n')[1])
})
