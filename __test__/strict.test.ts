/** The strict provider itself: what it accepts, what it refuses, and what it reports. */
import { afterEach, describe, expect, test } from 'vitest'
import { cleanUp } from '../rig/cleanup.ts'
import { startModelServer } from '../rig/model-server.ts'
import { PlainLoop } from '../rig/plain-loop.ts'
import type { LoopOptions } from '../rig/plain-loop.ts'
import { BINDING_BETA, lossOf } from '../rig/strict.ts'
import type { StrictOptions } from '../rig/strict.ts'
import { thinker } from '../rig/thinker.ts'

afterEach(cleanUp)

const DROPS = {
  body: { thinking: { type: 'adaptive', block_binding: { prefix_mismatch_behavior: 'drop_block' } } },
  headers: { 'anthropic-beta': BINDING_BETA },
}

async function started(strict: StrictOptions, options: Partial<LoopOptions> = {}) {
  const server = await startModelServer(thinker, strict)
  const loop = new PlainLoop({ server, api: 'anthropic-messages', run: (_, { name }) => `output of ${name}`, ...options })
  return { server, loop, last: () => server.requests.at(-1)!.verdict! }
}

const thoughtsOf = (messages: any[]): { content: any[]; at: number }[] =>
  messages.flatMap(({ role, content }) =>
    role === 'assistant' ? content.flatMap((block: any, at: number) => (block.type === 'thinking' ? [{ content, at }] : [])) : [],
  )

/** Takes some blocks of reasoning out, by their place among all. */
const without =
  (...places: number[]) =>
  (messages: any[]) => {
    const all = thoughtsOf(messages)
    for (const { content, at } of places.map((place) => all.at(place)!)) content.splice(at, 1)
  }
const EDITS: Record<string, { edit: (messages: any[]) => void; fits: boolean }> = {
  nothing: { edit: () => {}, fits: true },
  'the first result shortened': { edit: (messages) => (messages[2].content[0].content = 'short'), fits: false },
  'an argument shortened': { edit: (messages) => (messages[1].content.at(-1).input.name = 'x'), fits: false },
  'the last result shortened, which stands before the last block': { edit: (messages) => (messages.at(-2).content[0].content = 'short'), fits: false },
  'a message inserted': { edit: (messages) => messages.splice(1, 0, { role: 'user', content: 'by the way' }), fits: false },
  'reasoning removed from the start': { edit: without(0), fits: true },
  'reasoning removed from the end': { edit: without(-1), fits: true },
  'reasoning removed from the middle': { edit: without(1), fits: false },
  'all reasoning removed': {
    edit: (messages) =>
      thoughtsOf(messages)
        .reverse()
        .forEach(({ content, at }) => content.splice(at, 1)),
    fits: true,
  },
  'a result rewritten as a list of one text': { edit: (messages) => (messages[2].content[0].content = [{ type: 'text', text: 'output of a' }]), fits: true },
  'a cache marker set': { edit: (messages) => (messages[2].content[0].cache_control = { type: 'ephemeral' }), fits: true },
}

