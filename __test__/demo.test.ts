/** The demo runs to its end, and what it says to look at can be looked at. */
import { execFile } from 'node:child_process'
import { existsSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { findNode } from '../pi-runtime/index.mjs'

const execute = promisify(execFile)
const root = fileURLToPath(new URL('..', import.meta.url))

test('the demo ends with inspect, and the command works as it stands', { timeout: 180_000 }, async () => {
  const { stdout } = await execute(findNode(), ['--experimental-strip-types', 'demo/main.ts'], { cwd: root })
  const folder = /rm -r (\S+)/.exec(stdout)![1]!
  try {
    expect(stdout).toMatch(/cost of what was sent \* +[\d,]+ +[\d,]+ +\d+ %\n/)
    expect(stdout).not.toContain('sqlite3')
    const [, command] = /look into it with: node (.+)\n/.exec(stdout)!
    const args = command!.split(' ')
    await execute(process.execPath, args, { cwd: root })
    expect(existsSync(args.at(-1)!)).toBe(true)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
