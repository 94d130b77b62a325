/**
 * Messages of the system among the others, as Anthropic takes them: each stands before an answer or ends the request. Removals and
 * additions keep that rule.
 */
import { writeFileSync } from 'node:fs'
import { afterEach, describe, expect, test } from 'vitest'
import { Projection } from '../lib/projection/harness.ts'
import type { ProjectedModel, ShapeName } from '../lib/projection/harness.ts'
import { folder, opened, write } from './core/setup.ts'
import { written } from './hosts/conversation.ts'
import type { Step } from './hosts/conversation.ts'
import { output } from './hosts/script.ts'
import { cleanUp } from '../rig/cleanup.ts'
import { SOON } from '../rig/extension.ts'
import { startModelServer } from '../rig/model-server.ts'
import { PlainLoop } from '../rig/plain-loop.ts'
import { random } from '../rig/random.ts'
import type { Reply } from '../rig/reply.ts'
import type { ModelRequest } from '../rig/exchange.ts'
import { BINDING_BETA, lossOf, misplacedSystem } from '../rig/strict.ts'
import { thinker } from '../rig/thinker.ts'
import { isWhole, some } from './rows.ts'

afterEach(cleanUp)

const OPUS: ProjectedModel = { name: 'claude-opus-5-5', contextWindow: 200_000, input: 4, cacheRead: 0.2, cacheWrite: 5 }

const DROPS = {
  body: { thinking: { type: 'adaptive', block_binding: { prefix_mismatch_behavior: 'drop_block' } } },
  headers: { 'anthropic-beta': BINDING_BETA },
}

/** Thinks only, where a prompt says so. */
function brooder(request: ModelRequest): Reply {
  const { thinking } = thinker(request) as Reply & { thinking: string }
  const prompt = request.messages.findLast(({ role, text }) => role === 'user' && text.startsWith('show'))
  return prompt?.text === 'show nothing' ? { parts: [{ thinking }] } : thinker(request)
}

describe.each(['refuses', 'drops'] as const)('%s', (binding) => {
  test('answer_that_is_only_reasoning_leaves_no_system_message_before_a_user', async () => {
    const server = await startModelServer(brooder, {})
    const manager = await opened({ cwd: folder(), stay: SOON })
    let rolls = 0
    const projection = new Projection(manager, { shortens: true, systemTokens: 3000, onRoll: () => (rolls += 1), model: { ...OPUS, binding } })
    const loop = new PlainLoop({
      server,
      api: 'anthropic-messages',
      run: (_, { name }) => output(name),
      prepare: (messages) => projection.transform(messages),
      ...(binding === 'drops' ? DROPS : {}),
    })
    for (let turn = 0; turn < 36; turn += 1) {
      loop.messages.push({ role: 'user', content: turn % 3 === 0 ? 'show nothing' : `show a${turn} b${turn} c${turn}` })
      if (turn % 2 === 0) loop.messages.push({ role: 'system', content: `it is turn ${turn}` })
      await loop.resume()
    }
    expect(rolls).toBeGreaterThan(0)
    expect(lossOf(server.requests)).toMatchObject({ refused: 0, lostRunning: 0 })
    const last = server.requests.at(-1)!.body.messages as { role: string; content: any }[]
    expect(last.filter(({ role }) => role === 'system').length, 'each of them is still there').toBe(18)
    const stands = last.filter(({ role, content }, at) => role === 'assistant' && content[0].text === '[...]' && last[at - 1]!.role === 'system')
    expect(stands.length).toBeGreaterThan(0)
    server.check()
  })
})

test('refused_reasoning_that_stays_out_leaves_no_system_message_before_a_user', async () => {
  const server = await startModelServer(brooder, {})
  const manager = await opened({ cwd: folder(), stay: SOON })
  // The host says that nothing is bound, and is wrong.
  const projection = new Projection(manager, { shortens: true, systemTokens: 3000, model: { ...OPUS, binding: 'none' } })
  const loop = new PlainLoop({ server, api: 'anthropic-messages', run: (_, { name }) => output(name), prepare: (messages) => projection.transform(messages) })
  let refusals = 0
  for (let turn = 0; turn < 36; turn += 1) {
    loop.messages.push({ role: 'user', content: turn % 3 === 0 ? 'show nothing' : `show a${turn} b${turn} c${turn}` })
    if (turn % 2 === 0) loop.messages.push({ role: 'system', content: `it is turn ${turn}` })
    await loop.resume().catch((error: unknown) => {
      expect(projection.refused(error), String(error)).toBe(true)
      refusals += 1
      return loop.resume()
    })
  }
  expect(refusals).toBe(1)
  expect(server.requests.at(-1)!.body.messages.some(({ content }: any) => content[0].text === '[...]')).toBe(true)
})

