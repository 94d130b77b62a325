import { describe, expect, test } from 'vitest'
import { ConversationLifetimes } from '../lib/models/index.ts'
import type { LifetimeMoment, LifetimeOption } from '../lib/models/index.ts'
import { random } from '../rig/random.ts'

const MINUTE = 60_000
const HOUR = { head: '1h', conversation: '1h' } as const
const SHORT = { head: '5m', conversation: '5m' } as const
const MIXED = { head: '1h', conversation: '5m' } as const

/** `prompt`: tokens of the request, where a roll has made it shorter; `found`: those that its cache had. */
type Step = { minutes: number } & Partial<LifetimeMoment> & { written?: number; prompt?: number; found?: number }

/** The lifetimes of requests at these minutes; an answer says that what it wrote is kept as it was asked. */
function run(option: LifetimeOption, base: Partial<LifetimeMoment>, steps: readonly Step[]): string[] {
  const own = new ConversationLifetimes(option)
  let prompt = 3_000
  return steps.map(({ minutes, written = 2_000, prompt: size, found = 0, ...step }, n) => {
    const moment = { at: minutes * MINUTE, asked: SHORT, isNew: n === 0, isBound: false, systemTokens: 3_000, read: 0.1, slackTokens: 5_000, ...base, ...step }
    const chosen = own.next(moment)
    own.sent(Array.from({ length: 2 * n + 1 }), () => true)
    prompt = size ?? prompt + written
    const isShort = (chosen ?? moment.asked).conversation === '5m'
    own.answered({
      fiveMinutes: isShort ? written : 0,
      hour: (isShort ? 0 : written) + (n === 0 && (chosen ?? moment.asked).head === '1h' ? 3_000 : 0),
      prompt,
      read: found,
    })
    return chosen === undefined ? 'client' : `${chosen.head} ${chosen.conversation}${chosen.hourUntil > 0 ? ` until ${chosen.hourUntil}` : ''}`
  })
}

const at = (...minutes: number[]): Step[] => minutes.map((one) => ({ minutes: one }))

