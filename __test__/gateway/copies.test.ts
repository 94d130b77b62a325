/** A conversation that continues under the name of another session: a fork, a copy, or a subagent that begins with all of its parent's. */
import { afterEach, expect, test } from 'vitest'
import type { Gateway } from '../../lib/gateway/gateway.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { startModelServer } from '../../rig/model-server.ts'
import { AnthropicLoop, broughtBack, gatewayTo, lasting, long } from './support.ts'

afterEach(cleanUp)

test.each<[name: string, isNew: boolean, change: (loop: AnthropicLoop) => void]>([
  ['another session in the same gateway', false, () => {}],
  ['another session in a new gateway', true, () => {}],
  ['a subagent', false, (loop) => (loop.agent = 'agent-1')],
  ['another session that has changed its last prompt', false, (loop) => void loop.messages.splice(-2)],
])('%s: collapsed text stays so, and can be brought back', async (_, isNew, change) => {
  const server = await startModelServer(() => 'ok')
  const place = lasting()
  let gateway: Gateway = (await gatewayTo(server.url, place)).gateway
  const first = new AnthropicLoop(gateway)
  for (let n = 0; n < 40; n += 1) await first.call('Bash', { command: `cat n${n}` }, long(`n${n}`))
  expect(gateway.ledger.sessions[0]!.rolls.length).toBeGreaterThan(0)
  const before = server.requests.at(-1)!
  if (isNew) {
    await gateway.close()
    gateway = (await gatewayTo(server.url, place)).gateway
  }
  const other = new AnthropicLoop(gateway, 'session-2')
  Object.assign(other, { messages: structuredClone(first.messages), calls: 100 })
  change(other)
  await other.call('Bash', { command: 'echo' }, 'x')
  const now = server.requests.at(-1)!
  const same = before.messages.findIndex(({ json }, at) => now.messages[at]?.json !== json)
  expect(same === -1 || same >= before.messages.length - 2).toBe(true)
  const texts = await broughtBack(gateway, now)
  expect(texts.length).toBeGreaterThan(0)
  const wanted = new Set(Array.from({ length: 40 }, (_, n) => long(`n${n}`)))
  for (const text of texts) expect(wanted).toContain(text)
  // The first session continues as it was.
  Object.assign(first, { url: gateway.url })
  await first.call('Bash', { command: 'true' }, 'y')
  expect(server.requests.at(-1)!.raw.length).toBeLessThan(before.raw.length + 2_000)
  expect(server.problems).toEqual([])
})
