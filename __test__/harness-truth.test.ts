/**
 * The messages that a harness has changed are sent as changed, whatever it changed; and a call that fails leaves nothing out of the
 * record.
 */
import { afterEach, describe, expect, test } from 'vitest'
import { Projection } from '../lib/projection/harness.ts'
import type { ContextManager, StoreOptions } from '../lib/index.ts'
import { folder, opened, sqlite } from './core/setup.ts'
import { cleanUp } from '../rig/cleanup.ts'
import { random } from '../rig/random.ts'
import { MODEL } from './hosts/processes.ts'

afterEach(cleanUp)

const user = (content: string) => ({ role: 'user', content: [{ type: 'text', text: content }] })
const says = (text: string) => ({ role: 'assistant', content: [{ type: 'text', text }] })
const calls = (id: string, args: object = { command: id }) => ({
  role: 'assistant',
  content: [{ type: 'toolCall', id, name: 'bash', arguments: args }],
})
const result = (id: string, text: string) => ({
  role: 'toolResult',
  toolCallId: id,
  toolName: 'bash',
  content: [{ type: 'text', text }],
  isError: false,
})

/** Returns the texts of the record, in the order in which they were said. */
async function recorded(manager: ContextManager): Promise<unknown[]> {
  const chat = await manager.get(`chat:${manager.sessionId}`)
  const turns = (chat?.['turns'] ?? []) as { user: unknown; assistant: { content: unknown }[]; toolcall_ids: string[] }[]
  return turns.map((turn) => ({ user: textOf(turn.user), answers: turn.assistant.map((one) => textOf(one.content)), calls: turn.toolcall_ids }))
}

function textOf(content: unknown): string | null {
  if (typeof content === 'string' || content === null || content === undefined) return content ?? null
  return (content as { type: string; text?: string; id?: string }[]).map((block) => block.text ?? `call ${block.id}`).join(' ')
}

