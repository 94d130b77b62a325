/** A host may cut a text within a surrogate pair, and the store has no form of the half: it is the same text anyway. */
import { afterEach, expect, test } from 'vitest'
import { wellFormed } from '../lib/core/index.ts'
import { recallTexts } from '../lib/projection/index.ts'
import { cleanUp } from '../rig/cleanup.ts'
import { shapes, written } from './hosts/conversation.ts'
import type { Step } from './hosts/conversation.ts'
import { MODEL, Processes } from './hosts/processes.ts'

afterEach(cleanUp)

const HIGH = '\ud83d'
const LOW = '\ude00'

const cyclic: { self?: unknown; text: string } = { text: `a${HIGH}` }
cyclic.self = cyclic
const bytes = new Uint8Array([97])

test.each<[string, unknown, unknown]>([
  ['a pair stays', `a${HIGH}${LOW}`, `a${HIGH}${LOW}`],
  ['a first half', `a${HIGH}`, 'a\ufffd'],
  ['a second half', `${LOW}a`, '\ufffda'],
  ['halves in the wrong order', `${LOW}${HIGH}`, '\ufffd\ufffd'],
  ['a name of a field', { [`__proto__${HIGH}`]: [1, `b${LOW}`] }, { ['__proto__\ufffd']: [1, 'b\ufffd'] }],
  ['an own field named __proto__', JSON.parse(`{"__proto__":"\\ud83d"}`), JSON.parse('{"__proto__":"\ufffd"}')],
  ['bytes', bytes, bytes],
])('%s', (_, value, wanted) => {
  const given = structuredClone(value)
  expect(wellFormed(value)).toEqual(wanted)
  expect(value, 'the host keeps its own').toEqual(given)
})

test('a value without halves is itself, and one that contains itself ends', () => {
  const value = { list: [{ text: `${HIGH}${LOW}` }], bytes }
  expect(wellFormed(value)).toBe(value)
  expect(wellFormed(cyclic).text).toBe('a\ufffd')
})

test.each(shapes.filter((shape) => shape !== 'gemini'))(
  'texts, arguments and outputs with halves collapse and come back, also in later processes: %s',
  async (shape) => {
    let rolls = 0
    const host = new Processes(shape, { stay: { weight: 0.3 }, model: { ...MODEL, contextWindow: 60_000 }, onRoll: () => (rolls += 1) })
    const steps: Step[] = [{ user: `begin ${LOW}` }]
    let before: string[] = []
    for (let n = 0; n < 16; n += 1) {
      host.now += 1_000
      if (n % 4 === 3) {
        // Behind a pause the cache is dead, so that everything old leaves.
        host.now += 3_600_000
        steps.push({ text: `answer ${HIGH} ${'word '.repeat(300)}`, calls: [] }, { user: `prompt ${n} ${HIGH} ${'word '.repeat(500)}` })
        await host.restart()
      }
      steps.push({
        calls: [
          {
            id: `c${n}`,
            name: 'bash',
            args: { command: `run ${n} ${HIGH} ${'x'.repeat(300)}` },
            output: `output ${n} ${HIGH} ${'a line of text '.repeat(150)}${HIGH}${LOW}${HIGH}`,
          },
        ],
      })
      const messages = steps.flatMap((step) => written[shape](step, 1))
      const given = JSON.stringify(messages)
      const [had, sent] = [rolls, await host.transform(messages)]
      expect(JSON.stringify(messages)).toBe(given)
      if (rolls === had) expect(sent.slice(0, before.length)).toEqual(before)
      before = sent
    }
    const { manager } = await host.running()
    expect(await manager.query({ type: 'toolcall' })).toHaveLength(16)
    const ids = new Set([...before.join('').matchAll(/(?:\[collapsed #|(?<![\w])id=)([0-9a-f]{8,})/g)].map((found) => found[1]!))
    expect(ids.size).toBeGreaterThan(3)
    const all = new Set(
      steps.flatMap((step) => ('user' in step ? [step.user] : [step.text, ...step.calls.map(({ output }) => output)])).map((text) => wellFormed(text)),
    )
    for (const id of ids) expect(all, id).toContain((await recallTexts(manager, { id }))[0])
  },
)