describe('the rule of lifetimes', () => {
  const rows: [name: string, option: LifetimeOption, base: Partial<LifetimeMoment>, steps: Step[], chosen: string[]][] = [
    ['a client on an hour keeps it for system and tools only', 'auto', { asked: HOUR }, at(0, 1, 20), ['1h 5m', '1h 5m', '1h 5m']],
    ['a client on both keeps them', 'auto', { asked: MIXED }, at(0, 1), ['1h 5m', '1h 5m']],
    ['a client on five minutes stays there without a pause', 'auto', {}, at(0, 1, 5), ['5m 5m', '5m 5m', '5m 5m']],
    ['system and tools get the hour at the first pause, and keep it', 'auto', {}, at(0, 6, 7, 80), ['5m 5m', '1h 5m', '1h 5m', '1h 5m']],
    ['a pause of more than an hour begins no hour', 'auto', {}, at(0, 70, 71), ['5m 5m', '5m 5m', '5m 5m']],
    [
      'a large system part waits until it has been saved',
      'auto',
      { systemTokens: 30_000 },
      [{ minutes: 0 }, { minutes: 6 }, { minutes: 12, slackTokens: 40_000 }],
      ['5m 5m', '5m 5m', '1h 5m'],
    ],
    ['a request without markers gets none', 'auto', { asked: { head: undefined, conversation: undefined } }, at(0, 1), ['client', 'client']],
    [
      'the lifetime chosen by another process stays until it must have expired',
      'auto',
      { asked: HOUR, isNew: false },
      at(0, 10, 75, 76),
      ['client', 'client', '1h 5m', '1h 5m'],
    ],
    ['client', 'client', { asked: HOUR }, at(0, 1), ['client', 'client']],
    ['5m', '5m', { asked: HOUR }, at(0, 1), ['5m 5m', '5m 5m']],
    ['1h', '1h', {}, at(0, 1), ['1h 1h', '1h 1h']],
    [
      'a bound model stays on the hour until five minutes lead, and what was written on it keeps it',
      'auto',
      { asked: HOUR, isBound: true },
      at(0, 1, 2, 3, 4).map((step) => ({ ...step, written: 15_000, prompt: 20_000 })),
      ['1h 1h', '1h 1h', '1h 1h', '1h 5m until 5', '1h 5m until 5'],
    ],
    [
      'the lead has to pay for what a pause may cost',
      'auto',
      { asked: HOUR, isBound: true },
      at(0, 1, 2, 3, 4).map((step) => ({ ...step, written: 15_000, prompt: 60_000 })),
      ['1h 1h', '1h 1h', '1h 1h', '1h 1h', '1h 1h'],
    ],
    [
      'a conversation that an hour has kept over a pause speaks for the hour',
      'auto',
      { asked: HOUR, isBound: true },
      [
        ...at(0, 1, 2).map((step) => ({ ...step, written: 12_000, prompt: 20_000 })),
        { minutes: 20, written: 2_000, prompt: 20_000, found: 18_000 },
        { minutes: 21 },
      ],
      ['1h 1h', '1h 1h', '1h 1h', '1h 1h', '1h 1h'],
    ],
    [
      'one that was lost in spite of the hour speaks against it',
      'auto',
      { asked: HOUR, isBound: true },
      [
        ...at(0, 1, 2).map((step) => ({ ...step, written: 12_000, prompt: 20_000 })),
        { minutes: 20, written: 17_000, prompt: 20_000, found: 3_000 },
        { minutes: 21 },
      ],
      ['1h 1h', '1h 1h', '1h 1h', '1h 1h', '1h 5m until 7'],
    ],
    [
      'a pause takes the lead away',
      'auto',
      { asked: HOUR, isBound: true },
      [{ minutes: 0, written: 30_000 }, { minutes: 20, written: 30_000 }, { minutes: 50 }],
      ['1h 1h', '1h 1h', '1h 1h'],
    ],
  ]
  test.each(rows)('%s', (_, option, base, steps, chosen) => {
    expect(run(option, base, steps)).toEqual(chosen)
  })

  test.each([
    ['five minutes where an hour was asked', HOUR, 5_000, { fiveMinutes: 20_000, hour: 0 }, '5m'],
    ['an hour where five minutes were asked', SHORT, 5_000, { fiveMinutes: 0, hour: 20_000 }, '1h'],
    ['nothing where the head is too short to be cached by itself', HOUR, 3_000, { fiveMinutes: 20_000, hour: 0 }, undefined],
  ] as const)('the answer is believed: %s', (_, asked, systemTokens, written, given) => {
    const own = new ConversationLifetimes('auto')
    const moment = { at: 0, asked, isNew: true, isBound: false, systemTokens, read: 0.1, slackTokens: 5_000 }
    expect(own.next(moment)).toBeDefined()
    own.answered({ ...written, prompt: 20_000, read: 0 })
    expect(own.given).toBe(given)
    expect(own.next({ ...moment, at: 1_000, isNew: false }) === undefined).toBe(given !== undefined)
  })

  test.each([
    ['all of it', 30_000],
    ['most of it', 20_000],
  ])('a head that another conversation wrote for an hour says nothing of the lifetime: %s is read', (_, read) => {
    for (const isAfterPause of [false, true]) {
      const own = new ConversationLifetimes('auto')
      const moment = { at: 0, asked: isAfterPause ? SHORT : HOUR, isNew: true, isBound: false, systemTokens: 30_000, read: 0.1, slackTokens: 50_000 }
      own.next(moment)
      if (isAfterPause) {
        own.answered({ fiveMinutes: 40_000, hour: 0, prompt: 40_000, read: 0 })
        expect(own.next({ ...moment, at: 20 * MINUTE, isNew: false })).toMatchObject(MIXED)
      }
      own.answered({ fiveMinutes: 80_000 - read, hour: 0, prompt: 80_000, read })
      expect(own.given).toBeUndefined()
    }
  })

  test('messages keep the hour that they were written with until a roll writes them anew', () => {
    const own = new ConversationLifetimes('auto')
    const moment = { asked: HOUR, isBound: true, systemTokens: 1_000, read: 0.1, slackTokens: 5_000 }
    const isSame = (one: unknown, other: unknown): boolean => one === other
    const send = (at: number, messages: string): string => {
      own.next({ ...moment, at: at * 1_000, isNew: at === 0 })
      const { conversation, hourUntil } = own.sent([...messages], isSame)!
      const isShort = conversation === '5m'
      own.answered({ fiveMinutes: isShort ? 30_000 : 0, hour: isShort ? 0 : 30_000, prompt: 30_000, read: 0 })
      return `${conversation} ${hourUntil}`
    }
    // Each call writes 30,000 tokens at .75 more: five minutes lead from the third one on.
    expect(['a', 'abc', 'abcde', 'abcdefg'].map((messages, at) => send(at, messages))).toEqual(['1h 0', '1h 0', '5m 3', '5m 3'])
    expect(send(4, 'Xefgh')).toBe('5m 0')
  })

  test('a lifetime changes only where its prefix is new, in 2,000 random conversations', () => {
    const next = random(3).below
    for (let n = 0; n < 2_000; n += 1) {
      const own = new ConversationLifetimes('auto')
      const base = { asked: next(2) === 0 ? HOUR : SHORT, isBound: next(2) === 0, systemTokens: 1_000 * next(40), read: 0.05 }
      let [minutes, before] = [0, undefined as { at: number; head: string; conversation: string } | undefined]
      for (let step = 0; step < 20; step += 1) {
        minutes += next(4) === 0 ? next(90) : 0.5
        const chosen = own.next({ ...base, at: minutes * MINUTE, isNew: step === 0, slackTokens: next(50_000) })!
        if (before !== undefined && before.head !== chosen.head) expect(minutes - before.at).toBeGreaterThan(before.head === '1h' ? 60 : 5)
        if (before?.conversation === '5m' && chosen.conversation === '1h') expect(minutes - before.at).toBeGreaterThan(5)
        if (chosen.head === '5m') expect(chosen.conversation).toBe('5m')
        before = { at: minutes, head: chosen.head, conversation: chosen.conversation }
        const written = next(30_000)
        own.answered({ fiveMinutes: chosen.conversation === '5m' ? written : 0, hour: chosen.head === '1h' ? 1 : 0, prompt: 40_000 + written, read: 40_000 })
      }
    }
  })
})
