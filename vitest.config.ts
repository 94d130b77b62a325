import { defineConfig } from 'vitest/config'

/**
 * The slowest suites, which run real programs for minutes. `npm run test:full` and CI run them. What they cover end to end,
 * `npm test` covers in parts: the journal by the store's own tests, OpenCode's messages by hosts/conformance, crashes of
 * processes by lasting/kill.
 */
const SLOW = ['__test__/pi/queue.test.ts', '__test__/hosts/opencode.test.ts', '__test__/hosts/opencode-binding.test.ts', '__test__/hosts/crash.test.ts']
const isFull = process.env['CONTEXT_FULL'] === '1'

export default defineConfig({
  test: {
    include: ['__test__/**/*.test.ts'],
    exclude: isFull ? [] : SLOW,
    // Most tests start a real Pi, several times; on a busy machine that takes its time, and a lost event must
    // fail with what Pi said (the rig's own deadline of 60 s), not with the runner's bare timeout.
    testTimeout: 180_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
  },
})
