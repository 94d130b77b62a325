/** OpenCode with our plugin: its real binary against a scripted model. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { cleanUp } from '../rig/cleanup.ts'
import { startModelServer } from '../rig/model-server.ts'
import type { ModelServer } from '../rig/model-server.ts'
import { calls } from '../rig/reply.ts'
import type { Answer } from '../rig/reply.ts'
import type { ModelRequest } from '../rig/request.ts'
import { binary, OpenCode, PLUGIN } from './opencode.ts'
import { output } from './script.ts'

afterEach(cleanUp)

/** `cat a b` prints files with OpenCode's own bash, `bring x` calls `activate`; titles are answered. */
function obedient(request: ModelRequest): Answer {
  const { messages, n, tools } = request
  if (tools.length === 0) return 'a title'
  const at = messages.findLastIndex(({ role, text }) => role === 'user' && /^(cat|bring|say) /.test(text))
  const [verb, ...words] = (messages[at]?.text ?? '').split(/\s+/)
  const word = words[messages.slice(at + 1).filter(({ role }) => role === 'assistant').length]
  if (verb === 'say' || word === undefined) return `done ${n}`
  if (verb === 'bring') return calls(['activate', { id: word }, `call_${n}`])
  return calls(['bash', { command: `cat ${word}.txt`, description: 'prints a file' }, `call_${n}`])
}

const agentRequests = (server: ModelServer) => server.requests.filter(({ tools }) => tools.length > 0)

async function started(plugin: unknown[], env: Record<string, string> = {}) {
  const server = await startModelServer(obedient)
  const host = new OpenCode()
  for (let n = 0; n < 10; n += 1) writeFileSync(join(host.cwd, `n${n}.txt`), output(`n${n}`))
  await host.start(server, plugin, env)
  return { server, host }
}

describe.skipIf(binary === undefined)('opencode', () => {
  test('outputs collapse, requests extend each other but for rolls, and the model brings back every byte', async () => {
    const { server, host } = await started([PLUGIN])
    for (let n = 0; n < 10; n += 1) await host.prompt(`cat n${n}`)
    let broken = 0
    const requests = agentRequests(server)
    for (const [n, request] of requests.entries()) {
      const before = requests[n - 1]?.messages.map(({ json }) => json) ?? []
      if (request.messages.slice(0, before.length).some(({ json }, index) => json !== before[index])) broken += 1
    }
    const shown = requests.at(-1)!.messages.flatMap(({ results }) => results)
    const handles = shown.map(({ text }) => /^toolcall_ref id=(\S+) /.exec(text)?.[1])
    const collapsed = handles.flatMap((handle, n) => (handle === undefined ? [] : [[n, handle] as const]))
    expect(collapsed.length).toBeGreaterThan(2)
    expect(broken).toBeGreaterThan(0)
    expect(broken).toBeLessThanOrEqual(4)
    expect(requests.at(-1)!.tools).toContain('activate')
    for (const [n, handle] of collapsed.slice(0, 2)) {
      await host.prompt(`bring ${handle}`)
      expect(agentRequests(server).at(-1)!.messages.flatMap(({ results }) => results).at(-1)!.text).toBe(output(`n${n}`))
    }
    expect(server.problems).toEqual([])
  })

  test('without the addon it works as if we were not there', async () => {
    const nowhere = { NAPI_RS_NATIVE_LIBRARY_PATH: '/nowhere/context.node' }
    const { server, host } = await started([PLUGIN], nowhere)
    for (let n = 0; n < 4; n += 1) await host.prompt(`cat n${n}`)
    const shown = agentRequests(server).at(-1)!.messages.flatMap(({ results }) => results)
    expect(shown.map(({ text }) => text)).toEqual([0, 1, 2, 3].map((n) => output(`n${n}`)))
    expect(host.output).toContain('pi-context-manager: the agent works without it')
  })
})