describe('a harness that changes messages', () => {
  test('a prompt that was replaced is sent in its new wording, and the old one is out of the record', async () => {
    const manager = await opened({ cwd: folder() })
    const old = 'Delete build/'.padEnd(30, ' ')
    await manager.transformContext([user('Look'), says('ok'), user(old)])
    const messages = [user('Look'), says('ok'), user('Do NOT delete anything'.padEnd(30, ' '))]
    const sent = await manager.transformContext(messages)
    expect(sent).toEqual(messages)
    expect((await manager.assemble()).text).not.toContain('Delete build/')
    expect(await recorded(manager)).toEqual([
      { user: 'Look', answers: ['ok'], calls: [] },
      { user: messages[2]!.content[0]!.text, answers: [], calls: [] },
    ])
  })

  test.each(['references', 'sections'] as const)('a secret that was redacted in place is not sent again: %s', async (layout) => {
    const manager = await opened({ cwd: folder() })
    const projection = new Projection(manager, { layout, model: MODEL })
    const output = result('c', `token=hunter2 ${'x'.repeat(300)}`)
    const messages: object[] = [user('go'), calls('c'), output]
    expect(JSON.stringify(await projection.transform(messages))).toContain('hunter2')
    output.content[0]!.text = output.content[0]!.text.replace('hunter2', '*******')
    const sent = await projection.transform(messages)
    expect(JSON.stringify(sent)).not.toContain('hunter2')
    expect(JSON.stringify(sent)).toContain('*******')
    expect((await manager.assemble()).text).not.toContain('hunter2')
    for (let n = 0; n < 8; n += 1) messages.push(calls(`d${n}`), result(`d${n}`, 'y'.repeat(4000)), user('on'))
    const later = await projection.transform(messages)
    expect(JSON.stringify(later)).not.toContain('hunter2')
    // The model can ask only for the redacted text.
    expect(await projection.permits('c')).toBe(false)
    expect(await manager.activate('c')).toMatchObject({ ok: false, code: 'NULL_CONTENT', message: expect.stringContaining('removed from it') })
    expect(await manager.pin('c')).toMatchObject({ ok: false })
    expect(JSON.stringify(await manager.search('hunter2'))).toBe('[]')
    expect(await manager.search('token', { limit: 1 })).toHaveLength(1)
    const [other] = (await manager.sessionSets()).sessionIndex.filter((id) => id.startsWith('c~'))
    expect(await projection.permits(other!)).toBe(true)
    expect((await manager.get(other!))?.content).toBe(output.content[0]!.text)
  })

  test('in a session that was resumed, a secret that was redacted meanwhile is not sent again', async () => {
    const [cwd, store] = [folder(), sqlite()]
    const first = await opened({ cwd, store })
    const messages = [user('go'), calls('c'), result('c', `token=hunter2 ${'x'.repeat(300)}`)]
    await first.transformContext(messages)
    await first.close()
    const manager = await opened({ cwd, store })
    const projection = new Projection(manager, { layout: 'sections' })
    messages[2] = result('c', `token=******* ${'x'.repeat(300)}`)
    expect(JSON.stringify(await projection.transform(messages))).not.toContain('hunter2')
    expect((await manager.assemble()).text).not.toContain('hunter2')
    expect(await projection.permits('c')).toBe(false)
    const [other] = (await manager.sessionSets()).sessionIndex.filter((id) => id.startsWith('c~'))
    expect(await projection.permits(other!)).toBe(true)
  })

  test('removed messages are neither sent nor restored; the remaining ones are not recorded again', async () => {
    const manager = await opened({ cwd: folder() })
    const projection = new Projection(manager, { layout: 'sections' })
    const messages = [user('a'), calls('c0'), result('c0', `first ${'x'.repeat(200)}`), calls('c1'), result('c1', 'second'), says('done'), user('b')]
    await projection.transform(messages)
    const before = await recorded(manager)
    messages.splice(1, 2)
    const sent = JSON.stringify(await projection.transform(messages))
    expect(sent).not.toContain('first')
    expect(sent).toContain('second')
    expect(await projection.permits('c0')).toBe(false)
    expect(await projection.permits('c1')).toBe(true)
    expect(await manager.activate('c0')).toMatchObject({ ok: false, code: 'NULL_CONTENT' })
    expect((await manager.activate('c1')).ok).toBe(true)
    expect(await manager.search('first')).toEqual([])
    expect((await manager.search('second')).map(({ id }) => id)).toContain('c1')
    expect(await recorded(manager)).toEqual(before)
  })

  test('messages that were reordered are sent in their new order', async () => {
    const manager = await opened({ cwd: folder() })
    const messages = [user('a'), calls('c0'), result('c0', 'one'), calls('c1'), result('c1', 'two'), says('x')]
    await manager.transformContext(messages)
    const other = [messages[0]!, messages[3]!, messages[4]!, messages[1]!, messages[2]!, messages[5]!]
    expect(await manager.transformContext(other)).toEqual(other)
    expect(await recorded(manager)).toEqual([{ user: 'a', answers: ['call c1', 'call c0', 'x'], calls: ['c1', 'c0'] }])
  })

  test('a host that trims its oldest messages at each call records each message once', async () => {
    const manager = await opened({ cwd: folder() })
    const all: object[] = []
    for (let n = 0; n < 30; n += 1) {
      all.push(user(`prompt ${n}`), calls(`c${n}`), result(`c${n}`, `output ${n}`), says(`answer ${n}`))
      const kept = all.slice(-10)
      expect(await manager.transformContext(kept)).toHaveLength(kept.length)
    }
    const record = (await recorded(manager)) as { user: string; calls: string[] }[]
    expect(record.map((turn) => turn.user)).toEqual(Array.from({ length: 30 }, (_, n) => `prompt ${n}`))
    expect(record.flatMap((turn) => turn.calls)).toEqual(Array.from({ length: 30 }, (_, n) => `c${n}`))
  })

  test('a session that an assistant begins keeps its first user message at a resume', async () => {
    const [cwd, store] = [folder(), sqlite()]
    const messages = [says('Hello, what shall I do?'), user('Nothing')]
    const first = await opened({ cwd, store })
    await first.transformContext(messages.slice(0, 1))
    await first.close()
    const manager = await opened({ cwd, store })
    await manager.transformContext(messages)
    await manager.transformContext([...messages, says('fine')])
    expect(await recorded(manager)).toEqual([
      { user: null, answers: ['Hello, what shall I do?'], calls: [] },
      { user: 'Nothing', answers: ['fine'], calls: [] },
    ])
  })

  test('a message that is nested deeply does not end recording, and is sent as it is', async () => {
    const manager = await opened({ cwd: folder() })
    let deep: object = { bottom: true }
    for (let n = 0; n < 2000; n += 1) deep = { deep }
    const messages = [user('go'), calls('c', { deep, note: 'x'.repeat(5000) }), result('c', 'out')]
    expect(await manager.transformContext(messages)).toEqual(messages)
    const more = [...messages, says('one'), user('two'), says('three')]
    expect(await manager.transformContext(more)).toEqual(more)
    expect(await recorded(manager)).toEqual([
      { user: 'go', answers: ['call c', 'one'], calls: ['c'] },
      { user: 'two', answers: ['three'], calls: [] },
    ])
  })

  test('a message that contains itself is refused, and the next call works', async () => {
    const manager = await opened({ cwd: folder() })
    const loop: Record<string, unknown> = {}
    loop['self'] = loop
    await expect(manager.transformContext([user('go'), calls('c', loop)])).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    expect(await manager.transformContext([user('go')])).toEqual([user('go')])
  })

  test('outputs that a harness cuts after it recorded them can be brought back whole', async () => {
    const manager = await opened({ cwd: folder() })
    const projection = new Projection(manager)
    const whole = 'all of it '.repeat(500)
    await manager.receive({ id: 'c', tool: 'bash', args: {}, content: whole, status: 'ok' })
    const messages = [user('go'), calls('c'), result('c', 'all of it ... (cut)')]
    await projection.transform(messages)
    expect(await projection.permits('c')).toBe(true)
    expect((await manager.activate('c')).content).toBe(whole)
    expect((await manager.sessionSets()).sessionIndex).toEqual(['c'])
    messages[2] = result('c', 'all of it ... (CUT)')
    await projection.transform(messages)
    expect(await projection.permits('c')).toBe(false)
  })
})

