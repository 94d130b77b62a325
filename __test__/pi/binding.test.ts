/** The real Pi with us, on a provider that binds its reasoning: nothing is refused, and a running turn loses nothing. */
import { appendFileSync } from 'node:fs'
import { afterEach, describe, expect, test } from 'vitest'
import type { Settings } from '../../extensions/settings.ts'
import { rebuild } from '../../lib/inspect/request.ts'
import { findPi } from '../../pi-runtime/index.mjs'
import { SOON } from '../../rig/extension.ts'
import { fateOf } from '../../rig/fate.ts'
import type { Fate } from '../../rig/fate.ts'
import { cleanUp, runPrint } from '../../rig/pi.ts'
import type { PrintResult } from '../../rig/pi.ts'
import { calls } from '../../rig/reply.ts'
import type { Api, ModelRequest } from '../../rig/exchange.ts'
import { lossOf } from '../../rig/strict.ts'
import { stepsOf } from '../../rig/strict-prefix.ts'
import type { StrictOptions } from '../../rig/strict.ts'
import { lines, put, setUp } from './support.ts'
import type { Setting } from './support.ts'
import { rewritten } from '../../rig/checks.ts'

afterEach(cleanUp)

/** Those of the figures in docs/reasoning.md, or enough for a roll. */
const TURNS = process.env['CONTEXT_FIGURES'] === undefined ? 12 : 24

/** A model as Pi's catalogue has it, with the name that the table of docs/reasoning.md gives it. */
interface PiModel {
  id: string
  api: Api
  compat?: Record<string, boolean>
  env?: Record<string, string>
}

/** Opus 5.5 at Anthropic: Pi asks for drops, and may add tools in mid-conversation. */
const DIRECT: PiModel = {
  id: 'claude-opus-5-5',
  api: 'anthropic-messages',
  compat: { supportsMidConvoEffort: true, supportsMidConvoSystemMessages: true, supportsMidConvoToolChanges: true },
}
/** The same model at GitHub Copilot: Pi does not ask. */
const COPILOT: PiModel = { id: 'claude-opus-5.5', api: 'anthropic-messages', compat: { forceAdaptiveThinking: true } }
/** And at Bedrock, where only newer versions of Pi ask. */
const BEDROCK: PiModel = { id: 'us.anthropic.claude-opus-5-5', api: 'bedrock-converse-stream', env: { AWS_BEDROCK_FORCE_HTTP1: '1', AWS_REGION: 'us-east-1' } }
const SOL: PiModel = { id: 'gpt-6.2-sol', api: 'openai-responses' }

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

interface Session extends Setting, Fate {
  run: PrintResult
}

async function session(
  { api, env = {}, ...model }: PiModel,
  strict: StrictOptions,
  context: Partial<Settings> = {},
  [turns, count] = [TURNS, 6],
): Promise<Session> {
  const cost = { input: 4, output: 20, cacheRead: 0.2, cacheWrite: 5 }
  const setting = await setUp(worker(count), { api, env, model: { ...model, reasoning: true, cost }, context: { ...SOON, ...context }, strict })
  for (let n = 0; n < 8; n += 1) put(setting.home, `f${n}.txt`, lines(`f${n}`, 60))
  const prompts = Array.from({ length: turns }, (_, n) => `work ${n}`)
  const run = await runPrint({ ...setting.load, args: ['--model', `rig/${model.id}`, '--thinking', 'high'], prompts, timeoutMs: 170_000 })
  setting.server.check()
  const fate = fateOf(setting.server.agentRequests, (text) => text.startsWith('work '))
  const file = process.env['CONTEXT_FIGURES']
  if (file !== undefined)
    appendFileSync(file, `${JSON.stringify({ host: `Pi ${findPi().version}`, model: model.id, api, context, ...fate, rolls: rolls(setting) })}\n`)
  return { ...setting, ...fate, run }
}

/** Number of requests that are not the previous one with an addition at its end. */
function rolls({ server }: Pick<Setting, 'server'>): number {
  return rewritten(server.agentRequests).length
}

/** `inspect --call` shows the reasoning that was sent with a call, and counts what was lost. Refused calls don't count there. */
async function inspectsAlike({ server, run }: Session, numbers: readonly number[]): Promise<void> {
  const answered = server.agentRequests.filter(({ verdict }) => verdict?.refusal === undefined)
  for (const n of numbers) {
    const { request } = await rebuild(run.sessionFile!, n)
    const sent = stepsOf(answered[n]!).filter((step) => 'thought' in step).length
    const { shown, left, leftTokens } = request!.reasoning
    expect(shown).toBe(sent)
    // One for each answer before the call.
    expect(shown + left).toBe(n)
    expect(leftTokens > 0).toBe(left > 0)
  }
}

