/** OpenCode with our plugin: its real binary against a scripted model. */
import { execFileSync } from 'node:child_process'
import { open } from 'node:fs/promises'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { ContextManager } from '../../lib/index.ts'
import { folder, sqlite } from '../core/setup.ts'
import { cleanUp, onCleanUp } from '../../rig/cleanup.ts'
import { startModelServer } from '../../rig/model-server.ts'
import type { ModelServer } from '../../rig/model-server.ts'
import { calls, Gate } from '../../rig/reply.ts'
import type { Answer } from '../../rig/reply.ts'
import type { ModelRequest } from '../../rig/exchange.ts'
import { binary, OpenCode, PLUGIN } from './opencode.ts'
import { output } from './script.ts'
import { rewritten } from '../../rig/checks.ts'

afterEach(cleanUp)

/** OpenCode loads its database, its plugins and its providers before its first request: on a busy machine that takes a minute. */
const REQUEST_MS = 180_000

/**
 * `cat a b` prints files with OpenCode's own bash, `run x` runs a command, `read x` and `write x` use its own tools,
 * `bring x` calls `activate`, `task x` has a subagent do that; titles are answered.
 */
function obedient(request: ModelRequest): Answer {
  const { messages, n, tools } = request
  if (tools.length === 0) return 'a title'
  const at = messages.findLastIndex(({ role, text }) => role === 'user' && /^(cat|run|read|write|bring|task|say) /.test(text))
  const [verb, ...words] = (messages[at]?.text ?? '').split(/\s+/)
  const word = words[messages.slice(at + 1).filter(({ role }) => role === 'assistant').length]
  if (verb === 'say' || word === undefined) return `done ${n}`
  if (verb === 'bring') return calls(['activate', { id: word.replace('id=', '') }, `call_${n}`])
  if (verb === 'task') {
    const prompt = `bring ${words.join(' ')}`
    return messages.length > at + 1 ? `done ${n}` : calls(['task', { description: 'brings', prompt, subagent_type: 'general' }, `call_${n}`])
  }
  if (verb === 'read') return calls(['read', { filePath: word }, `call_${n}`])
  if (verb === 'write') return calls(['write', { filePath: word, content: 'written\n'.repeat(20) }, `call_${n}`])
  return calls(['bash', { command: verb === 'run' ? word.replaceAll('_', ' ') : `cat ${word}.txt`, description: 'prints a file' }, `call_${n}`])
}

const agentRequests = (server: ModelServer) => server.requests.filter(({ tools }) => tools.length > 0)
const lastResults = (server: ModelServer) =>
  agentRequests(server)
    .at(-1)!
    .messages.flatMap(({ results }) => results)
const lastText = (server: ModelServer) =>
  agentRequests(server)
    .at(-1)!
    .messages.map(({ json }) => json)
    .join('\n')
const prompted = (server: ModelServer) =>
  agentRequests(server)
    .at(-1)!
    .messages.flatMap(({ role, text }) => (role === 'user' ? [text] : []))

const told = (server: ModelServer) => prompted(server).flatMap((text) => text.split('\n').filter((line) => line.startsWith('stale ')))

/** An OpenCode with files n0.txt to n9.txt in its folder, and a model server. */
async function started(plugin: unknown[], env: Record<string, string> = {}, more: object = {}) {
  const server = await startModelServer(obedient)
  const host = new OpenCode()
  for (let n = 0; n < 10; n += 1) writeFileSync(join(host.cwd, `n${n}.txt`), output(`n${n}`))
  await host.start(server, plugin, env, more)
  return { server, host }
}

/** Returns the session in a store, after its OpenCode has been killed. */
async function left(host: OpenCode, store: ReturnType<typeof sqlite>): Promise<ContextManager> {
  await host.kill9()
  const manager = await ContextManager.open({ sessionId: `opencode:${host.sessionId}`, cwd: host.cwd, store, watch: false })
  onCleanUp(() => manager.close())
  return manager
}

/** The prompts of a record. */
async function recorded(manager: ContextManager): Promise<string[]> {
  const chat = (await manager.get(`chat:${manager.sessionId}`))!['turns'] as { user: string | { text?: string }[] }[]
  return chat.map(({ user }) => (typeof user === 'string' ? user : user.map(({ text = '' }) => text).join('')))
}

