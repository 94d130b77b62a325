/**
 * Calls that a program of the model makes, in a Pi that has codemode: each value is what it is without the extension,
 * each call is recorded under its parent, and the model's own context takes no notice.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { findRuntime, isAtLeast } from '../../pi-runtime/index.mjs'
import { cleanUp, startRpc } from '../../rig/pi.ts'
import { calls } from '../../rig/reply.ts'
import type { Answer } from '../../rig/reply.ts'
import { resultsById } from '../../rig/request.ts'
import { header, lines, notices, openStore, put, setUp } from './support.ts'
import type { Setting } from './support.ts'

afterEach(cleanUp)

const { version } = findRuntime()
/** Codemode came with 0.99. */
const HAS_CODEMODE = isAtLeast(version, '0.99.0')
if (!HAS_CODEMODE) process.stderr.write(`not run on Pi ${version}: nested calls, which came with 0.99.0\n`)

const CODEMODE = 'builtin:codemode'
const TOOLS = { defaultTools: ['read', 'bash', 'edit', 'write', 'grep', 'ls', 'codemode'] }

/** A red dot. */
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4//8/w38GIAXDIBKE0DHxgljNBAAO9TXL0Y4OHwAAAABJRU5ErkJggg=='

/** Fifty calls and more, of every tool, in all the forms that a value has; what came of them goes to `values.json`. */
const SCRIPT = `
const values = []
const attempt = async (name, args) => {
  try { const value = await tools[name](args); values.push([name, args, typeof value, value]) }
  catch (error) { values.push([name, args, 'error', String(error.message)]) }
}
await attempt('read', { path: 'data.json' })
values.push(JSON.parse(await tools.read({ path: 'data.json' })).list.length)
await attempt('read', { path: 'long.txt' })
await attempt('read', { path: 'long.txt', offset: 100, limit: 40 })
await attempt('read', { path: 'long.txt', offset: 100, limit: 40 })
await attempt('read', { path: 'dot.png' })
await attempt('read', { path: 'data.bin' })
await attempt('read', { path: 'nowhere.txt' })
await attempt('read', { path: '.' })
await attempt('bash', { command: 'cat long.txt' })
await attempt('bash', { command: 'echo out; echo err >&2; exit 3' })
await attempt('bash', { command: 'true' })
await attempt('bash', { command: 'seq 1 60000' })
await attempt('ls', { path: '.' })
await attempt('grep', { pattern: 'line 7', path: 'long.txt' })
await attempt('grep', { pattern: 'toolcall_ref', path: '.' })
await attempt('write', { path: 'new.txt', content: 'one\\ntwo\\n' })
await attempt('read', { path: 'new.txt' })
await attempt('edit', { path: 'new.txt', edits: [{ oldText: 'two', newText: 'three' }] })
await attempt('edit', { path: 'new.txt', edits: [{ oldText: 'nowhere', newText: 'x' }] })
await attempt('bash', { command: "sed -i s/one/ONE/ new.txt" })
await attempt('edit', { path: 'new.txt', edits: [{ oldText: 'ONE', newText: 'one' }] })
await attempt('edit', { path: 'seen.txt', edits: [{ oldText: 'seen line 2:', newText: 'mine' }] })
await attempt('write', { path: 'marked.txt', content: MARK })
await attempt('read', { path: 'seen.txt' })
await attempt('read', { path: 'seen.txt' })
for (let n = 0; n < 24; n += 1) await attempt('read', { path: 'part' + (n % 6) + '.txt' })
const parallel = await Promise.all([0, 1, 2, 3].map((n) => tools.read({ path: 'part' + n + '.txt' })))
values.push(parallel)
await tools.write({ path: 'values.json', content: JSON.stringify(values) })
return values.length
`

