/** A resumed session: in a new process, after a kill, on another branch, as a copy, in another store. */
import { cpSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test } from 'vitest'
import { checkAppendOnly } from '../../rig/checks.ts'
import { cleanUp, newestSession, runPrint, startRpc } from '../../rig/pi.ts'
import type { PiRpc } from '../../rig/pi.ts'
import { calls } from '../../rig/reply.ts'
import { lastOf, resultsById } from '../../rig/request.ts'
import type { ModelRequest } from '../../rig/exchange.ts'
import { command, handle, lines, notices, openStore, referring, sessionIdOf, setsOf, setUp, TOOLS_AT_ONCE, put } from './support.ts'
import type { Setting } from './support.ts'

afterEach(cleanUp)

const NAVIGATE = fileURLToPath(new URL('navigate.ts', import.meta.url))

/** A model that reads the file a prompt names, goes back to what `back ID` names, and else answers at length. */
function reader(request: ModelRequest): ReturnType<typeof calls> | string {
  const said = request.messages.at(-1)!
  if (said.role !== 'user') return lines(`answer ${request.n}`, 60)
  const [verb, what] = said.text.split(' ')
  if (verb === 'read') return calls(['read', { path: `${what}.txt` }, `call_${what}`])
  if (verb === 'back') return calls(['activate', { id: what }, `back_${request.n}`])
  return lines(`answer ${request.n}`, 200)
}

async function library(options: Parameters<typeof setUp>[1] = {}): Promise<Setting> {
  const setting = await setUp(reader, { context: TOOLS_AT_ONCE, ...options })
  for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) put(setting.home, `${name}.txt`, lines(name, 60))
  return setting
}

/** Four turns, the first with reads of two files; then stale text is rolled. */
async function withRoll(rpc: PiRpc): Promise<void> {
  await rpc.prompt('read a')
  await rpc.prompt('read b')
  for (const prompt of ['one', 'two', 'three']) await rpc.prompt(prompt)
  expect((await command(rpc, '/context roll')).at(-1)).toMatch(/^Rolled: 2 items/)
}

