/**
 * The five tools that come in the middle of a conversation: at its end where the provider takes them there, and else
 * in front of a prompt that is written anew in any case; and on which branches they are.
 */
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { cleanUp, startRpc } from '../../rig/pi.ts'
import type { PiRpc } from '../../rig/pi.ts'
import { calls } from '../../rig/reply.ts'
import { resultsById } from '../../rig/request.ts'
import type { Api, ModelRequest } from '../../rig/exchange.ts'
import { TOOLS } from '../../extensions/tools.ts'
import { command, lines, notices, OUTPUTS_ONLY, put, setUp, shortened } from './support.ts'

afterEach(cleanUp)

const NAVIGATE = fileURLToPath(new URL('navigate.ts', import.meta.url))

/** Prompts after which they must have come. */
const LATEST = 20

/** In which order the model tries them. */
const ORDER = ['search_context', 'activate', 'pin', 'unpin', 'deactivate']

/** Returns the head before the conversation: the declared tools and the system prompt. */
function head(request: ModelRequest): string {
  return request.prompt.slice(0, request.ends[headOf(request)])
}

/** Number of messages in its head: a provider may have the tools and the system prompt in one each. */
function headOf(request: ModelRequest): number {
  return request.messages.findIndex((message) => message.role !== 'system')
}

/** Those of the five that a request has. */
function ours(request: ModelRequest): string[] {
  return TOOLS.filter((name) => request.tools.includes(name))
}

test.each<[string, Api, Record<string, boolean>]>([
  ['tools in a system message', 'openai-completions', { supportsMidConvoToolAdditions: true }],
  ['references to tools that were declared for later', 'anthropic-messages', { supportsMidConvoToolChanges: true }],
  ['additional tools', 'openai-responses', { supportsAdditionalTools: true }],
  ['the answer to a search for tools', 'openai-responses', { supportsToolSearch: true }],
  ['nothing that would add them on the way', 'openai-completions', {}],
  ['nothing that would add them on the way', 'anthropic-messages', {}],
])('a provider that takes %s (%s)', async (_name, api, way) => {
  const appends = Object.keys(way).length > 0
  const ids = new Map<string, string>()
  const { server, home, load } = await setUp(
    (request) => {
      for (const [call, text] of resultsById(request)) {
        const id = /^id=(\w+)\n/.exec(text)?.[1]
        if (id !== undefined) ids.set(call, id)
      }
      const said = request.messages.findLast((message) => message.role !== 'system')!
      const [verb, what] = said.text.split(/\s/)
      if (said.role === 'user' && verb === 'read') return calls(['read', { path: `${what}.txt` }, `call_${what}`])
      const [, done, round] = /^([a-z_]+)-(\w+)$/.exec(said.results[0]?.id ?? '') ?? []
      if (done === undefined && (said.role !== 'user' || verb !== 'tools')) return `answer ${request.n}`
      // One after the other, in an order that gives each something to do.
      const next = ORDER[ORDER.indexOf(done ?? '') + 1]
      if (next === undefined) return `answer ${request.n}`
      const id = ids.get('call_0')
      const args = next === 'search_context' ? { query: 'needle' } : next === 'activate' ? { id, lines: '3-4' } : { id }
      return calls([next, args, `${next}-${round ?? what}`])
    },
    {
      api,
      model: appends ? { compat: { supportsMidConvoSystemMessages: true, ...way } } : {},
      // If they would be written in front of everything, they appear when the cache is dead, as after a pause.
      context: appends ? OUTPUTS_ONLY : { ...OUTPUTS_ONLY, cacheLifetimeSeconds: 0.001 },
    },
  )
  const text = `${lines('0', 600)}\nneedle`
  put(home, '0.txt', text)
  for (let n = 1; n <= LATEST; n += 1) put(home, `${n}.txt`, lines(String(n), 600))
  const start = (args: string[] = []): Promise<PiRpc> => startRpc({ ...load, extension: [load.extension, NAVIGATE], args })
  const last = (): ModelRequest => server.requests.at(-1)!
  const works = (round: string): void => {
    const results = resultsById(last())
    const answers = ORDER.map((name) =>
      results
        .get(`${name}-${round}`)!
        .replace(/^id=\w+\n/, '')
        .replace(/^[0-9a-f]{8} is/, 'it is'),
    )
    expect(answers[0]).toMatch(/^id=\w+ tool=read line=601: needle$/m)
    const [brought, ...rest] = answers.slice(1)
    // On a dead cache what was brought back leaves as soon as it is deactivated.
    if (appends || !brought!.startsWith('toolcall_ref ')) expect(brought).toBe(text.split('\n').slice(2, 4).join('\n'))
    expect(rest).toEqual(['it is pinned', 'it is not pinned', 'it is inactive; its metadata stays'])
  }

  const rpc = await start()
  let prompts = 0
  while (prompts < LATEST && (prompts === 0 || ours(last()).length === 0)) {
    await rpc.prompt(`read ${prompts}`)
    prompts += 1
  }
  const first = server.requests.findIndex((request) => ours(request).length > 0)
  expect(first).toBeGreaterThan(4)
  await rpc.prompt('tools once')
  works('once')
  const { entries } = await rpc.command({ type: 'get_entries' })
  const leaf = entries.at(-1).id
  const withTools = last()
  expect(await rpc.close()).toEqual({ code: 0, signal: null })

  // None before, all five from then on, and of what was sent before only outputs change.
  for (const request of server.requests) expect(ours(request)).toEqual(request.n < first ? [] : TOOLS)
  for (const request of server.requests.slice(1)) shortened(server.requests[request.n - 1]!, request)
  const [before, came] = [server.requests[first - 1]!, server.requests[first]!]
  expect(head(came) === head(before)).toBe(appends)
  expect(came.messages[0]!.json).toBe(before.messages[0]!.json)
  const adding = came.messages.slice(headOf(came)).filter((message) => message.role === 'system')
  expect(adding.length > 0).toBe(appends)
  for (const message of adding) {
    expect(came.messages.indexOf(message)).toBeGreaterThanOrEqual(before.messages.length)
    for (const name of TOOLS) expect(adding.map((one) => one.json).join('')).toContain(`"${name}"`)
  }

  // A new process continues with the same head, and the same tools.
  const second = await start(['--continue'])
  await second.prompt('and on')
  expect(ours(last())).toEqual(TOOLS)
  expect(head(last())).toBe(head(withTools))
  shortened(withTools, last())

  // A branch from before has them not.
  const users = entries.filter((entry: any) => entry.message?.role === 'user')
  await command(second, `/goto ${users[1].id}`)
  await second.prompt('aside')
  expect(ours(last())).toEqual([])
  expect(head(last())).toBe(head(server.requests[0]!))
  expect(await second.close()).toEqual({ code: 0, signal: null })

  // Nor has it in a process that begins on it; back on the other branch they are there again, and work.
  const third = await start(['--continue'])
  await third.prompt('aside again')
  expect(ours(last())).toEqual([])
  await command(third, `/goto ${leaf}`)
  const from = server.requests.length
  await third.prompt('tools twice')
  const back = server.requests[from]!
  expect(ours(back)).toEqual(TOOLS)
  expect(head(back)).toBe(head(withTools))
  shortened(withTools, back)
  works('twice')
  expect(await third.close()).toEqual({ code: 0, signal: null })
  for (const one of [rpc, second, third]) {
    expect(notices(one.events)).toEqual([])
    expect(one.process.stderr).toBe('')
  }
})
