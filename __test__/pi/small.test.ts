/**
 * Small sessions cost what they cost without the extension, and how the model has back what was shortened while it has
 * none of the tools for it.
 */
import { afterEach, describe, expect, test } from 'vitest'
import { breaks, checkAppendOnly, total } from '../../rig/checks.ts'
import type { Total } from '../../rig/checks.ts'
import { startModelServer } from '../../rig/model-server.ts'
import { cleanUp, createPiHome, runPrint, startRpc } from '../../rig/pi.ts'
import { calls } from '../../rig/reply.ts'
import type { Script } from '../../rig/reply.ts'
import { resultsById } from '../../rig/request.ts'
import { HOW_TO_READ } from '../../lib/projection/driver/port.ts'
import { command, handle, header, lines, openStore, referring, sessionIdOf, setUp, put } from './support.ts'

afterEach(cleanUp)

/** The least that the extension may add to a session, as a share of what plain Pi sends. */
const LIMIT = 1.02

/** Reads and short commands, then an answer: what a question about a few files takes. */
function question(count: number): Script {
  return (_request, n) => {
    if (n === count - 1) return 'That is how it works.'
    if (n % 4 === 1) return calls(['bash', { command: `echo step ${n} && wc -l f*.txt | tail -1` }, `call_${n}`])
    if (n % 4 === 3) return calls(['bash', { command: `tail -20 f${n}.txt` }, `call_${n}`])
    return calls(['read', { path: `f${n}.txt` }, `call_${n}`])
  }
}

async function measured(count: number, extended: boolean): Promise<Total> {
  const server = extended ? undefined : await startModelServer(question(count))
  const setting = server === undefined ? await setUp(question(count)) : { server, home: createPiHome({ server }), load: undefined }
  for (let n = 0; n < count; n += 1) put(setting.home, `f${n}.txt`, lines(`f${n}`, 30))
  const run = await runPrint({ ...(setting.load ?? { home: setting.home }), prompts: ['how does it work?'] })
  expect(run).toMatchObject({ exitCode: 0, stderr: '' })
  setting.server.check()
  return total(setting.server.requests)
}

test.each([3, 5, 8, 13])('%i calls cost the same as with plain Pi', async (count) => {
  const plain = await measured(count, false)
  const ours = await measured(count, true)
  expect(ours.calls).toBe(plain.calls)
  expect(ours.prompt / plain.prompt).toBeLessThanOrEqual(LIMIT)
  expect(ours.cost / plain.cost).toBeLessThanOrEqual(LIMIT)
})

