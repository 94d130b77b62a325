/** A long life: sessions come and go, and the process holds no more for it. */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { folder, sqlite } from '../core/setup.ts'
import { cleanUp, onCleanUp } from '../../rig/cleanup.ts'
import { GENEROUS, NATIVE, say, sized } from './sized.ts'

afterEach(cleanUp)

const LIFE = fileURLToPath(new URL('life.mjs', import.meta.url))

interface Sample {
  rss: number
  descriptors: number
  threads: number
}

const median = (numbers: number[]): number => numbers.toSorted((a, b) => a - b)[numbers.length >> 1]!

/** The seconds can be given by `CONTEXT_LIFE_SECONDS`, for a life of another length. */
const SECONDS = Number(process.env['CONTEXT_LIFE_SECONDS'] ?? sized(1, 40, 3_600))

test.runIf(existsSync('/proc/self/fd'))(
  'memory, descriptors and threads of a process stay as they are over many sessions',
  async () => {
    const args = ['--expose-gc', LIFE, NATIVE, sqlite().path, folder(), String(SECONDS)]
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    onCleanUp(() => void child.kill('SIGKILL'))
    const ended = new Promise((resolve) => child.once('close', resolve))
    const samples: Sample[] = []
    for await (const line of createInterface({ input: child.stdout })) samples.push(JSON.parse(line) as Sample)
    expect(await ended).toBe(0)

    const half = samples.slice(samples.length >> 1)
    const [third, fourth] = [half.slice(0, half.length >> 1), half.slice(half.length >> 1)]
    const growth = median(fourth.map((one) => one.rss)) / median(third.map((one) => one.rss)) - 1
    const descriptors = (part: Sample[]) => median(part.map((one) => one.descriptors))
    const threads = (part: Sample[]) => median(part.map((one) => one.threads))
    say(
      `${SECONDS} s, ${samples.length} sessions: memory ${(growth * 100).toFixed(1)} % more at the end of the last ` +
        `half than at its beginning (${Math.round(samples.at(-1)!.rss / 2 ** 20)} MiB), ${descriptors(fourth)} descriptors, ${threads(fourth)} threads`,
    )
    expect(descriptors(fourth), 'descriptors').toBe(descriptors(third))
    // The runtime keeps a few threads for what may wait, as many as were busy at once in the last seconds. A session that
    // left one behind would show as a hundred.
    expect(threads(fourth), 'threads').toBeLessThanOrEqual(threads(third) + 3)
    // Memory warms up over the first 160 sessions, about two minutes, to what it then keeps.
    const bound = SECONDS >= 600 ? 0.05 : 0.25
    if (SECONDS >= 60) expect(growth).toBeLessThanOrEqual(bound)
  },
  GENEROUS + SECONDS * 1000,
)
