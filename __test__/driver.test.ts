/** The driver of the protocol: its states, when tools are worth their price, and that replay runs the same one as Pi. */
import { afterEach, describe, expect, test } from 'vitest'
import { after, Driver } from '../lib/projection/driver/driver.ts'
import { editedContent } from '../lib/projection/driver/edits.ts'
import { SavingLedger } from '../lib/projection/driver/ledger.ts'
import type { PlainMessage } from '../lib/projection/driver/plain.ts'
import { plainMessage, sizeOf } from '../lib/projection/driver/size.ts'
import { CacheOdds } from '../lib/models/cache-odds.ts'
import { piCompaction } from '../lib/models/compaction.ts'
import { isPoint, worthOf } from '../lib/projection/driver/port.ts'
import type { Event, State } from '../lib/projection/driver/driver.ts'
import { ContextManager } from '../lib/index.ts'
import type { IncomingMessage, Plan } from '../lib/index.ts'
import { appendsTools } from '../lib/models/rules.ts'
import { BlockCache } from '../lib/replay/policies/block-cache.ts'
import { openManager } from '../lib/replay/policies/engine.ts'
import { Managed } from '../lib/replay/policies/managed.ts'
import type { Setting } from '../lib/replay/policies/policy.ts'
import type { RecordedEntry, Message } from '../lib/recordings/recording.ts'
import { MOMENT, options, setting as settingOf } from './replay/support.ts'
import { folder, modelCall, opened, write } from './core/setup.ts'
import { cleanUp, onCleanUp } from '../rig/cleanup.ts'

afterEach(cleanUp)

describe('states', () => {
  const unread: State = { is: 'unread' }
  const doubtful: State = { is: 'doubtful' }
  const underway: State = { is: 'underway', before: 3 }
  const agreed: State = { is: 'agreed' }
  const begun: Event = { is: 'begun', before: 3 }

  test.each<[State, Event, State]>([
    [unread, { is: 'doubted' }, unread],
    [unread, begun, underway],
    [unread, { is: 'taken back' }, unread],
    [agreed, { is: 'doubted' }, doubtful],
    [agreed, { is: 'moved' }, unread],
    [agreed, begun, underway],
    [doubtful, { is: 'doubted' }, doubtful],
    [doubtful, begun, underway],
    [underway, { is: 'accepted' }, agreed],
    // Its writes still have to be rolled back.
    [underway, { is: 'doubted' }, underway],
    [underway, { is: 'taken back' }, doubtful],
    [underway, { is: 'moved' }, unread],
  ])('%j, %j: %j', (state, event, next) => {
    expect(after(state, event)).toEqual(next)
  })
})

test.each([
  ['nothing has been spent', { spent: 0, rewriteCost: 0 }, false, undefined],
  ['the cache is dead in a long session', { spent: 1e5, rewriteCost: 0 }, false, 750],
  ['the prompt would be written again', { spent: 1e5, rewriteCost: 1e4 }, false, undefined],
  ['the session has cost a hundred times that', { spent: 2e6, rewriteCost: 1e4 }, false, 10_750],
  ['the provider appends them', { spent: 1e5, rewriteCost: 1e4 }, true, 750],
])('tools come only if they are worth their price: %s', (_name, plan, appends, price) => {
  expect(worthOf({ tokens: 600, appends: () => appends }, plan as Plan)).toBe(price)
})

test.each([
  [{ session: 's', tx: 1 }, true],
  [{ session: 's', tx: 1, times: ['a', 'b'] }, true],
  [{ session: 's', tx: 1, times: ['a'] }, false],
  [{ session: 's', tx: 1.5 }, false],
  [{ tx: 1 }, false],
  [null, false],
])('%j is a point: %j', (data, is) => {
  expect(isPoint(data)).toBe(is)
})

