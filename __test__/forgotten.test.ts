/** Text that the owner of a store forgot stays forgotten when hosts restart with their own messages, and when it is imported. */
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { ContextManager, Store } from '../lib/index.ts'
import { cleanUp, temporaryFolder } from '../rig/pi.ts'

afterEach(cleanUp)

/** Texts that are nowhere else, by where they stand; most are short. */
const TEXTS = {
  prompt: 'call me Zaphod-Qx',
  reasoning: 'they are Zaphod-Qx, so be polite',
  answer: 'Hello Zaphod-Qx!',
  argument: 'grep Zaphod-Qx notes',
  output: 'notes:1: Zaphod-Qx',
  short: 'qZ',
  long: `a long prompt of Zaphod-Qx ${'with many words '.repeat(40)}`,
}

type Messages = Record<string, unknown>[]

/** One conversation in the messages of three kinds of hosts. */
const SHAPES: Record<string, Messages> = {
  pi: [
    { role: 'user', content: TEXTS.prompt, timestamp: 1 },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: TEXTS.reasoning },
        { type: 'text', text: TEXTS.answer },
        { type: 'toolCall', id: 'c1', name: 'bash', arguments: { command: TEXTS.argument } },
      ],
      timestamp: 2,
    },
    { role: 'toolResult', toolCallId: 'c1', toolName: 'bash', content: [{ type: 'text', text: TEXTS.output }], isError: false, timestamp: 3 },
    { role: 'assistant', content: [{ type: 'text', text: TEXTS.short }], timestamp: 4 },
    { role: 'user', content: [{ type: 'text', text: TEXTS.long }], timestamp: 5 },
  ],
  anthropic: [
    { role: 'user', content: TEXTS.prompt },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: TEXTS.reasoning, signature: 's' },
        { type: 'text', text: TEXTS.answer },
        { type: 'tool_use', id: 'c1', name: 'bash', input: { command: TEXTS.argument } },
      ],
    },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: TEXTS.output }] },
    { role: 'assistant', content: [{ type: 'text', text: TEXTS.short }] },
    { role: 'user', content: [{ type: 'text', text: TEXTS.long }] },
  ],
  openai: [
    { role: 'user', content: TEXTS.prompt },
    {
      role: 'assistant',
      content: TEXTS.answer,
      reasoning_content: TEXTS.reasoning,
      tool_calls: [{ id: 'c1', type: 'function', function: { name: 'bash', arguments: JSON.stringify({ command: TEXTS.argument }) } }],
    },
    { role: 'tool', tool_call_id: 'c1', content: TEXTS.output },
    { role: 'assistant', content: TEXTS.short },
    { role: 'user', content: TEXTS.long },
  ],
}

/** Everything that a store still says, of all objects and versions. */
async function everything(path: string, ids: string[]): Promise<string> {
  await using store = await Store.open({ kind: 'sqlite', path })
  expect(await store.verify()).toEqual([])
  const histories = await Promise.all(ids.map((id) => store.history(id)))
  const hits = await Promise.all(Object.values(TEXTS).map((text) => store.search(text)))
  return JSON.stringify([histories, hits.flat()])
}

const found = (text: string): string[] => Object.values(TEXTS).filter((one) => text.includes(JSON.stringify(one).slice(1, -1)))

const open = (folder: string, path: string, sessionId = 's'): Promise<ContextManager> =>
  ContextManager.open({ sessionId, cwd: folder, store: { kind: 'sqlite', path }, watch: false, systemPrompt: 'Be brief.' })