/** Makes some calls of a method fail: before it does anything, after all of it, or after half of the messages. */
function failing(manager: ContextManager, fails: (call: number) => 'before' | 'halfway' | 'after' | undefined): void {
  const advance = manager.advance.bind(manager)
  let count = 0
  manager.advance = async (messages, call) => {
    const how = fails((count += 1))
    if (how === 'halfway') await advance(messages.slice(0, Math.ceil(messages.length / 2)), call)
    const plan = how === 'before' || how === 'halfway' ? undefined : await advance(messages, call)
    if (how !== undefined || plan === undefined) throw Object.assign(new Error('the store is away'), { code: 'STORE_UNAVAILABLE' })
    return plan
  }
}

describe('conversations of one session', () => {
  test('a second projection is refused, and so is transformContext beside one', async () => {
    const manager = await opened({ cwd: folder() })
    const messages = [user('go'), says('done')]
    const projection = new Projection(manager)
    await projection.transform(messages)
    const refused = { code: 'INVALID_ARGUMENT', message: expect.stringContaining('already has a projection') }
    await expect(new Projection(manager).transform(messages)).rejects.toMatchObject(refused)
    await expect(manager.transformContext(messages)).rejects.toMatchObject(refused)
    await projection.transform([...messages, user('more')])
    expect(await recorded(manager)).toEqual([
      { user: 'go', answers: ['done'], calls: [] },
      { user: 'more', answers: [], calls: [] },
    ])
  })

  test('a conversation without messages of the recorded one continues after it; the first is then refused', async () => {
    const manager = await opened({ cwd: folder() })
    const first = [user('a1'), says('b1'), user('a2'), says('b2')]
    const second = [user('c1'), says('d1'), user('c2')]
    await manager.transformContext(first)
    expect(await manager.transformContext(second)).toEqual(second)
    second.push(says('d2'))
    await manager.transformContext(second)
    const all = ['a1', 'a2', 'c1', 'c2'].map((text, n) => ({ user: text, answers: [['b1', 'b2', 'd1', 'd2'][n]], calls: [] }))
    expect(await recorded(manager)).toEqual(all)
    await expect(manager.transformContext([...first, user('a3')])).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('another one has followed'),
    })
    await manager.transformContext([...second, user('c3')])
    expect(await recorded(manager)).toEqual([...all, { user: 'c3', answers: [], calls: [] }])
  })
})