describe('ledger', () => {
  const PRICES = { input: 1, cacheRead: 0.1, cacheWrite: 0 }

  const user = (key: string, size: number): PlainMessage => plainMessage(key, { role: 'user', content: 'x'.repeat(size) })

  /** A branch whose last request had 2,000 tokens in plain Pi and 1,000 with us, after we had taken half. */
  function halved(): SavingLedger {
    const ledger = new SavingLedger()
    ledger.reset(
      [
        ['a', 0],
        ['b', 4000],
      ],
      [user('a', 4000), user('b', 4000)],
    )
    ledger.sent({ own: 0, plain: 0 }, false)
    ledger.answered({ input: 1000, cacheRead: 0, cacheWrite: 0 }, PRICES)
    expect(ledger.saved).toBe(1000)
    expect(ledger.last).toEqual({ own: 1000, plain: 2000, plainSize: 8000 })
    ledger.takeOver({ last: ledger.last! })
    return ledger
  }

  test.each<[string, (ledger: SavingLedger) => void, boolean, { input: number; cacheRead: number }, number]>([
    ['the cache holds', () => {}, true, { input: 0, cacheRead: 1000 }, 100],
    ['the cache was dead', () => {}, false, { input: 1000, cacheRead: 0 }, 1000],
    ['an undo wrote everything again', (ledger) => ledger.edit('a', 4000, true), true, { input: 2000, cacheRead: 0 }, -1800],
    ['an undo in a dead cache', (ledger) => ledger.edit('a', 4000, true), false, { input: 2000, cacheRead: 0 }, 0],
    [
      'an undo and a roll, with no call between',
      (ledger) => {
        ledger.edit('a', 4000, true)
        ledger.edit('a', 0, true)
      },
      true,
      { input: 0, cacheRead: 1000 },
      100,
    ],
    [
      'a summary in place of everything',
      (ledger) => {
        ledger.compacted({ id: 'c', kept: 'b', size: 400, told: 400 }, true, undefined, PRICES, piCompaction(0))
        ledger.reset([['s', 400]], [], { id: 'c', kept: 'b', size: 400, told: 400 })
      },
      true,
      { input: 100, cacheRead: 0 },
      0,
    ],
    ['no usage', () => {}, true, { input: 0, cacheRead: 0 }, 0],
  ])('%s', (_name, change, isAlive, usage, saved) => {
    const ledger = halved()
    change(ledger)
    // Until the call is answered, nothing has been saved or lost.
    expect(ledger.saved).toBe(0)
    ledger.sent({ own: 0, plain: 0 }, isAlive)
    ledger.answered({ ...usage, cacheWrite: 0 }, PRICES)
    expect(ledger.saved).toBeCloseTo(saved, 9)
  })

  test('above a step, the whole prompt costs more; dollars are those of the model that was called', () => {
    const ledger = new SavingLedger()
    ledger.reset([['a', 4000]], [user('a', 8000)])
    ledger.sent({ own: 0, plain: 0 }, false)
    const tiers = [
      { inputTokensAbove: 1500, factor: 3 },
      { inputTokensAbove: 3000, factor: 5 },
    ]
    ledger.answered({ input: 1000, cacheRead: 0, cacheWrite: 0 }, { input: 2, cacheRead: 0.2, cacheWrite: 2, tiers })
    expect([ledger.saved, ledger.dollars]).toEqual([5000, 0.01])
    ledger.sent({ own: 0, plain: 0 }, false)
    ledger.answered({ input: 1000, cacheRead: 0, cacheWrite: 0 }, { input: 0, cacheRead: 0, cacheWrite: 0 })
    expect([ledger.saved, ledger.dollars]).toEqual([6000, 0.01])
  })

  test('above a step, the answer costs more, too', () => {
    const ledger = new SavingLedger()
    ledger.reset([['a', 4000]], [user('a', 8000)])
    ledger.sent({ own: 0, plain: 0 }, false)
    const outputAbove = (tokens: number) => (tokens > 1500 ? 30 : 20)
    ledger.answered({ input: 1000, cacheRead: 0, cacheWrite: 0, output: 500 }, { input: 2, cacheRead: 0.2, cacheWrite: 2, outputAbove })
    expect([ledger.saved, ledger.dollars]).toEqual([1000 + (500 * 10) / 2, 0.002 + 0.005])
  })

  test.each<[object, number]>([
    [{ role: 'user', content: 'abc' }, 3],
    [
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'ab' },
          { type: 'thinking', thinking: 'c' },
          { type: 'toolCall', name: 'x', arguments: {} },
        ],
      },
      6,
    ],
    [{ role: 'toolResult', content: [{ type: 'image', data: 'x' }] }, 4800],
    [{ role: 'compactionSummary', summary: 'ab' }, 2],
    [{ role: 'bashExecution', command: 'ls', output: 'a' }, 3],
  ])('%j takes %i characters', (message, size) => {
    expect(sizeOf(message)).toBe(size)
  })
})

test.each([
  ['claude-opus-4-8', true],
  ['anthropic/claude-opus-5-5', true],
  ['claude-opus-4-5', false],
  ['claude-sonnet-4-5', false],
  ['openai/gpt-5.4-mini', true],
  ['gpt-5.3', false],
  ['gpt-6-sol', true],
  ['moonshotai/kimi-k3', true],
  ['my-gpt-6', false],
  ['m', false],
])('%s takes new tools in mid-conversation: %s', (model, takes) => {
  expect(appendsTools(model)).toBe(takes)
})

