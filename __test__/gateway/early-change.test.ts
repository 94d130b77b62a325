/** A host changes something early in its conversation: that is an edit of it, and not another conversation. */
import { afterEach, describe, expect, test } from 'vitest'
import type { Gateway } from '../../lib/gateway/gateway.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import type { ModelServer } from '../../rig/model-server.ts'
import { AnthropicLoop, callTool, gatewayTo, lasting, long, looping, maskOf } from './support.ts'
import { some } from '../rows.ts'
import { rewritten } from '../../rig/checks.ts'

afterEach(cleanUp)

/** An output of 7 KB. */
const output = (n: number): string => long(`n${n}`, 120)

/** A session of 60 calls with the date in the first message, and a reminder in message 12. */
async function session(
  stay?: number,
): Promise<{ server: ModelServer; gateway: Gateway; loop: AnthropicLoop; place: ReturnType<typeof lasting>; size: number }> {
  const place = lasting()
  const { server, gateway, loop } = await looping({ ...place, open: { store: place.store, ...(stay === undefined ? {} : { stay: { weight: stay } }) } })
  loop.messages.push({
    role: 'user',
    content: [
      { type: 'text', text: '<system-reminder>\nToday is 2026-11-27.\n</system-reminder>' },
      { type: 'text', text: 'continue' },
    ],
  })
  for (let n = 0; n < 60; n += 1) {
    await loop.call('Bash', { command: `cat n${n}` }, output(n))
    if (n === 5) loop.messages.at(-1).content.push({ type: 'text', text: '<system-reminder>\nremember\n</system-reminder>' })
  }
  await loop.call('Bash', { command: 'true' }, 'x')
  return { server, gateway, loop, place, size: server.requests.at(-1)!.raw.length }
}

const note = (n: number): object => ({ type: 'text', text: `<system-reminder>\nStep ${n}.\n</system-reminder>` })
const resultAt = (loop: AnthropicLoop, n: number): any => loop.messages[2 + 2 * n].content[0]
const lastSize = (server: ModelServer): number => server.requests.at(-1)!.raw.length

const CHANGES: [string, (loop: AnthropicLoop) => void][] = [
  ['another date in the first message', (loop) => (loop.messages[0].content[0].text = '<system-reminder>\nToday is 2026-11-28.\n</system-reminder>')],
  ['a reminder gone', (loop) => loop.messages[12].content.pop()],
  ['one result cleared', (loop) => (resultAt(loop, 1).content = '[Old tool result content cleared]')],
  ['another date, and a reminder gone', (loop) => (loop.messages[12].content.pop(), (loop.messages[0].content[0].text = 'Today is 2026-11-28.'))],
  ['another date, while its user goes back', (loop) => (loop.messages.splice(-24), (loop.messages[0].content[0].text = 'Today is 2026-11-28.'))],
  ['one result cleared, while its user goes back', (loop) => (loop.messages.splice(-24), (resultAt(loop, 1).content = '[Old tool result content cleared]'))],
  ['one result changed, while its user goes back', (loop) => (loop.messages.splice(-24), (resultAt(loop, 3).content = 'redacted'))],
  [
    'all calls written anew, with a field more',
    (loop) => {
      for (const { content } of loop.messages) for (const block of content) if (block.type === 'tool_use') block.caller = { type: 'direct' }
    },
  ],
  ['the first message gone', (loop) => void loop.messages.splice(0, 1, { role: 'user', content: [{ type: 'text', text: 'continue' }] })],
  [
    'a new message before all',
    (loop) =>
      void loop.messages.unshift({ role: 'user', content: [{ type: 'text', text: 'first' }] }, { role: 'assistant', content: [{ type: 'text', text: 'yes' }] }),
  ],
]

