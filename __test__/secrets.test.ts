/** A thousand secrets of twenty kinds, recorded by a process that is killed, and by another one. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { Projection, recall } from '../lib/projection/harness.ts'
import { ContextManager } from '../lib/index.ts'
import { cli } from './replay/support.ts'
import { cleanUp, temporaryFolder } from '../rig/pi.ts'
// @ts-expect-error A program that runs as it is has no types.
import * as program from '../rig/secrets.mjs'

afterEach(cleanUp)

const { EACH, ends } = program as { EACH: number; ends: string[] }

/** Records them; with `killAt`, until this many rounds are done. */
async function record(place: string, redact: boolean, killAt?: number): Promise<void> {
  const file = fileURLToPath(new URL('../rig/secrets.mjs', import.meta.url))
  const child = spawn(process.execPath, [file, join(place, 'store', 'context.db'), place, String(redact)], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  let told = ''
  for await (const chunk of child.stdout) {
    told += String(chunk)
    if (killAt !== undefined && told.split('\n').length > killAt) child.kill('SIGKILL')
  }
  expect(await ended).toEqual(killAt === undefined ? [0, null] : [null, 'SIGKILL'])
}

/** Number of the secrets in the raw files of the store. */
function inFiles(place: string): number {
  const folder = join(place, 'store')
  const files = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile())
  const raw = files.map(({ name }) => readFileSync(join(folder, name), 'latin1').toLowerCase()).join('\n')
  return ends.filter((end) => raw.includes(end.toLowerCase())).length
}

/** Number of the secrets in an export and in the page. Texts are compressed in the files. */
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

test('with "redact" an output with a secret is still the output of its message', async () => {
  const place = temporaryFolder('hosts-')
  // In parts, so that this file has no key.
  const key = `${'ghp'}_1kQ8vT3mZ5xR1wB7nC4yL9dF2gH6jP0sUaEo`
  const open = () => ContextManager.open({ sessionId: 's', cwd: place, store: { kind: 'sqlite', path: join(place, 'context.db') }, redact: true, watch: false })
  const call = (id: string) => ({ id, type: 'function', function: { name: 'bash', arguments: '{}' } })
  const messages = [
    { role: 'user', content: 'go' },
    { role: 'assistant', content: null, tool_calls: [call('c1'), call('c2')] },
    { role: 'tool', tool_call_id: 'c1', content: `x ${key}\n${'lorem\n'.repeat(300)}` },
    { role: 'tool', tool_call_id: 'c2', content: 'ipsum\n'.repeat(300) },
  ]
  const first = await open()
  const projection = new Projection(first, { shape: 'openai-chat' })
  await projection.transform(messages)
  expect((await first.get('c1'))?.content).toMatch(/^x \[redacted: github-pat\]\n/)
  expect(await projection.permits('c1')).toBe(true)
  // It has no name in this conversation that the answer could point to.
  expect(await recall(first, { id: 'c1' })).toContain(`x ${key}\n`)
  await first.pin('c1')
  await first.pin('c2')
  await first.close()

  const second = await open()
  const host = new Projection(second, { shape: 'openai-chat' })
  await host.transform(messages)
  expect((await second.sessionSets()).pinnedSet).toEqual(['c1', 'c2'])
  // Whatever the host itself takes out is another text.
  const taken = messages.map((message) => ('tool_call_id' in message && message.tool_call_id === 'c1' ? { ...message, content: 'x ***' } : message))
  await host.transform(taken)
  expect(await host.permits('c1')).toBe(false)
  await second.close()
})
