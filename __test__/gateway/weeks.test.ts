/** A gateway that runs for weeks: what it keeps of conversations that are over. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, expect, test } from 'vitest'
import { cleanUp } from '../../rig/cleanup.ts'
import { AnthropicLoop, ask, gatewayTo, JSON_TYPE, lasting, long, upstream } from './support.ts'

afterEach(cleanUp)

setFlagsFromString('--expose_gc')
const collect = runInNewContext('gc') as () => void

/** Returns how many of some objects are still held. */
async function held(all: readonly WeakRef<object>[]): Promise<number> {
  for (let n = 0; n < 3; n += 1) {
    // Finished promises let go of what they held in a later turn of the event loop.
    await new Promise((resolve) => setImmediate(resolve))
    collect()
  }
  return all.filter((one) => one.deref() !== undefined).length
}

const TOOLS = [
  { type: 'function', function: { name: 'context_activate' } },
  { type: 'function', function: { name: 'bash' } },
]

/** Conversations that the gateway knows at a time. */
const KNOWN = 64

test.each([
  ['without IDs', undefined],
  ['with IDs', 'session'],
])('it lets go of the messages of conversations %s, of their questions on the side, and of the ones that they continue', async (_, named) => {
  const { url } = await upstream((__, response) => response.end('{}'))
  const { gateway } = await gatewayTo(url)
  const messages: WeakRef<object>[] = []
  const asides: WeakRef<object>[] = []
  const count = KNOWN + 40
  for (let n = 0; n < count; n += 1) {
    const own: object[] = [{ role: 'user', content: `conversation ${n}` }]
    const send = async (list: object[]): Promise<void> => {
      const headers = { ...JSON_TYPE, 'user-agent': 'some-editor/1', ...(named === undefined ? {} : { 'x-session-id': `${named}-${n}` }) }
      await ask(`${gateway.url}/v1/chat/completions`, { headers, body: JSON.stringify({ model: 'm', tools: TOOLS, messages: list }) })
    }
    for (let call = 0; call < 2; call += 1) {
      own.push(
        { role: 'assistant', content: null, tool_calls: [{ id: `c${call}`, type: 'function', function: { name: 'bash', arguments: '{"command":"x"}' } }] },
        { role: 'tool', tool_call_id: `c${call}`, content: long(`n${n}`, 20) },
      )
      await send(own)
    }
    const conversation = gateway.conversations.all.at(-1)!
    messages.push(new WeakRef(conversation.raw.at(-1)!))
    const noted = await asideOf(gateway, async () => send([...own.slice(0, 3), { role: 'user', content: `by the way ${n}?` }]))
    asides.push(...noted)
  }
  await Promise.all(gateway.conversations.all.map((one) => one.session()))
  expect(gateway.conversations.all.length).toBeLessThanOrEqual(KNOWN + 1)
  expect(await held(messages)).toBeLessThanOrEqual(KNOWN + 2)
  expect(await held(asides)).toBeLessThanOrEqual(KNOWN + 8)
})

/** The messages that a request on the side has brought, as the gateway has read them. */
async function asideOf(gateway: { conversations: { place: (...args: any[]) => Promise<unknown> } }, send: () => Promise<void>): Promise<WeakRef<object>[]> {
  const { conversations } = gateway
  const place = conversations.place.bind(conversations)
  const seen: WeakRef<object>[] = []
  conversations.place = (request: { messages: object[] }, ...rest: unknown[]) => {
    seen.push(new WeakRef(request.messages.at(-1)!))
    return place(request, ...rest)
  }
  try {
    await send()
  } finally {
    conversations.place = place
  }
  return seen
}

test('a conversation that was left continues with its form', async () => {
  const { url, seen } = await upstream((_, response) => response.end('{}'))
  const { gateway } = await gatewayTo(url, lasting())
  const loop = new AnthropicLoop(gateway, 'first')
  for (let n = 0; n < 20; n += 1) await loop.call('Bash', { command: `cat n${n}` }, long(`n${n}`))
  const plain = (body: Buffer): string[] =>
    (JSON.parse(body.toString()).messages as object[]).map((one) => JSON.stringify(one, (key, value: unknown) => (key === 'cache_control' ? undefined : value)))
  const before = plain(seen.at(-1)!.body)
  expect(before.join('')).toContain('toolcall_ref id=')
  for (let n = 0; n <= KNOWN; n += 1) await new AnthropicLoop(gateway, `other-${n}`).prompt('x')
  expect(gateway.conversations.all.some(({ id }) => id === 'claude-code:first')).toBe(false)
  const rolls = (): number => gateway.ledger.sessions.find(({ session }) => session === 'claude-code:first')!.rolls.length
  const rolled = rolls()
  await loop.call('Bash', { command: 'true' }, 'x')
  const now = plain(seen.at(-1)!.body)
  // Only a roll may change what was sent.
  if (rolls() === rolled) expect(now.slice(0, before.length)).toEqual(before)
  expect(now.join('').length).toBeLessThan(before.join('').length + 500)
  expect(gateway.conversations.all.at(-1)!.id).toBe('claude-code:first')
})
