/** An edit leads from one value to the other, in memory and in the text of a body, and touches nothing else there. */
import { describe, expect, test } from 'vitest'
import { applied, appliedItems, cutItems, editOf, itemsOf } from '../../lib/projection/edit.ts'
import type { EditedItem } from '../../lib/projection/edit.ts'
import type { JsonEdit } from '../../lib/projection/edit.ts'
import { argumentsText, spliced } from '../../lib/projection/splice.ts'
import { shapeNamed } from '../../lib/projection/shapes.ts'
import { isEdited, read, write } from '../../lib/projection/unit.ts'
import type { PartEdit } from '../../lib/projection/driver/edits.ts'
import { written } from '../hosts/conversation.ts'
import type { Step } from '../hosts/conversation.ts'
import { random } from '../../rig/random.ts'
import type { Random } from '../../rig/random.ts'

const NAMES = ['role', 'type', 'id', 'content', 'text', '__proto__', 'constructor', 'a"b\\', 'é\u2028']

function value(from: Random, depth: number): unknown {
  const kind = from.below(depth > 0 ? 8 : 5)
  if (kind < 2) return from.pick(['', 'text', '"quoted" \\ and \n', '}]{[,:"', '\ud83d\ude00', '\\'])
  if (kind === 2) return from.pick([0, -1.5, 1e21, 42])
  if (kind === 3) return from.pick([true, false])
  if (kind === 4) return null
  if (kind === 5) return Array.from({ length: from.below(4) }, () => value(from, depth - 1))
  return fieldsFrom(Array.from({ length: from.below(5) }, () => [from.pick(NAMES), value(from, depth - 1)]))
}

function fieldsFrom(entries: [string, unknown][]): object {
  return Object.fromEntries(entries)
}

/** A value with some changes; the parts that stay are the same objects. */
function changed(from: Random, before: unknown, depth: number): unknown {
  if (from.below(5) === 0) return value(from, depth)
  if (Array.isArray(before)) {
    const kept = before.flatMap((one) => (from.below(6) === 0 ? [] : from.below(3) === 0 ? [changed(from, one, depth - 1)] : [one]))
    if (from.below(4) === 0) kept.splice(from.below(kept.length + 1), 0, value(from, depth))
    return kept
  }
  if (typeof before !== 'object' || before === null) return before
  const entries = Object.entries(before).flatMap(([name, one]): [string, unknown][] =>
    from.below(8) === 0 ? [] : [[name, from.below(2) === 0 ? one : changed(from, one, depth - 1)]],
  )
  if (from.below(6) === 0) entries.push([from.pick(NAMES), value(from, depth)])
  return fieldsFrom(entries)
}

test('2,000 random edits lead to the same value in memory, from a file and in a text', () => {
  for (let seed = 0; seed < 2000; seed += 1) {
    const from = random(seed)
    const before = value(from, 5)
    const after = changed(from, before, 5)
    const edit = editOf(before, after)
    expect([seed, applied(before, edit)]).toEqual([seed, after])
    if (edit === undefined) continue
    const stored = JSON.parse(JSON.stringify(edit)) as JsonEdit
    expect([seed, applied(JSON.parse(JSON.stringify(before)), stored)]).toEqual([seed, after])
    for (const indent of [undefined, 2]) expect([seed, JSON.parse(spliced(JSON.stringify(before, undefined, indent), stored))]).toEqual([seed, after])
  }
})

describe('the text of a body', () => {
  const text =
    ' { "id" : 12345678901234567890, "x":1.0,"x": 2.50 , "messages":[ {"role":"user","n":1e400,"content":"\\u00e9\\/"},\n{"role":"user","content":[{"type":"text","text":"long"}]} ], "z":[] } '

  test('untouched parts of an edited text keep their characters', () => {
    const edit: JsonEdit = {
      fields: { messages: { items: [0, [1, { fields: { content: { items: [[0, { fields: { text: { is: 's' } } }]] } } }], { add: { role: 'user' } }] } },
    }
    expect(spliced(text, edit)).toBe(
      ' {"id" : 12345678901234567890,"x":1.0,"x": 2.50,"messages":[{"role":"user","n":1e400,"content":"\\u00e9\\/"},{"role":"user","content":[{"type":"text","text":"s"}]},{"role":"user"}],"z":[]}',
    )
  })

  test.each<[string, JsonEdit, string]>([
    ['the last of two fields of one name is the one that counts', { fields: { x: { is: 3 } } }, '{"x":1.0,"x": 3}'],
    ['a removed field goes with all of its name', { fields: { x: null } }, '{}'],
    ['a field is added', { fields: { y: { is: [1] } } }, '{"x":1.0,"x": 2.50,"y":[1]}'],
  ])('%s', (_, edit, wanted) => {
    expect(spliced('{"x":1.0,"x": 2.50}', edit)).toBe(wanted)
  })

  test('lists nested 300,000 deep are passed over', () => {
    const deep = `${'['.repeat(300_000)}${']'.repeat(300_000)}`
    expect(spliced(`{"a":${deep},"b":1}`, { fields: { b: { is: 2 } } })).toBe(`{"a":${deep},"b":2}`)
  })
})

test.each([
  [
    '{"big":12345678901234567890,"one": 1.0,"path":"\\/a","content":"long"}',
    { big: 12345678901234567000, one: 1, path: '/a', content: 's' },
    '{"big":12345678901234567890,"one": 1.0,"path":"\\/a","content":"s"}',
  ],
  ['no json', { content: 's' }, '{"content":"s"}'],
])('the arguments %s', (own, args, wanted) => {
  expect(argumentsText(own, args)).toBe(wanted)
})

