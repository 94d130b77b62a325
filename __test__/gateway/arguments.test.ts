/** Arguments that a form hides come back with their output, whichever conversation has sent that form. */
import { afterEach, expect, test } from 'vitest'
import type { Gateway } from '../../lib/gateway/gateway.ts'
import { hiddenArguments } from '../../lib/gateway/hidden.ts'
import { shapeOf } from '../../lib/gateway/shape.ts'
import type { ObjectDocument } from '../../lib/index.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import type { ModelServer } from '../../rig/model-server.ts'
import { AnthropicLoop, gatewayTo, lasting, long, looping, textsOfTool } from './support.ts'

afterEach(cleanUp)

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
      const [output, args] = await textsOfTool(now, 'activate', { id: name })
      expect(output).toBe(changed(n))
      expect(JSON.parse(args!.replace('arguments of the call: ', ''))).toMatchObject({ content: written(n) })
    }
    expect(found).toBeGreaterThan(0)
  },
)
