/** The extension's messages to the user, and the counting of failures. */
import { truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { flattened } from '../../lib/core/json.ts'
import { bounded, Failures, isPassing } from '../../extensions/guard.ts'
import { bytesOf, sizeHint } from '../../extensions/place.ts'
import type { Report } from '../../extensions/report.ts'
import { short } from '../../extensions/shares.ts'
import { costLine, receiptLine, reportLines, savedLine } from '../../extensions/ui.ts'
import { cleanUp, temporaryFolder } from '../../rig/pi.ts'
import { sentenceOf } from '../../lib/core/errors.ts'

afterEach(cleanUp)

describe('failures', () => {
  test('gives up slow work with a sentence', async () => {
    await expect(bounded(new Promise(() => {}), 1, 'waiting')).rejects.toThrow('waiting took longer than 0.001 s')
    expect(await bounded(Promise.resolve(1), 1000, 'waiting')).toBe(1)
    await expect(bounded(Promise.reject(new Error('own')), 1000, 'waiting')).rejects.toThrow('own')
  })

  test('three in a row of one kind are too many', () => {
    const failures = new Failures()
    expect([failures.failure('a'), failures.failure('b'), failures.failure('a')]).toEqual([false, false, false])
    failures.success('a')
    expect([failures.failure('a'), failures.failure('a'), failures.failure('a')]).toEqual([false, false, true])
  })

  test('turns values nested too deep for the engine into text at their depth, without loss', () => {
    const nested = (levels: number): unknown => (levels === 0 ? { last: 1 } : [nested(levels - 1)])
    expect(flattened(nested(20))).toEqual(nested(20))
    let value = flattened({ a: nested(200), b: 1 }) as any
    expect(value.b).toBe(1)
    value = value.a
    let levels = 1
    while (typeof value === 'object') {
      value = value[0]
      levels += 1
    }
    expect(levels).toBe(60)
    expect(JSON.parse(value)).toEqual(nested(200 - 59))
  })

  test.each([
    [Object.assign(new Error('no'), { code: 'IO' }), true, 'no (IO)'],
    [Object.assign(new Error('no'), { code: 'STORE_FULL' }), false, 'no (STORE_FULL)'],
    [new Error('no'), false, 'no'],
    ['text', false, 'text'],
    [null, false, 'null'],
  ])('%s', (error, passing, text) => {
    expect(isPassing(error)).toBe(passing)
    expect(sentenceOf(error)).toBe(text)
  })
})

describe('texts for the person', () => {
  test.each([
    [0, '0'],
    [999, '999'],
    [1000, '1.0k'],
    [9949, '9.9k'],
    [9951, '10k'],
    [41_234, '41k'],
    [999_499, '999k'],
    [1_250_000, '1.3M'],
    [-2500, '-2.5k'],
  ])('%d tokens are %s', (count, text) => expect(short(count)).toBe(text))

  const receipt = {
    items: 12,
    removedTokens: 61_000,
    cost: 9000,
    gain: 6100,
    paysBackAfterCalls: 2,
    reason: 'pays' as const,
  }

  test('receipts', () => {
    expect(receiptLine(receipt)).toBe('12 items, 61k tokens removed, cost 9.0k input tokens, pays back in 2 calls')
    expect(receiptLine({ ...receipt, reasoningLost: 14 })).toBe(
      '12 items, 61k tokens removed, reasoning of 14 steps lost, cost 9.0k input tokens, pays back in 2 calls',
    )
    expect(receiptLine({ ...receipt, reasoningLost: 1 }, true)).toBe('12 items, 61k tokens, reasoning of 1 step lost, pays back in 2 calls')
    expect(receiptLine({ ...receipt, items: 1, cost: 0 })).toBe('1 item, 61k tokens removed, free')
    const { paysBackAfterCalls: _, ...never } = receipt
    expect(receiptLine(never)).toContain('never pays back')
  })

  const output = {
    id: 'ab',
    tool: 'read',
    name: 'a.ts',
    form: 'full' as const,
    tokens: 2400,
    whole: 2400,
    mayCollapse: false,
    pinned: true,
    failed: false,
    turn: 1,
    callsAgo: 4,
  }
  const report: Report = {
    shares: [
      { name: 'tool outputs', tokens: 30_960 },
      { name: 'messages', tokens: 10_000 },
      { name: 'references', tokens: 40 },
    ],
    outputs: [
      output,
      { ...output, id: 'ef', form: 'excerpt', pinned: false, mayCollapse: true },
      { ...output, id: 'cd', name: 'bash', tool: 'bash', form: 'reference', pinned: false },
      { ...output, id: 'gh', form: 'line', pinned: false },
      { ...output, id: 'ij', form: 'line', pinned: false, back: 'there', tokens: 900 },
    ],
    perCharacter: 0.25,
    contextTokens: 41_000,
    roll: { ...receipt, items: 1, removedTokens: 2000, reason: 'asked' },
    inputPrice: 0,
    contextWindow: 200_000,
    active: 3,
    objects: 20,
    cachedShare: 0.943,
    cost: 1.16,
    isBilled: false,
    isPlan: false,
    plan: undefined,
    tokenPrice: 0,
    saved: 0.84,
    savedTokens: 280_000,
    uncounted: undefined,
    held: undefined,
    lifetime: undefined,
    receipts: [receipt],
    off: true,
    store: '/data/context.db',
    storeHint: undefined,
  }

  test('the report', () => {
    expect(reportLines(report)).toEqual([
      'Context: 41k of 200k tokens (21 %), off: nothing collapses',
      '  tool outputs    31k  16 %',
      '  messages        10k   5 %',
      '  references      <1k  <1 %',
      'Saved $0.84 (42 %)',
      'Paid $1.16, without pi-context-manager $2.00 · last call 94 % from the cache',
      '  Roll: 12 items, 61k tokens removed, cost 9.0k input tokens, pays back in 2 calls',
      'Outputs: 3 in the window, 1 collapsed to references, 1 to lines',
      '  a.ts  full, pinned, 2.4k tokens, read, id=ab',
      '  a.ts  excerpt, may collapse, 2.4k tokens, read, id=ef',
      '  a.ts  brought back, 900 tokens, read, id=ij',
      '/context roll collapses now: 1 item, 2.0k tokens removed, cost 9.0k input tokens, pays back in 2 calls',
      'Store: /data/context.db',
    ])
  })

  test('a store of 2 GiB comes with the command that makes it smaller, in one line', async () => {
    const path = join(temporaryFolder('large-'), 'context.db')
    expect([await bytesOf(path), sizeHint(await bytesOf(path))]).toEqual([0, undefined])
    writeFileSync(path, '')
    // Its length counts; it takes no room.
    truncateSync(path, 2 * 1024 ** 3 - 1)
    expect(sizeHint(await bytesOf(path))).toBeUndefined()
    writeFileSync(`${path}-wal`, 'x')
    const storeHint = sizeHint(await bytesOf(path))
    expect(storeHint).toBe('The store takes 2.0 GiB: "npx pi-context-manager prune --older-than 90d --dry-run" shows what could be removed')
    expect(reportLines({ ...report, storeHint }).slice(-2)).toEqual(['Store: /data/context.db', storeHint])
  })

  test.each<[string, Partial<Report>, string]>([
    ['nothing yet', { savedTokens: 0, saved: 0, receipts: [] }, 'Nothing saved yet: nothing has been worth collapsing.'],
    ['a roll just now', { savedTokens: 0, saved: 0 }, 'Nothing saved yet: what has collapsed shows at the next call.'],
    [
      'a provider that counts nothing',
      { savedTokens: 0, saved: 0, uncounted: 'the provider reports no token counts' },
      'What was saved is not known: the provider reports no token counts.',
    ],
    ['a model without prices', { saved: undefined }, 'Saved 280k input tokens'],
    ['a roll that has not paid back', { saved: -0.02, savedTokens: -6000, cost: 0.42 }, 'Cost $0.02 more (5 %)'],
    ['the same without prices', { saved: undefined, savedTokens: -664 }, 'Cost 664 input tokens more'],
    ['less than a cent', { saved: -0.002, savedTokens: -664 }, 'Cost 664 input tokens more'],
  ])('savings: %s', (_name, some, line) => {
    expect(savedLine({ ...report, ...some })).toBe(line)
  })

  test('on a plan at a flat rate, tokens and room in the window stand in place of dollars', () => {
    const text = reportLines({ ...report, isPlan: true, saved: undefined }).join('\n')
    expect(text).not.toContain('$')
    expect(text).toContain('Saved 280k input tokens')
    expect(text).toContain('On a plan at a flat rate: room for 159k tokens · last call 94 % from the cache')
    const counted = { ...report, isPlan: true, saved: undefined, plan: { sent: 600_000, without: 1_000_000 } }
    const lines = reportLines(counted).join('\n')
    expect(lines).not.toContain('$')
    expect(lines).toContain('Saved 400k tokens (40 %)')
    expect(lines).toContain(
      'On a plan at a flat rate: sent 600k tokens, without pi-context-manager 1.0M tokens · room for 159k tokens · last call 94 % from the cache',
    )
    // With a key again, dollars count.
    expect(reportLines({ ...counted, isPlan: false, saved: 0.84 }).join('\n')).toContain('Saved $0.84 (42 %)')
  })

  test('a low share from the cache points to the explanation', () => {
    expect(costLine({ ...report, cachedShare: 0.2 })).toBe('Paid $1.16, without pi-context-manager $2.00 · last call 20 % from the cache (/context why)')
    expect(costLine({ ...report, cost: 0, cachedShare: undefined })).toBeUndefined()
  })
})