test('an added part is the same object, and markers far inside it are found in no time', () => {
  const notice = { role: 'user', content: 'changed' }
  const [added] = itemsOf([], [notice]) as [{ add: unknown }]
  expect(added.add).toBe(notice)
  let deep: unknown = { text: 'x', cache_control: {} }
  for (let depth = 0; depth < 200; depth += 1) deep = [deep]
  expect(JSON.stringify(itemsOf([], [deep]))).not.toContain('cache_control')
})

test('cache markers are those of the edited value', () => {
  const marked = (text: string): object => ({ type: 'text', text, cache_control: { type: 'ephemeral' } })
  const [before, after] = [{ content: [{ type: 'text', text: 'a' }, marked('b')] }, { content: [marked('s')] }]
  const edit = editOf(before, after)
  expect(JSON.stringify(edit)).not.toContain('cache_control')
  expect(applied(before, edit)).toEqual({ content: [{ type: 'text', text: 's' }] })
})

describe('lists', () => {
  const result = (id: string, text: string): object => ({ role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: text }] })

  test('an edited message is named by its place, an omitted one by its absence, and a notice is added', () => {
    const before = [{ role: 'user', content: 'go' }, result('a', 'long'), result('b', 'long'), result('c', 'x')]
    const after = [
      before[0],
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'b', content: 'short' }] },
      before[3],
      { role: 'user', content: 'notice' },
    ]
    expect(itemsOf(before, after)).toEqual([
      0,
      [2, { fields: { content: { items: [[0, { fields: { content: { is: 'short' } } }]] } } }],
      3,
      { add: { role: 'user', content: 'notice' } },
    ])
  })

  /** Sends an answer and its results in one line, and the next one edited, as a roll does. */
  test.each(['anthropic', 'openai-chat', 'openai-responses', 'ai-sdk'] as const)(
    '%s: each sent message is an edit of the original, also if hosts reuse IDs or give none',
    (name) => {
      const step = (text: string): Step => ({ text, calls: [{ id: 'call_0', name: 'bash', args: { command: 'x' }, output: 'long' }] })
      const shape = shapeNamed(name)
      const messages = ['first', 'second', 'third', 'fourth'].flatMap((text) => written[name](step(text), 1))
      const each = messages.length / 4
      const units = [
        ...read(
          messages,
          0,
          shape,
          () => '',
          () => false,
        ),
      ]
      const parts = units.flatMap((unit) => unit.parts)
      const edits: Record<number, PartEdit> = {
        1: { kind: 'result', text: 'lines' },
        2: { kind: 'gone' },
        3: { kind: 'gone' },
        4: { kind: 'message', calls: [{ callId: 'call_0', position: 0, args: { command: 'y' } }], texts: [{ block: 0, text: 'short' }] },
        5: { kind: 'result', text: 'reference' },
      }
      for (const [number, part] of parts.entries()) part.edit = edits[number]
      const sent = units.flatMap((unit) => (isEdited(unit) ? write(unit) : unit.raw))
      const places = itemsOf(messages, sent).map((item) => (typeof item === 'number' ? item : 'add' in item ? 'add' : item[0]))
      expect(places).toEqual(messages.map((_, at) => at).filter((at) => at < each || at >= 2 * each))
      expect(appliedItems(messages, itemsOf(messages, sent))).toEqual(sent)
      // The host sends its messages anew with each request.
      const again = structuredClone(messages)
      for (const [at, unit] of units.entries())
        unit.raw.splice(0, unit.raw.length, ...again.slice(at === 0 ? 0 : units.slice(0, at).flatMap(({ raw }) => raw).length).slice(0, unit.raw.length))
      expect(
        itemsOf(
          again,
          sent.map((message) => again[messages.indexOf(message)] ?? message),
        ).map((item) => (typeof item === 'object' && 'add' in item ? 'add' : typeof item === 'number' ? item : item[0])),
      ).toEqual(places)
    },
  )

  test('a call of one answer is not an edit of another one', () => {
    const answer = (id: string, command: string): object => ({
      role: 'assistant',
      content: null,
      tool_calls: [{ id, type: 'function', function: { name: 'bash', arguments: command } }],
    })
    expect(itemsOf([answer('a', 'long'), answer('b', 'long')], [answer('b', 'short')]).map((item) => (Array.isArray(item) ? item[0] : item))).toEqual([1])
  })

  test('the result of a removed call is cut off with its call, also where words of the user stand behind it', () => {
    const lines = [1, { is: 'a reference, and lines of the calls behind it' }] as const
    const items: EditedItem[] = [0, lines, [4, { fields: { content: { items: [1] } } }], 5]
    expect(cutItems(items, 6, 4)).toEqual([0, 1, 2, 3])
    // An element that only became shorter is none of the removed ones.
    const shorter: EditedItem = [4, { fields: { content: { items: [[0, { is: 'short' }], 1] } } }]
    expect(cutItems([0, lines, shorter, 5], 6, 4)).toEqual([0, lines])
  })

  test.each([
    [4, [0, { add: 'n' }, 2, 3, { add: 'end' }]],
    [3, [0, { add: 'n' }, 2]],
    [2, [0, { add: 'n' }]],
    [1, [0]],
    [0, []],
  ])('the form of the first %i messages has the additions between them', (length, wanted) => {
    expect(cutItems([0, { add: 'n' }, 2, 3, { add: 'end' }], 4, length)).toEqual(wanted)
  })
})
