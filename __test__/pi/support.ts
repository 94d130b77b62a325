/** Shared by the tests of the extension: a home with a store, texts that are told apart, and looks into the store. */
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Settings } from '../../extensions/settings.ts'
import { ContextManager } from '../../lib/index.ts'
import type { SessionSets, StoreOptions } from '../../lib/index.ts'
import { checkToolPairs } from '../../rig/checks.ts'
import { withExtension } from '../../rig/extension.ts'
import { startModelServer } from '../../rig/model-server.ts'
import type { ModelServer } from '../../rig/model-server.ts'
import { createPiHome, onCleanUp, readSession } from '../../rig/pi.ts'
import type { PiHome, PiHomeOptions, PiRpc, RpcEvent } from '../../rig/pi.ts'
import type { Script } from '../../rig/reply.ts'
import { resultsById } from '../../rig/request.ts'
import type { ModelRequest } from '../../rig/exchange.ts'
import type { StrictOptions } from '../../rig/strict.ts'
import { freshNode } from '../../rig/xtdb.ts'

/** True if the suites run on XTDB (CONTEXT_STORE=xtdb), each test with a separate node, instead of on SQLite. */
const ON_XTDB = process.env['CONTEXT_STORE'] === 'xtdb'

/** `test` for what only a store in one file has; on XTDB it is left out, and the reason printed. */
export function onFile(reason: string): typeof test | typeof test.skip {
  if (ON_XTDB) process.stderr.write(`not run on XTDB: ${reason}\n`)
  return ON_XTDB ? test.skip : test
}

/** A scripted model, a home, and the options with which Pi has the extension on a separate store. */
export interface Setting {
  server: ModelServer
  home: PiHome
  /** The store's file; on XTDB that of the journal. */
  store: string
  /** The store's place in `/context`. */
  place: string
  /** To be spread into `runPrint` and `startRpc`. */
  load: { home: PiHome; extension: string; env: Record<string, string> }
}

/**
 * Makes a setting. `context` are the extension's settings; `strict`: the model binds its reasoning. At the test's end the script
 * must have answered every request, and every call must have had its result, unless the test stops tools (`allowNoResult`).
 */
export async function setUp(
  script: Script,
  {
    context,
    strict,
    allowNoResult = false,
    ...options
  }: Omit<PiHomeOptions, 'server'> & {
    context?: Partial<Settings>
    strict?: StrictOptions
    allowNoResult?: boolean
  } = {},
): Promise<Setting> {
  const server = await startModelServer(script, strict)
  onCleanUp(() => {
    server.check()
    for (const request of server.agentRequests) checkToolPairs(request, { allowNoResult })
  })
  const home = createPiHome({ server, ...options })
  if (context !== undefined) {
    writeFileSync(join(home.agentDir, 'context-manager.json'), JSON.stringify(context))
  }
  const store = join(home.root, 'store', 'context.db')
  if (!ON_XTDB) return { server, home, store, place: store, load: { home, ...withExtension(store) } }
  const { url } = await freshNode()
  nodes.set(store, url)
  return { server, home, store, place: `xtdb ${url}`, load: { home, ...withExtension({ url, journal: store }) } }
}

/** The nodes behind the journals of this process's tests. */
const nodes = new Map<string, string>()

/** The options for a store of {@link setUp}, as another client on the same machine has them. */
function storeOptions(store: string): StoreOptions {
  const url = nodes.get(store)
  return url === undefined ? { kind: 'sqlite', path: store } : { kind: 'xtdb', url, journal: store }
}

/** The extension's settings with which the model has the tools in the first request already. */
export const TOOLS_AT_ONCE: Partial<Settings> = { modelTools: 'start' }

/** The extension's settings with which nothing but outputs and arguments leaves. */
export const OUTPUTS_ONLY: Partial<Settings> = { thinking: 'keep', calls: 'keep', prose: 'keep' }

/** `count` lines that occur nowhere else, each with the name and its number; no line break at the end. */
export function lines(name: string, count: number): string {
  return Array.from({ length: count }, (_, index) => `${name} line ${index + 1}: ${'lorem ipsum '.repeat(4)}`).join('\n')
}

