/** `/context why`: what broke the cached prefix, and who did it. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import type { SessionEntry } from '@earendil-works/pi-coding-agent'
import type { Made } from '../../extensions/boundary.ts'
import type { Replacement } from '../../extensions/messages.ts'
import { differenceOf, LastRequests } from '../../extensions/requests.ts'
import type { Difference } from '../../extensions/requests.ts'
import { explain } from '../../extensions/why.ts'
import { openRecording } from '../../lib/recordings/open.ts'
import { cacheHistory } from '../../lib/usage/breaks.ts'
import { cleanUp, startRpc } from '../../rig/pi.ts'
import type { PiRpc } from '../../rig/pi.ts'
import { calls } from '../../rig/reply.ts'
import { command, lines, put, setUp } from './support.ts'

afterEach(cleanUp)

let count = 0
const entry = (more: object): SessionEntry => ({ id: `e${(count += 1)}`, parentId: null, timestamp: '2026-01-01T00:00:00.000Z', ...more }) as SessionEntry
const answer = (prompt: number, cached: number, more: object = {}): SessionEntry =>
  entry({
    type: 'message',
    message: {
      role: 'assistant',
      provider: 'p',
      model: 'm',
      timestamp: 1000,
      stopReason: 'stop',
      usage: { input: prompt - cached, output: 1, cacheRead: cached, cacheWrite: 0 },
      ...more,
    },
  })
const system = (more: object): SessionEntry => entry({ type: 'message', message: { role: 'system', content: '', timestamp: 0, ...more } })
const edit = (targetId: string, text: string): SessionEntry => entry({ type: 'context_edit', targetId, replacement: { content: [{ type: 'text', text }] } })

const thinking = (thinkingLevel: string): SessionEntry => entry({ type: 'thinking_level_change', thinkingLevel })

const chosen = (provider: string, modelId: string): SessionEntry => entry({ type: 'model_change', provider, modelId })

const gone = (targetId: string): SessionEntry => entry({ type: 'context_edit', targetId, replacement: null })

const first = answer(20_000, 0)
const second = answer(21_000, 20_000)
const cold = answer(22_000, 3_000)
const reference = 'toolcall_ref id=0123abcd tool=read status=ok'

describe('the explanation', () => {
  const explained = (
    branch: SessionEntry[],
    difference?: Difference | null,
    edited: ReadonlyMap<string, readonly Made[]> = new Map(),
    reasoningLost = 0,
    since = Infinity,
  ): string => explain(branch, { edited, since, difference, cacheTtlMs: 300_000, reasoningLost })

  test.each<[string, SessionEntry[], string]>([
    ['no call', [], 'There has been no model call on this branch yet.'],
    ['a provider that tells nothing', [first, first], 'The provider has not reported any cache use'],
    ['one call', [answer(100, 50)], 'It was the first call on this branch'],
    ['a hit', [first, second], 'Nothing broke the cached prefix'],
    ['a hit but for a block', [second, answer(22_000, 20_100)], 'Nothing broke the cached prefix'],
    ['failed calls do not count', [first, second, answer(0, 0, { stopReason: 'error' })], 'Nothing broke the cached prefix'],
    ['another model', [second, answer(22_000, 0, { model: 'n' })], 'You: the model changed from p/m to p/n.'],
    ['another model, of a virtual one', [chosen('r', 'auto'), second, answer(22_000, 0, { model: 'n' })], 'The router (r/auto): it chose p/n after p/m.'],
    ['another model, chosen just before', [second, chosen('p', 'n'), answer(22_000, 0, { model: 'n' })], 'You: the model changed from p/m to p/n.'],
    ['a virtual model in place of one', [second, chosen('r', 'auto'), answer(22_000, 0, { model: 'n' })], 'You: the model changed from p/m to p/n.'],
    ['another level of thinking', [thinking('high'), second, thinking('low'), cold], 'You: the level of thinking changed from high to low.'],
    ['the same level of thinking, set again', [thinking('high'), second, thinking('high'), cold], 'Probably the provider'],
    ['a roll of an earlier process', [second, edit('x', reference), cold], 'We, the context manager: 1 message was replaced by a roll.'],
    ['an excerpt', [second, edit('x', 'id=0123abcd\nfirst'), edit('y', reference), cold], 'We, the context manager: 2 messages were replaced by a roll.'],
    ['prose that was shortened', [second, edit('x', 'begin\n[... 900 more chars: id=0123456789a]'), cold], '1 message was replaced by a roll.'],
    ['a message that left with others', [second, edit('x', reference), gone('y'), cold], '2 messages were replaced by a roll.'],
    [
      'an edit of an earlier process that looks like nothing of ours',
      [second, edit('x', 'shortened'), cold],
      'Not known: 1 message was replaced, and the session does not show why.',
    ],
    ['a message that left alone, in an earlier process', [second, gone('x'), cold], 'Not known: 1 message was replaced, and the session does not show why.'],
    ['tools of ours', [second, system({ toolsAdded: [{ name: 'activate' }, { name: 'pin' }] }), cold], 'We, the context manager: added activate, pin.'],
    [
      'other tools',
      [second, system({ toolsAdded: [{ name: 'deploy' }], toolsRemoved: [{ name: 'bash' }] }), cold],
      'A tool change (you, Pi or another extension): added deploy and removed bash.',
    ],
    ['the system prompt', [second, system({ sections: { rules: 'x' } }), cold], 'the system prompt changed (rules).'],
    ['a compaction', [second, entry({ type: 'compaction' }), cold], 'Pi: it compacted the conversation.'],
    [
      'a pause',
      [second, answer(22_000, 0, { timestamp: 700_000 })],
      'A pause: there were 12 min between the calls, and the provider keeps a prompt for 5 min.',
    ],
    [
      'a pause with a warmed cache',
      [second, entry({ type: 'usage', kind: 'cache_warm', timestamp: new Date(600_000).toISOString() }), answer(22_000, 0, { timestamp: 700_000 })],
      'Probably the provider',
    ],
  ])('%s', (_name, branch, text) => expect(explained(branch)).toContain(text))

  test('more positions than the provider looks back, and a step in the price', () => {
    const user = (text: string): SessionEntry => entry({ type: 'message', message: { role: 'user', content: [{ type: 'text', text }], timestamp: 0 } })
    const results = Array.from({ length: 40 }, (_, n) =>
      entry({ type: 'message', message: { role: 'toolResult', toolCallId: `c${n}`, content: [{ type: 'text', text: 'x' }] } }),
    )
    const known = {
      edited: new Map(),
      since: Infinity,
      difference: null,
      cacheTtlMs: 300_000,
      reasoningLost: 0,
      lookback: 20,
      steps: [{ inputTokensAbove: 21_500, factor: 5 }],
    }
    const many = Array.from({ length: 21 }, (_, n) => user(`prompt ${n}`))
    expect(explain([second, ...many, cold], known).split('\n')).toEqual([
      expect.stringContaining('The provider: it looks for a cached prefix at most 20 positions back, and 21 were added.'),
      "The model's price: above 22k prompt tokens all of them cost 5 times as much.",
    ])
    // A run of results is one position.
    expect(explain([second, ...results, user('on'), cold], known)).toContain('only added to the end of the previous one')
    expect(explain([first, second], known)).not.toContain('price')
  })

  test('the figures', () => {
    expect(explained([second, edit('x', reference), cold])).toContain(
      'The last call read 3.0k of its 22k prompt tokens from the cache; 18k tokens that the previous call had sent were processed again.',
    )
  })

  test('earlier breaks are listed with age, tokens and money, the newest first', () => {
    const paid = (prompt: number, cached: number, more: object = {}): SessionEntry =>
      answer(prompt, cached, {
        usage: {
          input: 0,
          output: 1,
          cacheRead: cached,
          cacheWrite: prompt - cached,
          cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: (prompt - cached) * 1e-5, total: 0 },
        },
        ...more,
      })
    const stored = entry({ type: 'message', message: { role: 'toolResult', content: [{ type: 'text', text: 'whole' }] } })
    const undone = entry({ type: 'context_edit', targetId: stored.id, replacement: { content: [{ type: 'text', text: 'whole' }] } })
    const branch = [
      stored,
      paid(20_000, 0),
      edit(stored.id, reference),
      paid(21_000, 3_000),
      undone,
      paid(22_000, 4_000),
      ...[23_000, 24_000].map((prompt) => paid(prompt, prompt - 1000)),
      paid(25_000, 0, { model: 'n' }),
      paid(26_000, 25_000, { model: 'n' }),
    ]
    expect(explained(branch).split('\n')).toEqual([
      'The last call read 25k of its 26k prompt tokens from the cache. Nothing broke the cached prefix.',
      'Earlier breaks:',
      '  1 call ago: 24k tokens processed again ($0.24). You: the model changed from p/m to p/n.',
      '  4 calls ago: 17k tokens processed again ($0.17). We, the context manager: 1 message was brought back by an undo.',
      '  5 calls ago: 17k tokens processed again ($0.17). We, the context manager: 1 message was replaced by a roll.',
    ])
  })

  test('at most five earlier breaks are listed', () => {
    const branch = Array.from({ length: 12 }, (_, index) => answer(20_000 + index, 0))
    const lines = explained([first, second, ...branch]).split('\n')
    expect(lines[0]).toContain('20k tokens that the previous call had sent were processed again')
    expect(lines.slice(2).map((line) => line.trim().split(':')[0])).toEqual(['1 call ago', '2 calls ago', '3 calls ago', '4 calls ago', '5 calls ago'])
  })

  test('reasoning that rolls have taken along comes first where the provider reports nothing', () => {
    expect(explained([first, second], null, new Map(), 14)).toMatch(
      /^Rolls have cost the model its reasoning of 14 steps, because what came before it changed\.\nThe last call read /,
    )
  })

  test('reasoning that the provider reports to have dropped comes first', () => {
    const drops = (count: number): object => ({
      diagnostics: [
        {
          type: 'anthropic_input_transformations',
          details: { transformations: [...Array<object>(count).fill({ type: 'thinking_dropped' }), { type: 'other' }] },
        },
      ],
    })
    const lines = explained([first, answer(21_000, 20_000, drops(1)), answer(22_000, 21_000, drops(14))]).split('\n')
    expect(lines).toEqual([
      'The provider reports that it dropped reasoning of 14 steps at the last call and of 1 step at earlier calls, because what came before it had changed.',
      expect.stringContaining('Nothing broke the cached prefix'),
    ])
    expect(explained([first, second])).not.toContain('reasoning')
  })

  const text = (content: string): Replacement => ({ content: [{ type: 'text', text: content }] })
  const rolled = text(reference)
  const odd = text('half of it')
  const stored = entry({ type: 'message', message: { role: 'toolResult', content: [{ type: 'text', text: 'whole' }] } })
  const made = (targetId: string, replacement: Replacement): SessionEntry => entry({ type: 'context_edit', targetId, replacement })

  test.each<[string, SessionEntry[], Made[], string | undefined]>([
    ['ours, whatever it looks like', [made(stored.id, odd)], [{ replacement: odd, by: 'roll' }], 'We, the context manager: 1 message was replaced by a roll.'],
    [
      'ours, though a later one has replaced it',
      [made(stored.id, odd), cold, made(stored.id, null), answer(23_000, 22_000)],
      [
        { replacement: odd, by: 'roll' },
        { replacement: null, by: 'roll' },
      ],
      '1 call ago: 18k tokens processed again. We, the context manager: 1 message was replaced by a roll.',
    ],
    [
      'an undo that leads to an earlier form',
      [made(stored.id, odd)],
      [{ replacement: odd, by: 'undo' }],
      'We, the context manager: 1 message was brought back by an undo.',
    ],
    [
      'a roll, an undo and a roll with no call between',
      [made(stored.id, rolled), made(stored.id, text('whole')), made(stored.id, rolled)],
      [
        { replacement: rolled, by: 'roll' },
        { replacement: text('whole'), by: 'undo' },
      ],
      'We, the context manager: 1 message was replaced by a roll.',
    ],
    [
      'a roll and an undo with no call between',
      [made(stored.id, rolled), made(stored.id, text('whole'))],
      [
        { replacement: rolled, by: 'roll' },
        { replacement: text('whole'), by: 'undo' },
      ],
      'Probably the provider',
    ],
    [
      'another extension, even if it looks like ours',
      [made(stored.id, rolled)],
      [{ replacement: odd, by: 'roll' }],
      'Another extension: it replaced 1 message of the conversation.',
    ],
    ['another extension, where we have made nothing', [made(stored.id, odd)], [], 'Another extension: it replaced 1 message of the conversation.'],
  ])('of this process: %s', (_name, entries, edits, expected) => {
    const isLast = entries.some((one) => one.type === 'message')
    expect(explained([stored, second, ...entries, ...(isLast ? [] : [cold])], undefined, new Map([[stored.id, edits]]), 0, 0)).toContain(expected)
  })

  test('a message that no call has had breaks nothing', () => {
    const fresh = entry({ type: 'message', message: { role: 'toolResult', content: [{ type: 'text', text: 'whole' }] } })
    expect(explained([second, fresh, made(fresh.id, rolled), cold])).toContain('Probably the provider')
  })

  test('the requests tell a provider from an extension that leaves no entry', () => {
    expect(explained([second, cold], null)).toContain('The provider: the request only added to the end of the previous one')
    expect(explained([second, cold], { part: 'message', index: 4, role: 'user' })).toContain('Another extension: message 5 of the request (user) has changed')
    expect(explained([second, cold], { part: 'tools' })).toContain('Another extension: the tools of the request changed')
  })
})

describe('the requests', () => {
  const user = (text: string) => ({ role: 'user', content: text })
  const marked = (text: string) => ({ role: 'user', content: [{ type: 'text', text, cache_control: { type: 'ephemeral' } }] })
  test.each<[string, unknown, unknown, Difference | null | undefined]>([
    ['nothing known', undefined, { messages: [] }, undefined],
    ['an unknown shape', { a: 1 }, { a: 1 }, undefined],
    ['one that grew', { messages: [user('a')] }, { messages: [user('a'), user('b')] }, null],
    ['marks that moved', { messages: [marked('a')] }, { messages: [user('a'), marked('b')] }, null],
    ['tools', { tools: [1], messages: [user('a')] }, { tools: [1, 2], messages: [user('b')] }, { part: 'tools' }],
    ['the system prompt', { system: 'a', messages: [] }, { system: 'b', messages: [] }, { part: 'system prompt' }],
    ['it as a message', { messages: [{ role: 'system', content: 'a' }] }, { messages: [{ role: 'system', content: 'b' }] }, { part: 'system prompt' }],
    ['a message', { input: [user('a'), user('b')] }, { input: [user('a'), user('c')] }, { part: 'message', index: 1, role: 'user' }],
    ['one that is gone', { contents: [user('a'), user('b')] }, { contents: [user('a')] }, { part: 'message', index: 1, role: 'user' }],
  ])('%s', (_name, earlier, later, difference) => expect(differenceOf(earlier, later)).toEqual(difference))

  test('a request that failed and is repeated counts once', () => {
    const requests = new LastRequests()
    const [a, b] = [{ messages: [user('a')] }, { messages: [user('x')] }]
    for (const payload of [a, 'answered', b, b, 'answered', 'answered']) {
      if (payload === 'answered') requests.answered()
      else requests.keep(payload)
    }
    expect(requests.difference()).toEqual({ part: 'message', index: 0, role: 'user' })
    requests.clear()
    expect(requests.difference()).toBeUndefined()
  })
})

describe('in Pi', () => {
  test("a roll is ours, a rewritten request another extension's, and an untouched one without a cause", async () => {
    const { home, load } = await setUp((_request, n) => (n === 0 ? calls(['read', { path: 'a.txt' }, 'call_a']) : 'fine.'))
    put(home, 'a.txt', lines('a', 400))
    const other = join(home.root, 'other.ts')
    writeFileSync(
      other,
      `export default (pi) => pi.on('context', ({ messages }) => {
        if (!JSON.stringify(messages.at(-1)).includes('rewrite')) return
        return { messages: [{ ...messages[0], content: 'rewritten' }, ...messages.slice(1)] }
      })`,
    )
    const rpc = await startRpc({ ...load, extension: [load.extension, other] })
    // Long prompts, so that the text after a change is more than a provider's block.
    for (const prompt of ['one', 'two', 'three', 'four']) await rpc.prompt(`${prompt} ${lines(prompt, 150)}`)
    const answer = async (): Promise<string> => {
      const [text = ''] = await command(rpc, '/context why')
      // Also without a terminal, which has a width.
      for (const line of text.split('\n')) expect(line.length).toBeLessThanOrEqual(80)
      return text.replaceAll(/\s+/g, ' ')
    }
    expect(await answer()).toContain('Nothing broke the cached prefix.')
    await command(rpc, '/context roll')
    await rpc.prompt('five')
    expect(await answer()).toMatch(/processed again( \(\$[\d.]+\))?\. We, the context manager: 1 message was replaced by a roll\./)
    await rpc.prompt(`rewrite ${lines('long', 400)}`)
    await rpc.prompt('rewrite')
    await rpc.prompt('six')
    expect(await answer()).toMatch(/processed again( \(\$[\d.]+\))?\. Another extension: message \d+ of the request \(user\) has changed/)
  })

  test('a roll, an undo and a roll again are ours, in this process and in the next one, and the command says the same', async () => {
    const { home, load } = await setUp((_request, n) =>
      n % 2 === 0 && n < 8
        ? { text: lines(`said ${n}`, 30), calls: [{ id: `call_${n}`, name: 'read', args: { path: `f${n}.txt` } }] }
        : lines(`answer ${n}`, 40),
    )
    for (let n = 0; n < 8; n += 2) put(home, `f${n}.txt`, lines(`f${n}`, 300))
    const ours = async (rpc: PiRpc): Promise<string[]> => {
      const [text = ''] = await command(rpc, '/context why')
      return text.replaceAll(/\s+/g, ' ').match(/(We, the context manager|Another extension|Not known): [^.]+\./g) ?? []
    }
    let rpc = await startRpc(load)
    for (const prompt of ['one', 'two', 'three', 'four', 'five', 'six', 'seven']) await rpc.prompt(`${prompt} ${lines(prompt, 60)}`)
    await command(rpc, '/context roll')
    await rpc.prompt('eight')
    await command(rpc, '/context undo')
    await rpc.prompt('nine')
    // Text that an undo has restored stays for some turns.
    for (const prompt of ['ten', 'eleven', 'twelve', 'thirteen']) await rpc.prompt(prompt)
    await command(rpc, '/context roll')
    await rpc.prompt('fourteen')
    const all = await ours(rpc)
    const rolled = /^We, the context manager: \d+ messages? (was|were) replaced by a roll\.$/
    // The provider still has the prompt that the undo has led back to.
    expect(all).toEqual([expect.stringMatching(rolled), expect.stringMatching(rolled)])
    const { sessionFile } = await rpc.state()
    await rpc.close()
    rpc = await startRpc({ ...load, args: ['--continue'] })
    const again = await ours(rpc)
    await rpc.close()
    expect(again).toEqual(all)
    const { breaks } = await cacheHistory(await openRecording(sessionFile))
    expect(breaks.flatMap(({ causes }) => causes)).toEqual(all)
  })
})
