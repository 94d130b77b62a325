/** The answers of a conversation, read at each request: the same as read at once, and only what is new is looked at. */
import { expect, test } from 'vitest'
import { conversation, written } from '../hosts/conversation.ts'
import type { Step } from '../hosts/conversation.ts'
import { marksOf, saidIn } from '../../lib/gateway/said.ts'
import type { Said } from '../../lib/gateway/said.ts'
import type { Api } from '../../lib/gateway/request.ts'

const FORMATS = [
  ['messages', 'anthropic'],
  ['chat', 'openai-chat'],
  ['responses', 'openai-responses'],
  ['gemini', 'gemini'],
] as const satisfies [Api, keyof typeof written][]

const messagesOf = (format: keyof typeof written, steps: readonly Step[]): object[] => steps.flatMap((step) => written[format](step, 1))

const withoutEnds = ({ prompt, chain, called }: Said): object => ({ prompt, chain, called, marks: marksOf({ prompt, chain, called, ends: [] }) })

test.each(FORMATS)('%s: request by request, also where the host cuts and changes', (api, format) => {
  for (let seed = 1; seed <= 4; seed += 1) {
    const steps = conversation(seed, 16)
    const messages = messagesOf(format, steps)
    let [before, last]: [Said | undefined, object[]] = [undefined, []]
    const check = (now: object[], common: number): void => {
      before = saidIn({ api, messages: now as Record<string, unknown>[] }, before, common)
      last = now
      expect(withoutEnds(before)).toEqual(withoutEnds(saidIn({ api, messages: now as Record<string, unknown>[] })))
    }
    // One message after the other: a text may end in the middle of an answer.
    for (let count = 1; count <= messages.length; count += 1) check(messages.slice(0, count), last.length)
    const half = Math.floor(messages.length / 2)
    check(messages.slice(0, half), half)
    check([...messages.slice(0, half), ...messagesOf(format, conversation(seed + 100, 6))], half)
    check(messages.slice(0, half), half)
    check(messages.slice(2), 0)
  }
})

test('messages that were read before are not looked at again', () => {
  let looked = 0
  const counted = (message: object): object =>
    new Proxy(message, { get: (target, name, receiver) => ((looked += name === 'content' ? 1 : 0), Reflect.get(target, name, receiver) as unknown) })
  const messages = messagesOf('openai-chat', conversation(3, 200)).map(counted)
  const read = (count: number, before?: Said, common = 0): Said =>
    saidIn({ api: 'chat', messages: messages.slice(0, count) as Record<string, unknown>[] }, before, common)
  const before = read(messages.length - 2)
  looked = 0
  read(messages.length, before, messages.length - 2)
  const after = looked
  looked = 0
  read(messages.length)
  expect([after < 60, looked > 200]).toEqual([true, true])
})
