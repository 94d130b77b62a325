/** Conversations through the gateway: the provider's requests, and the outputs that return. */
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import type { StoreOptions } from '../../index.js'
import type { Gateway } from '../../lib/gateway/gateway.ts'
import { folder } from '../core/setup.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { startModelServer } from '../../rig/model-server.ts'
import type { ModelServer } from '../../rig/model-server.ts'
import { AnthropicLoop, ask, callTool, gatewayTo, JSON_TYPE, lasting, long, looping, numbered, upstream } from './support.ts'
import { rewritten } from '../../rig/checks.ts'

afterEach(cleanUp)

/** Number of requests that are not the previous one with an addition at its end. */
const breaks = (server: ModelServer, from = 0): number => rewritten(server.requests.slice(from)).length

const lastSent = (server: ModelServer): string[] => server.requests.at(-1)!.messages.map(({ json }) => json)
const lastTexts = (server: ModelServer): string =>
  server.requests
    .at(-1)!
    .messages.map(({ json }) => json)
    .join('\n')
const results = (server: ModelServer): { id: string; text: string }[] => server.requests.at(-1)!.messages.flatMap((message) => message.results)
const handles = (server: ModelServer): string[] => [...lastTexts(server).matchAll(/toolcall_ref id=([0-9a-f]+)/g)].map((found) => found[1]!)

interface Codex {
  gateway: Gateway
  file: string
  input: object[]
  call: (cmd: string, output: string) => Promise<string>
}

/** A loop as Codex runs one, in a folder with a file; it may continue one of an earlier process. */
async function codex(place: { store?: StoreOptions; formsPath?: string } = {}, before?: Codex): Promise<Codex> {
  const { url, seen } = await upstream((_, response) => response.end('{}'))
  const cwd = before === undefined ? folder() : dirname(before.file)
  const { gateway } = await gatewayTo(url, { cwd, ...place })
  const file = join(cwd, 'a.txt')
  if (before === undefined) writeFileSync(file, `${long('a', 40)}\n`)
  const input: object[] = before?.input ?? [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'go' }] }]
  const tools = [
    { type: 'function', name: 'exec_command' },
    { type: 'namespace', name: 'mcp__context', tools: [{ type: 'function', name: 'activate' }] },
  ]
  const call = async (cmd: string, output: string): Promise<string> => {
    const call_id = `call_${input.length}`
    const head = 'Chunk ID: f5f6\nWall time: 0.0000 seconds\nProcess exited with code 0\nOriginal token count: 9\nOutput:\n'
    input.push(
      { type: 'function_call', name: 'exec_command', arguments: JSON.stringify({ cmd }), call_id },
      { type: 'function_call_output', call_id, output: head + output },
    )
    await ask(`${gateway.url}/openai/responses`, {
      headers: { ...JSON_TYPE, 'user-agent': 'codex_exec/0.169.0', 'thread-id': 't' },
      body: JSON.stringify({ model: 'gpt-6-sol', tools, input }),
    })
    return seen.at(-1)!.body.toString()
  }
  return { gateway, file, input, call }
}

/** The wait of a request where each has to: as long as a busy machine takes. */
const PATIENT_MS = 120_000

