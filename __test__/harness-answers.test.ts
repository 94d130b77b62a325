/**
 * In OpenAI's Responses format an answer is a list of items, and nothing stands between it and the next one. An answer that was
 * handed over alone stays one answer: after a restart, in a fork, and where the host changes something else.
 */
import { afterEach, describe, expect, test } from 'vitest'
import { LastingHost, lengthOf } from './hosts/lasting.ts'
import { cleanUp } from '../rig/cleanup.ts'
import { some } from './rows.ts'

afterEach(cleanUp)

const ROUNDS = 8
/** Requests grow by less than this where all that has left stays out: the outputs of one round have ten times as much. */
const SMALL = 800

const said = (text: string): object => ({ type: 'message', role: 'assistant', content: [{ type: 'output_text', text, annotations: [] }] })
const thought = (text: string): object => ({ type: 'reasoning', id: `rs_${text}`, summary: [{ type: 'summary_text', text }], encrypted_content: 'c2ln' })
const called = (id: string, what = id): object[] => [
  { type: 'function_call', call_id: id, name: 'bash', arguments: JSON.stringify({ command: `run ${what}` }) },
  { type: 'function_call_output', call_id: id, output: `${what}\n${'a line of some output\n'.repeat(400)}` },
]

/** The messages that the host adds before each request of a round. */
const HOSTS: Record<string, (round: number) => object[][]> = {
  'a text, then a call': (n) => [[said(`text ${n}`)], called(`c${n}`)],
  'two texts, then a call': (n) => [[said(`one ${n}`)], [said(`two ${n}`)], called(`c${n}`)],
  'equal texts, then a call': (n) => [[said('yes')], [said('yes')], called(`c${n}`)],
  'a text, then a text with a call': (n) => [[said(`text ${n}`)], [said(`more ${n}`), ...called(`c${n}`)]],
  'reasoning each time': (n) => [
    [thought(`a${n}`), said(`text ${n}`)],
    [thought(`b${n}`), ...called(`c${n}`)],
  ],
  'a text in one field': (n) => [[{ role: 'assistant', content: `text ${n}` }], called(`c${n}`)],
  'the names of the Agents SDK': (n) => [
    [{ type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: `text ${n}` }] }],
    [
      { type: 'function_call', callId: `c${n}`, name: 'bash', arguments: '{}', status: 'completed' },
      {
        type: 'function_call_result',
        callId: `c${n}`,
        name: 'bash',
        status: 'completed',
        output: { type: 'text', text: `c${n}\n${'a line of some output\n'.repeat(400)}` },
      },
    ],
  ],
  'IDs that are used again': (n) => {
    const [first, second, other] = ['call_0', 'call_0', 'call_1'].map((id, place) => called(id, `${n}.${place}`)) as [object[], object[], object[]]
    return [first, [said(`text ${n}`)], [said(`more ${n}`), second[0], other[0], second[1], other[1]]] as object[][]
  },
  'one answer with a text and a call': (n) => [[said(`text ${n}`), ...called(`c${n}`)]],
  'first whole, later in parts': (n) => (n < 3 ? [[said(`text ${n}`), ...called(`c${n}`)]] : [[said(`text ${n}`)], called(`c${n}`)]),
}

const HAPPENINGS: Record<string, (host: LastingHost) => Promise<void>> = {
  'starts anew': (host) => host.restart(),
  forks: (host) => host.fork(),
  'changes the first prompt': async ({ messages }) => void (messages[0] = { role: 'user', content: 'begin, on another day' }),
  'starts anew and changes the first prompt': async (host) => {
    await host.restart()
    host.messages[0] = { role: 'user', content: 'begin, on another day' }
  },
  'changes a text that stands before a call': async ({ messages }) => {
    const at = messages.findIndex((one) => JSON.stringify(one).includes('"assistant"'))
    messages[at] = said('another text')
  },
  'starts anew after a change of a text before calls': async (host) => {
    const at = host.messages.findLastIndex(
      (one, place) => JSON.stringify(one).includes('"assistant"') && JSON.stringify(host.messages[place + 1]).includes('"function_call"'),
    )
    host.messages[at] = said('another text')
    await host.send()
    await host.restart()
  },
  'goes back by one call': async ({ messages }) => void messages.splice(-2),
}

describe.each(Object.entries(HOSTS))('%s', (name, round) => {
  test.each(some(Object.entries(HAPPENINGS), 3, Object.keys(HOSTS).indexOf(name)))('the host %s', async (_, happens) => {
    const host = new LastingHost('openai-responses')
    await host.send([{ role: 'user', content: 'begin' }])
    let before: object[] = []
    for (let n = 0; n < ROUNDS; n += 1) {
      for (const added of round(n)) before = await host.send(added)
      before = await host.send([{ role: 'user', content: `prompt ${n}` }])
    }
    expect(lengthOf(before)).toBeLessThan(lengthOf(host.messages) / 2)
    await happens(host)
    expect(lengthOf(await host.send()) - lengthOf(before)).toBeLessThan(SMALL)
  })
})