describe.each<[string, PiModel, StrictOptions, Partial<Settings>]>([
  ['that drops, as Pi asks it to', DIRECT, {}, {}],
  ['that refuses', COPILOT, {}, {}],
  ["that drops, in OpenAI's format", SOL, {}, {}],
  ['that is Bedrock', BEDROCK, {}, {}],
  ['with an old account', COPILOT, { account: 'old' }, { binding: 'keeps' }],
])('a provider %s', (_, model, strict, context) => {
  test('nothing_is_refused_and_running_turns_lose_nothing', async () => {
    const found = await session(model, strict, context)
    expect(found).toMatchObject({ refused: 0, lostRunning: 0, run: { exitCode: 0, stderr: '' } })
    expect(rolls(found)).toBeGreaterThan(0)
    await inspectsAlike(found, [0, 60, found.server.agentRequests.length - 1])
    if (strict.account === 'old') expect(lossOf(found.server.requests)).toEqual({ refused: 0, lost: 0, lostRunning: 0 })
  })
})

test.each<[string, PiModel]>([
  ['Anthropic', COPILOT],
  ['Bedrock', BEDROCK],
])('%s: refused_reasoning_is_left_out_from_then_on_and_the_user_is_told', async (_, model) => {
  // The user says that nothing is bound, and is wrong.
  const found = await session(model, {}, { binding: 'none' })
  const { server, run } = found
  // On Bedrock, only newer versions of Pi ask for drops.
  const asked = server.requests.some(({ verdict }) => verdict?.outcome === 'drops')
  const refused = server.requests.filter(({ verdict }) => verdict?.refusal !== undefined)
  expect(refused).toHaveLength(asked ? 0 : 1)
  if (asked) return
  const [first] = refused as [ModelRequest]
  const signatures = (request: ModelRequest): string[] => stepsOf(request).flatMap((step) => ('thought' in step ? [step.signature] : []))
  expect(signatures(first).length).toBeGreaterThan(0)
  const [next, ...later] = server.requests.slice(first.n + 1) as [ModelRequest, ...ModelRequest[]]
  expect(next.verdict).toMatchObject({ refusal: undefined, mismatches: [] })
  for (const request of [next, ...later]) for (const signature of signatures(first)) expect(signatures(request)).not.toContain(signature)
  expect(run.stderr.match(/the provider refused the reasoning of \d+ steps/g)).toHaveLength(1)
  await inspectsAlike(found, [server.agentRequests.length - 2])
})

test.each<[string, PiModel]>([
  ['Anthropic, asked', DIRECT],
  ['OpenAI', SOL],
])('%s: reasoning_of_running_turns_is_lost_if_it_is_told_nothing', async (_, model) => {
  const { refused, lostRunning } = await session(model, {}, { binding: 'none' })
  expect(refused).toBe(0)
  expect(lostRunning).toBeGreaterThan(0)
})

test('tools_are_declared_from_the_first_request_where_later_ones_would_cost_reasoning', async () => {
  const { server, lostRunning, lostLater } = await session(COPILOT, {}, {}, [2, 2])
  for (const request of server.requests) expect(request.tools).toContain('activate')
  expect({ lostRunning, lostLater }).toEqual({ lostRunning: 0, lostLater: 0 })
})

test('tools_that_come_late_cost_no_reasoning_where_the_provider_takes_additions', async () => {
  const { server, lostRunning } = await session(DIRECT, {}, { thinking: 'keep' })
  const requests = server.agentRequests
  const first = requests.findIndex(({ tools }) => tools.includes('activate'))
  expect(first).toBeGreaterThan(0)
  expect(lostRunning).toBe(0)
  // A changed set of tools would invalidate all reasoning. Here only that behind the roll goes, with which they came.
  const { body, messages, verdict } = requests[first]!
  const before = requests[first - 1]!.messages
  const cut = messages.findIndex(({ json }, index) => json !== before[index]?.json)
  const head = body.system === undefined ? 0 : 1
  for (const { path } of verdict!.mismatches) expect(Number(path.split('.')[1]) + head).toBeGreaterThan(cut)
  // They stay where they came, also when text leaves: at the head they would change what everything after them is bound to.
  for (const { body: later } of requests.slice(first)) expect(JSON.stringify(later).split('"tool_addition"')).toHaveLength(6)
  // And those that came since then lose nothing at all until the next roll.
  expect(requests[first + 1]!.verdict!.mismatches.map(({ signature }) => signature)).toEqual(verdict!.mismatches.map(({ signature }) => signature))
})
