/**
 * The cost without the gateway where it has chosen the lifetime of the cache: that of the host's own requests, which the provider would
 * have kept for as long as the host asks.
 */
import { afterEach, expect, test } from 'vitest'
import { cleanUp } from '../../../rig/cleanup.ts'
import type { LifetimeOption } from '../../../lib/models/index.ts'
import { ANTHROPIC, claimAndTruth, withHour } from '../claims.ts'
import type { Format, Host } from '../claims.ts'

afterEach(cleanUp)

const MINUTE_MS = 60_000

/** A user who makes pauses before prompts. */
const pausing =
  (minutes: readonly number[]): Host =>
  (steps, k) => {
    if (k === 0 || k % 10 !== 0) return 0
    steps.push({ said: `next ${k}` })
    return (minutes[k / 10 - 1] ?? 0) * MINUTE_MS
  }

const HOSTS: Readonly<Record<string, Host>> = {
  'without pauses': pausing([]),
  'with pauses of 10 to 15 minutes': pausing([10, 15, 10, 12, 10]),
  'with one of 83 minutes among them': pausing([10, 15, 83, 10, 2]),
  'with pauses of two hours': pausing([0, 120, 0, 120, 0]),
}

const BOUND = 'claude-opus-5-5'
const CLIENTS: Readonly<Record<string, Format>> = {
  'five minutes': ANTHROPIC,
  'an hour': withHour(ANTHROPIC),
  'an hour, on a bound model': { ...withHour(ANTHROPIC), model: BOUND },
  'five minutes, on a bound model': { ...ANTHROPIC, model: BOUND },
}

const OPTIONS: readonly LifetimeOption[] = ['client', 'auto', '5m', '1h']

test.each(
  OPTIONS.flatMap((option) =>
    Object.entries(CLIENTS).flatMap(([client, format]) =>
      Object.entries(HOSTS).map(([how, host]): [LifetimeOption, string, string, Format, Host] => [option, client, how, format, host]),
    ),
  ),
)('%s, a client on %s, %s: its cost is the true one within 2 %%', async (option, client, how, format, host) => {
  const { claimed, without, paid, rolls } = await claimAndTruth(format, host, { cacheLifetime: option, isAnthropic: () => true })
  const off = claimed / without - 1
  process.stderr.write(
    `${option}, a client on ${client}, ${how}: paid $${paid.toFixed(4)}, said $${claimed.toFixed(4)} beside $${without.toFixed(4)} (${(100 * off).toFixed(2)} %, ${rolls} rolls)\n`,
  )
  expect(rolls).toBeGreaterThan(0)
  expect(Math.abs(off)).toBeLessThan(0.02)
})
