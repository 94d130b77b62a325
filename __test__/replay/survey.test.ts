import { describe, expect, test } from 'vitest'
import { openRecording } from '../../lib/replay/open.ts'
import { fit, survey } from '../../lib/replay/survey.ts'
import { fixture } from './support.ts'

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
