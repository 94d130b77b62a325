/** Old reasoning that leaves, words that are shortened and calls that become lines: the same in every shape, and valid. */
import { createHash } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { Projection } from '../lib/projection/harness.ts'
import type { ShapeName } from '../lib/projection/harness.ts'
import { recall } from '../lib/projection/recall.ts'
import { folder, opened } from './core/setup.ts'
import { conversation, shapes, written } from './hosts/conversation.ts'
import type { Step } from './hosts/conversation.ts'
import { cleanUp } from '../rig/cleanup.ts'
import { SOON } from '../rig/extension.ts'
import { some } from './rows.ts'
import { MODEL } from './hosts/processes.ts'

afterEach(cleanUp)

type Any = Record<string, any>

/** The calls and the results of a request, each by its ID, in their order. */
function traffic(messages: readonly Any[]): { calls: string[]; results: string[] } {
  const found = { calls: [] as string[], results: [] as string[] }
  for (const message of messages) {
    if (message['role'] === 'toolResult') found.results.push(message['toolCallId'])
    if (message['role'] === 'tool' && message['tool_call_id'] !== undefined) found.results.push(message['tool_call_id'])
    if (message['type'] === 'function_call') found.calls.push(message['call_id'])
    if (message['type'] === 'function_call_output') found.results.push(message['call_id'])
    for (const call of message['tool_calls'] ?? []) found.calls.push(call.id)
    for (const { functionCall: call, functionResponse: result } of message['parts'] ?? []) {
      if (call !== undefined) found.calls.push(call.id)
      if (result !== undefined) found.results.push(result.id)
    }
    for (const block of Array.isArray(message['content']) ? message['content'] : []) {
      if (block.type === 'toolCall' || block.type === 'tool_use') found.calls.push(block.id)
      if (block.type === 'tool-call') found.calls.push(block.toolCallId)
      if (block.type === 'tool_result') found.results.push(block.tool_use_id)
      if (block.type === 'tool-result') found.results.push(block.toolCallId)
    }
  }
  return found
}

/** The reasoning of a request in its own form, signatures included. */
function reasoning(messages: readonly Any[]): string[] {
  return messages.flatMap((message) => {
    if (message['type'] === 'reasoning') return [JSON.stringify(message)]
    const blocks: Any[] = message['role'] === 'assistant' && Array.isArray(message['content']) ? message['content'] : []
    return blocks.filter(({ type }) => type === 'thinking' || type === 'reasoning').map((block) => JSON.stringify(block))
  })
}

/** Every line of ours in a request names something: the IDs. */
const named = (messages: readonly unknown[]) => new Set([...JSON.stringify(messages).matchAll(/\bid=([0-9a-f]{8,11})\b/g)].map((found) => found[1]!))

/** Returns the messages, reasoning and outputs, by the beginning of their hash. */
function texts(steps: readonly Step[]): Map<string, string> {
  const found = new Map<string, string>()
  const note = (key: string, text: string): void => void found.set(createHash('sha256').update(key).digest('hex'), text)
  for (const step of steps) {
    if ('user' in step) note(step.user, step.user)
    else {
      for (const text of [step.text, step.reasoning]) if (text !== undefined) note(text, text)
      for (const { id, output } of step.calls) note(id, output)
    }
  }
  return found
}

async function run(shape: ShapeName, seed: number, isCarried = false) {
  const manager = await opened({ cwd: folder(), sessionId: `${shape}-${isCarried}`, stay: SOON })
  let now = Date.UTC(2026, 0, 1)
  const projection = new Projection(manager, { model: MODEL, systemTokens: 1000, shape, shortens: true, now: () => now })
  const steps = conversation(seed, 90, true)
  const messages: object[] = []
  let sent: object[] = []
  for (const [at, step] of steps.entries()) {
    const added = written[shape](step, now)
    messages.push(...added)
    const before = structuredClone(messages)
    // A host may hand over what it was given the last time, as the AI SDK does.
    sent = await projection.transform(isCarried ? [...sent, ...added] : messages)
    expect(messages, 'the harness keeps its own').toEqual(before)
    const { calls, results } = traffic(sent as Any[])
    expect([...results].sort(), 'each call has its result').toEqual([...calls].sort())
    for (const message of sent as Any[]) expect(message['content'], JSON.stringify(message)).not.toEqual([])
    now += at % 12 === 11 ? 600_000 : 1000
  }
  return { manager, projection, messages, sent, steps }
}

