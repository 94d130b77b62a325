import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['__test__/**/*.test.ts'],
    // Most tests start a real Pi, several times; on a busy machine that takes its time, and a lost event must
    // fail with what Pi said (the rig's own deadline of 60 s), not with the runner's bare timeout.
    testTimeout: 180_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
  },
})
