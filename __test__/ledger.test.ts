/** The ledger of a branch over long random conversations: no request without us exceeds the window, and a resumed ledger continues the same bill. */
import { describe, expect, test } from 'vitest'
import { SavingLedger } from '../lib/projection/driver/ledger.ts'
import type { PromptPrices, PromptUsage } from '../lib/projection/driver/ledger.ts'
import type { Left } from '../lib/models/index.ts'
import type { PlainMessage } from '../lib/projection/driver/plain.ts'
import { plainMessage } from '../lib/projection/driver/size.ts'
import { compactionOf, firstKept, piCompaction } from '../lib/models/compaction.ts'
import { random } from '../rig/random.ts'

const PRICES: PromptPrices = { input: 3, cacheRead: 0.3, cacheWrite: 3.75, output: 15 }
const SYSTEM = { own: 8000, plain: 8000 }

/** One branch, as Pi keeps it. */
class Host {
  ledger = new SavingLedger()
  readonly plain: PlainMessage[] = []
  readonly own = new Map<string, number>()
  longest = 0
  #cached = 0

  /** A turn: the user's words, an answer with a call, its output. `share` of all outputs is then hidden, if it is given. */
  turn(n: number, size: number, rule: ReturnType<typeof piCompaction>, share?: number): void {
    this.#add(plainMessage(`u${n}`, { role: 'user', content: 'x'.repeat(100) }))
    this.#send(rule)
    this.#add(plainMessage(`a${n}`, { role: 'assistant', content: [{ type: 'toolCall', name: 'read', arguments: { path: `f${n}` } }] }))
    this.#add(plainMessage(`r${n}`, { role: 'toolResult', content: 'x'.repeat(size) }))
    if (share !== undefined) for (const key of [...this.own.keys()].filter((one) => one.startsWith('r')).slice(0, Math.floor(share * n))) this.#hide(key)
    this.ledger.turnEnded(PRICES, rule)
  }

  /** The process is started anew, with what the last point of the branch has. */
  restart(): void {
    const { saved, dollars, last, prefix, summary } = this.ledger
    const point = JSON.parse(JSON.stringify({ saved, dollars, last, prefix, plain: summary })) as Parameters<SavingLedger['takeOver']>[0]
    this.ledger = new SavingLedger()
    this.ledger.takeOver(point)
    this.ledger.reset(this.own, this.plain)
  }

  #add(message: PlainMessage): void {
    this.plain.push(message)
    this.own.set(message.key, message.size)
    this.ledger.add(message.key, message.size, message)
  }

  #hide(key: string): void {
    if (this.own.get(key) === 50) return
    this.own.set(key, 50)
    this.ledger.edit(key, 50, true)
    this.#cached = 2000
  }

  #send(rule: ReturnType<typeof piCompaction>): void {
    const all = Math.ceil(([...this.own.values()].reduce((sum, size) => sum + size, 0) + SYSTEM.own) / 4)
    this.ledger.sent(SYSTEM, true)
    const cacheRead = Math.min(all, this.#cached)
    this.ledger.answered({ input: 0, cacheRead, cacheWrite: all - cacheRead, output: 100 }, PRICES, rule)
    this.#cached = all
    this.longest = Math.max(this.longest, this.ledger.last!.plain)
  }
}

test.each([1, 2, 3, 4, 5])('random turns, seed %i', (seed) => {
  const one = random(seed)
  const window = one.pick([40_000, 100_000, 200_000])
  const rule = piCompaction(window)
  const [whole, resumed] = [new Host(), new Host()]
  for (let n = 0; n < 300; n += 1) {
    const [size, rolls] = [one.below(30_000), one.next() < 0.15]
    for (const host of [whole, resumed]) host.turn(n, size, rule, rolls ? 0.9 : undefined)
    if (one.next() < 0.1) resumed.restart()
  }
  expect(whole.ledger.summary).toBeDefined()
  expect(Math.max(whole.longest, resumed.longest)).toBeLessThanOrEqual(window)
  expect(Number.isFinite(whole.ledger.saved) && Number.isFinite(whole.ledger.dollars)).toBe(true)
  expect(Math.abs(resumed.ledger.dollars - whole.ledger.dollars)).toBeLessThan(0.01 * Math.abs(whole.ledger.dollars))
})

/** The first call writes 1,000 tokens. In the second, which adds 100 of them, the provider has found `read`, and would have found `left` without us. */
test.each<[asked: 'five minutes' | 'an hour', left: Left | undefined, read: number, without: number]>([
  ['an hour', undefined, 1000, 1000 * 0.3 + 100 * 6],
  ['an hour', 'all', 0, 1000 * 0.3 + 100 * 6],
  ['an hour', 'head', 0, 200 * 0.3 + 900 * 6],
  ['five minutes', 'nothing', 1000, 1100 * 3.75],
  ['five minutes', undefined, 0, 1100 * 3.75],
])('where a client that asks for %s gets another lifetime and %s of its prompt is left, that prices its own request', (asked, left, read, without) => {
  const ledger = new SavingLedger()
  const prices = { ...PRICES, plainAsksHour: asked === 'an hour' }
  const send = (size: number, usage: PromptUsage, some: Left | undefined): void => {
    ledger.add(`u${size}`, size, plainMessage(`u${size}`, { role: 'user', content: 'x'.repeat(size) }))
    ledger.sent({ own: 800, plain: 800 }, true, true, some)
    ledger.answered(usage, prices)
  }
  send(3200, { input: 0, cacheRead: 0, cacheWrite: 1000 }, undefined)
  const before = ledger.dollars
  const billed = { input: 0, cacheRead: read, cacheWrite: 1100 - read }
  send(400, billed, left)
  const paid = billed.cacheRead * 0.3 + billed.cacheWrite * 3.75
  expect(ledger.dollars - before).toBeCloseTo((without - paid) / 1e6, 7)
})

