/** A thousand secrets of twenty kinds, recorded by a process that is killed, and by another one. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { cli } from './replay/support.ts'
import { cleanUp, temporaryFolder } from './rig/pi.ts'
// @ts-expect-error A program that runs as it is has no types.
import * as program from './rig/secrets.mjs'

afterEach(cleanUp)

const { EACH, ends } = program as { EACH: number; ends: string[] }

/** Records them; with `killAt`, until so many rounds are done. */
async function record(place: string, redact: boolean, killAt?: number): Promise<void> {
  const file = fileURLToPath(new URL('./rig/secrets.mjs', import.meta.url))
  const child = spawn(process.execPath, [file, join(place, 'store', 'context.db'), place, String(redact)], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  let told = ''
  for await (const chunk of child.stdout) {
    told += String(chunk)
    if (killAt !== undefined && told.split('\n').length > killAt) child.kill('SIGKILL')
  }
  expect(await ended).toEqual(killAt === undefined ? [0, null] : [null, 'SIGKILL'])
}

/** How many of the secrets are in the raw files of the store. */
function inFiles(place: string): number {
  const folder = join(place, 'store')
  const files = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile())
  const raw = files.map(({ name }) => readFileSync(join(folder, name), 'latin1').toLowerCase()).join('\n')
  return ends.filter((end) => raw.includes(end.toLowerCase())).length
}

/** How many of them are in an export and in the page. Texts are compressed in the files. */
async function readable(place: string): Promise<{ exported: number; page: number }> {
  const store = join(place, 'store', 'context.db')
  const exported = await cli(['export', '--store', store, '-'])
  const page = join(place, 'page.html')
  const inspected = await cli(['inspect', '--store', store, '--html', page])
  expect([exported.code, inspected.code]).toEqual([0, 0])
  const html = readFileSync(page, 'utf8')
  return {
    exported: ends.filter((end) => exported.stdout.includes(end)).length,
    page: ends.filter((end) => html.includes(end)).length,
  }
}

test('with "redact" none of them is anywhere, also after a kill and another run', { timeout: 300_000 }, async () => {
  const [plain, place] = [temporaryFolder('plain-'), temporaryFolder('redacted-')]
  for (const folder of [plain, place]) mkdirSync(join(folder, 'store'), { mode: 0o700 })
  expect(new Set(ends).size).toBe(20 * EACH)
  await record(plain, false)
  expect(inFiles(plain)).toBeGreaterThan(EACH)
  expect((await readable(plain)).exported).toBe(20 * EACH)

  await record(place, true, EACH / 2)
  expect(inFiles(place)).toBe(0)
  await record(place, true)
  expect(inFiles(place)).toBe(0)
  expect(await readable(place)).toEqual({ exported: 0, page: 0 })
  const { code, stdout } = await cli(['doctor', '--store', join(place, 'store', 'context.db'), '--secrets'])
  expect({ code, stdout }).toMatchObject({ code: 0 })
})