/** Writes a file into the folder that Pi works in. */
export function put(home: PiHome, path: string, text: string | Uint8Array): void {
  writeFileSync(join(home.cwd, path), text)
}

/** The short name of the object of a call. */
export function handle(callId: string): string {
  return createHash('sha256').update(callId).digest('hex').slice(0, 8)
}

/** The line that a recorded output begins with. */
export function header(callId: string): string {
  return `id=${handle(callId)}`
}

/** Returns the beginning of the line of a collapsed output: its tool, ID and status. */
export function reference(callId: string, tool: string, status: 'ok' | 'fail' = 'ok'): string {
  return `toolcall_ref id=${handle(callId)} tool=${tool} status=${status}`
}

/** The whole text of a collapsed output: what it was, and what it came to if there is something to say. */
export function referring(callId: string, tool: string, status: 'ok' | 'fail' = 'ok'): RegExp {
  return new RegExp(`^${reference(callId, tool, status)}(?: -> [^\\n]+)?$`)
}

/** True if a text is an excerpt of another: some of its lines, in their order, and marks for the omitted ones. */
export function isExcerpt(shown: string, whole: string): boolean {
  const all = whole.split('\n')
  let at = 0
  for (const line of shown.split('\n')) {
    const gap = /^\.\.\. .* left out: lines (\d+)-(\d+) \.\.\.$/.exec(line)
    if (gap === null ? line !== all[at] : Number(gap[1]) !== at + 1) return false
    at = gap === null ? at + 1 : Number(gap[2])
  }
  return at === all.length
}

/** Returns a request's texts apart from the outputs of tools: these alone may change. */
export function withoutOutputs(request: ModelRequest): string[] {
  return request.messages.map((message) => {
    if (message.role !== 'tool') return message.json
    return `tool ${message.results.map((result) => result.id).join(' ')}`
  })
}

/**
 * The calls whose outputs a later request has made shorter, to references or excerpts. Throws where anything else of
 * the earlier request is not as it was.
 */
export function shortened(before: ModelRequest, now: ModelRequest): string[] {
  expect(withoutOutputs(now).slice(0, before.messages.length)).toEqual(withoutOutputs(before))
  const later = resultsById(now)
  const changed = [...resultsById(before)].filter(([call, text]) => later.get(call) !== text)
  for (const [call, was] of changed) {
    const [head, id] = /^id=(\w+)\n/.exec(was)!
    const is = later.get(call)!
    expect(is.length).toBeLessThan(was.length)
    if (is.startsWith(head)) expect(isExcerpt(is.slice(head.length), was.slice(head.length))).toBe(true)
    else expect(is).toMatch(new RegExp(`^toolcall_ref id=${id} tool=\\w+ status=(ok|fail)(?: -> [^\\n]+)?$`))
  }
  return changed.map(([call]) => call)
}

/** Opens a session of a store in this process, as any other client would; closed at the test's end. */
export async function openStore(store: string, sessionId: string, cwd = '/'): Promise<ContextManager> {
  const manager = await ContextManager.open({
    sessionId,
    cwd,
    store: storeOptions(store),
    watch: false,
  })
  onCleanUp(() => manager.close())
  return manager
}

/** The sets of a session as they are in the store. */
export async function setsOf(store: string, sessionId: string, cwd: string): Promise<SessionSets> {
  const manager = await openStore(store, sessionId, cwd)
  try {
    return await manager.sessionSets()
  } finally {
    await manager.close()
  }
}

/** The id of a session file's session. */
export function sessionIdOf(file: string): string {
  return readSession(file).header['id'] as string
}

/** Runs an extension command and gives the notices that it showed. */
export async function command(rpc: PiRpc, text: string): Promise<string[]> {
  const from = rpc.mark
  await rpc.command({ type: 'prompt', message: text })
  return notices(rpc.events.slice(from))
}

/** Returns the extension's messages to the user, among some records. */
export function notices(events: readonly RpcEvent[]): string[] {
  return events.filter((event) => event.type === 'extension_ui_request' && event['method'] === 'notify').map((event) => event['message'] as string)
}
