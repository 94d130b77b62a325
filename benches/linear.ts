/**
 * Costs that grow with use, at a length and at twice that length: one long event of a stream, weeks of conversations, sessions open
 * on one store, the record of rolls of a host that cuts the front at each call, calls whose arguments have odd names, and what one
 * request may have many of: calls, parallel calls, prompts, texts, images, blocks, changed files, and characters of one output; and
 * requests of a host that changes its first message with each. Twice as
 * much is about twice the work; the memory kept for finished conversations stays about the same.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import { appendFileSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { AnswerReader, startGateway } from '../lib/gateway/index.ts'
import { Projection } from '../lib/projection/index.ts'
import { ContextManager } from '../lib/index.ts'
import { isOnce, median, print, rounds, text } from './figure.ts'

setFlagsFromString('--expose_gc')
const collect = runInNewContext('gc') as () => void

/** Rounds of each measurement; the medians count. */
const ROUNDS = rounds(3)

const MODEL = { name: 'm', contextWindow: 1_000_000, input: 3, cacheRead: 0.3, cacheWrite: 3.75 }

/** A pass may take this long, in milliseconds: what it costs is to be measured, however slow the machine is. */
const LONGEST_MS = 600_000

/** A length, or a tenth of it where the bench shows only that it runs. */
const long = (length: number): number => (isOnce() ? Math.ceil(length / 10) : length)

