/**
 * The same long script for each real agent, plain and behind the gateway: the bytes that its provider gets. With
 * CONTEXT_PROGRAMS=long, or the names of some.
 */
import { afterEach, describe, expect, test } from 'vitest'
import { cleanUp } from '../../rig/cleanup.ts'
import { agentNamed } from './agents.ts'
import type { Agent } from './agents.ts'
import { mains, Talk } from './talk.ts'

afterEach(cleanUp)

/** The largest shares of the plain bytes. A model that binds its reasoning rolls late. */
const MOST = {
  claude: 0.66,
  codex: 0.6,
  opencode: 0.6,
  // Single outputs of its shell are empty, by chance, and the price of a roll depends on them.
  qwen: 0.7,
  continue: 0.4,
  kilo: 0.62,
  copilot: 0.4,
  cline: 0.9,
  kimi: 0.6,
  gemini: 0.6,
} as const

const TURNS = 10
const CALLS = 8

/** Holds the conversation. Returns the bytes of its requests, and their number. */
async function sent(agent: Agent, options: readonly string[]): Promise<{ bytes: number; calls: number; rolls: number }> {
  const talk = await Talk.start(agent, options)
  // A new process has another conversation where the agent does not send its history again.
  const turns = agent.repeats || agent.rewrites === true ? TURNS : 1
  for (let n = 0; n < turns; n += 1) {
    talk.reads((TURNS * CALLS) / turns)
    await talk.turn(`prompt ${n}`)
  }
  await talk.end()
  talk.check()
  const requests = mains(talk.server, agent)
  return { bytes: requests.reduce((sum, { raw }) => sum + raw.length, 0), calls: requests.length, rolls: talk.rolls }
}

describe.each(Object.keys(MOST) as (keyof typeof MOST)[])('%s', { timeout: 1_800_000 }, (name) => {
  const agent = agentNamed(name)

  test.skipIf(agent === undefined)('gets no more of the plain bytes than docs/gateway.md says', async () => {
    const real = agent as Agent
    const plain = await sent(real, ['--holdout', '100%'])
    const own = await sent(real, [])
    process.stderr.write(
      `${name} ${real.program.version}: ${own.calls} calls, ${own.rolls} rolls, ${own.bytes} of ${plain.bytes} bytes: ${(own.bytes / plain.bytes).toFixed(3)}\n`,
    )
    expect(plain.rolls).toBe(0)
    expect(own.calls).toBeGreaterThanOrEqual(TURNS * CALLS)
    expect(own.bytes / plain.bytes).toBeLessThan(MOST[name])
  })
})
