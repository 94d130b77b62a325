import { afterEach, describe, expect, test } from 'vitest'
import { openRecording } from '../../lib/recordings/open.ts'
import { fit, survey } from '../../lib/replay/survey.ts'
import { fixture, temporaryFile } from './support.ts'
import { cleanUp } from '../../rig/cleanup.ts'

afterEach(cleanUp)

describe('characters a token', () => {
  test.each([
    [2.8, 3000],
    [4, 0],
    [3.3, 40_000],
  ])('%d characters and %d tokens of system part are found again', (unitsPerToken, systemTokens) => {
    const points = [0, 9_000, 50_000, 200_000].map((units) => ({
      units,
      tokens: systemTokens + units / unitsPerToken,
    }))
    const found = fit(points)
    expect(found.unitsPerToken).toBeCloseTo(unitsPerToken, 3)
    expect(found.systemTokens).toBeCloseTo(systemTokens, -1)
  })

  test.each([
    ['no answer', []],
    ['one answer', [{ units: 2800, tokens: 4000 }]],
    [
      'counts that have nothing to do with the text',
      [
        { units: 10, tokens: 90_000 },
        { units: 20_000, tokens: 5 },
      ],
    ],
    [
      'equal requests',
      [
        { units: 5000, tokens: 3000 },
        { units: 5000, tokens: 3100 },
      ],
    ],
  ])('%s gives figures that can be used', (_, points) => {
    const { unitsPerToken, systemTokens } = fit(points)
    expect(unitsPerToken).toBeGreaterThanOrEqual(1)
    expect(unitsPerToken).toBeLessThanOrEqual(8)
    expect(systemTokens).toBeGreaterThanOrEqual(0)
    expect(Number.isFinite(systemTokens)).toBe(true)
  })

  test('the start is not below nothing and not above the smallest request', () => {
    const points = [
      { units: 10_000, tokens: 1000 },
      { units: 20_000, tokens: 6000 },
      { units: 30_000, tokens: 11_000 },
    ]
    const { systemTokens } = fit(points)
    expect(systemTokens).toBe(0)
  })
})

test('the recorder’s own prices are found', async () => {
  const found = await survey(await openRecording(fixture('pi-version-3.jsonl')), () => {})
  expect(found.calls).toBe(42)
  expect(found.models).toEqual(['rig/scripted'])
  const prices = found.prices.get('rig/scripted')
  expect(prices?.input).toBeCloseTo(5)
  expect(prices?.cacheRead).toBeCloseTo(0.5)
  expect(prices?.output).toBeCloseTo(25)
})

describe('after a step back, text from before a compaction is not counted again', () => {
  const SCALE = { unitsPerToken: 4, systemTokens: 5000 }
  /** A text of this many characters. */
  const long = (characters: number): string => 'x'.repeat(characters)
  /** Returns the provider's count for the system part and this many characters. */
  const usage = (characters: number) => ({
    input: SCALE.systemTokens + characters / SCALE.unitsPerToken,
    output: 1,
    cacheRead: 0,
    cacheWrite: 0,
  })

  test('in a session of Pi', async () => {
    const entry = (id: string, parentId: string | null, fields: object) => JSON.stringify({ id, parentId, ...fields })
    const said = (id: string, parent: string | null, role: string, text: string, rest: object = {}) =>
      entry(id, parent, { type: 'message', message: { role, content: [{ type: 'text', text }], ...rest } })
    const text = [
      JSON.stringify({ type: 'session', version: 3, id: 's', cwd: '/x' }),
      said('u1', null, 'user', long(100_000)),
      said('a1', 'u1', 'assistant', long(4000), { usage: usage(100_000) }),
      said('u2', 'a1', 'user', long(1000)),
      entry('c', 'u2', { type: 'compaction', summary: long(2000), firstKeptEntryId: 'u2' }),
      said('a2', 'c', 'assistant', long(8000), { usage: usage(3000) }),
      said('u3', 'a2', 'user', long(20_000)),
      said('a3', 'u3', 'assistant', long(4000), { usage: usage(31_000) }),
      said('u4', 'a2', 'user', long(10_000)),
      said('a4', 'u4', 'assistant', long(4000), { usage: usage(21_000) }),
      said('u5', 'a1', 'user', long(6000)),
      said('a5', 'u5', 'assistant', 'done', { usage: usage(110_000) }),
    ].join('\n')
    const found = await survey(await openRecording(temporaryFile('s.jsonl', text)), () => {})
    expect(found.systemTokens).toBe(SCALE.systemTokens)
    expect(found.unitsPerToken).toBeCloseTo(SCALE.unitsPerToken, 6)
  })

  test('in a transcript of Claude Code', async () => {
    const counted = (characters: number) => {
      const { input, output } = usage(characters)
      return { usage: { input_tokens: input, output_tokens: output } }
    }
    const line = (uuid: string, parentUuid: string | null, text: string, rest: object = {}, own: object = {}) => {
      const type = uuid.startsWith('a') ? 'assistant' : 'user'
      const message = { id: uuid, role: type, content: [{ type: 'text', text }], ...rest }
      return JSON.stringify({ uuid, parentUuid, type, message, sessionId: 's', cwd: '/x', ...own })
    }
    const text = [
      line('u1', null, long(100_000)),
      line('a1', 'u1', long(4000), counted(100_000)),
      JSON.stringify({ uuid: 'b', parentUuid: null, logicalParentUuid: 'a1', type: 'system' }),
      line('c', 'b', long(2000), {}, { isCompactSummary: true }),
      line('u2', 'c', long(1000)),
      line('a2', 'u2', long(8000), counted(3000)),
      line('u3', 'a2', long(20_000)),
      line('a3', 'u3', long(4000), counted(31_000)),
      line('u4', 'a2', long(10_000)),
      line('a4', 'u4', long(4000), counted(21_000)),
      line('u5', 'a1', long(6000)),
      line('a5', 'u5', 'done', counted(110_000)),
    ].join('\n')
    const found = await survey(await openRecording(temporaryFile('s.jsonl', text)), () => {})
    expect(found.systemTokens).toBe(SCALE.systemTokens)
    expect(found.unitsPerToken).toBeCloseTo(SCALE.unitsPerToken, 6)
  })
})