/** Processor time of this process, its threads included, in milliseconds. */
async function processor(work: () => unknown): Promise<number> {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

interface Dimension {
  what: string
  length: number
  unit: string
  /** The cost at a length. */
  cost(length: number): Promise<number>
  /** The ratio that counts as good, if it is not that of twice the work. */
  good?: number
}

const root = realpathSync(mkdtempSync(join(tmpdir(), 'context-bench-')))
let folders = 0
const folder = (): string => join(root, `${(folders += 1)}`)

const DIMENSIONS: readonly Dimension[] = [
  { what: 'an event of N MB in a stream', length: long(20), unit: 'ms', cost: (length) => processor(() => streamed(length)) },
  { what: 'conversations through a gateway', length: long(150), unit: 'ms', cost: async (length) => (await conversations(length)).ms },
  { what: 'what it keeps of them', length: long(150), unit: 'kB', cost: async (length) => (await conversations(length)).bytes / 1000, good: 1.5 },
  { what: 'requests with another first message each, behind N calls', length: long(200), unit: 'ms', cost: otherFirst },
  { what: 'sessions open on one store', length: long(100), unit: 'ms', cost: (length) => processor(() => openSessions(length)) },
  { what: 'record of a window that slides over N calls', length: isOnce() ? 80 : 300, unit: 'kB', cost: async (length) => (await slid(60, length)) / 1000 },
  {
    what: 'record of the same number of calls with a window of N',
    length: 60,
    unit: 'kB',
    cost: async (length) => (await slid(length, isOnce() ? 80 : 300)) / 1000,
  },
  { what: 'calls with odd names of arguments', length: long(400), unit: 'ms', cost: (length) => processor(() => oddArguments(length)) },
  { what: 'a first request with N calls', length: long(400), unit: 'ms', cost: (length) => sentOnce(calls(length)) },
  { what: 'N parallel calls in one answer', length: long(400), unit: 'ms', cost: (length) => sentOnce(parallel(length)) },
  { what: 'N prompts and answers without calls', length: long(1_000), unit: 'ms', cost: (length) => sentOnce(talk(length)) },
  { what: 'N texts in one answer', length: long(1_000), unit: 'ms', cost: (length) => sentOnce(texts(length)) },
  { what: 'N images in one result', length: long(4_000), unit: 'ms', cost: (length) => sentOnce(images(length)) },
  { what: 'N blocks in one prompt', length: long(4_000), unit: 'ms', cost: (length) => sentOnce(blocks(length)) },
  { what: 'an output of N hundred kB', length: long(20), unit: 'ms', cost: (length) => sentOnce(called('c', { command: 'run' }, 0, length * 100_000)) },
  { what: 'N reads of one file, one by one', length: long(100), unit: 'ms', cost: (length) => processor(() => rereads(length)) },
  { what: 'notices of N changed files', length: long(200), unit: 'ms', cost: (length) => notices(length) },
]

for (const { what, length, unit, cost, good = 2.6 } of DIMENSIONS) {
  const [single, double]: [number[], number[]] = [[], []]
  // The first round meets code that is not compiled yet.
  await cost(Math.ceil(length / 4))
  for (let round = 0; round < ROUNDS; round += 1) {
    single.push(await cost(length))
    double.push(await cost(2 * length))
  }
  const [beside, ours] = [median(single), median(double)]
  print({ figure: 'linear', what: `${what}: ${2 * length}`, ours, peer: `${length}`, beside, unit, good })
}
rmSync(root, { recursive: true, force: true })

/** Reads an answer whose one event has this many megabytes, in pieces as they come from a socket. */
function streamed(megabytes: number): void {
  const reader = new AnswerReader('messages')
  const piece = Buffer.alloc(64 * 1024, 'x')
  reader.write(Buffer.from('data: {"type":"content_block_delta","delta":{"text":"'))
  for (let left = megabytes * 16; left > 0; left -= 1) reader.write(piece)
  reader.write(Buffer.from('"}}\n\n'))
  reader.end()
}

/** This many conversations of two calls each, of a client that names no session. Returns their cost, and the memory that stays. */
async function conversations(count: number): Promise<{ ms: number; bytes: number }> {
  const server = createServer((incoming, response) => incoming.resume().on('end', () => response.end('{}'))).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const gateway = await startGateway({ open: { store: { kind: 'memory' } }, upstreams: { openai: url }, onWarning: () => {}, env: {} })
  const tools = ['context_activate', 'bash'].map((name) => ({ type: 'function', function: { name } }))
  const heap = (): number => {
    collect()
    return process.memoryUsage().heapUsed
  }
  const run = async (from: number, to: number): Promise<void> => {
    for (let n = from; n < to; n += 1) {
      const messages: object[] = [{ role: 'user', content: `conversation ${n}` }]
      for (let call = 0; call < 2; call += 1) {
        const made = { id: `c${call}`, type: 'function', function: { name: 'bash', arguments: '{"command":"x"}' } }
        messages.push({ role: 'assistant', content: null, tool_calls: [made] }, { role: 'tool', tool_call_id: `c${call}`, content: text(20_000, n) })
        const headers = { 'content-type': 'application/json', 'user-agent': 'bench' }
        const answer = await fetch(`${gateway.url}/v1/chat/completions`, { method: 'POST', headers, body: JSON.stringify({ model: 'm', tools, messages }) })
        await answer.text()
      }
    }
  }
  const before = heap()
  const ms = await processor(() => run(0, count))
  const bytes = heap() - before
  await gateway.close()
  server.closeAllConnections()
  server.close()
  return { ms, bytes }
}

/** The cost of twenty requests behind this many calls, of a host that writes the time into its first message. */
async function otherFirst(count: number): Promise<number> {
  const server = createServer((incoming, response) => incoming.resume().on('end', () => response.end('{}'))).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const gateway = await startGateway({ open: { store: { kind: 'memory' } }, upstreams: { anthropic: url }, onWarning: () => {}, env: {} })
  const tools = ['mcp__context__activate', 'bash'].map((name) => ({ name, input_schema: { type: 'object' } }))
  const send = async (time: number): Promise<void> => {
    const messages = [{ role: 'user', content: `begin, it is ${time}` }, ...calls(count + time)]
    const headers = { 'content-type': 'application/json', 'user-agent': 'bench', 'x-claude-code-session-id': 's' }
    const answer = await fetch(`${gateway.url}/anthropic/v1/messages`, { method: 'POST', headers, body: JSON.stringify({ model: 'm', tools, messages }) })
    await answer.text()
  }
  await send(0)
  await send(1)
  const ms = await processor(async () => {
    for (let time = 2; time < 22; time += 1) await send(time)
  })
  await gateway.close()
  server.closeAllConnections()
  server.close()
  return ms
}

/** Opens this many sessions on one store, and closes them. */
async function openSessions(count: number): Promise<void> {
  const cwd = root
  const path = join(folder(), 'context.db')
  const managers: ContextManager[] = []
  for (let n = 0; n < count; n += 1)
    managers.push(await ContextManager.open({ sessionId: `s${n}`, cwd, store: { kind: 'sqlite', path, durability: 'process' } }))
  for (const manager of managers) await manager.close()
}

/**
 * A host that keeps the newest calls, and cuts one off at each new one. Returns the size of the record of rolls after this many
 * calls of that kind.
 */
async function slid(window: number, count: number): Promise<number> {
  const manager = await ContextManager.open({ sessionId: 's', cwd: root, store: { kind: 'memory' }, watch: false, stay: { debtCap: 'none' } })
  let now = 0
  const projection = new Projection(manager, {
    shape: 'anthropic',
    shortens: true,
    now: () => (now += 1_000),
    model: MODEL,
  })
  let calls: object[][] = []
  const recorded = async (): Promise<number> => {
    const chat = (await manager.get('chat:s')) as { turns?: { rolls?: object[] }[] } | null
    return JSON.stringify((chat?.turns ?? []).flatMap(({ rolls = [] }) => rolls)).length
  }
  let before = 0
  for (let n = 0; n < window + count; n += 1) {
    if (n === window) before = await recorded()
    calls = [...calls.slice(calls.length < window ? 0 : 1), called(`c${n}`, { command: `run ${n}` }, n)]
    await projection.transform([{ role: 'user', content: 'go' }, ...calls.flat()])
  }
  const bytes = (await recorded()) - before
  await manager.close()
  return bytes
}

/** Makes `count` calls, each with an argument whose name means something to JavaScript. */
async function oddArguments(count: number): Promise<void> {
  const manager = await ContextManager.open({ sessionId: 's', cwd: root, store: { kind: 'memory' }, watch: false })
  const projection = new Projection(manager, { shape: 'anthropic' })
  const messages: object[] = [{ role: 'user', content: 'go' }]
  const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty']
  for (let n = 0; n < count; n += 1) {
    const odd: object = JSON.parse(`{"command":"run ${n}",${JSON.stringify(names[n % names.length])}:{"a":1}}`)
    messages.push(...called(`c${n}`, odd, n))
    await projection.transform([...messages])
  }
  await manager.close()
}

/** The cost of the first request of a conversation. */
async function sentOnce(messages: readonly object[]): Promise<number> {
  const manager = await ContextManager.open({ sessionId: 's', cwd: root, store: { kind: 'memory' }, watch: false })
  const projection = new Projection(manager, { shape: 'anthropic', shortens: true, limitMs: LONGEST_MS, model: MODEL })
  const ms = await processor(() => projection.transform([{ role: 'user', content: 'go' }, ...messages]))
  await manager.close()
  return ms
}

function calls(count: number): object[] {
  return Array.from({ length: count }, (_, n) => called(`c${n}`, { command: `run ${n}` }, n)).flat()
}

function parallel(count: number): object[] {
  const all = calls(count) as { content: object[] }[]
  const of = (remainder: number): object[] => all.filter((_, at) => at % 2 === remainder).flatMap(({ content }) => content)
  return [
    { role: 'assistant', content: of(0) },
    { role: 'user', content: of(1) },
  ]
}

function talk(count: number): object[] {
  return Array.from({ length: count }, (_, n) => [
    { role: 'assistant', content: [{ type: 'text', text: `answer ${n}` }] },
    { role: 'user', content: `prompt ${n}` },
  ]).flat()
}

function blocks(count: number): object[] {
  return [{ role: 'user', content: Array.from({ length: count }, (_, n) => ({ type: 'text', text: `block ${n}` })) }]
}

function texts(count: number): object[] {
  return [
    { role: 'assistant', content: Array.from({ length: count }, (_, n) => ({ type: 'text', text: text(1_000, n) })) },
    { role: 'user', content: 'on' },
  ]
}

function images(count: number): object[] {
  const image = (n: number): object => ({
    type: 'image',
    source: { type: 'base64', media_type: 'image/png', data: Buffer.from(text(300, n)).toString('base64') },
  })
  const content = Array.from({ length: count }, (_, n) => image(n))
  return [
    { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'bash', input: { command: 'look' } }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c', content }] },
  ]
}

/** Reads one file again and again, with a request after each. */
async function rereads(count: number): Promise<void> {
  const [cwd] = madeFiles(1)
  const manager = await ContextManager.open({ sessionId: 's', cwd, store: { kind: 'memory' }, watch: false })
  const projection = new Projection(manager, { shape: 'anthropic', shortens: true, limitMs: LONGEST_MS, model: MODEL })
  const messages: object[] = [{ role: 'user', content: 'go' }]
  for (let n = 0; n < count; n += 1) {
    messages.push(...read(cwd, 0, `c${n}`))
    await projection.transform([...messages])
  }
  await manager.close()
}

/** The cost of the request that tells of this many files that others have changed. */
async function notices(count: number): Promise<number> {
  const [cwd, paths] = madeFiles(count)
  const manager = await ContextManager.open({ sessionId: 's', cwd, store: { kind: 'memory' }, watch: false })
  const projection = new Projection(manager, { shape: 'anthropic', shortens: true, limitMs: LONGEST_MS, model: MODEL })
  const messages: object[] = [{ role: 'user', content: 'go' }, ...paths.flatMap((_, n) => read(cwd, n, `c${n}`))]
  await projection.transform(messages)
  for (const path of paths) appendFileSync(path, 'more\n')
  const ms = await processor(async () => {
    await manager.reconcile()
    await projection.transform([...messages, ...talk(1)])
  })
  await manager.close()
  return ms
}

/** A new folder with files, and their paths. */
function madeFiles(count: number): [cwd: string, paths: string[]] {
  const cwd = folder()
  mkdirSync(cwd)
  const paths = Array.from({ length: count }, (_, n) => join(cwd, `f${n}.txt`))
  for (const [n, path] of paths.entries()) writeFileSync(path, text(2_000, n))
  return [cwd, paths]
}

function read(cwd: string, n: number, id: string): object[] {
  return called(id, { path: join(cwd, `f${n}.txt`) }, n, 2_000, 'read')
}

function called(id: string, input: object, n: number, size = 2_000, name = 'bash'): object[] {
  return [
    { role: 'assistant', content: [{ type: 'tool_use', id, name, input }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: text(size, n) }] },
  ]
}
