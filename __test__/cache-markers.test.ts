import { expect, test } from 'vitest'
import { applied } from '../lib/projection/edit.ts'
import { spliced } from '../lib/projection/splice.ts'
import { askedIn, lifetimeEdit } from '../lib/projection/cache-markers.ts'
import type { Choice } from '../lib/models/index.ts'
import { markerRefusal, markersOf } from '../rig/markers.ts'
import { random } from '../rig/random.ts'

const marker = (ttl?: string): object => ({ cache_control: { type: 'ephemeral', ...(ttl === undefined ? {} : { ttl }) } })

/** A body with at most four markers in an order that the API takes, some in results and one for the whole request. */
function randomBody(next: (below: number) => number): any {
  const places = new Set(Array.from({ length: next(5) }, () => next(12)))
  let isLong = next(2) === 1
  const block = (place: number, content: object): object => {
    if (!places.has(place)) return content
    if (isLong) isLong = next(3) > 0
    return { ...content, ...marker(isLong ? '1h' : next(2) === 0 ? '5m' : undefined) }
  }
  const tools = [block(0, { name: 'Bash' }), block(1, { name: 'cache_control' })]
  const system = [block(2, { type: 'text', text: 'You are a test.' }), block(3, { type: 'text', text: '"cache_control":{"ttl":"1h"}' })]
  const result = { type: 'tool_result', tool_use_id: 'a', content: [block(6, { type: 'text', text: 'one' }), block(7, { type: 'text', text: 'two' })] }
  const messages = [
    { role: 'user', content: [block(4, { type: 'text', text: 'hello' })] },
    { role: 'assistant', content: [block(5, { type: 'tool_use', id: 'a', name: 'Bash', input: { cache_control: { type: 'ephemeral', ttl: '1h' } } })] },
    { role: 'user', content: [block(8, result), block(9, { type: 'text', text: 'continue' })] },
    { role: 'user', content: 'a text' },
    { role: 'user', content: [block(10, { type: 'text', text: 'end' })] },
  ]
  const whole = places.has(11) ? marker(isLong ? '1h' : undefined) : {}
  return { model: 'claude', tools, system, messages, ...whole }
}

test('10,000 random requests keep their markers where they are, and Anthropic takes every choice of lifetimes', () => {
  const next = random(7).below
  for (let n = 0; n < 10_000; n += 1) {
    const body = randomBody(next)
    // A result with a marker inside comes before its own, so some of these bodies are refused as they are.
    if (markerRefusal(body) !== undefined) continue
    const [head, conversation] = [next(2), next(2)].map((one) => (one === 0 ? '5m' : '1h')) as ['5m' | '1h', '5m' | '1h']
    const choice: Choice = { head, conversation, hourUntil: next(6) }
    const edit = lifetimeEdit(body, choice)
    const text = JSON.stringify(body)
    const sent = edit === undefined ? body : JSON.parse(spliced(text, edit))
    expect(markerRefusal(sent)).toBeUndefined()
    expect(markersOf(sent).map(({ path }) => path)).toEqual(markersOf(body).map(({ path }) => path))
    expect(sent).toEqual(edit === undefined ? body : applied(body, edit))
    const bare = (one: unknown): string => JSON.stringify(one).replaceAll(/,"ttl":"(?:1h|5m)"\}\}?/g, (end) => end.slice(11))
    expect(bare({ ...sent, messages: [] })).toBe(bare({ ...body, messages: [] }))
    expect(sent.messages[1].content[0].input).toEqual(body.messages[1].content[0].input)
    const asked = askedIn(sent)
    if (asked.head !== undefined) expect(asked.head).toBe(head)
    expect(lifetimeEdit(sent, choice)).toBeUndefined()
  }
})

test('a marker of an unknown kind stays as it is', () => {
  const odd = {
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'a', cache_control: { type: 'ephemeral', ttl: '24h' } },
          { type: 'text', text: 'b', cache_control: { type: 'lasting' } },
        ],
      },
    ],
  }
  expect(lifetimeEdit(odd, { head: '1h', conversation: '1h', hourUntil: 0 })).toBeUndefined()
  expect(askedIn(odd)).toEqual({ head: undefined, conversation: undefined })
})

test('the rig refuses the same markers as Anthropic', () => {
  const text = (ttl?: string): object => ({ type: 'text', text: 'a', ...marker(ttl) })
  expect(markerRefusal({ system: [text('1h')], messages: [{ role: 'user', content: [text()] }] })).toBeUndefined()
  expect(markerRefusal({ system: [text()], messages: [{ role: 'user', content: [text('1h')] }] })).toMatch(/must not come after/)
  expect(markerRefusal({ system: [text(), text(), text(), text(), text()] })).toMatch(/maximum of 4/)
  expect(markerRefusal({ system: [text('1h')] }, false)).toMatch(/ttl: Extra inputs/)
})