test('on a plan the prompts also count in tokens, and so they do after a resume', () => {
  const ledger = new SavingLedger()
  const onPlan = { ...PRICES, isPlan: true }
  const sent = (own: number, size: number, prices: PromptPrices): void => {
    ledger.add('u', size, plainMessage('u', { role: 'user', content: 'x'.repeat(size) }))
    ledger.sent({ own: 0, plain: 0 }, true)
    ledger.answered({ input: own, cacheRead: 0, cacheWrite: 0, output: 10 }, prices)
  }
  expect(ledger.plan).toBeUndefined()
  sent(1000, 4000, onPlan)
  expect(ledger.plan).toEqual({ sent: 1000, without: 1000 })
  ledger.edit('u', 2000, true)
  ledger.sent({ own: 0, plain: 0 }, true)
  ledger.answered({ input: 500, cacheRead: 0, cacheWrite: 0, output: 10 }, onPlan)
  expect(ledger.plan).toEqual({ sent: 1500, without: 2000 })
  // The roll has broken the cache, which costs more at first.
  expect([ledger.dollars < 0, ledger.saved < 0]).toEqual([true, true])
  const { plan, last, saved } = ledger
  ledger.takeOver({ saved, ...(plan !== undefined && { plan }), ...(last !== undefined && { last }) })
  expect(ledger.plan).toEqual({ sent: 1500, without: 2000 })
  // A key pays for the next call.
  sent(600, 2400, PRICES)
  expect(ledger.plan).toEqual({ sent: 1500, without: 2000 })
})

test('a point of an earlier version, whose plain request exceeds the window, is brought below it', () => {
  const ledger = new SavingLedger()
  ledger.takeOver({ last: { own: 20_000, plain: 339_542 }, dollars: 3.81 })
  ledger.reset(
    [['a', 80_000]],
    Array.from({ length: 20 }, (_, n) =>
      plainMessage(`m${n}`, { role: n % 2 === 0 ? 'user' : 'assistant', content: [{ type: 'text', text: 'x'.repeat(68_000) }] }),
    ),
  )
  ledger.sent({ own: 0, plain: 0 }, true)
  ledger.answered({ input: 0, cacheRead: 19_000, cacheWrite: 1000 }, PRICES, piCompaction(200_000))
  expect(ledger.last!.plain).toBeLessThanOrEqual(200_000)
  expect(ledger.summary).toBeDefined()
})

test.each<[string, number | undefined, boolean, number]>([
  ['the answer tells no lifetime', undefined, false, 3.75],
  ['nor does it where an hour was asked', undefined, true, 6],
  ['all for an hour', 1000, true, 6],
  ['an hour was asked, and five minutes were given', 0, true, 3.75],
  ['system and tools for an hour', 400, false, 0.4 * 6 + 0.6 * 3.75],
  ['the same where the conversation asks for an hour', 400, true, 0.4 * 6 + 0.6 * 3.75],
  ['more than was written', 5000, false, 6],
  ['a negative count', -400, false, 3.75],
  ['not a number', Number.NaN, false, 3.75],
])('what is written costs what its lifetime costs: %s', (_, cacheWrite1h, asksHour, price) => {
  const ledger = new SavingLedger()
  ledger.reset([['a', 4000]], [plainMessage('a', { role: 'toolResult', content: 'x'.repeat(8000) })])
  ledger.sent({ own: 0, plain: 0 }, false)
  ledger.answered({ input: 0, cacheRead: 0, cacheWrite: 1000, ...(cacheWrite1h !== undefined && { cacheWrite1h }) }, { ...PRICES, asksHour })
  const more = ledger.last!.plain - 1000
  expect(more).toBeGreaterThan(900)
  expect(ledger.dollars).toBeCloseTo((more * price) / 1e6, 9)
})

describe('when agents compact', () => {
  test.each([
    ['pi', 200_000, 183_616],
    ['claude-code', 200_000, 167_000],
    ['claude-code', 1_000_000, 967_000],
    ['codex', 272_000, 244_800],
    ['opencode', 200_000, 168_000],
    ['an unknown one', 200_000, 200_000],
  ])('%s in a window of %i: above %i tokens', (agent, window, limit) => {
    expect(compactionOf(agent, window)).toMatchObject({ window, limit })
  })

  test('settings of the user count, and a compaction that is switched off waits for the full window', () => {
    expect(piCompaction(200_000, { enabled: true, reserveTokens: 40_000, keepRecentTokens: 60_000 })).toMatchObject({ limit: 160_000, keep: 60_000 })
    expect(piCompaction(200_000, { enabled: false, reserveTokens: 40_000, keepRecentTokens: 60_000 })).toMatchObject({ limit: 200_000 })
  })

  test.each<[string, string, number, number]>([
    ['all fits', 'uaruar', 10, 0],
    ['an answer stays with its results', 'uararr', 3, 3],
    ['the cut moves past results to the next message', 'uaruar', 4, 3],
    ['results alone are too much', 'uarrrr', 2, 1],
  ])('%s', (_name, kinds, keep, first) => {
    expect(
      firstKept(
        kinds.length,
        keep,
        () => 1,
        (at) => kinds[at] === 'r',
      ),
    ).toBe(first)
  })
})