describe('a new process', () => {
  test('print mode continues with the same bytes and the same sets', async () => {
    const { server, home, store, load } = await library()
    const first = await runPrint({ ...load, prompts: ['read a', 'read b'] })
    const session = sessionIdOf(first.sessionFile!)
    const before = await setsOf(store, session, home.cwd)
    expect(before.activeSet).toHaveLength(4)
    const second = await runPrint({ ...load, prompts: ['continue'], args: ['--continue'] })
    expect(second).toMatchObject({ exitCode: 0, stderr: '', sessionFile: first.sessionFile })
    checkAppendOnly(server.requests)
    const after = await setsOf(store, session, home.cwd)
    expect(after).toEqual(before)
  })

  test('kill -9 between two prompts loses nothing', async () => {
    const { server, home, store, load } = await library()
    const rpc = await startRpc(load)
    await withRoll(rpc)
    await rpc.prompt('read c')
    await command(rpc, '/context off')
    const { sessionId } = await rpc.state()
    await rpc.kill9()
    const sets = await setsOf(store, sessionId, home.cwd)
    expect(sets.sessionIndex).toEqual(expect.arrayContaining(['call_a', 'call_b', 'call_c']))
    expect(sets.activeSet).toContain('call_c')

    const after = await startRpc({ ...load, args: ['--continue'] })
    const killed = server.requests.length
    await after.prompt(`back ${handle('call_a')}`)
    expect(await setsOf(store, sessionId, home.cwd)).toMatchObject({
      activeSet: expect.arrayContaining(['call_c', 'call_a']),
    })
    const [report] = await command(after, '/context')
    expect(report).toContain('off: nothing collapses')
    const rolled = server.requests.find((request) => referring('call_a', 'read').test(resultsById(request).get('call_a') ?? ''))!
    checkAppendOnly(server.requests, [rolled.n])
    expect(rolled.n).toBeLessThan(killed)
    expect(resultsById(server.requests.at(-1)!).get(`back_${killed}`)).toBe(lines('a', 60))
  })

  test('kill -9 inside of a turn: its results are part of it afterwards', async () => {
    const { server, home, store, load } = await setUp(
      (request, n) => {
        if (n === 0) return calls(['read', { path: 'a.txt' }, 'call_a'])
        if (n === 1) return calls(['read', { path: 'b.txt' }, 'call_b'], ['bash', { command: 'sleep 600' }, 'call_long'])
        return lastOf(request, 'user')!.text
      },
      { allowNoResult: true },
    )
    for (const name of ['a', 'b']) put(home, `${name}.txt`, lines(name, 60))
    const rpc = await startRpc(load)
    const from = rpc.mark
    await rpc.command({ type: 'prompt', message: 'look' })
    await rpc.waitFor((event) => event.type === 'tool_execution_end' && event['toolCallId'] === 'call_b', from)
    const { sessionId } = await rpc.state()
    await rpc.kill9()
    const after = await startRpc({ ...load, args: ['--continue'] })
    await after.prompt('and now')
    await after.close()
    checkAppendOnly(server.requests)
    const manager = await openStore(store, sessionId, home.cwd)
    const chat = (await manager.get(`chat:${sessionId}`))! as unknown as {
      turns: { user: unknown; toolcall_ids: string[] }[]
    }
    expect(chat.turns).toHaveLength(2)
    expect(chat.turns[0]!.toolcall_ids).toContain('call_a')
    // The killed process's records can be read, whether or not Pi stored its result.
    expect((await manager.get('call_b'))!.content).toBe(lines('b', 60))
  })

  test('killed between the entries of a roll: the session continues with the half that is there', async () => {
    const { server, load } = await library()
    const rpc = await startRpc(load)
    await withRoll(rpc)
    const { sessionFile } = await rpc.state()
    await rpc.kill9()
    const stored = readFileSync(sessionFile, 'utf8').split('\n')
    const first = stored.findIndex((line) => line.includes('"type":"context_edit"'))
    writeFileSync(sessionFile, `${stored.slice(0, first + 1).join('\n')}\n`)

    const after = await startRpc({ ...load, args: ['--continue'] })
    await after.prompt('four')
    const half = server.requests.at(-1)!
    const shown = ['call_a', 'call_b'].map((id) => resultsById(half).get(id)!)
    expect(shown).toContainEqual(expect.stringMatching(referring('call_a', 'read')))
    await command(after, '/context roll')
    await after.prompt('five')
    await after.prompt(`back ${handle('call_b')}`)
    const whole = resultsById(server.requests.find((request) => request.n > half.n)!)
    expect(whole.get('call_a')).toMatch(referring('call_a', 'read'))
    expect(whole.get('call_b')).toMatch(referring('call_b', 'read'))
    expect([...resultsById(server.requests.at(-1)!)].at(-1)![1]).toContain(lines('b', 60))
  })

  test('a store that was removed: the whole session is taken in anew', async () => {
    const { server, home, store, load } = await library()
    const first = await runPrint({ ...load, prompts: ['read a', 'read b'] })
    rmSync(store.replace(/context\.db$/, ''), { recursive: true })
    const second = await runPrint({ ...load, prompts: ['continue'], args: ['--continue'] })
    expect(second).toMatchObject({ exitCode: 0, stderr: '' })
    checkAppendOnly(server.requests)
    const manager = await openStore(store, sessionIdOf(first.sessionFile!), home.cwd)
    expect((await manager.get('call_a'))!.content).toContain(lines('a', 60))
    expect((await manager.sessionSets()).activeSet).toEqual(expect.arrayContaining(['call_a', 'call_b']))
  })

  test('a store that lacks the last turns, as after a loss of power: they are taken in anew, and only they', async () => {
    const { server, home, store, load } = await library()
    const folder = dirname(store)
    const first = await runPrint({ ...load, prompts: ['read a', 'read b'] })
    cpSync(folder, `${folder}.old`, { recursive: true })
    await runPrint({ ...load, prompts: ['read c', 'and on'], args: ['--continue'] })
    rmSync(folder, { recursive: true })
    renameSync(`${folder}.old`, folder)
    const last = await runPrint({ ...load, prompts: ['continue'], args: ['--continue'] })
    expect(last).toMatchObject({ exitCode: 0, stderr: '' })
    checkAppendOnly(server.requests)
    const session = sessionIdOf(first.sessionFile!)
    const manager = await openStore(store, session, home.cwd)
    const turns = (await manager.get(`chat:${session}`))!['turns'] as { user: { text: string }[]; toolcall_ids: string[] }[]
    expect(turns.map((turn) => JSON.stringify(turn.user).replace(/.*"text":"([^"]*)".*/, '$1'))).toEqual(['read a', 'read b', 'read c', 'and on', 'continue'])
    expect(turns.map((turn) => turn.toolcall_ids)).toEqual([['call_a'], ['call_b'], ['call_c'], [], []])
    expect((await manager.get('call_c'))!.content).toContain(lines('c', 60))
  })

  test('a session from before the extension was there is taken in whole', async () => {
    const { server, home, store, load } = await library()
    const first = await runPrint({ home, prompts: ['read a', 'read b'] })
    await runPrint({ ...load, prompts: ['continue', 'and on', 'and on', 'and on'], args: ['--continue'] })
    const manager = await openStore(store, sessionIdOf(first.sessionFile!), home.cwd)
    expect((await manager.get('call_a'))!.content).toBe(lines('a', 60))
    expect(resultsById(server.requests[4]!).get('call_a')).toBe(lines('a', 60))
  })
})

describe('inside a process', () => {
  test('a new session, and back to the first one', async () => {
    const { server, home, store, load } = await library()
    const rpc = await startRpc(load)
    await rpc.prompt('read a')
    const first = await rpc.state()
    await rpc.command({ type: 'new_session' })
    await rpc.prompt('read b')
    const second = await rpc.state()
    expect(second['sessionId']).not.toBe(first['sessionId'])
    await rpc.command({ type: 'switch_session', sessionPath: first['sessionFile'] })
    await rpc.prompt('read c')
    expect(await rpc.close()).toEqual({ code: 0, signal: null })
    expect(notices(rpc.events)).toEqual([])
    checkAppendOnly([server.requests[0]!, server.requests[1]!, server.requests[4]!, server.requests[5]!])
    const sets = await setsOf(store, first['sessionId'], home.cwd)
    expect(sets.sessionIndex.filter((id) => id.startsWith('call_'))).toEqual(['call_a', 'call_c'])
    const other = await setsOf(store, second['sessionId'], home.cwd)
    expect(other.sessionIndex.filter((id) => id.startsWith('call_'))).toEqual(['call_b'])
  })

  test.each([
    ['when they are worth it', {}],
    ['from the start', TOOLS_AT_ONCE],
    ['for contents in their own section', { layout: 'sections' }],
  ] as const)('tools %s: the prompt of each session has one version, however often it is resumed', async (_, context) => {
    const { server, home, store, load } = await library({ context })
    const sessions = new Set<string>()
    const note = async (rpc: PiRpc): Promise<void> => void sessions.add((await rpc.state())['sessionId'])
    const rpc = await startRpc(load)
    await note(rpc)
    await rpc.prompt('read a')
    await rpc.command({ type: 'new_session' })
    await note(rpc)
    await rpc.prompt('read b')
    await rpc.command({ type: 'clone' })
    await note(rpc)
    await rpc.prompt('read c')
    // Never asked anything.
    await rpc.command({ type: 'new_session' })
    await note(rpc)
    expect(await rpc.close()).toEqual({ code: 0, signal: null })
    const again = await startRpc({ ...load, args: ['--continue'] })
    await note(again)
    await again.prompt('read d')
    expect(await again.close()).toEqual({ code: 0, signal: null })
    expect(sessions.size).toBe(4)
    const sent = server.requests.map(({ messages }) => messages[0])
    for (const session of sessions) {
      const manager = await openStore(store, session, home.cwd)
      const versions = await manager.history(`system_prompt:${session}`)
      expect(versions.map(({ document }) => document.content)).toEqual([sent[0]!.text])
      await manager.close()
    }
  })

  test.each(['fork', 'clone'])('a %s has its own state, from the point where it began', async (kind) => {
    const { server, home, store, load } = await library()
    const rpc = await startRpc(load)
    await withRoll(rpc)
    const first = await rpc.state()
    if (kind === 'clone') await rpc.command({ type: 'clone' })
    else {
      const { messages } = await rpc.command({ type: 'get_fork_messages' })
      await rpc.command({ type: 'fork', entryId: messages.at(-1).entryId })
    }
    const copy = await rpc.state()
    expect(copy['sessionId']).not.toBe(first['sessionId'])
    await rpc.prompt('read d')
    await rpc.prompt(`back ${handle('call_a')}`)
    expect(await rpc.close()).toEqual({ code: 0, signal: null })
    expect(notices(rpc.events).filter((text) => !text.startsWith('Rolled'))).toEqual([])
    const own = await setsOf(store, copy['sessionId'], home.cwd)
    expect(own.sessionIndex).toEqual(expect.arrayContaining(['call_a', 'call_b', 'call_d']))
    expect(own.activeSet).toEqual(expect.arrayContaining(['call_a', 'call_d']))
    const old = await setsOf(store, first['sessionId'], home.cwd)
    expect(old.sessionIndex).not.toContain('call_d')
    const last = resultsById(server.requests.at(-1)!)
    const back = [...last].findLast(([id]) => id.startsWith('back_'))![1]
    // The clone has the roll on its branch, the fork begins before it.
    if (kind === 'clone') {
      expect(last.get('call_a')).toMatch(referring('call_a', 'read'))
      expect(back).toContain(lines('a', 60))
    } else {
      expect(last.get('call_a')).toContain(lines('a', 60))
      expect(back).toMatch(/; its text is in the result id=[0-9a-f]{8}; activate it again/)
    }
  })

  test('a step in the tree takes the state of that branch, and back again', async () => {
    const { server, home, store, load } = await library()
    const rpc = await startRpc({ ...load, extension: [load.extension, NAVIGATE] })
    await rpc.prompt('read a')
    await rpc.prompt('read b')
    const { entries } = await rpc.command({ type: 'get_entries' })
    const leaf = entries.at(-1).id
    const users = entries.filter((entry: any) => entry.message?.role === 'user')
    await command(rpc, `/goto ${users[1].id}`)
    const { sessionId } = await rpc.state()
    const calls = async () => (await setsOf(store, sessionId, home.cwd)).activeSet.filter((id) => id.startsWith('call_'))
    expect(await calls()).toEqual(['call_a'])
    await rpc.prompt('read c')
    expect(await calls()).toEqual(['call_a', 'call_c'])
    const onC = server.requests.length
    await command(rpc, `/goto ${leaf}`)
    expect(await calls()).toEqual(['call_a', 'call_b'])
    await rpc.prompt('read d')
    await rpc.close()
    const { requests } = server
    checkAppendOnly([...requests.slice(0, 2), ...requests.slice(4, onC)])
    checkAppendOnly([...requests.slice(0, 4), ...requests.slice(onC)])
    expect((await setsOf(store, sessionId, home.cwd)).sessionIndex).toEqual(expect.arrayContaining(['call_a', 'call_b', 'call_c', 'call_d']))
  })

  test('the root of the tree has an empty state', async () => {
    const { home, store, load } = await library()
    const rpc = await startRpc({ ...load, extension: [load.extension, NAVIGATE] })
    await rpc.prompt('read a')
    const { entries } = await rpc.command({ type: 'get_entries' })
    await command(rpc, `/goto ${entries.find((entry: any) => entry.message?.role === 'user').id}`)
    const { sessionId } = await rpc.state()
    await rpc.prompt('read b')
    await rpc.close()
    const sets = await setsOf(store, sessionId, home.cwd)
    expect(sets.activeSet.filter((id) => id.startsWith('call_'))).toEqual(['call_b'])
  })

  test('a reload continues where it was', async () => {
    const { server, load } = await library()
    const rpc = await startRpc({ ...load, extension: [load.extension, NAVIGATE] })
    await withRoll(rpc)
    await command(rpc, '/again')
    await rpc.prompt('four')
    const rolled = server.requests.at(-1)!
    expect(resultsById(rolled).get('call_a')).toMatch(referring('call_a', 'read'))
    await command(rpc, '/again')
    await rpc.prompt('five')
    checkAppendOnly(server.requests, [rolled.n])
    expect(server.requests.at(-1)!.tools).toEqual(rolled.tools)
  })

  test('--no-session keeps everything in memory', async () => {
    const { server, home, store, load } = await library()
    const rpc = await startRpc({ ...load, args: ['--no-session'] })
    await withRoll(rpc)
    await rpc.prompt(`back ${handle('call_a')}`)
    const [report] = await command(rpc, '/context')
    expect(report).toContain('Store: memory')
    await rpc.close()
    expect([...resultsById(server.requests.at(-1)!)].at(-1)![1]).toContain(lines('a', 60))
    expect(() => writeFileSync(store, '', { flag: 'r' })).toThrow('ENOENT')
    expect(newestSession(home.sessionsDir)).toBeUndefined()
  })
})
