/** Lines that stand for other messages: they go out only while all of these are hidden in the same form, and behind them. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import type { Gateway } from '../../lib/gateway/gateway.ts'
import { cutItems, wholeLength } from '../../lib/projection/edit.ts'
import type { EditedItem } from '../../lib/projection/edit.ts'
import { behind, beginningOf } from '../../lib/gateway/beginning.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import type { ModelServer } from '../../rig/model-server.ts'
import { AnthropicLoop, callTool, gatewayTo, lasting, long, looping } from './support.ts'
import { some } from '../rows.ts'

afterEach(cleanUp)

/** Message 2 has the lines of 3 to 6; message 8 those of 9 and 10. */
const LINES: EditedItem = [2, { is: 'lines of 3 to 6' }]
const MORE: EditedItem = [8, { is: 'lines of 9 and 10' }]
const FORM: EditedItem[] = [0, 1, LINES, 7, MORE, { add: 'notice' }, 11, 12]

describe('the form of the first messages', () => {
  test.each([
    [13, FORM],
    [12, [0, 1, LINES, 7, MORE, { add: 'notice' }, 11]],
    [11, [0, 1, LINES, 7, MORE, { add: 'notice' }]],
    [10, [0, 1, LINES, 7, 8, 9]],
    [9, [0, 1, LINES, 7, 8]],
    [8, [0, 1, LINES, 7]],
    [7, [0, 1, LINES]],
    [6, [0, 1, 2, 3, 4, 5]],
    [4, [0, 1, 2, 3]],
    [3, [0, 1, 2]],
    [2, [0, 1]],
    [0, []],
  ] as [number, EditedItem[]][])('%i of them', (length, wanted) => {
    expect(cutItems(FORM, 13, length)).toEqual(wanted)
    expect(beginningOf(FORM, 13, length).length).toBe(wholeLength(FORM, 13, length))
  })

  test('removed messages at the start, and at the end', () => {
    expect(cutItems([3, 4], 5, 2)).toEqual([0, 1])
    expect(cutItems([3, 4], 5, 4)).toEqual([3])
    expect(cutItems([0, [1, { is: 'x' }]], 5, 5)).toEqual([0, [1, { is: 'x' }]])
    expect(cutItems([0, [1, { is: 'x' }]], 5, 4)).toEqual([0, 1, 2, 3])
  })

  test('behind a beginning, summarized messages are sent unchanged', () => {
    const beginning = beginningOf([0, 1, 2, 3, 4], 5, 5)
    expect(behind(beginning, FORM, 13)?.items).toEqual([0, 1, 2, 3, 4, 5, 6, 7, MORE, { add: 'notice' }, 11, 12])
    expect(behind(beginningOf([0, 1, 2], 3, 3), [0, 1, LINES], 7)?.items).toEqual([0, 1, 2, 3, 4, 5, 6])
  })
})

interface Sent {
  server: ModelServer
  gateway: Gateway
  loop: AnthropicLoop
  place: ReturnType<typeof lasting>
}

/** A conversation whose old calls are lines. */
async function withLines(): Promise<Sent> {
  const place = lasting()
  const { server, gateway, loop } = await looping(place)
  await loop.prompt('start')
  for (let n = 0; n < 40; n += 1) await loop.call('Bash', { command: `echo SECRET${n}X` }, long(`n${n}`))
  expect(text(server)).toMatch(/\nbash echo[^\n]*SECRET\d+X -> /)
  return { server, gateway, loop, place }
}

const text = (server: ModelServer): string =>
  server.requests
    .at(-1)!
    .messages.map(({ text: own, calls, results }) =>
      [...(results.length === 0 ? [own] : []), ...calls.map(({ args }) => args), ...results.map((one) => one.text)].join('\n'),
    )
    .join('\n')

/** Each call is in the last request at most once, in order, and only those of the host. */
function check(server: ModelServer, loop: AnthropicLoop): void {
  const own = JSON.stringify(loop.messages)
  const names = [...text(server).matchAll(/SECRET(\d+)X/g)].map((found) => Number(found[1]))
  for (const name of names) expect(own, `SECRET${name}X`).toContain(`SECRET${name}X`)
  expect(names).toEqual([...new Set(names)].toSorted((one, other) => one - other))
  const wanted = [...own.matchAll(/"command":"echo SECRET(\d+)X"/g)].map((found) => Number(found[1]))
  expect(names).toEqual(wanted)
  expect(server.problems).toEqual([])
}

