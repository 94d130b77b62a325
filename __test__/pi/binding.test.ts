/** The real Pi with us, on a provider that binds its reasoning: nothing is refused, and a running turn loses nothing. */
import { afterEach, expect, test } from 'vitest'
import { cleanUp, runPrint } from '../rig/pi.ts'
import { calls } from '../rig/reply.ts'
import type { ModelRequest } from '../rig/request.ts'
import { lossOf } from '../rig/strict.ts'
import type { StrictOptions } from '../rig/strict.ts'
import { lines, put, setUp } from './support.ts'
import type { Setting } from './support.ts'

afterEach(cleanUp)

const COST = { input: 4, output: 20, cacheRead: 0.2, cacheWrite: 5 }
/** As Pi's catalogue has Opus 5.5 at Anthropic: Pi asks for drops, and may add tools in mid-conversation. */
/** As it has the same model at GitHub Copilot: Pi does not ask. */
const COPILOT = { id: 'claude-opus-5.5', reasoning: true, cost: COST, compat: { forceAdaptiveThinking: true } }

/** Thinks and reads one file after the other, `count` of them for each prompt. */
function worker(count: number) {
  return (request: ModelRequest) => {
    const at = request.messages.findLastIndex(({ role, text }) => role === 'user' && text.startsWith('work '))
    const turn = request.messages[at]?.text.slice(5) ?? ''
    const done = request.messages.slice(at + 1).filter(({ role }) => role === 'assistant').length
    const thinking = `thought ${request.n} ${'hm '.repeat(50)}`
    if (done >= count) return { thinking, text: `done ${turn}` }
    return { thinking, ...calls(['bash', { command: `cat f${done % 8}.txt # ${turn} ${done}` }, `call_${request.n}`]) }
  }
}

async function session(model: { id: string }, strict: StrictOptions, turns: number, count: number, api: 'anthropic-messages' | 'openai-responses' = 'anthropic-messages', context = {}) {
  const setting = await setUp(worker(count), { api, model, context, strict })
  for (let n = 0; n < 8; n += 1) put(setting.home, `f${n}.txt`, lines(`f${n}`, 60))
  const run = await runPrint({ ...setting.load, args: ['--model', `rig/${model.id}`, '--thinking', 'high'], prompts: Array.from({ length: turns }, (_, n) => `work ${n}`), timeoutMs: 150_000 })
  return { ...setting, run }
}

/** How often a request was not the one before it plus something at its end. */
function rolls({ server }: Pick<Setting, 'server'>): number {
  return server.agentRequests.filter((request, n) => {
    const before = server.agentRequests[n - 1]?.messages.map(({ json }) => json) ?? []
    return request.messages.slice(0, before.length).some(({ json }, at) => json !== before[at])
  }).length
}

test('refused_reasoning_is_left_out_from_then_on_and_the_user_is_told', async () => {
  // The user says that nothing is bound, and is wrong.
  const { server, run } = await session(COPILOT, {}, 15, 7, 'anthropic-messages', { binding: 'none' })
  const refused = server.requests.filter(({ verdict }) => verdict?.refusal !== undefined)
  expect(refused.length).toBeGreaterThan(0)
  for (const { n, body } of refused) {
    const next = server.requests[n + 1]!
    expect(next.verdict).toMatchObject({ refusal: undefined, mismatches: [] })
    const signatures = (request: any): string[] => request.messages.flatMap(({ content }: any) => (Array.isArray(content) ? content.flatMap((block: any) => block.signature ?? []) : []))
    expect(signatures(body).length).toBeGreaterThan(0)
    for (const later of server.requests.slice(n + 1)) for (const signature of signatures(body)) expect(signatures(later.body)).not.toContain(signature)
  }
  // Each sentence is told once.
  const told = run.stderr.match(/the provider refused the reasoning of \d+ steps/g) ?? []
  expect(told.length).toBeGreaterThan(0)
  expect(new Set(told).size).toBe(told.length)
})

test('tools_are_declared_from_the_first_request_where_later_ones_would_cost_reasoning', async () => {
  const { server } = await session(COPILOT, {}, 2, 2)
  for (const request of server.requests) expect(request.tools).toContain('activate')
  expect(lossOf(server.requests)).toEqual({ refused: 0, lost: 0, lostRunning: 0 })
})

test('old_account_loses_nothing', async () => {
  const found = await session(COPILOT, { account: 'old' }, 15, 7, 'anthropic-messages', { binding: 'keeps' })
  expect(rolls(found)).toBeGreaterThan(0)
  expect(lossOf(found.server.requests)).toEqual({ refused: 0, lost: 0, lostRunning: 0 })
})
