/** A host's pass that fails never sends more: what was last sent goes out, with the new messages, and one warning says so. */
import { afterEach, expect, test } from 'vitest'
import { HostContext } from '../../lib/hosts/context.ts'
import type { ShapeName } from '../../lib/harness.ts'
import { folder, FILESYSTEM } from '../core/setup.ts'
import { cleanUp, onCleanUp } from '../rig/cleanup.ts'
import { SOON } from '../rig/extension.ts'
import { startModelServer } from '../rig/model-server.ts'
import { drivers } from './drivers.ts'
import { obedient, output } from './script.ts'

afterEach(cleanUp)

const MODEL = { name: 'm', contextWindow: 200_000, input: 3, cacheRead: 0.3, cacheWrite: 3.75 }
const text = (n: number): string => `output ${n} `.repeat(500)

/** A round of a conversation: a prompt, a call, its result, an answer. */
const ROUNDS: Record<'pi' | 'anthropic' | 'openai-chat', (n: number) => object[]> = {
  pi: (n) => [
    { role: 'user', content: `prompt ${n}` },
    { role: 'assistant', content: [{ type: 'toolCall', id: `c${n}`, name: 'bash', arguments: { n } }] },
    { role: 'toolResult', toolCallId: `c${n}`, toolName: 'bash', content: [{ type: 'text', text: text(n) }], isError: false },
    { role: 'assistant', content: [{ type: 'text', text: `answer ${n}` }] },
  ],
  anthropic: (n) => [
    { role: 'user', content: `prompt ${n}` },
    { role: 'assistant', content: [{ type: 'tool_use', id: `c${n}`, name: 'bash', input: { n } }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: `c${n}`, content: text(n) }] },
    { role: 'assistant', content: [{ type: 'text', text: `answer ${n}` }] },
  ],
  'openai-chat': (n) => [
    { role: 'user', content: `prompt ${n}` },
    { role: 'assistant', content: null, tool_calls: [{ id: `c${n}`, type: 'function', function: { name: 'bash', arguments: JSON.stringify({ n }) } }] },
    { role: 'tool', tool_call_id: `c${n}`, content: text(n) },
    { role: 'assistant', content: `answer ${n}` },
  ],
}

test.each(Object.keys(ROUNDS) as (keyof typeof ROUNDS)[])('%s', async (shape) => {
  let now = 1_000
  const warnings: string[] = []
  const options = { sessionId: 's', cwd: folder(), store: { kind: 'memory' as const }, model: MODEL, stay: SOON, now: () => now, onWarning: (one: string) => warnings.push(one) }
  const context = new HostContext(options, shape as ShapeName)
  onCleanUp(() => context.close())
  const messages: object[] = []
  for (let n = 0; n < 30; n += 1) {
    messages.push(...ROUNDS[shape](n))
    now += 1_000
    await context.transform(messages, true)
  }
  now += 3_600_000
  messages.push({ role: 'user', content: 'after an hour' })
  const sent = await context.transform(messages, true)
  expect(JSON.stringify(sent).length).toBeLessThan(JSON.stringify(messages).length / 2)
  const manager = (await context.manager())!
  manager.advance = () => Promise.reject(Object.assign(new Error('the store is away'), { code: 'STORE_UNAVAILABLE' }))
  messages.push(...ROUNDS[shape](30).slice(1))
  const fallback = [...sent, ...messages.slice(-3)]
  expect(await context.transform(messages, true)).toEqual(fallback)
  expect(await context.transform(messages, true)).toEqual(fallback)
  expect(warnings).toEqual([expect.stringMatching(/^pi-context-manager: the messages go out as they were last sent.*the store is away/)])
})

test.each(Object.keys(drivers))('%s, with its real package', async (name) => {
  const server = await startModelServer(obedient)
  const warnings: string[] = []
  let rolls = 0
  const context = {
    ...{ sessionId: 's', cwd: folder(), store: { kind: 'memory' as const }, filesystemId: FILESYSTEM, watch: false, model: MODEL },
    ...{ stay: { ...SOON, weight: 0.3 }, onWarning: (one: string) => void warnings.push(one), onRoll: () => void (rolls += 1) },
  }
  const driver = await drivers[name]!({ url: server.baseUrl('openai-completions'), context, show: output })
  onCleanUp(() => driver.context?.close())
  for (let n = 0; n < 14; n += 1) await driver.prompt(`show n${n} m${n}`)
  expect(rolls).toBeGreaterThan(0)
  const manager = (await driver.context!.manager())!
  manager.advance = () => Promise.reject(Object.assign(new Error('the store is away'), { code: 'STORE_UNAVAILABLE' }))
  const before = server.requests.length
  await driver.prompt('show x y')
  server.check()
  const sent = server.requests.slice(before - 1)
  expect(sent.length).toBe(4)
  for (const [at, request] of sent.slice(1).entries()) {
    const last = sent[at]!.messages.map(({ json }) => json)
    expect(request.messages.slice(0, last.length).map(({ json }) => json)).toEqual(last)
  }
  expect(warnings).toEqual([expect.stringContaining('the messages go out as they were last sent')])
})