const setting = (appends: boolean) => settingOf({ manager: { ...options().manager, appendsTools: () => appends } })

/** Rounds of a prompt, an answer that calls, the result, and an answer that ends the turn. */
function rounds(count: number): RecordedEntry[] {
  return Array.from({ length: count }, (_, n): RecordedEntry[] => {
    const call = { type: 'toolCall', id: `c${n}`, name: 'bash', arguments: { command: `echo ${n}` } }
    const text = `${n} ${'lorem ipsum '.repeat(260)}`
    const at = 1000 * n
    return [
      { key: `u${n}`, at, message: { role: 'user', content: `do ${n}` } },
      { key: `a${n}`, at, message: { role: 'assistant', content: [call], stopReason: 'toolUse' } },
      { key: `r${n}`, at, message: { role: 'toolResult', toolCallId: `c${n}`, toolName: 'bash', content: [{ type: 'text', text }], isError: false } },
      { key: `e${n}`, at, message: { role: 'assistant', content: [{ type: 'text', text: `done ${n}` }], stopReason: 'stop' } },
    ]
  }).flat()
}

/** Collects what `advance` plans in this process: the edits by message, and the rolls. */
function plans(): { edits: unknown[]; reason: string | undefined }[] {
  const found: { edits: unknown[]; reason: string | undefined }[] = []
  const { prototype } = ContextManager
  const { advance } = prototype
  prototype.advance = async function (this: ContextManager, messages, call) {
    const plan = await advance.call(this, messages, call)
    if (plan.edits.length > 0) found.push({ edits: plan.edits, reason: plan.receipt?.reason })
    return plan
  }
  onCleanUp(() => void (prototype.advance = advance))
  return found
}

/** A host that drives the engine at the moments of Pi's events, and keeps a plain list. Returns at which call the tools came. */
async function asPi(entries: readonly RecordedEntry[], given: Setting): Promise<number | undefined> {
  const manager = await openManager(given)
  let at = 0
  let calls = 0
  let came: number | undefined
  const pending: IncomingMessage[] = []
  const shown = new Map<string, Message>()
  let passed = 0
  const { manager: own, cache, window } = given
  const odds = new CacheOdds()
  let hasRolled = false
  const driver = new Driver(manager, {
    news: () => ({ is: 'new', messages: pending.slice(0, (passed = pending.length)) }),
    visible: () => ({ messages: [...shown].map(([key, message]) => ({ key, message })), recorded: shown.size - pending.length }),
    landmarks: () => [],
    accepted: () => void pending.splice(0, passed),
    call: (moment) => ({
      ...moment,
      model: 'm',
      prices: { input: MOMENT.prices.input, cacheRead: MOMENT.prices.cacheRead, cacheWrite: MOMENT.prices.cacheWrite },
      contextWindow: window,
      cacheTtlMs: cache.lifetimeMs,
      nowMs: at,
      systemTokens: given.systemTokens + (came !== undefined && own.appendsTools?.('m') !== true ? own.overheadTokens : 0),
      onlyAtUserTurn: own.onlyAtUserTurn,
      shortens: true,
      cacheKept: odds.kept({ at, isPrompt: moment.isPrompt, model: MOMENT.model }),
    }),
    mayRoll: () => true,
    tools: {
      tokens: own.overheadTokens,
      given: () => came !== undefined,
      appends: () => own.appendsTools?.('m') === true,
      give: () => (came = calls),
    },
  })
  const take = async (when: 'prompt' | 'call' | 'end'): Promise<void> => {
    const plan = await driver.take(when, when === 'prompt')
    hasRolled ||= (plan?.edits.length ?? 0) > 0
    for (const edit of plan?.edits ?? []) expect(editedContent(edit, shown.get(edit.key) as Message)).toBeDefined()
    const lines = when === 'prompt' ? [] : driver.takeNotices()
    if (lines.length > 0) pending.push({ key: `notice-${pending.length}-${shown.size}`, message: { role: 'custom', content: lines.join('\n') } })
  }
  let isAnswered = false
  for (const { key, message, at: time } of entries) {
    if (message.role !== 'toolResult' && isAnswered) await take('end')
    if (message.role === 'user') await take('prompt')
    if (message.role === 'assistant') {
      await take('call')
      calls += 1
      // The host's account of its cache, as replay keeps it: each call finds all of the request before it.
      const isPrompt = [...shown.values()].at(-1)?.role !== 'toolResult'
      odds.answered({
        at: time,
        isPrompt,
        model: MOMENT.model,
        prompt: 100_000,
        cached: 100_000,
        written: 0,
        systemTokens: given.systemTokens,
        isChanged: hasRolled,
        lifetimeMs: cache.lifetimeMs,
      })
      hasRolled = false
    }
    at = time
    let whole = message
    if (message.role === 'toolResult') {
      const [block] = message.content as { type: string; text: string }[]
      const { header } = await manager.receive({
        id: message.toolCallId as string,
        tool: 'bash',
        args: { command: `echo ${key.slice(1)}` },
        content: block!.text,
        status: 'ok',
      })
      whole = { ...message, content: [{ type: 'text', text: header === undefined ? block!.text : `${header}\n${block!.text}` }] }
    }
    if (message.role === 'assistant') whole = { ...message, timestamp: time }
    shown.set(key, whole)
    pending.push({ key, message: whole })
    isAnswered = message.role === 'assistant' || (isAnswered && message.role === 'toolResult')
  }
  await manager.close()
  return came
}