describe.each(some([2, 3], 1))('seed %i', (seed) => {
  test.each(shapes)('%s: requests stay valid, and all that left can be brought back', async (shape) => {
    const { manager, messages, sent, steps } = await run(shape, seed)
    const gone = traffic(messages as Any[]).calls.length - traffic(sent as Any[]).calls.length
    expect(gone, 'calls that have become lines').toBeGreaterThan(0)
    expect(JSON.stringify(sent)).toMatch(/more chars: id=/)
    const whole = texts(steps)
    const ids = named(sent)
    expect(ids.size).toBeGreaterThan(10)
    for (const id of ids) {
      const text = [...whole].find(([hash]) => hash.startsWith(id))?.[1]
      expect(text, id).toBeDefined()
      expect((await recall(manager, { id })).split('\n\narguments of the call: ')[0]).toBe(text)
    }
  })

  test.each(shapes)('%s: the same where the host carries forward its last answer', async (shape) => {
    const [own, carried] = [await run(shape, seed), await run(shape, seed, true)]
    expect(carried.sent).toEqual(own.sent)
    for (const id of named(carried.sent)) {
      expect(await recall(carried.manager, { id })).toBe(await recall(own.manager, { id }))
    }
  })

  test.each(shapes)('%s: signed reasoning is unchanged, or has left where its provider allows that', async (shape) => {
    const { messages, sent } = await run(shape, seed)
    const [before, after] = [reasoning(messages as Any[]), reasoning(sent as Any[])]
    expect(before.filter((one) => after.includes(one))).toEqual(after)
    if (shape !== 'openai-responses') return
    // OpenAI ties an item of reasoning to the call or the text after it: they are there together, or not at all.
    const next = (list: readonly Any[], one: string) => JSON.stringify(list[list.findIndex((item) => JSON.stringify(item) === one) + 1]?.['type'])
    for (const one of after) expect(next(sent as Any[], one)).toBe(next(messages as Any[], one))
    const calls = new Set(traffic(sent as Any[]).calls)
    for (const [at, item] of (messages as Any[]).entries()) {
      const follows = (messages as Any[])[at + 1]
      if (item['type'] !== 'reasoning' || follows?.['type'] !== 'function_call' || !calls.has(follows['call_id'])) continue
      expect(after).toContain(JSON.stringify(item))
    }
  })
})

test('a step with an image in one of its results stays', async () => {
  const manager = await opened({ cwd: folder(), stay: SOON })
  let now = Date.UTC(2026, 0, 1)
  const projection = new Projection(manager, { model: MODEL, shape: 'anthropic', shortens: true, now: () => now })
  const steps = conversation(2, 90, true)
  const first = steps.find((step) => !('user' in step) && step.calls.length > 0) as { calls: { id: string; image?: boolean }[] }
  first.calls[0]!.image = true
  const messages: object[] = []
  let sent: object[] = []
  for (const step of steps) {
    messages.push(...written.anthropic(step, now))
    sent = await projection.transform(messages)
    now += 60_000
  }
  const { calls } = traffic(sent as Any[])
  const images = steps.flatMap((step) => ('user' in step ? [] : step.calls.some(({ image }) => image === true) ? step.calls.map(({ id }) => id) : []))
  expect(images.length).toBeGreaterThan(1)
  expect(calls).toEqual(expect.arrayContaining(images))
  expect(calls.length).toBeLessThan(traffic(messages as Any[]).calls.length)
})

test('text taken out of the middle can’t be restored', async () => {
  const manager = await opened({ cwd: folder() })
  const projection = new Projection(manager, { shape: 'openai-chat', shortens: true })
  const long = 'a secret prompt '.repeat(200)
  const messages: object[] = [
    { role: 'user', content: 'one' },
    { role: 'assistant', content: 'two' },
    { role: 'user', content: long },
  ]
  messages.push({ role: 'assistant', content: 'three' }, { role: 'user', content: 'four' })
  await projection.transform(messages)
  const id = createHash('sha256').update(long).digest('hex').slice(0, 11)
  expect(await projection.permits(id)).toBe(true)
  messages.splice(2, 1)
  await projection.transform([...messages, { role: 'assistant', content: 'five' }, { role: 'user', content: 'six' }])
  expect(await recall(manager, { id })).not.toContain('a secret prompt')
  expect(await projection.permits(id)).toBe(false)
})