/** Files, and a session whose model has read one of them, after which it changes. */
async function run(setting: Setting, extension: readonly string[]) {
  const { server, home, load } = setting
  put(home, 'data.json', JSON.stringify({ list: [1, 2, 3], text: lines('json', 80) }))
  put(home, 'long.txt', lines('long', 1500))
  put(home, 'seen.txt', lines('seen', 60))
  put(home, 'dot.png', Buffer.from(PNG, 'base64'))
  put(home, 'data.bin', Uint8Array.from([0, 1, 2, 255, 0]))
  for (let n = 0; n < 6; n += 1) put(home, `part${n}.txt`, lines(`part${n}`, 40))
  const rpc = await startRpc({ ...load, extension: [CODEMODE, ...extension], timeoutMs: 150_000 })
  const session = (await rpc.state())['sessionId'] as string
  await rpc.prompt('look')
  put(home, 'seen.txt', `theirs\n${lines('seen', 60)}`)
  await rpc.prompt('go')
  await rpc.prompt('and then')
  expect(await rpc.close()).toEqual({ code: 0, signal: null })
  return { rpc, session, requests: server.requests }
}

/** A mark of collapsed text, as a program may well have it among its data. */
const MARK = '[collapsed: 4000 characters, id=0123abcd]'

const SCRIPTED = (_request: unknown, n: number): Answer => {
  if (n === 0)
    return calls(
      ['read', { path: 'seen.txt' }, 'call_seen'],
      ...[0, 1, 2, 3].map((part): [string, object, string] => ['read', { path: `part${part}.txt` }, `call_${part}`]),
    )
  if (n === 2) return calls(...[0, 1, 2].map((part): [string, object, string] => ['bash', { command: `cat part${part}.txt` }, `again_${part}`]))
  if (n === 3) return calls(['codemode', { code: SCRIPT.replace('MARK', JSON.stringify(MARK)) }, 'call_cm'])
  return `answer ${n}`
}

const valuesIn = ({ home }: Setting): string =>
  readFileSync(join(home.cwd, 'values.json'), 'utf8')
    .replaceAll(home.root, 'HOME')
    .replaceAll(/"wall_time_seconds":[\d.]+/g, '"wall_time_seconds":0')
    .replaceAll(/pi-bash-[0-9a-f]+\.log/g, 'pi-bash.log')

describe.skipIf(!HAS_CODEMODE)('a program with over fifty calls', () => {
  test('has the same values with and without the extension, and leaves the context as it was', async () => {
    const plain = await setUp(SCRIPTED, { settings: TOOLS })
    await run(plain, [])
    const ours = await setUp(SCRIPTED, { settings: TOOLS })
    const { rpc, session, requests } = await run(ours, [ours.load.extension])
    const [with_, without] = [valuesIn(ours), valuesIn(plain)]
    expect(JSON.parse(without).length).toBeGreaterThan(50)
    for (const [index, value] of (JSON.parse(without) as unknown[]).entries()) expect(JSON.parse(with_)[index]).toEqual(value)
    expect(with_).toBe(without)

    // The result of the program itself is the model's: it is recorded, and has a header where it is long enough.
    const shown = resultsById(requests[4]!).get('call_cm')!
    expect(shown.replace(`${header('call_cm')}\n`, '')).toContain('Script completed')
    expect(notices(rpc.events)).toEqual([])
    for (const request of requests) {
      for (const message of request.messages) expect(message.text).not.toMatch(/call_cm\/\d/)
    }

    const manager = await openStore(ours.store, session, ours.home.cwd)
    const nested = (await manager.query({ type: 'toolcall' })).filter((one) => one['xt/id'].startsWith('call_cm/'))
    expect(nested.length).toBeGreaterThan(50)
    const hits = await manager.search('theirs', { sessionId: session })
    expect(hits.map((hit) => hit.id)).toContainEqual(expect.stringMatching(/^call_cm\/\d+$/))
    const whole = nested.find((one) => JSON.stringify(one['args']).includes('seq 1 60000'))
    expect(whole?.content).toContain('\n30000\n')
    const sets = await manager.sessionSets()
    expect(sets.activeSet.filter((id) => id.startsWith('call_cm/'))).toEqual([])
    expect(sets.sessionIndex).toEqual(expect.arrayContaining(nested.map((one) => one['xt/id'])))
    for (const one of nested) expect(one['parent_ref']).toBe('call_cm')
    const own = ['again_0', 'again_1', 'again_2', 'call_cm']
    const chat = (await manager.get(`chat:${session}`)) as any
    // Calls that run side by side are recorded as they end.
    expect([...chat.turns[1].toolcall_ids].sort()).toEqual(own)
    expect(sets.activeSet).toEqual(expect.arrayContaining(own))
    expect(sets.metadataPool.filter((id) => id.startsWith('call_cm/'))).toEqual([])
  }, 400_000)
})
