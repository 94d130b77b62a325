/** Bodies that continue others have the values that JSON.parse gives, whatever stands around their lists. */
import { expect, test } from 'vitest'
import { Bodies } from '../../lib/gateway/bodies.ts'
import { splicedBody } from '../../lib/gateway/spliced-body.ts'
import { editOf, spliced } from '../../lib/projection/index.ts'
import type { JsonEdit } from '../../lib/projection/index.ts'

const LONG = 'x'.repeat(20_000)

function message(n: number, more: object = {}): object {
  return { role: n % 2 === 0 ? 'user' : 'assistant', content: `${n} "]}, ${LONG.slice(0, 700)}`, ...more }
}

function messages(count: number): object[] {
  return Array.from({ length: count }, (_, n) => message(n))
}

/** The messages of a body, read by a parser that has read others. */
function messagesIn(bodies: Bodies, body: object): object[] {
  return (bodies.parsed(Buffer.from(JSON.stringify(body)), 'messages').value as { messages: object[] }).messages
}

/** Both values: the one of a parser that has read `before`, and that of JSON.parse, or their errors. */
function both(before: readonly string[], text: string): [unknown, unknown] {
  const bodies = new Bodies()
  const tried = (parse: () => unknown): unknown => {
    try {
      return parse()
    } catch (error) {
      return (error as Error).name
    }
  }
  for (const one of before) tried(() => bodies.parsed(Buffer.from(one), 'messages').value)
  return [tried(() => bodies.parsed(Buffer.from(text), 'messages').value), tried(() => JSON.parse(text))]
}

test('messages that a body has in common with an earlier one are the same objects', () => {
  const bodies = new Bodies()
  const read = (list: readonly object[]): object[] => messagesIn(bodies, { model: 'm', messages: list, tools: [] })
  const first = read(messages(60))
  const second = read(messages(62))
  expect(second).toEqual(messages(62))
  expect(second.slice(0, 60).every((one, at) => one === first[at])).toBe(true)
  const marked = read([...messages(61), message(61, { cache_control: {} }), message(62)])
  expect(marked).toEqual([...messages(61), message(61, { cache_control: {} }), message(62)])
  expect(marked.slice(0, 61).every((one, at) => one === second[at])).toBe(true)
  const back = read(messages(30))
  expect(back).toEqual(messages(30))
  // A body of less than half does not continue a longer one.
  expect(
    read(messages(31))
      .slice(0, 30)
      .every((one, at) => one === back[at]),
  ).toBe(true)
})

test('messages behind changed ones are the same objects', () => {
  const bodies = new Bodies()
  const read = (list: readonly object[]): object[] => messagesIn(bodies, { model: 'm', messages: list, tools: [] })
  const first = read(messages(60))
  const other = (at: number, n: number): object[] => messages(60 + n).map((one, index) => (index === at ? message(1000 + n) : one))
  for (const [n, at] of [0, 0, 30, 3, 58].entries()) {
    const now = read(other(at, n))
    expect(now).toEqual(other(at, n))
    expect(now.slice(0, 59).filter((one, index) => one === first[index]).length).toBeGreaterThanOrEqual(54)
  }
  const without = messages(70).slice(2)
  const slid = read(without)
  expect(slid).toEqual(without)
  expect(slid[40]).toBe(first[42])
  const inserted = [...messages(20), { n: 1 }, { n: 2 }, ...messages(70).slice(20)]
  expect(read(inserted)).toEqual(inserted)
})

test('several conversations in turns are each continued', () => {
  const bodies = new Bodies()
  const read = (name: string, count: number): object[] => messagesIn(bodies, { name, messages: messages(count) })
  const before = ['a', 'b', 'c'].map((name) => read(name, 50))
  const now = ['a', 'b', 'c'].map((name) => read(name, 52))
  for (const [at, list] of now.entries()) expect(list[49]).toBe(before[at]?.[49])
  expect(now[0]?.[0]).not.toBe(now[1]?.[0])
})

const known = JSON.stringify({ model: 'm', messages: messages(60), end: 1 })
const head = JSON.stringify({ model: 'm', messages: messages(60) }).slice(0, -2)
/** All messages but the first. */
const row = messages(60)
  .slice(1)
  .map((one) => JSON.stringify(one))
  .join(',')
const start = '{"model":"m","messages":['
const end = '],"end":1}'

