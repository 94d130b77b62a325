/** A gateway's last line: true also if nothing was saved. */
import { expect, test } from 'vitest'
import { summaryOf } from '../../lib/cli/gateway-summary.ts'
import type { Usage } from '../../lib/gateway/answer.ts'
import { BillLedger } from '../../lib/gateway/ledger.ts'
import type { LedgerEntry } from '../../lib/gateway/ledger.ts'
import { accountOf, inputCost, savedShare } from '../../lib/gateway/saving.ts'
import type { ModelRequest } from '../../lib/gateway/request.ts'

interface Call {
  model?: string
  /** Input tokens that were billed; undefined if the answer says nothing. */
  input?: number
  /** The factor by which the host's own request was larger. */
  times?: number
  isHeldOut?: boolean
  lifetime?: LedgerEntry['lifetime']
}

function ledgerOf(calls: readonly Call[], rolls = 0): BillLedger {
  const ledger = new BillLedger(() => 0)
  for (const { model = 'claude-opus-5-5', input, times = 1, isHeldOut = false, lifetime } of calls) {
    const usage: Usage | undefined = input === undefined ? undefined : { input, cacheRead: 0, cacheWrite: 0, output: 1 }
    const answered = usage === undefined ? undefined : { usage, transformations: [], recalls: [] }
    ledger.note({
      request: { api: 'messages', model, messages: [], body: {} } as unknown as ModelRequest,
      sender: { host: 'claude-code', session: isHeldOut ? 'held' : 'own', agent: undefined } as unknown as LedgerEntry['sender'],
      conversation: undefined,
      isAside: false,
      isHeldOut,
      isEdited: times !== 1,
      plainBytes: 1000 * times,
      sentBytes: 1000,
      window: 0,
      reach: { kind: 'prefix', lookback: 0 },
      lifetimeMs: 300_000,
      lifetime,
      outcome: { status: 200, answered, refusal: undefined, isAborted: false, headMs: 1 } as unknown as LedgerEntry['outcome'],
    })
  }
  for (let roll = 0; roll < rolls; roll += 1) ledger.rolled('own', { items: 1, removedTokens: 1, cost: 1, gain: 1, reason: 'pays' })
  return ledger
}

test.each<[string, BillLedger, string[]]>([
  ['no request', ledgerOf([]), []],
  ['nothing saved', ledgerOf([{ input: 100 }]), ['1 request of Claude Code, 0 rolls; nothing was saved, because nothing was worth collapsing']],
  [
    'a saving',
    ledgerOf([{ input: 100_000 }, { input: 100_000, times: 2 }], 1),
    ['2 requests of Claude Code, 1 roll; saved $0.40 (33 %): paid $0.80, without pi-context-manager $1.20 (estimated)'],
  ],
  [
    'a loss',
    ledgerOf([{ input: 100_000, times: 0.5 }], 2),
    ['1 request of Claude Code, 2 rolls; cost $0.20 more (100 %): paid $0.40, without pi-context-manager $0.20 (estimated)'],
  ],
  [
    'a roll that has made up for itself',
    ledgerOf([{ input: 100_000 }], 1),
    ['1 request of Claude Code, 1 roll; saved $0.00 (0 %): paid $0.40, without pi-context-manager $0.40 (estimated)'],
  ],
  ['a model without prices', ledgerOf([{ model: 'of-no-list', input: 100_000, times: 2 }], 1), ['1 request of Claude Code, 1 roll; saved 50 % (estimated)']],
  [
    'a lifetime of the cache that has saved something',
    ledgerOf(
      [
        { input: 100_000, lifetime: { why: 'an hour', savedTokens: 0 } },
        { input: 100_000, times: 2, lifetime: { why: 'five minutes', savedTokens: 12_345 } },
      ],
      1,
    ),
    [
      '2 requests of Claude Code, 1 roll; saved $0.40 (33 %): paid $0.80, without pi-context-manager $1.20 (estimated)',
      "the cache's lifetime: five minutes; that has saved about 12k fresh tokens so far",
    ],
  ],
  [
    'a lifetime of the cache that has cost more',
    ledgerOf([{ input: 100_000, times: 2, lifetime: { why: 'an hour', savedTokens: -900 } }], 1),
    [
      '1 request of Claude Code, 1 roll; saved $0.40 (50 %): paid $0.40, without pi-context-manager $0.80 (estimated)',
      "the cache's lifetime: an hour; that has cost about 900 fresh tokens more so far",
    ],
  ],
  [
    'a lifetime of the cache that has changed nothing',
    ledgerOf([{ input: 100, lifetime: { why: 'an hour', savedTokens: 0.2 } }]),
    ['1 request of Claude Code, 0 rolls; nothing was saved, because nothing was worth collapsing'],
  ],
  [
    'answers that count nothing',
    ledgerOf([{}, {}]),
    ['2 requests of Claude Code, 0 rolls; the answers reported no token counts, so what was saved is not known'],
  ],
  ['a holdout', ledgerOf([{ input: 100, isHeldOut: true }]), ['1 request went out unedited (--holdout); "pi-context-manager usage" compares both kinds']],
])('%s', (_name, ledger, lines) => {
  expect(summaryOf(ledger)).toEqual(lines.map((line) => `pi-context-manager: ${line}`))
})

test('a failure that kept requests as they came is the reason why nothing was saved', () => {
  const held = { tokens: 860, because: 'needed' } as never
  for (const found of [undefined, held]) {
    expect(summaryOf(ledgerOf([{ input: 100 }]), found, true)).toEqual([
      'pi-context-manager: 1 request of Claude Code, 0 rolls; nothing was saved, because requests went out as they came: see the warning above',
    ])
  }
})

test('each call counts at the prices of its model, and above a step at the higher ones', () => {
  const { cost } = ledgerOf([{ input: 1_000_000 }, { model: 'claude-haiku-5-5', input: 60_000, times: 2 }]).sessions[0]!
  expect(cost.billed).toBeCloseTo(4 + 0.006)
  expect(cost.plain).toBeCloseTo(4 + 0.06)
  const [unknown, known] = [ledgerOf([{ model: 'of-no-list', input: 1_000_000, times: 2 }]), ledgerOf([{ input: 100_000 }])]
  expect(inputCost({ input: 1_000_000, cacheRead: 0, cacheWrite: 0, output: 0 }, undefined)).toBe(1)
  expect(savedShare(accountOf([...unknown.sessions, ...known.sessions]))).toBeCloseTo(1 - 1.4 / 2.4, 4)
})