describe('a conversation', () => {
  test('60 calls keep their prefix but for rolls, and every output returns byte for byte', async () => {
    const { server, gateway, warnings, loop } = await looping()
    for (let n = 0; n < 60; n += 1) {
      if (n % 6 === 0) await loop.prompt(`prompt ${n}`)
      await loop.call('Bash', { command: `cat n${n}` }, long(`n${n}`))
    }
    const rolls = gateway.ledger.sessions[0]!.rolls.length
    expect(rolls).toBeGreaterThan(0)
    expect(breaks(server)).toBeLessThanOrEqual(rolls)
    const sent = server.requests.at(-1)!.raw.length
    expect(sent).toBeLessThan(JSON.stringify(loop.messages).length / 2)
    const found = handles(server)
    expect(found.length).toBeGreaterThan(3)
    for (const id of found.slice(0, 5)) {
      const text = await callTool(gateway, 'activate', { id })
      const name = /^(n\d+) line 0/.exec(text)?.[1]
      expect(text).toBe(long(name!))
    }
    expect(await callTool(gateway, 'activate', { id: found[0], lines: '3-4' })).toMatch(/line 2 .*\n.*line 3 /)
    expect(warnings).toEqual([])
    expect(server.problems).toEqual([])
  })

  test('nothing collapses where the model has no way to bring it back', async () => {
    const { server, loop } = await looping()
    loop.tools = loop.tools.slice(0, 3)
    for (let n = 0; n < 20; n += 1) await loop.call('Bash', { command: `cat n${n}` }, long(`n${n}`))
    expect(results(server).map(({ text }) => text)).toEqual(Array.from({ length: 20 }, (_, n) => long(`n${n}`)))
  })

  test('a second gateway continues with the form of the first, and restores collapsed outputs', async () => {
    const server = await startModelServer(() => 'ok')
    const place = lasting()
    const first = await gatewayTo(server.url, place)
    const loop = new AnthropicLoop(first.gateway)
    for (let n = 0; n < 30; n += 1) await loop.call('Bash', { command: `cat n${n}` }, long(`n${n}`))
    const before = server.requests.at(-1)!.messages.map(({ json }) => json)
    expect(handles(server).length).toBeGreaterThan(0)
    await first.gateway.conversations.close()
    const second = await gatewayTo(server.url, place)
    const same = new AnthropicLoop(second.gateway)
    same.messages.push(...loop.messages)
    await same.send()
    const resumed = server.requests.at(-1)!.messages.map(({ json }) => json)
    expect(resumed).toEqual(before)
    const id = handles(server)[0]
    expect(await callTool(second.gateway, 'activate', { id })).toMatch(/^n\d+ line 0 /)
    same.calls = 100
    await same.call('Bash', { command: 'cat more' }, 'nothing')
    const rolls = second.gateway.ledger.sessions.flatMap(({ rolls: own }) => own)
    expect(breaks(server, -2)).toBe(rolls.length)
  })

  test('a new process for each turn rolls as one process does, also within the bounds of a model that binds its reasoning', async () => {
    const server = await startModelServer(() => 'ok')
    const sizes: number[] = []
    for (const restarts of [false, true]) {
      // A request that could not wait for its projection goes out in another form, and on a busy machine some could not.
      const place = { ...lasting(), limitMs: PATIENT_MS }
      let { gateway } = await gatewayTo(server.url, place)
      const messages: object[] = []
      let sent = 0
      for (let turn = 0; turn < 12; turn += 1) {
        if (restarts) {
          await gateway.close()
          ;({ gateway } = await gatewayTo(server.url, place))
        }
        const loop = Object.assign(new AnthropicLoop(gateway), {
          messages,
          calls: 100 * turn,
          model: 'claude-opus-5-5',
          thinks: true,
          more: { thinking: { type: 'adaptive' } },
        })
        await loop.prompt(`prompt ${turn}`)
        for (let n = 0; n < 8; n += 1) await loop.call('Bash', { command: `cat ${turn} ${n}` }, long(`t${turn}n${n}`))
        messages.push({ role: 'assistant', content: [{ type: 'text', text: 'done' }] })
        sent += server.requests.slice(-9).reduce((sum, { raw }) => sum + raw.length, 0)
      }
      sizes.push(sent)
    }
    expect(sizes[1]! / sizes[0]!).toBeLessThan(1.05)
  })

  test.each([{ sessionId: 'session-1' }, {}])('outputs that the host compacted before this process return; the call says %o', async (meta) => {
    const server = await startModelServer(() => 'ok')
    const place = lasting()
    const first = await gatewayTo(server.url, place)
    const loop = new AnthropicLoop(first.gateway)
    for (let n = 0; n < 20; n += 1) await loop.call('Bash', { command: `cat n${n}` }, long(`n${n}`))
    const [handle] = handles(server)
    await first.gateway.conversations.close()
    const second = await gatewayTo(server.url, place)
    const compacted = new AnthropicLoop(second.gateway)
    await compacted.prompt('This session is being continued from a previous conversation. Summary: nothing')
    await compacted.call('mcp__context__activate', { id: handle }, 'x')
    expect(second.gateway.conversations.all.map(({ id }) => id)).toEqual(['claude-code:session-1~2'])
    expect(await callTool(second.gateway, 'activate', { id: handle }, meta)).toMatch(/^n\d+ line 0 /)
  })

  test('the model is told of a file that changes under it', async () => {
    const cwd = folder()
    const { server, loop } = await looping({ cwd })
    const path = join(cwd, 'a.txt')
    writeFileSync(path, 'one\n'.repeat(20))
    await loop.prompt('start')
    await loop.call('Read', { file_path: path }, numbered('one\n'.repeat(20)))
    await loop.call('Bash', { command: 'true' }, 'done')
    expect(lastTexts(server)).not.toContain('stale id=')
    writeFileSync(path, `${'one\n'.repeat(19)}two\n`)
    await loop.prompt('next')
    expect(lastTexts(server)).toMatch(/stale id=\S+ path=.*a\.txt/)
  })

  test('reports a change of a file with a collapsed output when the output is restored', async () => {
    const cwd = folder()
    const { server, gateway, loop } = await looping({ cwd })
    const path = join(cwd, 'a.txt')
    writeFileSync(path, `${long('a')}\n`)
    await loop.prompt('start')
    await loop.call('Read', { file_path: path }, numbered(long('a')))
    for (let n = 0; n < 40; n += 1) await loop.call('Bash', { command: `cat n${n}` }, long(`n${n}`))
    const id = /toolcall_ref id=([0-9a-f]+) tool=read/.exec(lastTexts(server))?.[1]
    writeFileSync(path, `${long('a').replace('a line 5 ', 'changed ')}\n`)
    await loop.prompt('next')
    for (let n = 0; n < 3; n += 1) await loop.call('Bash', { command: 'true' }, 'x')
    expect(lastTexts(server)).not.toContain('stale id=')
    await loop.call('mcp__context__activate', { id }, await callTool(gateway, 'activate', { id }))
    await loop.call('Bash', { command: 'true' }, 'x')
    expect(lastTexts(server)).toMatch(/stale id=\S+ path=\S*a\.txt/)
  })

  test.each([
    ['cat a.txt', true, (text: string) => text],
    ["sed -n '1,30p' a.txt", true, (text: string) => text.split('\n').slice(0, 30).join('\n')],
    [
      "nl -ba a.txt | sed -n '3,30p'",
      true,
      (text: string) =>
        text
          .split('\n')
          .map((line, n) => `${String(n + 1).padStart(6)}\t${line}`)
          .slice(2, 30)
          .join('\n'),
    ],
    // The model has not seen the omitted part.
    ['cat ./a.txt', false, (text: string) => `${text.slice(0, 500)}…500 tokens truncated…${text.slice(-500)}`],
    ['cat a.txt', false, () => 'cat: a.txt: Permission denied'],
  ])('Codex, which reads with its shell (%s), is told of a change (%s), and of none that there was not', async (command, isTold, shows) => {
    const { file, call } = await codex()
    await call(command, shows(readFileSync(file, 'utf8')))
    for (let n = 0; n < 4; n += 1) expect(await call('true', 'x')).not.toContain('stale id=')
    writeFileSync(file, `${long('a', 20)}\nchanged by another user\n${long('a', 20)}\n`)
    let last = ''
    for (let n = 0; n < 20 && !last.includes('stale id='); n += 1) last = await call('true', 'x')
    expect(/stale id=\S+ path=\S*a\.txt/.test(last)).toBe(isTold)
  })

  test('reports changes made while Codex was away, and its prefix stays', async () => {
    const place = lasting()
    const first = await codex(place)
    await first.call('cat a.txt', readFileSync(first.file, 'utf8'))
    const before = JSON.parse(await first.call('true', 'x')).input as object[]
    await first.gateway.close()
    writeFileSync(first.file, `${long('a', 20)}\nchanged by another user\n${long('a', 20)}\n`)
    const second = await codex(place, first)
    let last = ''
    for (let n = 0; n < 20 && !last.includes('stale id='); n += 1) last = await second.call('true', 'x')
    expect(/stale id=\S+ path=\S*a\.txt/.test(last)).toBe(true)
    expect((JSON.parse(last).input as object[]).slice(0, before.length)).toEqual(before)
  })

  test('siblings that continue one conversation at a time each keep their prefix but for rolls', async () => {
    const { server, gateway, loop } = await looping()
    for (let n = 0; n < 20; n += 1) await loop.call('Bash', { command: `cat n${n}` }, long(`n${n}`))
    const rolls = (): number => gateway.ledger.sessions.reduce((sum, { rolls: own }) => sum + own.length, 0)
    const before = rolls()
    const siblings = ['a', 'b', 'c'].map((name) => {
      const one = new AnthropicLoop(gateway)
      one.messages.push(...loop.messages, { role: 'user', content: [{ type: 'text', text: `sibling ${name}` }] })
      return { name, one, before: lastSent(server), breaks: 0 }
    })
    for (let n = 0; n < 12; n += 1) {
      for (const sibling of siblings) {
        sibling.one.calls = 100 * (1 + siblings.indexOf(sibling)) + n
        await sibling.one.call('Bash', { command: `cat ${sibling.name}${n}` }, long(`${sibling.name}${n}`))
        const now = lastSent(server)
        if (sibling.before.some((json, at) => now[at] !== json)) sibling.breaks += 1
        sibling.before = now
      }
    }
    // The first turn of each belongs to their common conversation; later turns are its own.
    expect(siblings.reduce((sum, { breaks: own }) => sum + own, 0)).toBeLessThanOrEqual(rolls() - before + siblings.length)
    expect(gateway.conversations.all.map(({ id }) => id).toSorted()).toEqual(['', '~2', '~3'].map((number) => `claude-code:session-1${number}`))
  })

  test('subagents, side requests and texts that the host has compacted are told apart', async () => {
    const { server, gateway, loop } = await looping()
    for (let n = 0; n < 20; n += 1) await loop.call('Bash', { command: `cat n${n}` }, long(`n${n}`))
    const [handed, kept] = handles(server)
    // A title: no tools, another beginning.
    const title = new AnthropicLoop(gateway)
    title.tools = []
    await title.prompt('a title please')
    expect(gateway.conversations.all.map(({ id }) => id)).toEqual(['claude-code:session-1'])
    // A question on the side, with the whole conversation before it.
    const before = server.requests.at(-2)!.messages.map(({ json }) => json)
    const aside = new AnthropicLoop(gateway)
    aside.messages.push(...loop.messages.slice(0, -1), { role: 'user', content: [...loop.messages.at(-1).content, { type: 'text', text: 'by the way?' }] })
    await aside.send()
    expect(
      server.requests
        .at(-1)!
        .messages.slice(0, before.length - 2)
        .map(({ json }) => json),
    ).toEqual(before.slice(0, before.length - 2))
    // A subagent has what its prompt names.
    const child = new AnthropicLoop(gateway)
    child.agent = 'agent-1'
    await child.prompt(`look at id=${handed}`)
    await child.call('mcp__context__activate', { id: handed }, 'x')
    const callId = child.messages.at(-1).content[0].tool_use_id
    server.script(() => ({ calls: [{ id: callId, name: 'mcp__context__activate', args: { id: handed } }] }))
    await child.send()
    expect(await callTool(gateway, 'activate', { id: handed }, { 'claudecode/toolUseId': callId })).toMatch(/^n\d+ line 0 /)
    expect(await callTool(gateway, 'activate', { id: kept }, { 'claudecode/toolUseId': callId })).toContain('no object of this session')
    // The host compacts: what was seen before can still come back.
    server.script(() => 'ok')
    const compacted = new AnthropicLoop(gateway)
    await compacted.prompt('This session is being continued from a previous conversation. Summary: nothing')
    await compacted.call('Bash', { command: 'cat z' }, long('z'))
    expect(gateway.conversations.all.map(({ id }) => id).sort()).toEqual(['claude-code:session-1', 'claude-code:session-1:agent-1', 'claude-code:session-1~2'])
    expect(await callTool(gateway, 'activate', { id: kept })).toMatch(/^n\d+ line 0 /)
    // The first one continues where it was.
    await loop.call('Bash', { command: 'cat y' }, long('y'))
    expect(gateway.conversations.all.length).toBe(3)
    expect(lastTexts(server)).not.toContain('n0 line 3')
  })
})