describe('calls that are lines', () => {
  test.each(
    some(
      [6, 7, 12, 13, 20, 31, 50, 60, 70, 77].flatMap((at) => [true, false].map((isRestarted) => [at, isRestarted] as const)),
      3,
    ),
  )('going back to message %i; a new gateway: %s', async (at, isRestarted) => {
    const { server, gateway, loop, place } = await withLines()
    if (isRestarted) {
      await gateway.close()
      const { gateway: next } = await gatewayTo(server.url, place)
      Object.assign(loop, { url: next.url })
    }
    loop.messages.length = at
    if (loop.messages.at(-1).role === 'user') loop.messages.pop()
    if (loop.messages.at(-1).content[0].type === 'tool_use') loop.messages.pop()
    loop.messages.push({ role: 'user', content: [{ type: 'text', text: 'something else' }] })
    for (let n = 0; n < 3; n += 1) {
      await loop.send()
      check(server, loop)
      loop.messages.push(
        { role: 'assistant', content: [{ type: 'text', text: `answer ${n}` }] },
        { role: 'user', content: [{ type: 'text', text: `more ${n}` }] },
      )
    }
  })

  test.each(
    some(
      [4, 5, 10, 21, 38].flatMap((n) => [true, false].map((isRestarted) => [n, isRestarted] as const)),
      2,
    ),
  )('an argument of call %i is redacted; a new gateway: %s', async (n, isRestarted) => {
    const { server, gateway, loop, place } = await withLines()
    if (isRestarted) {
      await gateway.close()
      const { gateway: next } = await gatewayTo(server.url, place)
      Object.assign(loop, { url: next.url })
    }
    const call = loop.messages.flatMap(({ content }) => content).filter(({ type }) => type === 'tool_use')[n]
    call.input.command = 'echo REDACTED'
    for (let more = 0; more < 3; more += 1) {
      await loop.call('Bash', { command: 'true' }, 'x')
      expect(text(server)).not.toContain(`SECRET${n}X`)
      check(server, loop)
    }
  })

  test('outputs around a side question are shown unchanged', async () => {
    const { server, loop } = await withLines()
    const before = loop.messages.slice()
    for (const at of [9, 15, 41, 60]) {
      const aside = Object.assign(new AnthropicLoop({ url: loop.url }), {
        messages: [...before.slice(0, at), ...(before[at - 1].role === 'assistant' ? [] : [{ role: 'assistant', content: [{ type: 'text', text: 'x' }] }])],
      })
      if (aside.messages.at(-1).content[0].type === 'tool_use') aside.messages.pop()
      aside.messages.push({ role: 'user', content: [{ type: 'text', text: `by the way ${at}?` }] })
      await aside.send()
      check(server, aside)
    }
  })

  test('a failed projection after going back', async () => {
    const { server, gateway, loop } = await withLines()
    const { projection } = await gateway.conversations.all[0]!.session()
    projection.transform = () => Promise.reject(new Error('no disk'))
    for (const at of [71, 61, 51]) {
      loop.messages.length = at
      if (loop.messages.at(-1).content[0].type === 'tool_use') loop.messages.pop()
      for (let n = 0; n < 2; n += 1) {
        loop.messages.push(
          { role: 'assistant', content: [{ type: 'text', text: 'x' }] },
          { role: 'user', content: [{ type: 'text', text: `again ${at} ${n}` }] },
        )
        await loop.send()
        check(server, loop)
      }
    }
  })

  test('a form file that was changed by hand splits no call from its result', async () => {
    const { server, gateway, loop, place } = await withLines()
    await gateway.close()
    const path = join(place.formsPath, readdirSync(place.formsPath)[0]!)
    const lines = readFileSync(path, 'utf8').trimEnd().split('\n')
    const numbers = lines.flatMap((line, at) => [...line.matchAll(/(?<=[[,:])\d+(?=[\],}])/g)].map(({ index, 0: { length } }) => ({ at, index, length })))
    expect(numbers.length).toBeGreaterThan(20)
    for (let n = 0; n < 24; n += 1) {
      const { at, index, length } = numbers[Math.floor((((n * 7919) % 1000) / 1000) * numbers.length)]!
      const line = lines[at]!
      const damage = ['null', '3', '-1', '"x"', '1e9', '[]'][n % 6]!
      writeFileSync(path, `${lines.with(at, line.slice(0, index) + damage + line.slice(index + length)).join('\n')}\n`)
      const next = await gatewayTo(server.url, { ...place, store: { kind: 'memory' } })
      const same = Object.assign(new AnthropicLoop(next.gateway), { messages: loop.messages.slice() })
      await same.send()
      expect(server.problems, `${damage} at ${at}:${index}`).toEqual([])
      await next.gateway.close()
    }
  })

  test('the last form of a projection, for any first messages and with any one changed', async () => {
    const { gateway } = await withLines()
    const conversation = gateway.conversations.all[0]!
    const { projection } = await conversation.session()
    const calls = (messages: readonly object[]): number[] => [...JSON.stringify(messages).matchAll(/SECRET(\d+)X/g)].map((found) => Number(found[1]))
    for (let length = 0; length <= conversation.raw.length; length += 1) {
      const own = conversation.raw.slice(0, length)
      expect(calls(projection.lastForm(own)), `the first ${length}`).toEqual(calls(own))
      const changed = conversation.raw.map((message, at) =>
        at === length ? (JSON.parse(JSON.stringify(message).replace(/SECRET\d+X|line 7 /g, 'gone')) as object) : message,
      )
      expect(calls(projection.lastForm(changed)), `with ${length} changed`).toEqual(calls(changed))
    }
  })

  test('every id that was sent brings back the original', async () => {
    const { server, gateway } = await withLines()
    const handles = [...new Set(server.requests.flatMap(({ raw }) => [...raw.toString().matchAll(/\bid=([0-9a-f]{8,})\b/g)].map((found) => found[1]!)))]
    expect(handles.length).toBeGreaterThan(20)
    for (const id of handles)
      expect(await callTool(gateway, 'activate', { id })).toMatch(/^n\d+ line 0 [^]*line 119 of an output that is long enough to matter$/)
  })
})
