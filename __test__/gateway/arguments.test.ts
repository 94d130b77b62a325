/** Arguments that a form hides come back with their output, whichever conversation has sent that form. */
import { afterEach, expect, test } from 'vitest'
import type { Gateway } from '../../lib/gateway/gateway.ts'
import { hiddenArguments } from '../../lib/gateway/hidden.ts'
import { shapeOf } from '../../lib/gateway/shape.ts'
import type { ObjectDocument } from '../../lib/index.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import type { ModelServer } from '../../rig/model-server.ts'
import { AnthropicLoop, ask, gatewayTo, JSON_TYPE, lasting, long, looping } from './support.ts'

afterEach(cleanUp)

/** All texts of an answer of our tool. */
async function recalled(gateway: Gateway, id: string): Promise<string[]> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'activate', arguments: { id }, _meta: {} } })
  const { text } = await ask(gateway.mcpUrl, { headers: { authorization: `Bearer ${gateway.secret}`, ...JSON_TYPE }, body })
  return (JSON.parse(text) as { result: { content: { text: string }[] } }).result.content.map((one) => one.text)
}

const written = (n: number): string => long(`content ${n}`, 40)

/** A conversation with long arguments; the old ones have collapsed. */
async function collapsed(place = lasting()): Promise<{ server: ModelServer; gateway: Gateway; loop: AnthropicLoop; place: ReturnType<typeof lasting> }> {
  const { server, gateway, loop } = await looping(place)
  for (let n = 0; n < 24; n += 1) {
    if (n % 5 === 0) await loop.prompt(`prompt ${n}`)
    await loop.call('Write', { file_path: `/nowhere/${n}.txt`, content: written(n) }, `wrote ${n}\n${long(`n${n}`, 60)}`)
  }
  return { server, gateway, loop, place }
}

/** Each ID and marker of the last request brings back all of its call. */
async function check(server: ModelServer, gateway: Gateway): Promise<void> {
  const raw = server.requests.at(-1)!.raw.toString()
  const markers = [...raw.matchAll(/\[collapsed #([0-9a-f]+)/g)].map((found) => found[1]!)
  expect(markers.length).toBeGreaterThan(0)
  const ids = new Set([...markers, ...[...raw.matchAll(/\bid=([0-9a-f]{8,})\b/g)].map((found) => found[1]!)])
  for (const id of ids) {
    const all = await recalled(gateway, id)
    const n = Number(/^wrote (\d+)\n/m.exec(all[0]!)?.[1])
    expect(all[0]).toBe(`wrote ${n}\n${long(`n${n}`, 60)}`)
    if (raw.includes(JSON.stringify(written(n)))) continue
    expect(JSON.parse(all[1]!.replace('arguments of the call: ', ''))).toMatchObject({ content: written(n) })
  }
}

const args = { file_path: '/a', content: 'long' }
const called = (input: object, id = 'c'): object => ({ role: 'assistant', content: [{ type: 'tool_use', id, name: 'Write', input }] })

test.each([
  ['shown whole', [called(args)], undefined],
  ['shown whole beside a collapsed one', [called({ ...args, content: '[collapsed #c: 4 chars]' }), called(args)], undefined],
  ['collapsed', [called({ ...args, content: '[collapsed #c: 4 chars]' })], args],
  ['those of another call', [called(args, 'd')], args],
  ['gone with their call', [{ role: 'user', content: 'x' }], args],
])('arguments that are %s', (_, sent, wanted) => {
  const document = { 'xt/id': 'toolcall:c', type: 'toolcall', args } as unknown as ObjectDocument
  expect(hiddenArguments(document, sent, shapeOf('messages'))).toEqual(wanted)
  expect(hiddenArguments({ ...document, type: 'file' } as ObjectDocument, sent, shapeOf('messages'))).toBeUndefined()
})

test('in the conversation itself', async () => {
  const { server, gateway } = await collapsed()
  await check(server, gateway)
})

test.each([true, false])('going back more than half of it, or in a fork of its first messages; a new gateway: %s', async (isRestarted) => {
  const { server, gateway, loop, place } = await collapsed()
  let now = gateway
  if (isRestarted) {
    await gateway.close()
    // This one would roll later by itself: what goes out collapsed is in the form of the other one.
    now = (await gatewayTo(server.url, { ...place, open: { store: place.store } })).gateway
  }
  for (const share of [0.7, 0.45]) {
    const at = loop.messages.findIndex(({ role, content }, n) => n > loop.messages.length * share && role === 'user' && content[0].type === 'text')
    const fork = Object.assign(new AnthropicLoop(now), { messages: loop.messages.slice(0, at), calls: 100 + Math.round(share * 100) })
    for (const name of ['one', 'two']) {
      await fork.prompt(`${name} ${share}`)
      await check(server, now)
    }
  }
})

test.each([true, false])(
  'the output of a call is changed whose arguments had collapsed: its mark brings back the call as it is now; a new gateway: %s',
  async (isRestarted) => {
    const { server, gateway, loop, place } = await collapsed()
    if (isRestarted) await gateway.close()
    const now = isRestarted ? (await gatewayTo(server.url, place)).gateway : gateway
    const next = Object.assign(new AnthropicLoop(now), { messages: loop.messages, calls: loop.calls })
    await next.prompt('before')
    const marked = (n: number): string | undefined => {
      const path = new RegExp(`/nowhere/${n}\\.txt[^}]*?\\[collapsed #([0-9a-f]+)`)
      return path.exec(server.requests.at(-1)!.raw.toString())?.[1]
    }
    const changed = (n: number): string => `wrote ${n}\n***`
    const all = Array.from({ length: 24 }, (_, n) => n).filter((n) => marked(n) !== undefined)
    let found = 0
    for (const n of [all.at(-1), all[0]].map(Number)) {
      for (const { content } of loop.messages) {
        if (Array.isArray(content) && content[0].content === `wrote ${n}\n${long(`n${n}`, 60)}`) content[0].content = changed(n)
      }
      await next.prompt(`after ${n}`)
      const name = marked(n)
      if (name === undefined) continue
      found += 1
      const [output, args] = await recalled(now, name)
      expect(output).toBe(changed(n))
      expect(JSON.parse(args!.replace('arguments of the call: ', ''))).toMatchObject({ content: written(n) })
    }
    expect(found).toBeGreaterThan(0)
  },
)