describe('a call that fails', () => {
  test('sends the last form and the new messages, and says so once', async () => {
    const manager = await opened({ cwd: folder() })
    let now = 0
    const warnings: string[] = []
    const options = { model: MODEL, shortens: true, now: () => now, onWarning: (sentence: string) => warnings.push(sentence) }
    const projection = new Projection(manager, options)
    const messages: object[] = []
    for (let n = 0; n < 40; n += 1) {
      messages.push(user(`prompt ${n}`), calls(`c${n}`), result(`c${n}`, `output ${n} `.repeat(400)), says(`answer ${n}`))
      now += 1_000
      await projection.transform(messages)
    }
    now += 3_600_000
    messages.push(user('after an hour'))
    const sent = await projection.transform(messages)
    expect(JSON.stringify(sent).length).toBeLessThan(JSON.stringify(messages).length / 2)
    failing(manager, () => 'before')
    messages.push(calls('last'), result('last', 'fresh '.repeat(400)))
    const fallback = [...sent, ...messages.slice(-2)]
    expect(await projection.transform(messages)).toEqual(fallback)
    expect(await projection.transform(messages)).toEqual(fallback)
    expect(projection.lastForm(messages)).toEqual(fallback)
    expect(warnings).toHaveLength(1)
    // If the host has trimmed the oldest messages, the rest is still in its last form.
    expect(JSON.stringify(projection.lastForm(messages.slice(4))).length).toBeLessThanOrEqual(JSON.stringify(fallback).length)
    // Every result that goes out has its call.
    const other = messages.map((message) => ((message as { toolCallId?: string }).toolCallId === 'c3' ? result('c3', 'reworded') : message))
    const form = projection.lastForm(other) as { role: string; toolCallId?: string; content: { id?: string }[] }[]
    const called = new Set(form.flatMap(({ role, content }) => (role === 'assistant' ? content.map(({ id }) => id) : [])))
    for (const { toolCallId } of form) if (toolCallId !== undefined) expect(called).toContain(toolCallId)
    expect(JSON.stringify(form)).toContain('reworded')
  })

  test('takes too long: the last form goes out at once until it ends, and nothing is lost', async () => {
    const manager = await opened({ cwd: folder() })
    const warnings: string[] = []
    const projection = new Projection(manager, { limitMs: 200, onWarning: (sentence) => warnings.push(sentence) })
    const messages: object[] = [user('one')]
    await projection.transform(messages)
    const advance = manager.advance.bind(manager)
    let release = (): void => {}
    const held = new Promise<void>((resolve) => (release = resolve))
    let ended = (): void => {}
    const end = new Promise<void>((resolve) => (ended = resolve))
    manager.advance = async (...args) => {
      await held
      const plan = await advance(...args)
      ended()
      return plan
    }
    messages.push(says('first'), user('two'))
    expect(await projection.transform(messages)).toEqual(messages)
    expect(warnings).toEqual([expect.stringContaining('longer than 0.2 s')])
    // No further call waits for it.
    expect(await projection.transform(messages)).toEqual(messages)
    release()
    await end
    manager.advance = advance
    messages.push(says('second'))
    await expect
      .poll(async () => (await projection.transform(messages), recorded(manager)))
      .toEqual([
        { user: 'one', answers: ['first'], calls: [] },
        { user: 'two', answers: ['second'], calls: [] },
      ])
  })

  test.each(['before', 'halfway', 'after'] as const)('%s: nothing is missing, and nothing stands under the wrong turn', async (how) => {
    const manager = await opened({ cwd: folder() })
    failing(manager, (call) => (call === 2 ? how : undefined))
    const warnings: string[] = []
    const projection = new Projection(manager, { onWarning: (sentence) => warnings.push(sentence) })
    const messages: object[] = [user('one')]
    await projection.transform(messages)
    messages.push(calls('c0'), result('c0', 'out 0'), says('answer'), user('two'))
    expect(await projection.transform(messages)).toEqual(messages)
    expect(warnings).toEqual([expect.stringMatching(/go out as they were last sent.*the store is away \(STORE_UNAVAILABLE\)$/)])
    messages.push(calls('c1'), result('c1', 'out 1'), says('end'))
    expect(await projection.transform(messages)).toEqual(messages)
    expect(await recorded(manager)).toEqual([
      { user: 'one', answers: ['call c0', 'answer'], calls: ['c0'] },
      { user: 'two', answers: ['call c1', 'end'], calls: ['c1'] },
    ])
  })

  test.each([1, 2, 3, 4, 5, 6])('whenever and however often, the record is the conversation; seed %i', async (seed) => {
    const { next } = random(seed)
    const store: StoreOptions = sqlite()
    const cwd = folder()
    let manager = await opened({ cwd, store })
    const arm = () => failing(manager, () => (next() < 0.3 ? (['before', 'halfway', 'after'] as const)[Math.floor(next() * 3)] : undefined))
    arm()
    let projection = new Projection(manager, { model: MODEL, onWarning: () => {} })
    const messages: object[] = []
    const expected: { user: string; answers: string[]; calls: string[] }[] = []
    for (let step = 0; step < 40; step += 1) {
      const dice = next()
      if (step === 0 || dice < 0.3) {
        messages.push(user(`prompt ${step}`))
        expected.push({ user: `prompt ${step}`, answers: [], calls: [] })
      } else if (dice < 0.75) {
        messages.push(calls(`c${step}`), result(`c${step}`, `output ${step} `.repeat(200)))
        expected.at(-1)!.answers.push(`call c${step}`)
        expected.at(-1)!.calls.push(`c${step}`)
      } else if (dice < 0.85 && expected.length > 1) {
        // The user goes back to before a prompt.
        const prompt = expected.pop()!.user
        messages.splice(messages.findIndex((one) => textOf((one as { content: unknown }).content) === prompt))
      } else if (dice < 0.92) {
        await manager.close()
        manager = await opened({ cwd, store })
        arm()
        projection = new Projection(manager, { model: MODEL, onWarning: () => {} })
      }
      expect((await projection.transform(messages)).length).toBeGreaterThanOrEqual(messages.length)
    }
    manager.advance = Object.getPrototypeOf(manager).advance
    await projection.transform(messages)
    expect(await recorded(manager)).toEqual(expected)
  })
})
