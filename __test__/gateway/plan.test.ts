/** Plans at a flat rate: tokens and room in the window everywhere, and no dollars. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { summaryOf } from '../../lib/cli/gateway-summary.ts'
import { billsFile } from '../../lib/gateway/bills.ts'
import { senderOf } from '../../lib/gateway/identity.ts'
import type { Sender } from '../../lib/gateway/identity.ts'
import { BillLedger } from '../../lib/gateway/ledger.ts'
import type { LedgerEntry } from '../../lib/gateway/ledger.ts'
import { draw } from '../../lib/gateway/page/draw.ts'
import type { Look } from '../../lib/gateway/page/look.ts'
import type { ModelRequest } from '../../lib/gateway/request.ts'
import { accountLine } from '../../lib/gateway/saving.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { emptyHome } from '../cli/home.ts'
import { cli } from '../replay/support.ts'

afterEach(cleanUp)

test.each<[what: string, headers: Record<string, string>, isPlan: boolean]>([
  ['a login with Claude', { authorization: 'Bearer sk-ant-oat01-x', 'anthropic-beta': 'claude-code-20250219,oauth-2025-04-20' }, true],
  ['a login, by its token alone', { authorization: 'Bearer sk-ant-oat01-x' }, true],
  ['a login, by the header alone', { authorization: 'Bearer y', 'anthropic-beta': 'oauth-2025-04-20' }, true],
  ['an account of ChatGPT', { authorization: 'Bearer ey', 'chatgpt-account-id': 'acc' }, true],
  ['a key', { 'x-api-key': 'sk-ant-api03-x' }, false],
  ['a key beside the header', { 'x-api-key': 'sk-ant-api03-x', 'anthropic-beta': 'oauth-2025-04-20' }, false],
  ['a key of OpenAI', { authorization: 'Bearer sk-proj-x' }, false],
  ['a feature whose name ends so', { authorization: 'Bearer y', 'anthropic-beta': 'no-oauth-2025' }, false],
  ['nothing', {}, false],
])('%s is a plan: %s', (_what, headers, isPlan) => {
  expect(senderOf(headers, { body: {} }).isPlan === true).toBe(isPlan)
})

/** A ledger with calls of which the agent's own would have been twice as large. */
function ledgerOf(plans: readonly boolean[]): BillLedger {
  const ledger = new BillLedger(() => 0)
  for (const isPlan of plans) {
    const usage = { input: 1000, cacheRead: 4000, cacheWrite: 0, output: 50 }
    const sender: Partial<Sender> = { host: 'claude-code', session: 'claude-code:s', ...(isPlan && { isPlan }) }
    const outcome = { status: 200, answered: { usage, transformations: [], recalls: [] }, refusal: undefined, isAborted: false, headMs: 1 }
    const sizes = { plainBytes: 2000, sentBytes: 1000, window: 0, reach: { kind: 'prefix' as const, lookback: 0 }, lifetimeMs: 300_000 }
    ledger.note({
      request: { api: 'messages', model: 'claude-opus-5-5', messages: [], body: {} } as unknown as ModelRequest,
      sender: sender as Sender,
      conversation: undefined,
      isAside: true,
      isHeldOut: false,
      isEdited: true,
      ...sizes,
      outcome: outcome as unknown as LedgerEntry['outcome'],
    })
  }
  return ledger
}

const LOOK = {
  shares: [],
  outputs: [],
  contextTokens: 50_000,
  contextWindow: 200_000,
  held: undefined,
  changes: { changes: [], unchanged: 0, own: 0, sent: 0 },
} as Look

test('a session on a plan is told in tokens, on each surface', () => {
  const ledger = ledgerOf([true, true])
  const [sums] = ledger.sessions
  const sent = 'sent 10k tokens, without pi-context-manager'
  expect(accountLine(ledger.sessions)).toMatch(new RegExp(`^saved [\\d.]+k tokens \\(\\d+ %\\): ${sent} [\\d.]+k tokens$`))
  expect(summaryOf(ledger).join()).toContain(sent)
  const { regions, lists } = draw(ledger.sessions, sums, LOOK)
  expect(regions['totals']).toContain(sent)
  expect(regions['figures']).toContain('<b>150k</b><span>tokens of room in the window of 200k, estimated</span>')
  const all = [...Object.values(regions), ...Object.values(lists).flat(2)].join()
  expect(all + summaryOf(ledger).join()).not.toContain('$')
})

test.each([[[false]], [[true, false]], [[false, true]]])('a session with calls that a key has paid (%j) is told in dollars', (plans) => {
  const ledger = ledgerOf(plans)
  expect(accountLine(ledger.sessions)).toMatch(/^saved \$/)
  expect(draw(ledger.sessions, ledger.sessions[0], LOOK).regions['figures']).toContain('paid; without pi-context-manager $')
})

test.each<[what: string, plans: readonly boolean[], last: RegExp, told: RegExp]>([
  [
    'all calls on a plan',
    [true, true],
    /^total +1 +2 +10k +80 % +plan +20k +10k +50 %$/m,
    /^These calls were made on a plan at a flat rate, and count in tokens: saved 10k\s+tokens \(50 %\): sent 10k tokens, without pi-context-manager 20k tokens$/m,
  ],
  ['some of them', [true, false], /^total +1 +2 +10k +80 % +\$0\.01 +\$0\.01 /m, /^1 of 2 calls were made on a plan/m],
  ['none of them', [false, false], /^total +1 +2 +10k +80 % +\$0\.01 +\$0\.01 /m, /^(?![^]*on a plan)/],
])('usage with %s', async (_what, plans, last, told) => {
  const { env, file } = emptyHome()
  const bills = billsFile({ kind: 'sqlite', path: file('.local/share/pi-context-manager/context.db') })
  mkdirSync(dirname(bills), { recursive: true })
  const billed = { input: 1000, cacheRead: 4000, cacheWrite: 0, output: 50 }
  const call = { session: 'claude-code:s', folder: '/w', model: 'claude-opus-5-5', billed, plain: { ...billed, cacheRead: 9000 }, isHeldOut: false }
  writeFileSync(bills, plans.map((isPlan, n) => `${JSON.stringify({ ...call, at: Date.now() + n, ...(isPlan && { isPlan }) })}\n`).join(''))
  const { stdout, stderr } = await cli(['usage'], env)
  expect([stdout, stderr]).toEqual([expect.stringMatching(last), ''])
  expect(stdout).toMatch(told)
  if (plans.every(Boolean)) expect(stdout).not.toContain('$')
})
