/** A pass that fails never sends more: what was last sent goes out, with the new messages, and one notice says so. */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { cleanUp, startRpc } from '../../rig/pi.ts'
import { calls } from '../../rig/reply.ts'
import { resultsById } from '../../rig/request.ts'
import { command, lines, notices, referring, setUp, TOOLS_AT_ONCE, put } from './support.ts'

afterEach(cleanUp)

const FAULTY = fileURLToPath(new URL('faulty.ts', import.meta.url))

test.each(['STORE_UNAVAILABLE', 'IO'])('a collapsed output stays collapsed: %s', async (code) => {
  const { server, home, load } = await setUp((_request, n) => (n === 0 ? calls(['read', { path: 'a.txt' }, 'call_a']) : `answer ${n}`), {
    context: TOOLS_AT_ONCE,
  })
  put(home, 'a.txt', lines('a', 200))
  const file = join(home.root, 'fails')
  const rpc = await startRpc({ ...load, extension: FAULTY, env: { ...load.env, FAULT: 'advance', FAULT_CODE: code, FAULT_WHILE: file } })
  for (const prompt of ['look', 'two', 'three', 'four']) await rpc.prompt(prompt)
  expect((await command(rpc, '/context roll')).at(-1)).toMatch(/^Rolled: /)
  await rpc.prompt('five')
  const before = server.agentRequests.at(-1)!
  expect(resultsById(before).get('call_a')).toMatch(referring('call_a', 'read'))
  writeFileSync(file, '')
  const from = rpc.mark
  await rpc.prompt('six')
  rmSync(file)
  const now = server.agentRequests.at(-1)!
  expect(now.prompt.startsWith(before.prompt)).toBe(true)
  expect(now.messages.at(-1)!.text).toContain('six')
  expect(notices(rpc.events.slice(from))).toHaveLength(1)
})

test.each([
  // A failure that may pass is reported, and that it did not pass.
  ['IO', 2],
  ['STORE_UNAVAILABLE', 1],
])('in sections, the sections stay: %s', async (code, count) => {
  const { server, home, load } = await setUp((_request, n) => (n === 0 ? calls(['bash', { command: 'cat a.txt' }, 'call_a']) : `answer ${n}`), {
    context: { layout: 'sections' },
  })
  put(home, 'a.txt', lines('a', 200))
  const file = join(home.root, 'fails')
  const rpc = await startRpc({ ...load, extension: FAULTY, env: { ...load.env, FAULT: 'assemble,advance', FAULT_CODE: code, FAULT_WHILE: file } })
  for (const prompt of ['look', 'two', 'three', 'four', 'five']) await rpc.prompt(prompt)
  const text = 'a line 3: lorem'
  expect(server.agentRequests.at(-1)!.prompt).not.toContain(text)
  writeFileSync(file, '')
  const from = rpc.mark
  // Also after the session was given up.
  await rpc.prompt('six')
  await rpc.prompt('seven')
  for (const request of server.agentRequests.slice(-2)) {
    expect(resultsById(request).get('call_a')).toBe('toolcall_ref id=call_a tool=bash status=ok')
    expect(request.prompt).not.toContain(text)
  }
  expect(server.agentRequests.at(-1)!.prompt).toContain('seven')
  expect(notices(rpc.events.slice(from))).toHaveLength(count)
})
