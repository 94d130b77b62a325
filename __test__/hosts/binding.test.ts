/** Each host with its real package, on a provider that binds its reasoning. */
import { afterEach, expect, test } from 'vitest'
import type { HostOptions } from '../../lib/hosts/context.ts'
import { folder, FILESYSTEM } from '../core/setup.ts'
import { cleanUp, onCleanUp } from '../rig/cleanup.ts'
import { startModelServer } from '../rig/model-server.ts'
import type { ModelRequest } from '../rig/request.ts'
import { lossOf } from '../rig/strict.ts'
import { drivers } from './drivers.ts'
import { obedient, output } from './script.ts'

afterEach(cleanUp)

/** The format that each host speaks, and its model's name. */
const HOSTS: Record<string, ['anthropic-messages' | 'openai-responses', string]> = {
  'ai-sdk': ['anthropic-messages', 'claude-opus-5-5'],
  'openai-agents': ['openai-responses', 'gpt-6.2-sol'],
  langchain: ['openai-responses', 'gpt-6.2-sol'],
}

/** Does what it is told, and thinks first. */
function thoughtful(request: ModelRequest) {
  const answer = obedient(request)
  const thinking = `thought ${request.n} ${'hm '.repeat(40)}`
  return typeof answer === 'string' ? { thinking, text: answer } : { thinking, ...answer }
}

async function started(name: string, more: { binding?: 'none' } = {}) {
  const [, model] = HOSTS[name]!
  const server = await startModelServer(thoughtful, {})
  const warnings: string[] = []
  let rolls = 0
  const context: HostOptions = {
    sessionId: 's',
    cwd: folder(),
    store: { kind: 'memory' },
    stay: { weight: 0.3 },
    filesystemId: FILESYSTEM,
    watch: false,
    model: { name: model, contextWindow: 200_000, input: 4, cacheRead: 0.2, cacheWrite: 5, ...more },
    onWarning: (text) => warnings.push(text),
    onRoll: () => (rolls += 1),
  }
  const driver = await drivers[name]!({ url: `${server.url}/v1`, context, show: output, signs: true })
  onCleanUp(() => driver.context?.close())
  return { server, driver, warnings, rolls: () => rolls }
}

const NAMES = Object.keys(HOSTS)

test('ai-sdk: refused_reasoning_stays_out_and_the_agent_goes_on', async () => {
  // The host says that nothing is bound, and is wrong.
  const { server, driver, warnings, rolls } = await started('ai-sdk', { binding: 'none' })
  let refused = 0
  for (let n = 0; n < 14; n += 1) {
    try {
      await driver.prompt(`show n${n} m${n} k${n}`)
    } catch (error) {
      refused += 1
      expect(await driver.context!.refused(error)).toBe(true)
    }
  }
  server.check()
  expect(rolls()).toBeGreaterThan(0)
  expect(refused).toBeGreaterThan(0)
  expect(lossOf(server.requests).refused).toBe(refused)
  // Each refusal is followed by a request that goes through.
  const isRefused = server.requests.map(({ verdict }) => verdict!.refusal !== undefined)
  expect(isRefused.filter((is, n) => is && isRefused[n + 1] === true)).toEqual([])
  expect(warnings.filter((text) => text.includes('refused the reasoning of'))).toHaveLength(1)
})

test.each(NAMES.filter((name) => HOSTS[name]![0] === 'openai-responses'))('%s: nothing_is_refused', async (name) => {
  const { server, driver, warnings, rolls } = await started(name)
  for (let n = 0; n < 14; n += 1) await driver.prompt(`show n${n} m${n} k${n}`)
  server.check()
  expect(rolls()).toBeGreaterThan(0)
  expect(lossOf(server.requests).refused).toBe(0)
  expect(warnings).toEqual([])
})