describe.each(Object.entries(EDITS))('%s', (_, { edit, fits }) => {
  test('new_account_refuses_mismatch', async () => {
    const { loop, server } = await started({})
    await loop.prompt('show a b')
    edit(loop.messages)
    const next = loop.prompt('show c')
    if (fits) await next
    else
      await expect(next).rejects.toThrow(
        /^messages\.\d+\.content\.\d+: Invalid `signature` in `thinking` block. The block is bound to a different conversation/,
      )
    expect(lossOf(server.requests)).toEqual({ refused: fits ? 0 : 1, lost: 0, lostRunning: 0 })
  })

  test('asked_drop_reports_blocks_and_goes_on', async () => {
    const { loop, last, server } = await started({}, DROPS)
    await loop.prompt('show a b')
    edit(loop.messages)
    await loop.prompt('show c')
    expect(last().transformations.length > 0).toBe(!fits)
    for (const one of last().transformations) expect(one).toMatchObject({ type: 'thinking_dropped', reason: 'prefix_binding_mismatch' })
    expect(lossOf(server.requests)).toMatchObject({ refused: 0, lostRunning: 0 })
    expect(lossOf(server.requests).lost > 0).toBe(!fits)
  })

  test('old_account_keeps_blocks', async () => {
    const { loop, server } = await started({ account: 'old' }, { headers: DROPS.headers })
    await loop.prompt('show a b')
    edit(loop.messages)
    await loop.prompt('show c')
    expect(lossOf(server.requests)).toEqual({ refused: 0, lost: 0, lostRunning: 0 })
    expect(server.requests.at(-1)!.verdict!.transformations.some(({ type }) => type === 'thinking_mismatch_allowed')).toBe(!fits)
  })
})

test('reasoning_that_left_does_not_come_back', async () => {
  const { loop } = await started({})
  await loop.prompt('show a b')
  const [{ content, at }] = thoughtsOf(loop.messages) as [{ content: any[]; at: number }]
  const [block] = content.splice(at, 1)
  await loop.prompt('show c')
  content.splice(at, 0, block)
  await expect(loop.prompt('show d')).rejects.toThrow('bound to a different conversation')
})

test('dropped_block_does_not_break_reasoning_made_after_it', async () => {
  const { loop, server, last } = await started({}, DROPS)
  await loop.prompt('show a b')
  loop.messages[2].content[0].content = 'short'
  await loop.prompt('show c')
  await loop.prompt('show d')
  expect(last().mismatches).toHaveLength(2)
  expect(lossOf(server.requests).lost).toBe(2)
})

test('reasoning_of_running_turn_is_counted_apart', async () => {
  const { loop, server } = await started({}, DROPS)
  let count = 0
  loop.options.prepare = (messages) => {
    count += 1
    if (count === 3) (messages as any[])[2].content[0].content = 'short'
    return [...messages]
  }
  await loop.prompt('show a b c')
  expect(lossOf(server.requests)).toEqual({ refused: 0, lost: 1, lostRunning: 1 })
})

test('tool_added_to_list_breaks_reasoning_and_deferred_one_does_not', async () => {
  const { loop, server } = await started({}, DROPS)
  const show = { name: 'show', description: 'Shows', parameters: { type: 'object' } }
  loop.options.tools = [show]
  await loop.prompt('show a')
  loop.options.tools = [{ name: 'late', description: 'Late', parameters: { type: 'object' }, defer_loading: true } as never, show]
  await loop.prompt('show b')
  expect(lossOf(server.requests).lost).toBe(0)
  loop.options.tools = [show, { name: 'late', description: 'Late', parameters: { type: 'object' } }]
  await loop.prompt('show c')
  expect(lossOf(server.requests).lost).toBe(4)
})

test('field_without_beta_and_unknown_signature_are_refused', async () => {
  const { loop } = await started({}, { body: DROPS.body })
  await expect(loop.prompt('show a')).rejects.toThrow('Extra inputs are not permitted')
  const other = await started({ account: 'old' })
  await other.loop.prompt('show a')
  thoughtsOf(other.loop.messages)[0]!.content[0].signature = ''
  await expect(other.loop.prompt('show b')).rejects.toThrow('Invalid `signature`')
})

test('responses_format_drops_and_reports', async () => {
  const { loop, server, last } = await started({}, { api: 'openai-responses' })
  await loop.prompt('show a b')
  expect(lossOf(server.requests)).toEqual({ refused: 0, lost: 0, lostRunning: 0 })
  loop.messages.find(({ type }) => type === 'function_call_output').output = 'short'
  await loop.prompt('show c')
  expect(last().transformations.length).toBeGreaterThan(0)
  expect(lossOf(server.requests)).toEqual({ refused: 0, lost: 2, lostRunning: 0 })
})
