/** The host's last messages are compared as a whole: any change anywhere in a message is noticed. */
import { describe, expect, test } from 'vitest'
import { isEqual, keep } from '../lib/projection/identity.ts'
import { HostMessages } from '../lib/projection/ledger.ts'
import { conversation, shapes, written } from './hosts/conversation.ts'
import { random } from '../rig/random.ts'

/** Every place of a value where something can be changed: what changes it there, and what changes it back. */
function places(value: any, found: { set(): void; back(): void }[] = []): typeof found {
  for (const name of Object.keys(value)) {
    const before = value[name]
    const changes = [
      typeof before === 'string' ? `${before}!` : typeof before === 'number' ? before + 1 : 'changed',
      undefined,
      [before],
      new Date(0),
      { one: 'more' },
    ]
    for (const after of changes) if (!isEqual(before, after)) found.push({ set: () => (value[name] = after), back: () => (value[name] = before) })
    if (typeof before === 'object' && before !== null) places(before, found)
  }
  if (Array.isArray(value)) found.push({ set: () => value.push('more'), back: () => value.pop() })
  else found.push({ set: () => (value['more'] = 1), back: () => delete value['more'] })
  return found
}

function noted(messages: readonly object[]): HostMessages {
  const ledger = new HostMessages()
  for (const [number, message] of messages.entries()) ledger.add(message, keep(message), number)
  return ledger
}

describe.each(shapes)('%s', (shape) => {
  const messages = conversation(3, 12).flatMap((step) => written[shape](step, 1))

  test('a conversation continues itself, and any copy of its content', () => {
    const ledger = noted(messages)
    expect(ledger.follow(messages, undefined, () => expect.unreachable())).toBe(messages.length)
    const copies = structuredClone(messages)
    const replaced: number[] = []
    expect(ledger.follow(copies, undefined, (at, before) => replaced.push(messages.indexOf(before) === at ? at : -1))).toBe(messages.length)
    expect(replaced).toEqual(messages.map((_, at) => at))
    expect(ledger.follow(copies.slice(0, 3), undefined, () => {})).toBe(3)
  })

  test('each change in place, wherever it is, is seen at its message', () => {
    const given = structuredClone(messages)
    const ledger = noted(given)
    for (const [at, message] of given.entries()) {
      for (const { set, back } of places(message)) {
        set()
        expect(ledger.follow(given, undefined, () => {})).toBe(at)
        back()
      }
    }
    // Fields may have gone and come back in another order; that is the content that it was, and is looked at more closely.
    for (const [at, message] of given.entries()) expect(isEqual(message, messages[at])).toBe(true)
  })

  test('messages cut and added again are compared as before', () => {
    const { next } = random(5)
    const ledger = noted(messages)
    for (let round = 0; round < 30; round += 1) {
      const from = Math.floor(next() * messages.length)
      expect(ledger.cut(from)).toBe(from)
      expect(ledger.follow(messages, undefined, () => {})).toBe(from)
      for (let at = from; at < messages.length; at += 1) ledger.add(messages[at]!, keep(messages[at]), at)
      expect(ledger.follow(messages, undefined, () => {})).toBe(messages.length)
    }
  })
})

test('bytes, dates and addresses are compared by content', () => {
  const message = { bytes: new Uint8Array([1, 2]), date: new Date(5), url: new URL('https://a.example'), none: {} }
  const ledger = noted([message])
  const same = { bytes: new Uint8Array([1, 2]), date: new Date(5), url: new URL('https://a.example'), none: {} }
  expect(ledger.follow([same], undefined, () => {})).toBe(1)
  for (const other of [{ bytes: new Uint8Array([1, 3]) }, { date: new Date(6) }, { url: new URL('https://b.example') }, { none: new Date(0) }]) {
    expect(ledger.follow([{ ...same, ...other }], undefined, () => {})).toBe(0)
  }
  message.date.setTime(6)
  expect(ledger.follow([message], undefined, () => {})).toBe(0)
})
