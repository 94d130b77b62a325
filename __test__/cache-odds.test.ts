/** The odds that a provider still has the last request, from what a session's calls have found and lost. */
import { describe, expect, test } from 'vitest'
import { CacheOdds } from '../lib/models/index.ts'
import type { AnsweredCall, NextCall } from '../lib/models/index.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const MODEL = 'claude-sonnet-5'

const next = (minutes: number, more: Partial<NextCall> = {}): NextCall => ({ at: minutes * MINUTE, isPrompt: true, model: MODEL, ...more })

/** A call that finds all of what was sent, unless said otherwise. */
function call(minutes: number, more: Partial<AnsweredCall> = {}): AnsweredCall {
  const { prompt = 50_000, cached = 49_000 } = more
  return { ...next(minutes), prompt, cached, written: prompt - cached, systemTokens: 10_000, isChanged: false, lifetimeMs: HOUR, ...more }
}

function after(...calls: AnsweredCall[]): CacheOdds {
  const odds = new CacheOdds()
  for (const one of calls) odds.answered(one)
  return odds
}

describe('before anything is counted', () => {
  const rows: [name: string, minutes: number, more: Partial<NextCall>, kept: number][] = [
    ['a prompt that comes soon', 1, {}, 0.914],
    ['a prompt after a pause', 20, {}, 0.752],
    ['results', 1, { isPrompt: false }, 0.994],
    ['results after a pause', 20, { isPrompt: false }, 0.983],
    ['a prompt of Opus 5 that comes soon', 1, { model: 'claude-opus-5' }, 0.714],
    ['a prompt of Opus 5 after a pause', 20, { model: 'anthropic/claude-opus-5-20260601' }, 0.545],
    ['another Opus', 20, { model: 'claude-opus-4-6' }, 0.752],
    ['GPT', 1, { model: 'gpt-5.5', isPrompt: false }, 0.9],
    ['a model that is not known', 20, { model: 'mine' }, 0.752],
  ]
  test.each(rows)('%s', (_, minutes, more, kept) => {
    expect(after(call(0)).kept(next(minutes, more))).toBeCloseTo(kept, 3)
  })

  test('nothing is known before the first answer', () => {
    expect(new CacheOdds().kept(next(0, { isElsewhere: true }))).toBe(1)
  })
})

describe('what is counted', () => {
  const rows: [name: string, before: Partial<AnsweredCall>, now: AnsweredCall, counted: 'kept' | 'lost' | undefined][] = [
    ['all of it was found', {}, call(1), 'kept'],
    ['nothing was found', {}, call(1, { cached: 0 }), 'lost'],
    ['only the system part was found', {}, call(1, { cached: 20_000 }), 'lost'],
    ['less than 5,000 tokens were not found', {}, call(1, { cached: 45_001 }), 'kept'],
    ['5,000 tokens were not found', {}, call(1, { cached: 45_000 }), 'lost'],
    ['what had not been written is not missed', { cached: 20_000, written: 10_000 }, call(1, { cached: 30_000 }), 'kept'],
    ['too little had been sent', { prompt: 4_000, cached: 0 }, call(1, { cached: 0 }), undefined],
    ['something had changed', {}, call(1, { cached: 0, isChanged: true }), undefined],
    ['another model', {}, call(1, { cached: 0, model: 'claude-opus-5' }), undefined],
    ['its lifetime was over', {}, call(61, { cached: 0 }), undefined],
    ['its five minutes were over', {}, call(6, { cached: 0, lifetimeMs: 5 * MINUTE }), undefined],
    ['the host has changed the tools', {}, call(1, { cached: 0, isElsewhere: true }), undefined],
    ['a provider without a cache', { cached: 0, written: 0 }, call(1, { cached: 0, written: 0 }), undefined],
  ]
  test.each(rows)('%s', (_, before, now, counted) => {
    const { counts } = after(call(0, before), now)
    const sums = Object.values(counts).flatMap((pauses) => Object.values(pauses))
    const [kept, lost] = [sums.reduce((sum, one) => sum + one.kept, 0), sums.reduce((sum, one) => sum + one.lost, 0)]
    expect([kept, lost]).toEqual([counted === 'kept' ? 1 : 0, counted === 'lost' ? 1 : 0])
  })

  test('prompts, results and pauses are counted apart', () => {
    const { counts } = after(call(0), call(1), call(2, { isPrompt: false, cached: 0 }), call(20), call(100, { lifetimeMs: 24 * HOUR, cached: 0 }))
    expect(counts).toEqual({
      prompt: { 'under 5': { kept: 1, lost: 0 }, '5 to 60': { kept: 1, lost: 0 }, 'over 60': { kept: 0, lost: 1 } },
      results: { 'under 5': { kept: 0, lost: 1 }, '5 to 60': { kept: 0, lost: 0 }, 'over 60': { kept: 0, lost: 0 } },
    })
  })

  test('losses make the next one likelier, and calls that find all less likely', () => {
    const [lost, kept] = [after(call(0), call(1, { cached: 0 })), after(call(0), call(1))]
    expect(lost.kept(next(2))).toBeLessThan(0.914 - 0.05)
    expect(kept.kept(next(2))).toBeGreaterThan(0.915)
    const often = after(...Array.from({ length: 40 }, (_, n) => call(n, { cached: n % 2 === 0 ? 49_000 : 0 })))
    expect(often.kept(next(40))).toBeCloseTo(0.58, 1)
  })
})

describe('a change before the messages', () => {
  const elsewhere = { isElsewhere: true }

  test('the cache is gone', () => {
    expect(after(call(0)).kept(next(1, elsewhere))).toBe(0)
    expect(after(call(0), call(1, { ...elsewhere, cached: 0 })).kept(next(2, elsewhere))).toBe(0)
  })

  test('the cache counts again once the provider has found the messages behind a changed head', () => {
    const odds = after(call(0), call(1, elsewhere))
    expect(odds.kept(next(2, elsewhere))).toBeGreaterThan(0.9)
    // The tokens found may be the part of the system prompt that has not changed.
    expect(after(call(0), call(1, { ...elsewhere, cached: 15_000 })).kept(next(2, elsewhere))).toBe(0)
  })
})