describe('without the tools', () => {
  test('an excerpt can be read by its id, whole and in part; the model is told so once', async () => {
    const id = handle('call_big')
    const { server, home, store, load } = await setUp([
      calls(['bash', { command: 'cat big.txt' }, 'call_big']),
      calls(['read', { path: `id=${id}`, offset: 700, limit: 3 }, 'call_part']),
      calls(['read', { path: `id=${id}`, offset: 9000 }, 'call_beyond'], ['read', { path: 'id=0123abcd' }, 'call_none']),
      calls(['bash', { command: 'cat big.txt' }, 'call_more']),
      'done',
    ])
    const all = lines('big', 900)
    put(home, 'big.txt', all)
    const run = await runPrint({ ...load, prompts: ['look'] })
    expect(run).toMatchObject({ exitCode: 0, stderr: '' })
    checkAppendOnly(server.requests)
    const last = resultsById(server.requests.at(-1)!)
    expect(last.get('call_big')).toContain('left out')
    expect(last.get('call_part')).toBe(
      `${header('call_part')}\n${all.split('\n').slice(699, 702).join('\n')}\n\n[198 more lines in file. Use offset=703 to continue.]`,
    )
    expect(last.get('call_beyond')).toContain('beyond end of file')
    expect(last.get('call_none')).toContain('no object of this session has the id 0123abcd')
    expect(server.requests.at(-1)!.prompt.split(HOW_TO_READ.slice(0, 40))).toHaveLength(2)
    for (const request of server.requests) expect(request.tools).not.toContain('activate')
    const manager = await openStore(store, sessionIdOf(run.sessionFile!), home.cwd)
    expect(await manager.query({ type: 'file', pathPrefix: home.cwd })).toHaveLength(1)
  })

  test('a line that is longer than what read shows comes in pieces', async () => {
    const items = Array.from({ length: 3000 }, (_, id) => ({ id, name: `item ${id} 😀` }))
    const id = handle('call_json')
    const read = (n: number, offset?: number) => calls(['read', { path: `id=${id}`, ...(offset === undefined ? {} : { offset }) }, `call_${n}`])
    const { server, home, load } = await setUp([calls(['bash', { command: 'cat items.json' }, 'call_json']), read(0), read(1, 5), read(2, 9), 'done'])
    put(home, 'items.json', JSON.stringify(items))
    expect(await runPrint({ ...load, prompts: ['look'] })).toMatchObject({ exitCode: 0, stderr: '' })
    const results = resultsById(server.requests.at(-1)!)
    const parts = [0, 1, 2].map((n) => results.get(`call_${n}`)!)
    for (const part of parts) expect(part).toContain('[A line of more than 50.0KB is shown in pieces of 10000 characters, each on a separate line.]')
    const lines = parts.flatMap((part) => part.split('\n').filter((line) => line.length > 1000))
    expect(JSON.parse([...new Set(lines)].join(''))).toEqual(items)
  })

  test('rolled text can be read, with the arguments of its call, also in a new process', async () => {
    const { server, home, load } = await setUp((request, n) => {
      if (n === 0) return calls(['write', { path: 'w.txt', content: lines('w', 100) }, 'call_w'])
      if (n === 1) return calls(['read', { path: 'a.txt' }, 'call_a'])
      const said = request.messages.filter((message) => message.role === 'user').map((message) => message.text)
      if (said.some((text) => text.includes('back')) && request.messages.at(-1)!.role === 'user')
        return calls(['read', { path: `id=${handle('call_a')}` }, 'call_back'], ['read', { path: `id=${handle('call_w')}` }, 'call_args'])
      return lines(`answer ${n}`, 100)
    })
    put(home, 'a.txt', lines('a', 100))
    const rpc = await startRpc(load)
    for (const prompt of ['look', 'two', 'three', 'four']) await rpc.prompt(prompt)
    expect((await command(rpc, '/context roll')).at(-1)).toMatch(/^Rolled: \d items/)
    await rpc.close()
    const next = await startRpc({ ...load, args: ['--continue'] })
    await next.prompt('back')
    const last = server.requests.at(-1)!
    expect(resultsById(last).get('call_a')).toMatch(referring('call_a', 'read'))
    expect(resultsById(last).get('call_back')).toBe(`${header('call_back')}\n${lines('a', 100)}`)
    expect(resultsById(last).get('call_args')).toContain(JSON.stringify(lines('w', 100)).slice(0, 200))
    expect(last.messages.some((message) => message.text.includes(HOW_TO_READ))).toBe(true)
    expect(breaks(server.requests)).toHaveLength(1)
  })
})

test('in a long session the tools come where the prompt is written anew in any case, and stay on its branch', async () => {
  const { server, home, load } = await setUp(
    (request, n) => (request.messages.at(-1)!.role === 'user' ? calls(['read', { path: `f${n}.txt` }, `call_${n}`]) : 'next'),
    // Each request finds the cache dead, as after a pause.
    { context: { cacheLifetimeSeconds: 0.001 } },
  )
  for (let n = 0; n < 40; n += 2) put(home, `f${n}.txt`, lines(`f${n}`, 250))
  const rpc = await startRpc(load)
  for (let round = 0; round < 16; round += 1) await rpc.prompt(`round ${round}`)
  const { entries } = await rpc.command({ type: 'get_entries' })
  await rpc.close()
  expect(entries.length).toBeGreaterThan(40)
  const next = await startRpc({ ...load, args: ['--continue'] })
  await next.prompt('again')
  const first = server.requests.findIndex((request) => request.tools.includes('activate'))
  expect(first).toBeGreaterThan(4)
  for (const request of server.requests) {
    for (const name of ['activate', 'deactivate', 'pin', 'unpin', 'search_context']) expect(request.tools.includes(name)).toBe(request.n >= first)
  }
  // The process that resumes the session has them from its first request on: nothing of the prompt changes for it.
  const head = (n: number): string => server.requests[n]!.prompt.slice(0, server.requests[n]!.ends[1])
  expect(head(server.requests.length - 1)).toBe(head(first))
})
