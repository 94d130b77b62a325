/** Each host with its real package, on a provider that binds its reasoning: nothing is refused, and a running turn loses nothing. */
import { afterEach, describe, expect, test } from 'vitest'
import { cleanUp } from '../../rig/cleanup.ts'
import type { SignedFormat } from './models.ts'
import { strictSession } from './strict.ts'
import { some } from '../rows.ts'

afterEach(cleanUp)

/** Long enough for a roll at today's prices. */
const LONG = { turns: 24, calls: 4 }

const ANTHROPIC = ['ai-sdk', 'pi-agent-core', 'langchain', 'loop']
const OPENAI = ['ai-sdk', 'pi-agent-core', 'openai-agents', 'langchain', 'loop']

/** A turn so long that changes don't wait for its end where the provider drops, if a missed use weighs little. */
const ONE_TURN = { turns: 1, calls: 110, weight: 0.1 }

/** Each host in the formats that it speaks. Only Anthropic's has a request that asks for drops; OpenAI always drops. */
const SESSIONS: [host: string, mode: string, format: SignedFormat, asks: boolean][] = [
  ...ANTHROPIC.map((host): [string, string, SignedFormat, boolean] => [host, 'refuses', 'anthropic-messages', false]),
  ...ANTHROPIC.map((host): [string, string, SignedFormat, boolean] => [host, 'drops', 'anthropic-messages', true]),
  ...OPENAI.map((host): [string, string, SignedFormat, boolean] => [host, 'drops', 'openai-responses', false]),
]

describe.each(some(SESSIONS, 3))('%s on a provider that %s (%s)', (host, _, format, asks) => {
  test('nothing_is_refused_and_running_turns_lose_nothing', async () => {
    const { refused, lostRunning, rolls, failed, warnings } = await strictSession({ host, format, asks, ...LONG })
    expect({ refused, lostRunning, failed, warnings }).toEqual({ refused: 0, lostRunning: 0, failed: 0, warnings: [] })
    expect(rolls).toBeGreaterThan(0)
  })

  const refuses = format === 'anthropic-messages' && !asks
  test(refuses ? 'one_refusal_at_most_if_it_is_told_nothing_and_one_sentence' : 'reasoning_of_running_turns_is_lost_if_it_is_told_nothing', async () => {
    // The host says that nothing is bound, and is wrong.
    const { refused, lostRunning, warnings } = await strictSession({ host, format, asks, binding: 'none', ...LONG })
    expect(refused).toBe(refuses ? 1 : 0)
    expect(warnings.filter((text) => text.includes('refused the reasoning of'))).toHaveLength(host === 'loop' ? 0 : refused)
    if (!refuses) expect(lostRunning).toBeGreaterThan(0)
  })
})

test.each(['ai-sdk', 'langchain', 'loop'])('%s: a_host_whose_requests_ask_for_drops_need_not_say_so', async (host) => {
  const [asking, silent] = [true, false].map((asks) => strictSession({ host, format: 'anthropic-messages', asks, ...ONE_TURN }))
  expect(await asking).toMatchObject({ refused: 0, failed: 0 })
  expect((await asking)!.rolls).toBeGreaterThan(0)
  expect(await silent).toMatchObject({ refused: 0, failed: 0, rolls: 0 })
})