/** The system's message in a shape. */
const says = (shape: ShapeName, text: string, timestamp: number): object => {
  if (shape === 'pi') return { role: 'system', content: [{ type: 'text', text }], timestamp }
  return { role: 'system', content: text }
}

/** Steps of any kind, with messages of the system directly before answers: what a host may have. */
function* steps(seed: number): Generator<{ step: Step; isReminded: boolean }> {
  const { next, below } = random(seed)
  for (let n = 0; ; n += 1) {
    yield { step: { user: `prompt ${n} ${'word '.repeat(below(400))}` }, isReminded: false }
    for (let left = below(4); left > 0; left -= 1) {
      const calls = [{ id: `c${n}_${left}`, name: 'bash', args: { command: `run ${n}` }, output: output(`${n}_${left}`) }]
      yield { step: { ...(next() < 0.7 ? { reasoning: `thought ${n} ${left}` } : {}), calls }, isReminded: next() < 0.3 }
    }
    const isThought = next() < 0.6
    yield { step: isThought ? { reasoning: `thought ${n} `.repeat(1 + below(50)), calls: [] } : { text: `done ${n}`, calls: [] }, isReminded: next() < 0.6 }
  }
}

describe.each(some<ShapeName>(['pi', 'anthropic', 'openai-chat', 'openai-responses', 'ai-sdk'], 2))('%s', (shape) => {
  test.each(['refuses', 'drops'] as const)('any_conversation_keeps_its_grammar: %s', async (binding) => {
    for (const seed of isWhole ? [1, 2, 3] : [1]) {
      const manager = await opened({ cwd: folder(), stay: SOON, sessionId: `s${seed}` })
      let rolls = 0
      // Each call comes after the end of the cache's lifetime, so a roll costs nothing.
      let now = 0
      const projection = new Projection(manager, {
        shape,
        shortens: true,
        now: () => (now += 600_000),
        onRoll: () => (rolls += 1),
        model: { ...OPUS, binding },
      })
      const messages: object[] = []
      let [reminders, count] = [0, 0]
      for (const { step, isReminded } of steps(seed)) {
        if ((count += 1) > 90) break
        if (isReminded) messages.push(says(shape, `reminder ${(reminders += 1)}`, 1))
        if (isReminded || 'user' in step) expect(broken(await projection.transform(messages), reminders)).toBeUndefined()
        messages.push(...written[shape](step, 1))
      }
      expect(rolls, `seed ${seed}`).toBeGreaterThan(0)
    }
  })
})

/** Returns the error in the roles of a request; undefined if there is none. */
function broken(sent: readonly object[], reminders: number): string | undefined {
  const count = sent.filter((message) => (message as { role?: unknown }).role === 'system').length
  if (count !== reminders) return `${count} messages of the system, not ${reminders}`
  // In OpenAI's items, reasoning and calls are an answer's as well.
  const body = {
    messages: sent.map((message) => ({ role: 'type' in message && message.type !== 'message' ? 'assistant' : (message as { role?: unknown }).role })),
  }
  return misplacedSystem({ api: 'anthropic-messages', body })
}

test('notice_stands_before_messages_of_the_system_at_the_end', async () => {
  const cwd = folder()
  const manager = await opened({ cwd })
  const projection = new Projection(manager, { shape: 'anthropic', model: OPUS })
  const lines = (word: string): string => Array.from({ length: 40 }, (_, n) => `${word} line ${n}`).join('\n') + '\n'
  const path = write(cwd, 'a.txt', lines('old'))
  const messages: object[] = [
    { role: 'user', content: 'read it' },
    { role: 'assistant', content: [{ type: 'tool_use', id: 'r', name: 'read', input: { path } }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'r', content: lines('old') }] },
  ]
  await projection.transform(messages)
  messages.push(
    { role: 'assistant', content: [{ type: 'text', text: 'done' }] },
    { role: 'user', content: 'on' },
    { role: 'system', content: 'one' },
    { role: 'system', content: 'two' },
  )
  writeFileSync(path, lines('new'))
  await manager.reconcile()
  const roles = (sent: readonly object[]) => sent.map((message) => (message as { role: string }).role).join(' ')
  const sent = await projection.transform(messages)
  expect(JSON.stringify(sent.at(-3))).toContain('stale id=')
  expect(roles(sent)).toBe('user assistant user assistant user user system system')
  messages.push({ role: 'assistant', content: [{ type: 'text', text: 'done' }] }, { role: 'user', content: 'on' })
  const next = await projection.transform(messages)
  expect(next.slice(0, sent.length)).toEqual(sent)
  expect(roles(next.slice(sent.length))).toBe('assistant user')
})
