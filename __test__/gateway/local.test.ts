/** The tokens that a server with one slot has to process before its first new one, over 60 calls, plain and behind the gateway. */
import { afterEach, expect, test } from 'vitest'
import { cleanUp } from '../../rig/cleanup.ts'
import { commonPrefix } from '../../rig/meter.ts'
import { startModelServer } from '../../rig/model-server.ts'
import { gatewayTo } from './support.ts'
import { talk } from './wire-agents.ts'

afterEach(cleanUp)

/** Tokens, at four characters each. */
interface Work {
  /** Those behind the first one that differs from the request before: a model that can go back to it. */
  rewinding: number
  /** All of a request in which anything has changed: a model that can't. */
  starting: number
  longest: number
  /** The time for those of `rewinding`, in that of a token with nothing before it: a small model, and one of seven billion parameters. */
  small: number
  large: number
}

/**
 * By what share of its time at the start a token takes longer for each token before it: measured with Qwen2.5-Coder-0.5B on two cores
 * (165 tokens a second at the start, 61 behind 9,000), and by the arithmetic of Qwen2.5-Coder-7B (28 layers of 3,584:
 * 4 * 28 * 3,584 operations for each token before it, 2 * 7.6e9 for the weights).
 */
const SLOWER = { small: 0.19e-3, large: 0.026e-3 }

/** The time for the tokens from one place to another. */
function time(from: number, to: number, slower: number): number {
  return to - from + (slower * (to ** 2 - from ** 2)) / 2
}

/** Holds a conversation with a model whose name says nothing. */
async function work(prompts: number, calls: number, holdout: number): Promise<Work> {
  const server = await startModelServer(() => 'ok')
  const { gateway } = await gatewayTo(server.url, { open: { store: { kind: 'memory' } }, holdout })
  await talk(gateway, { wire: 'openai-chat' }, { prompts, calls, more: { model: 'my-model' } })
  const found: Work = { rewinding: 0, starting: 0, longest: 0, small: 0, large: 0 }
  let before = ''
  for (const { prompt } of server.requests) {
    const now = prompt.trimEnd()
    const common = commonPrefix(before, now)
    found.rewinding += (now.length - common) / 4
    found.starting += (common < before.length ? now.length : now.length - common) / 4
    found.small += time(common / 4, now.length / 4, SLOWER.small)
    found.large += time(common / 4, now.length / 4, SLOWER.large)
    found.longest = Math.max(found.longest, now.length / 4)
    before = now
  }
  return found
}

test.each([
  [2, 30],
  [6, 10],
  [12, 5],
  [60, 1],
])('%i prompts with %i calls each', async (prompts, calls) => {
  const [plain, own] = [await work(prompts, calls, 1), await work(prompts, calls, 0)]
  const share = (name: keyof Work): number => own[name] / plain[name]
  process.stderr.write(
    `${prompts} prompts of ${calls} calls: ${share('rewinding').toFixed(2)} of the plain tokens, ${share('starting').toFixed(2)} where the model can't go back; ${share('small').toFixed(2)} and ${share('large').toFixed(2)} of the time; the longest prompt ${share('longest').toFixed(2)} of ${Math.round(plain.longest)}\n`,
  )
  expect(share('longest')).toBeLessThan(0.9)
  expect(share('small')).toBeLessThan(0.85)
  expect(share('large')).toBeLessThan(0.95)
  // The part behind a roll is processed again: docs/local.md says so.
  expect(share('rewinding')).toBeLessThan(1.5)
  expect(share('starting')).toBeLessThan(1.6)
})