describe('a host that changes its conversation early', () => {
  test.each(
    some(
      [0.6, 0.3].flatMap((stay) => CHANGES.map(([name, change]) => [name, stay, change] as const)),
      3,
    ),
  )('%s, stay %s: the rest stays as it was sent, in the same conversation', async (_, stay, change) => {
    const { server, gateway, loop, size } = await session(stay)
    change(loop)
    const rolls = gateway.ledger.sessions[0]!.rolls.length
    expect(rolls).toBeGreaterThan(0)
    const before = server.requests.length
    for (let n = 0; n < 3; n += 1) await loop.call('Bash', { command: `echo ${n}` }, 'x')
    for (const { raw } of server.requests.slice(before)) expect(raw.length).toBeLessThan(size * 1.05 + 2000)
    expect(gateway.conversations.all.map(({ id }) => id)).toEqual(['claude-code:session-1'])
    // Only the change itself and rolls break the prefix.
    expect(rewritten(server.requests.slice(before)).length).toBeLessThanOrEqual(gateway.ledger.sessions.flatMap((one) => one.rolls).length - rolls)
    expect(server.problems).toEqual([])
  })

  test('a new gateway on the same store decides the same', async () => {
    const { server, gateway, loop, place, size } = await session()
    CHANGES[0]![1](loop)
    await gateway.close()
    const second = await gatewayTo(server.url, place)
    const same = Object.assign(new AnthropicLoop(second.gateway), { messages: loop.messages, calls: 100 })
    await same.call('Bash', { command: 'echo' }, 'x')
    expect(lastSize(server)).toBeLessThan(size * 1.05 + 2000)
    expect(second.gateway.conversations.all.map(({ id }) => id)).toEqual(['claude-code:session-1'])
  })

  test.each([
    ['[Old tool result content cleared]', 20],
    ['[Old tool result content cleared]', 3],
    ['<tool_output_masked>\n[Tool output (0.01MB, 120 lines) masked to preserve context window. Full output saved to: /tmp/x]\n</tool_output_masked>', 20],
    // Longer than what stood there: the output had left.
    [maskOf(output(7)), 20],
    [maskOf(output(7)), 3],
  ])('outputs that it clears (%j, %i) are no versions of theirs, and come back as they were', async (text, count) => {
    const { server, gateway, loop, size } = await session()
    const { manager } = await gateway.conversations.all[0]!.session()
    const recorded = (await manager.sessionSets()).sessionIndex.length
    for (let n = 0; n < count; n += 1) resultAt(loop, n).content = text
    await loop.call('Bash', { command: 'echo' }, 'x')
    expect(lastSize(server)).toBeLessThan(size + 3000)
    expect(gateway.conversations.all.map(({ id }) => id)).toEqual(['claude-code:session-1'])
    const { manager: now } = await gateway.conversations.all[0]!.session()
    expect((await now.sessionSets()).sessionIndex.length).toBe(recorded + 1)
    expect(await now.search('"tool result content cleared"')).toEqual([])
    expect(await now.search('"masked to preserve"')).toEqual([])
    const sent = server.requests.at(-1)!.messages.flatMap(({ results }) => results)
    for (let n = 0; n < count; n += 1) {
      const one = sent.find(({ id }) => id === `toolu_session-1_${n + 1}`)?.text ?? text
      if (one !== text) expect(one).toMatch(/^toolcall_ref id=\S+ tool=bash /)
      expect((await callTool(gateway, 'activate', { id: `toolu_session-1_${n + 1}` })).slice(0, 200)).toBe(output(n).slice(0, 200))
    }
    expect(server.problems).toEqual([])
  })

  test.each<[string, (loop: AnthropicLoop, n: number) => void, (loop: AnthropicLoop) => void]>([
    ['a block of its newest message', (loop, n) => loop.messages.at(-1).content.push(note(n)), (loop) => loop.messages.at(-1).content.pop()],
    ['a message behind all others', (loop, n) => loop.messages.push({ role: 'user', content: [note(n)] }), (loop) => loop.messages.pop()],
  ])('a reminder that the next request does not have, as %s, changes nothing of the rest', async (_, add, remove) => {
    const { server, gateway, loop } = await looping(lasting())
    await loop.prompt('continue')
    for (let n = 0; n < 40; n += 1) {
      if (n > 0) remove(loop)
      if (n === 0) loop.messages.push({ role: 'user', content: [{ type: 'text', text: 'proceed' }] })
      loop.messages.push(
        { role: 'assistant', content: [{ type: 'tool_use', id: `toolu_${n}`, name: 'Bash', input: { command: `cat n${n}` } }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: `toolu_${n}`, content: output(n) }] },
      )
      add(loop, n)
      await loop.send()
    }
    expect(gateway.conversations.all.map(({ id }) => id)).toEqual(['claude-code:session-1'])
    expect(gateway.ledger.sessions[0]!.rolls.length).toBeGreaterThan(1)
    expect(lastSize(server)).toBeLessThan(JSON.stringify(loop.messages).length / 2)
    expect(server.problems).toEqual([])
  })

  test('a compaction by the host is a new conversation', async () => {
    for (const left of some([1, 3, 9], 1)) {
      const { gateway, loop } = await session()
      const tail = left === 1 ? [] : loop.messages.slice(1 - left)
      loop.messages.splice(
        0,
        loop.messages.length,
        { role: 'user', content: [{ type: 'text', text: 'This session is being continued. Summary: none' }] },
        ...tail,
      )
      await loop.send()
      await loop.call('Bash', { command: 'echo' }, 'x')
      expect(gateway.conversations.all.map(({ id }) => id)).toEqual(['claude-code:session-1', 'claude-code:session-1~2'])
      await gateway.close()
    }
  })
})