describe.each(Object.entries(SHAPES))('a host with messages of %s', (_, messages) => {
  /** A store with the recorded conversation. */
  const recorded = async (): Promise<{ folder: string; path: string; ids: string[] }> => {
    const folder = temporaryFolder('forgotten-')
    const path = join(folder, 'context.db')
    const first = await open(folder, path)
    await first.transformContext(messages)
    const ids = (await first.sessionSets()).sessionIndex
    await first.close()
    return { folder, path, ids }
  }

  test('brings nothing back by restarting, again and again', async () => {
    const { folder, path, ids } = await recorded()
    const all = ['chat:s', 'system_prompt:s', 'session:s', ...ids]
    expect(found(await everything(path, all)).length).toBeGreaterThanOrEqual(6)
    for (let restart = 0; restart < 3; restart += 1) {
      await using store = await Store.open({ kind: 'sqlite', path })
      await store.forget([{ sessionId: 's' }], 'over')
      await store.close()
      const again = await open(folder, path)
      // The model still gets what the host has.
      const sent = JSON.stringify(await again.transformContext(messages))
      expect(found(sent)).toEqual(Object.values(TEXTS))
      const known = (await again.sessionSets()).sessionIndex
      const { turn_count: turns } = (await again.get('chat:s')) as { turn_count?: number }
      await again.close()
      expect(found(await everything(path, [...all, ...known]))).toEqual([])
      // Nor is it recorded once more, as something forgotten.
      expect([turns, known]).toEqual([2, ids])
    }
    // The same in another session.
    const other = await open(folder, path, 'other')
    await other.transformContext(messages)
    const known = (await other.sessionSets()).sessionIndex
    await other.close()
    expect(found(await everything(path, ['chat:other', ...known]))).toEqual([])
  })

  test.each(['call me Zaphod-Qx', 'Zaphod-Qx', 'notes:1: Zaphod'])('"%s" is forgotten once: a restart records nothing', async (text) => {
    const { folder, path } = await recorded()
    const store = await Store.open({ kind: 'sqlite', path })
    await store.forget([{ text }], 'over')
    const history = async (from: Store): Promise<unknown> => Promise.all(['chat:s', 'c1'].map(async (id) => (await from.history(id)).length))
    const before = await history(store)
    await store.close()
    for (let restart = 0; restart < 2; restart += 1) {
      const again = await open(folder, path)
      await again.transformContext(messages)
      expect((await again.sessionSets()).sessionIndex).toEqual(['c1'])
      await again.close()
      await using after = await Store.open({ kind: 'sqlite', path })
      expect(await history(after)).toEqual(before)
    }
  })

  test('another conversation in the same session is recorded', async () => {
    const { folder, path } = await recorded()
    const store = await Store.open({ kind: 'sqlite', path })
    await store.forget([{ sessionId: 's' }], 'over')
    await store.close()
    const other = JSON.parse(JSON.stringify(messages).replaceAll('"c1"', '"c9"').replaceAll('Zaphod-Qx', 'the new one')) as Messages
    await using again = await open(folder, path)
    await again.transformContext(other)
    expect(JSON.stringify(await again.get('chat:s'))).toContain('call me the new one')
    expect((await again.get('c9'))?.content).toBe('notes:1: the new one')
  })

  test('an export from before brings nothing back, in the same session or under another name', async () => {
    const folder = temporaryFolder('forgotten-')
    const [path, elsewhere, file] = [join(folder, 'context.db'), join(folder, 'elsewhere.db'), join(folder, 'export.jsonl')]
    const renamed = JSON.parse(JSON.stringify(messages).replaceAll('"c1"', '"c2"')) as Messages
    for (const [place, session, said] of [
      [path, 's', messages],
      [elsewhere, 'other', renamed],
    ] as const) {
      const manager = await open(folder, place, session)
      await manager.transformContext([...said])
      await manager.close()
    }
    await using store = await Store.open({ kind: 'sqlite', path })
    const before = await store.export(file)
    await store.forget([{ sessionId: 's' }], 'over')
    expect(await store.import(file)).toMatchObject({ objects: before.objects, written: 0 })
    await using second = await Store.open({ kind: 'sqlite', path: elsewhere })
    await second.export(join(folder, 'other.jsonl'))
    const { versions } = await store.import(join(folder, 'other.jsonl'))
    expect(versions).toBeGreaterThan(0)
    await store.close()
    const ids = ['chat:s', 'chat:other', 'c1', 'c2']
    expect(found(await everything(path, ids))).toEqual([])
  })
})

test('a conversation without calls does not grow when it is forgotten again and again', async () => {
  const folder = temporaryFolder('forgotten-')
  const path = join(folder, 'context.db')
  const talk: Messages = [1, 2, 3].flatMap((n) => [
    { role: 'user', content: `${TEXTS.prompt} ${n}` },
    { role: 'assistant', content: `${TEXTS.answer} ${n}` },
  ])
  for (let restart = 0; restart < 4; restart += 1) {
    const manager = await open(folder, path)
    expect(JSON.stringify(await manager.transformContext(talk))).toContain(TEXTS.prompt)
    const { turn_count: turns } = (await manager.get('chat:s')) as { turn_count?: number }
    await manager.close()
    await using store = await Store.open({ kind: 'sqlite', path })
    await store.forget([{ sessionId: 's' }], 'over')
    expect([turns, found(await everything(path, ['chat:s']))]).toEqual([3, []])
  }
  await using manager = await open(folder, path)
  await manager.transformContext([...talk, { role: 'user', content: 'something new' }])
  expect(JSON.stringify(await manager.get('chat:s'))).toContain('something new')
})
