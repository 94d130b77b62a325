/** Thousands of tracked files that another process writes: all of them arrive, and the event loop keeps running. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, expect, test } from 'vitest'
import { folder, sqlite, write } from '../core/setup.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { GENEROUS, NATIVE, say, sized } from './sized.ts'

afterEach(cleanUp)

const MANY = fileURLToPath(new URL('many.mjs', import.meta.url))

test(
  'files that change by the thousand are all as on disk after a flush, and nothing stands still meanwhile',
  async () => {
    const files = sized(500, 3_000, 10_000)
    const [cwd, store] = [folder(), sqlite()]
    for (let n = 0; n < files; n += 1) write(cwd, `d${n % 500}/f${n}`, 'round 0')
    const args = [MANY, NATIVE, store.path, cwd, String(files)]
    const { stdout, stderr } = await promisify(execFile)(process.execPath, args)
    expect(stderr).toBe('')
    const { equal, events, flush, stall, usual } = JSON.parse(stdout) as Record<string, number>
    say(
      `${files} files written 3 times: ${equal} as on disk ${Math.round(flush!)} ms after the last write, ` +
        `${events} events; the event loop stood still for ${stall} ms at most, 99 % below ${usual} ms`,
    )
    expect(equal).toBe(files)
    expect(events).toBeGreaterThan(0)
    // Work for all files at once would take longer than this; a busy machine does not.
    expect(stall).toBeLessThan(1_000)
  },
  GENEROUS,
)