/** A second plugin, which exchanges the turns whose numbers `order.txt` names. */
const REORDERING = `
  import { existsSync, readFileSync } from 'node:fs'
  export default async ({ directory }) => ({
    async 'experimental.chat.messages.transform'(_, { messages }) {
      const file = directory + '/order.txt'
      if (!existsSync(file)) return
      const [one, other] = readFileSync(file, 'utf8').split(' ').map(Number)
      const starts = messages.flatMap(({ info }, at) => (info.role === 'user' ? [at] : []))
      const turns = starts.map((at, n) => messages.slice(at, starts[n + 1]))
      ;[turns[one], turns[other]] = [turns[other], turns[one]]
      messages.splice(0, messages.length, ...turns.flat())
    },
  })`

describe.skipIf(binary === undefined)('opencode', { timeout: 400_000 }, () => {
  test('outputs collapse, requests extend each other but for rolls, and the model brings back every byte', async () => {
    const store = sqlite()
    const { server, host } = await started([[PLUGIN, { store, stay: { weight: 0.3 } }]])
    for (let n = 0; n < 10; n += 1) await host.prompt(`cat n${n}`)
    const requests = agentRequests(server)
    const broken = rewritten(requests).length
    const handles = lastResults(server).map(({ text }) => /^toolcall_ref id=(\S+) /.exec(text)?.[1])
    const collapsed = handles.flatMap((handle, n) => (handle === undefined ? [] : [[n, handle] as const]))
    expect(collapsed.length).toBeGreaterThan(2)
    expect(requests.at(-1)!.tools).toContain('activate')
    for (const [n, handle] of collapsed) {
      await host.prompt(`bring ${handle}`)
      expect(lastResults(server).at(-1)!.text).toBe(output(`n${n}`))
    }
    // A subagent has what its prompt names, and not what it guesses.
    const [[n, handed], [, other]] = collapsed as [[number, string], [number, string]]
    await host.prompt(`task id=${handed} ${other}`)
    const subagents = agentRequests(server).filter(({ messages }) => messages.some(({ role, text }) => role === 'user' && text.startsWith('bring id=')))
    const brought = subagents.at(-1)!.messages.flatMap(({ results }) => results.map(({ text }) => text))
    expect(brought).toEqual([output(`n${n}`), expect.stringContaining(`no object of this session has the id ${other}`)])
    expect(server.problems).toEqual([])
    const before = agentRequests(server).length
    const manager = await left(host, store)
    const rolls = (await manager.receipts()).length
    expect(rolls).toBeGreaterThan(0)
    // Any change to earlier messages before the last of these requests was made by a roll.
    expect(broken).toBeGreaterThan(0)
    expect(broken).toBeLessThanOrEqual(rolls)
    expect(before).toBe(agentRequests(server).length)
  })

  test('replacements, redactions, removals and a new order take effect at once', async () => {
    const store = sqlite()
    const second = join(folder(), 'reordering.mjs')
    writeFileSync(second, REORDERING)
    const { server, host } = await started([`file://${second}`, [PLUGIN, { store, stay: { weight: 0.3 } }]])
    for (let n = 0; n < 6; n += 1) await host.prompt(`cat n${n}`)
    await host.prompt('say secret-prompt')
    const handle = /^toolcall_ref id=(\S+) /.exec(lastResults(server)[0]!.text)?.[1]
    expect(handle).toBeDefined()

    const messages = await host.messages()
    const prompt = messages.findLast(({ info }) => info.role === 'user')!
    const text = prompt.parts.find(({ type }) => type === 'text')!
    await host.replace(prompt, { ...text, text: 'say open-prompt' })
    for (const message of messages) {
      for (const part of message.parts) {
        if (part['tool'] !== 'bash') continue
        const { state } = part
        // The oldest has collapsed, the newest has not.
        const shown = state.output.replace(/n([05]) line 20/, 'n$1 REDACTED')
        if (shown !== state.output) await host.replace(message, { ...part, state: { ...state, output: shown } })
      }
    }
    await host.prompt('say on')
    expect(lastText(server)).not.toContain('secret-prompt')
    expect(lastText(server)).toContain('open-prompt')
    expect(lastText(server)).not.toMatch(/n[05] line 20/)
    await host.prompt(`bring ${handle}`)
    expect(lastResults(server).at(-1)!.text).toContain('was changed in the conversation or removed from it')

    const all = await host.messages()
    const starts = all.flatMap(({ info }, at) => (info.role === 'user' ? [at] : []))
    for (const message of all.slice(starts[1], starts[2])) await host.remove(message)
    await host.prompt('say removed')
    expect(lastText(server)).not.toContain('cat n1')
    expect(prompted(server).slice(0, 3)).toEqual(['cat n0', 'cat n2', 'cat n3'])

    writeFileSync(join(host.cwd, 'order.txt'), '1 2')
    await host.prompt('say reordered')
    expect(prompted(server).slice(0, 3)).toEqual(['cat n0', 'cat n3', 'cat n2'])
    server.check()
    expect(host.output).not.toContain('pi-context-manager:')
    const manager = await left(host, store)
    expect(await recorded(manager)).toContain('say open-prompt')
    expect((await manager.assemble()).text).not.toMatch(/secret-prompt|n[05] line 20/)
  })

  test('refuses a write over a change by another program, with the difference', async () => {
    const [store, path] = [sqlite(), join(folder(), 'shop.txt')]
    writeFileSync(path, 'one\n'.repeat(20))
    const { server, host } = await started([[PLUGIN, { store, stay: { weight: 0.3 } }]])
    await host.prompt(`read ${path}`)
    writeFileSync(path, `${'one\n'.repeat(19)}two\n`)
    await host.prompt(`write ${path}`)
    server.check()
    expect(lastResults(server).at(-1)!.text).toMatch(/so it was not edited[^]*\n-one\n\+two\n/)
    expect(readFileSync(path, 'utf8')).toContain('two\n')
    await left(host, store)
  })

  test('two of them on one store share objects, and each learns of the writes of the other', async () => {
    const [store, path] = [sqlite(), join(folder(), 'shared.txt')]
    writeFileSync(path, 'one\n'.repeat(20))
    const [first, second] = [await started([[PLUGIN, { store, stay: { weight: 0.3 } }]]), await started([[PLUGIN, { store, stay: { weight: 0.3 } }]])]
    await first.host.prompt(`read ${path}`)
    await second.host.prompt(`read ${path}`)
    const shown = lastResults(second.server).at(-1)!
    expect(shown.text).toContain('1: one\n2: one')
    await first.host.prompt(`write ${path}`)
    await second.host.prompt('say after')
    first.server.check()
    second.server.check()
    expect(told(second.server)).toEqual([expect.stringMatching(/^stale id=\S+ path=.*shared\.txt/)])
    expect(told(first.server)).toEqual([])
    const [a, b] = [await left(first.host, store), await left(second.host, store)]
    const [file] = await a.query({ type: 'file', pathPrefix: path })
    const id = file!['xt/id']
    for (const one of [a, b]) expect((await one.sessionSets()).sessionIndex).toContain(id)
    expect((await b.history(id)).map(({ document }) => document.content)).toEqual(['one\n'.repeat(20), 'written\n'.repeat(20)])
    // The record has the result as OpenCode has shown it, and the arguments as the model gave them.
    const read = (await b.query({ type: 'toolcall', sessionId: b.sessionId })).find((one) => one['tool'] === 'read')!
    expect(read.content).toBe(shown.text)
    expect(read['args']).toEqual({ filePath: path })
  })

  test('the model is told of lines that change under it, and of nothing else, also after a restart', async () => {
    const store = sqlite()
    const { server, host } = await started([[PLUGIN, { store, stay: { weight: 0.3 } }]])
    const [plain, windows, long] = ['plain', 'windows', 'long'].map((name) => join(host.cwd, `${name}.txt`)) as [string, string, string]
    writeFileSync(plain, 'one\n'.repeat(20))
    writeFileSync(windows, 'one\r\n'.repeat(20))
    writeFileSync(long, `${'x'.repeat(3000)}\ntwo\n`)
    for (const path of [plain, windows, long]) await host.prompt(`read ${path}`)
    await host.prompt('say unchanged')
    expect(told(server)).toEqual([])
    writeFileSync(plain, `${'one\n'.repeat(19)}two\n`)
    await host.prompt('say changed')
    expect(told(server)).toEqual([expect.stringMatching(/^stale id=\S+ path=.*plain\.txt/)])
    await host.kill9()
    writeFileSync(plain, 'three\n')
    await host.start(server, [[PLUGIN, { store, stay: { weight: 0.3 } }]])
    await host.prompt('say again')
    server.check()
    expect(told(server).at(-1)).toMatch(/^stale id=\S+ path=.*plain\.txt/)
    expect(lastText(server)).not.toMatch(/stale id=\S+ path=.*(windows|long)\.txt/)
    expect(host.output).not.toContain('pi-context-manager:')
  })

  test('killed between any two steps it loses nothing', async () => {
    const store = sqlite()
    let held: Gate | undefined
    const { server, host } = await started([[PLUGIN, { store, stay: { weight: 0.3 } }]])
    server.script((request) => {
      if (held === undefined || request.tools.length === 0) return obedient(request)
      const gate = held
      held = undefined
      return { parts: ['a beginning ', gate, ' and an end'] }
    })
    execFileSync('mkfifo', [join(host.cwd, 'hold')])
    const kill = async (prompt: string, reached: (from: number) => Promise<unknown>): Promise<void> => {
      const from = server.requests.length
      // The prompt gets no answer: the process is killed before.
      const asked = host.prompt(prompt).catch(() => {})
      await reached(from)
      await host.kill9()
      await asked
      await host.start(server, [[PLUGIN, { store, stay: { weight: 0.3 } }]])
    }
    const agents = ({ tools }: ModelRequest): boolean => tools.length > 0
    await kill('cat n0', (from) => server.request(agents, from, REQUEST_MS))
    await kill('cat n1 n2', (from) => server.request((request) => agents(request) && request.messages.at(-1)!.results.length > 0, from, REQUEST_MS))
    const gate = new Gate()
    held = gate
    await kill('cat n3', () => gate.reached)
    gate.release()
    // A pipe is open for writing when its reader is there: the tool runs.
    let writer: Awaited<ReturnType<typeof open>> | undefined
    await kill('run cat_hold', async () => (writer = await open(join(host.cwd, 'hold'), 'w')))
    await writer!.close()
    await host.prompt('cat n4')
    await host.prompt('say end')
    server.check()
    const shown = new Set(agentRequests(server).flatMap(({ messages }) => messages.flatMap(({ results }) => results.map(({ text }) => text))))
    const manager = await left(host, store)
    for (const name of ['n1', 'n4']) {
      expect(shown).toContain(output(name))
      const found = await manager.search(`"${name} line 20"`)
      const texts = await Promise.all(found.map(async ({ id }) => (await manager.get(id))!.content))
      expect(texts).toContain(output(name))
    }
    expect(await recorded(manager)).toEqual(prompted(server))
  })

  test('where the model has no way to bring anything back, nothing collapses, and one warning says so', async () => {
    const { server, host } = await started([PLUGIN], {}, { permission: { '*': 'allow', activate: 'deny' } })
    for (let n = 0; n < 8; n += 1) await host.prompt(`cat n${n}`)
    expect(agentRequests(server).at(-1)!.tools).not.toContain('activate')
    expect(lastResults(server).map(({ text }) => text)).toEqual(Array.from({ length: 8 }, (_, n) => output(`n${n}`)))
    expect(host.output.split('nothing collapses, because the model has no tool').length).toBe(2)
  })

  test('without the addon it works as if we were not there', async () => {
    const nowhere = { NAPI_RS_NATIVE_LIBRARY_PATH: '/nowhere/context.node' }
    const { server, host } = await started([PLUGIN], nowhere)
    for (let n = 0; n < 4; n += 1) await host.prompt(`cat n${n}`)
    expect(lastResults(server).map(({ text }) => text)).toEqual([0, 1, 2, 3].map((n) => output(`n${n}`)))
    expect(host.output.split('pi-context-manager: the agent continues without it').length).toBe(2)
  })

  test('a store that fails does not reach it, and is told once', async () => {
    const { server, host } = await started([[PLUGIN, { store: { kind: 'sqlite', path: '/dev/null/nothing/context.db' } }]])
    for (let n = 0; n < 4; n += 1) await host.prompt(`cat n${n}`)
    expect(lastResults(server).map(({ text }) => text)).toEqual([0, 1, 2, 3].map((n) => output(`n${n}`)))
    expect(host.output.split('pi-context-manager: the agent continues without it').length).toBe(2)
  })
})
