/** A host's pass that fails never sends more: what was last sent goes out, with the new messages, and one warning says so. */
import { afterEach, expect, test } from 'vitest'
import { HostContext } from '../../lib/hosts/context.ts'
import { folder, FILESYSTEM } from '../core/setup.ts'
import { cleanUp, onCleanUp } from '../../rig/cleanup.ts'
import { SOON } from '../../rig/extension.ts'
import { startModelServer } from '../../rig/model-server.ts'
import { shapes, written } from './conversation.ts'
import type { Step } from './conversation.ts'
import { drivers } from './drivers.ts'
import { obedient, output } from './script.ts'
import { MODEL } from './processes.ts'

afterEach(cleanUp)

/** A round of a conversation: a prompt, a call with its result, an answer. */
const round = (n: number): [prompt: Step, call: Step, answer: Step] => [
  { user: `prompt ${n}` },
  { calls: [{ id: `c${n}`, name: 'bash', args: { n }, output: `output ${n} `.repeat(500) }] },
  { text: `answer ${n}`, calls: [] },
]

test.each(shapes)('%s', async (shape) => {
  const messagesOf = (step: Step): object[] => written[shape](step, now)
  let now = 1_000
  const warnings: string[] = []
  const options = {
    sessionId: 's',
    cwd: folder(),
    store: { kind: 'memory' as const },
    model: MODEL,
    stay: SOON,
    now: () => now,
    onWarning: (one: string) => warnings.push(one),
  }
  const context = new HostContext(options, shape)
  onCleanUp(() => context.close())
  const messages: object[] = []
  for (let n = 0; n < 30; n += 1) {
    messages.push(...round(n).flatMap(messagesOf))
    now += 1_000
    await context.transform(messages, true)
  }
  now += 3_600_000
  messages.push(...messagesOf({ user: 'after an hour' }))
  const sent = await context.transform(messages, true)
  expect(JSON.stringify(sent).length).toBeLessThan(JSON.stringify(messages).length / 2)
  const manager = (await context.manager())!
  manager.advance = () => Promise.reject(Object.assign(new Error('the store is away'), { code: 'STORE_UNAVAILABLE' }))
  const news = round(30).slice(1).flatMap(messagesOf)
  messages.push(...news)
  const fallback = [...sent, ...news]
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
