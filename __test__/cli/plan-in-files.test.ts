/** Sessions that never went through the gateway: what their own files say of a plan at a flat rate. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { AGENTS } from '../gateway/wire-agents.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { cli, temporaryFolder, UNHURRIED } from '../replay/support.ts'

afterEach(cleanUp)

const LIMITS = { primary: { used_percent: 12, window_minutes: 300, resets_at: 1_790_000_000 }, secondary: null, credits: null, plan_type: 'plus' }
const NONE = { primary: null, secondary: null, credits: null, plan_type: null }

/** A home with one session of an agent, of two calls. Codex's has the limits that came with each answer. */
function homeWith(name: string, limits: unknown): { env: Record<string, string>; file: string } {
  const home = temporaryFolder()
  const agent = AGENTS[name]!
  const file = join(home, agent.path)
  mkdirSync(dirname(file), { recursive: true })
  const usage = { input: 1_000, cacheRead: 9_000, cacheWrite: 0, output: 100 }
  agent.write(file, [usage, usage], '2026-03-03T10:00:00.000Z')
  if (limits !== undefined) {
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
    const limited = lines.map((line) => {
      const { payload, ...rest } = JSON.parse(line) as { payload: { type?: string } }
      return JSON.stringify({ ...rest, payload: payload.type === 'token_count' ? { ...payload, rate_limits: limits } : payload })
    })
    writeFileSync(file, `${limited.join('\n')}\n`)
  }
  return {
    env: {
      HOME: home,
      XDG_DATA_HOME: '',
      CODEX_HOME: '',
      CLAUDE_CONFIG_DIR: '',
      PI_CODING_AGENT_DIR: join(home, 'pi'),
      CONTEXT_STORE_PATH: join(home, 'none.db'),
    },
    file,
  }
}

test.each([
  ['the limits of a ChatGPT plan', LIMITS, 2],
  ['only the name of a plan', { ...NONE, plan_type: 'pro' }, 2],
  ['limits that are empty', NONE, 0],
  ['no limits', null, 0],
])('Codex’s calls whose answers came with %s', async (_what, limits, onPlan) => {
  const { env, file } = homeWith('Codex', limits)
  const { stdout, stderr } = await cli(['usage', '--json'], env)
  const { total } = JSON.parse(stdout) as { total: { calls: number; cost: number; plan: object } }
  expect([total.calls, total.plan, total.cost > 0, stderr]).toEqual([2, { calls: onPlan, sent: onPlan * 10_000, without: onPlan * 10_000 }, onPlan === 0, ''])
  expect((await cli([], { ...UNHURRIED, ...env })).stdout).toMatch(onPlan === 0 ? /Codex .*\$0\.\d\d/ : /Codex .* plan /)
  const replayed = await cli(['replay', '--json', file], env)
  const { sessions } = JSON.parse(replayed.stdout) as { sessions: { plan?: { calls: number } }[] }
  expect(sessions[0]?.plan?.calls ?? 0).toBe(onPlan)
})

test.each([
  ['Claude Code', true],
  ['Gemini CLI', true],
  ['Codex', false],
])('a file of %s does not say it: %s, and one sentence tells that', async (name, isTold) => {
  const { env } = homeWith(name, name === 'Codex' ? null : undefined)
  const sentence = `2 calls of ${name} count at list prices: these files don't say whether a plan at a flat rate paid`
  expect((await cli(['usage'], env)).stderr.includes(sentence)).toBe(isTold)
  expect((await cli([], { ...UNHURRIED, ...env })).stdout.replaceAll('\n', ' ').includes(sentence)).toBe(isTold)
})
