/** Many sessions of one process on one store are a good guest: they share the store's connections, threads and watches. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, expect, test } from 'vitest'
import { folder, sqlite } from '../core/setup.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { GENEROUS, NATIVE, say, sized } from './sized.ts'

afterEach(cleanUp)

const MANY = fileURLToPath(new URL('open-many.mjs', import.meta.url))

interface Cost {
  found: number
  descriptors: number
  threads: number
  refused: string
  told: number
  left: { descriptors: number; files: string[] }
}

test.runIf(process.platform === 'linux')(
  'open sessions on one store cost no descriptors and threads of their own, and each ends by itself',
  async () => {
    const sessions = sized(500, 500, 500)
    const args = [MANY, NATIVE, sqlite().path, folder(), String(sessions)]
    const { stdout, stderr } = await promisify(execFile)(process.execPath, args)
    expect(stderr).toBe('')
    const cost = JSON.parse(stdout) as Cost
    say(`${sessions} sessions: ${cost.descriptors} descriptors and ${cost.threads} threads more than before`)
    expect(cost.found).toBe(sessions)
    expect(cost.descriptors).toBeLessThan(60)
    expect(cost.threads).toBeLessThan(60)
    expect(cost.refused).toBe('CLOSED')
    expect(cost.told).toBe(sessions / 2)
    expect(cost.left.files.filter((name) => name.endsWith('-wal'))).toEqual([])
    expect(cost.left.descriptors).toBeLessThan(10)
  },
  GENEROUS,
)