test.each([
  ['the same', known],
  ['another field behind', `${head}],"more":[1,2]}`],
  ['one more', `${head},{"a":1}]}`],
  ['spaces around the comma', `${head} \n,\t {"a":1} ] }`],
  ['many spaces', `${head}${' '.repeat(200)},{"a":1}]}`],
  ['no object behind', `${head},7,"b",null]}`],
  ['a second list of the same name', `${head}],"messages":[{"b":1}]}`],
  ['a second list whose name is written with an escape', `${head}],"mess\\u0061ges":[]}`],
  ['a second list that has as many', `${head},{"a":1}],"mess\\u0061ges":[{"b":1}]}`],
  ['the name as a value behind', `${head}],"x":"messages","messages2":[]}`],
  ['the name inside another object', `${head}],"x":{"messages":[1]}}`],
  ['a comma before the end', `${head},]}`],
  ['two commas', `${head},,{"a":1}]}`],
  ['no comma', `${head}{"a":1}]}`],
  ['a colon', `${head}:1]}`],
  ['no end', head],
  ['a field with no list', `${head}],"messages":"none"}`],
  ['something behind the end', `${known}x`],
  ['a change in the middle', known.replace('"30 ', '"31 ')],
  ['a change at the front', known.replace('"model":"m"', '"model":"n"')],
  ['fewer', JSON.stringify({ model: 'm', messages: messages(40), end: 1 })],
  ['all but the first message', `${start}${row}${end}`],
  ['another first message', `${start}{"a":1},${row}${end}`],
  ['another first message and one more at the end', `${start}{"a":1},${row},{"b":1}${end}`],
  ['two messages in front', `${start}{"a":1} , 7,\n${row} , {"b":1}${end}`],
  ['another list before its end', `${start}{"a":[${row}]}${end}`],
  ['another list around it', `${start}[${row}]${end}`],
  ['itself in a text', `${start}${JSON.stringify(row)}${end}`],
  ['itself in a text without escapes', `${start}{"a":"${row}"}${end}`],
  ['a quote before it', `${start}"${row}${end}`],
  ['itself twice', `${start}{"a":1},${row},${row}${end}`],
  ['no comma before it', `${start}{"a":1}${row}${end}`],
  ['only a comma before it', `${start},${row}${end}`],
  ['two commas before it', `${start}{"a":1},,${row}${end}`],
  ['a comma behind it', `${start}{"a":1},${row},${end}`],
  ['a colon before it', `${start}{"a":1}:${row}${end}`],
  ['a bracket before it', `${start}{"a":1}],"x":[${row}${end}`],
  ['its list under another name', `${start}{"a":1}],"other":[${row}${end}`],
  ['a brace too many before it', `${start}{"a":1}},${row}${end}`],
])('a body that continues with %s has the value that JSON.parse gives', (_, text) => {
  const [own, parsed] = both([known], text)
  expect(own).toEqual(parsed)
  // Also as the second that continues it, and as one that is continued.
  expect(both([known, `${head},{"a":1},{"b":2}]}`], text)[0]).toEqual(parsed)
  expect(both([known, text], known)[0]).toEqual(JSON.parse(known))
})

test('bytes that are no UTF-8 have the value that JSON.parse gives, and continue nothing', () => {
  const bodies = new Bodies()
  const bytes = Buffer.from(known)
  bytes[bytes.indexOf('x')] = 0xff
  for (let round = 0; round < 2; round += 1) {
    const { value, place } = bodies.parsed(bytes, 'messages')
    expect([value, place]).toEqual([JSON.parse(bytes.toString()), undefined])
  }
})

test('bodies that differ at random have the values that JSON.parse gives, and the bytes of their text with an edit', () => {
  const bodies = new Bodies()
  let seed = 7
  const random = (below: number): number => (seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0) % below
  let list = messages(50)
  let placed = 0
  for (let round = 0; round < 150; round += 1) {
    const step = random(6)
    const changed = random(3) === 0 ? random(list.length) : list.length - 1 - random(4)
    if (step === 0) list = list.slice(0, list.length > 80 ? 50 : -1 - random(5))
    else if (step === 1) list = list.map((one, at) => (at === changed ? message(at, { cache_control: {}, round }) : one))
    else if (step === 2) list = list.toSpliced(random(list.length), random(3), ...messages(random(2)))
    else list = [...list, message(round + 100), { n: round, list: [[], {}, '\\"', 'é€😀', { messages: [] }] }]
    const around = { thinking: { type: 'ä' }, messages: list, tools: [{ a: random(3) }] }
    const text = JSON.stringify(random(2) === 0 ? around : { system: 'ö€', messages: list }, null, random(4) === 0 ? 1 : undefined)
    const body = bodies.parsed(Buffer.from(text), 'messages')
    expect(body.value).toEqual(JSON.parse(text))
    if (body.place !== undefined) placed += 1
    const own = (body.value as { messages: object[] }).messages
    const sent = own.flatMap((one) => (random(9) === 0 ? [] : random(9) === 0 ? [{ ...one, content: `né ${round}` }] : [one]))
    if (random(3) === 0) sent.splice(random(sent.length + 1), 0, { role: 'user', content: 'añadido' })
    const edit = editOf(body.value, { ...(body.value as object), messages: sent, ...(random(2) === 0 && { thinking: { is: 'x' } }) })
    if (edit === undefined || !('fields' in edit)) continue
    expect(splicedBody(body, edit.fields as Record<string, JsonEdit | null>).toString()).toBe(spliced(text, edit))
  }
  expect(placed).toBeGreaterThan(50)
})