/** The same through replay. */
async function asReplay(entries: readonly RecordedEntry[], given: Setting): Promise<number | undefined> {
  const policy = await Managed.open(given, new BlockCache())
  let calls = 0
  let came: number | undefined
  for (const entry of entries) {
    if (entry.message.role === 'assistant') {
      const { blocks } = await policy.request({ ...MOMENT, at: entry.at })
      calls += 1
      const shown = blocks.filter(({ label }) => label === 'system').reduce((sum, { units }) => sum + units, 0)
      if (shown > given.systemTokens * given.unitsPerToken) came ??= calls - 1
    }
    await policy.add(entry, undefined)
  }
  await policy.close()
  return came
}

test.each([false, true])('replay and a host give the same plans; the provider appends tools: %s', async (appends) => {
  const entries = rounds(60)
  const found = plans()
  const host = await asPi(entries, setting(appends))
  const ofHost = found.splice(0)
  const replayed = await asReplay(entries, setting(appends))
  expect(ofHost.length).toBeGreaterThan(1)
  expect(found).toEqual(ofHost)
  expect(replayed).toBe(host)
  // If tools are appended, the prompt before them stays valid, and they are added early.
  if (appends) expect(host).toBeDefined()
})

test('a second driver of a session is refused, and the first continues', async () => {
  const manager = await openManager(setting(false))
  onCleanUp(() => manager.close())
  const port = {
    news: () => ({ is: 'new' as const, messages: [] }),
    visible: () => ({ messages: [], recorded: 0 }),
    accepted: () => {},
    call: ({ atUserTurn, rolls }: { atUserTurn: boolean; rolls: boolean }) => ({
      atUserTurn,
      rolls,
      model: '',
      prices: { input: 0, cacheRead: 0, cacheWrite: 0 },
      contextWindow: 0,
      cacheTtlMs: 1,
      nowMs: 0,
      systemTokens: 0,
      onlyAtUserTurn: false,
    }),
    mayRoll: () => false,
  }
  const [first, second] = [new Driver(manager, port), new Driver(manager, port)]
  await first.take('end', true)
  await expect(second.take('end', true)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('already has a projection') })
  await first.take('end', true)
})

test.each([
  ['is shown', 1],
  ['has left', 0],
])('notices that wait are gone once all is read again: what the model saw %s', async (_, count) => {
  const cwd = folder()
  const manager = await opened({ cwd })
  write(cwd, 'a.txt', 'one\n')
  const call = { type: 'toolCall', id: 'c', name: 'read', arguments: { path: 'a.txt' } }
  const messages = [
    { role: 'user', content: 'read' },
    { role: 'assistant', content: [call] },
    { role: 'toolResult', toolCallId: 'c', toolName: 'read', content: [{ type: 'text', text: 'one\n' }], isError: false },
  ]
  let shown = messages.map((message, at): IncomingMessage => ({ key: String(at), message }))
  let fresh = shown
  const driver = new Driver(manager, {
    news: () => ({ is: 'new', messages: fresh }),
    visible: () => ({ messages: shown, recorded: shown.length - fresh.length }),
    accepted: () => void (fresh = []),
    call: ({ atUserTurn }) => ({ ...modelCall, atUserTurn, rolls: false }),
    mayRoll: () => false,
  })
  await driver.take('aside')
  for (const text of ['two\n', 'three\n']) {
    write(cwd, 'a.txt', text)
    await manager.reconcile()
    await driver.take('aside', true)
    if (count === 0) shown = shown.slice(0, 1)
    await driver.reread()
  }
  await driver.take('end', true)
  expect(driver.takeNotices()).toHaveLength(count)
})
