/** A store that is only read: by the classes and by the MCP server, also where it can't be written. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { ContextManager, Store } from '../lib/index.ts'
import { program } from './replay/support.ts'
import { cleanUp, temporaryFolder } from '../rig/pi.ts'
import { byReader } from '../rig/process.ts'

afterEach(cleanUp)

/** Stores with a call and a turn. */
async function storeIn(folder: string): Promise<string> {
  const path = join(folder, 'context.db')
  const manager = await ContextManager.open({ sessionId: 's', cwd: folder, store: { kind: 'sqlite', path }, watch: false })
  await manager.appendTurn({ role: 'user', content: 'a question' })
  await manager.recordToolcall({ id: 'c1', tool: 'bash', args: {}, content: 'a pelican', status: 'ok' })
  await manager.close()
  return path
}

/** Temporary folders of this process: reading makes none. */
const temporary = (): string[] => readdirSync(tmpdir()).filter((name) => name.startsWith(`pi-context-manager-${process.pid}-`))

test('a store opened with readOnly is read, and refuses changes', async () => {
  const folder = temporaryFolder('readonly-')
  const path = await storeIn(folder)
  const before = readFileSync(path)
  const store = await Store.open({ kind: 'sqlite', path, readOnly: true })
  expect((await store.sessions()).map(({ id }) => id)).toEqual(['s'])
  expect(await store.search('pelican')).toMatchObject([{ id: 'c1' }])
  expect((await store.get('c1'))?.document.content).toBe('a pelican')
  expect(await store.verify()).toEqual([])
  const refused = { code: 'STORE_UNAVAILABLE', message: expect.stringContaining('readOnly') }
  await expect(store.forget([{ id: 'c1' }], 'x')).rejects.toMatchObject(refused)
  await expect(store.prune({ olderThanDays: 1 })).rejects.toMatchObject(refused)
  await expect(store.setLimits({})).rejects.toMatchObject(refused)
  await expect(store.import(path)).rejects.toMatchObject(refused)
  expect(temporary()).toEqual([])
  await store.close()
  await store.close()
  expect(temporary()).toEqual([])
  expect(readFileSync(path).equals(before)).toBe(true)
  expect(readdirSync(folder)).toEqual(['context.db'])
})

test('a session of such a store is kept in memory, and what it writes is lost', async () => {
  const folder = temporaryFolder('readonly-')
  const path = await storeIn(folder)
  const before = readFileSync(path)
  const manager = await ContextManager.open({ sessionId: 's', cwd: folder, store: { kind: 'sqlite', path, readOnly: true }, watch: false })
  expect((await manager.assemble()).text).toContain('a pelican')
  // Its versions are those of the file, in a store with its own transaction numbers.
  await using store = await Store.open({ kind: 'sqlite', path, readOnly: true })
  const [[stored], [copied]] = [await store.history('c1'), await manager.history('c1')]
  expect(copied).toMatchObject({ document: stored!.document, validTime: stored!.validTime, txId: expect.any(Number) })
  expect((await manager.getAsOf('c1', { txId: copied!.txId }))?.content).toBe('a pelican')
  await manager.recordToolcall({ id: 'c2', tool: 'bash', args: {}, content: 'a heron', status: 'ok' })
  await manager.close()
  expect(temporary()).toEqual([])
  expect(readFileSync(path).equals(before)).toBe(true)
})

test('a store that is only read shows what a session writes beside it, and does not keep it from tidying up', async () => {
  const folder = temporaryFolder('readonly-')
  const path = await storeIn(folder)
  await using store = await Store.open({ kind: 'sqlite', path, readOnly: true })
  const manager = await ContextManager.open({ sessionId: 't', cwd: folder, store: { kind: 'sqlite', path }, watch: false })
  for (const word of ['heron', 'stork', 'ibis']) {
    await manager.recordToolcall({ id: word, tool: 'bash', args: { word }, content: `a ${word}`, status: 'ok' })
    expect((await store.get(word))?.document.content).toBe(`a ${word}`)
    expect(await store.search(word, { sessionId: 't' })).toMatchObject([{ id: word }])
    expect(await store.find(word, 't')).toEqual([word])
    expect(await store.find(word, 's')).toEqual([])
  }
  expect((await store.objects('t')).filter(({ type }) => type === 'toolcall')).toMatchObject(
    ['heron', 'stork', 'ibis'].map((word) => ({ id: word, tool: 'bash', args: { word }, written: [{ txId: expect.any(Number) }] })),
  )
  await manager.close()
  expect((await store.get('ibis'))?.document.content).toBe('a ibis')
})

test('wrong options and files are named, and leave nothing', async () => {
  const folder = temporaryFolder('readonly-')
  await expect(Store.open({ kind: 'sqlite', path: join(folder, 'a.db'), readOnly: 1 } as never)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  await expect(Store.open({ kind: 'sqlite', path: join(folder, 'a.db'), readOnly: true })).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  expect(existsSync(join(folder, 'a.db'))).toBe(false)
  expect(temporary()).toEqual([])
})

test.skipIf(process.platform !== 'linux')('the MCP server reads a store on a disk that can only be read', async () => {
  const folder = temporaryFolder('readonly-')
  const [disk, home] = [join(folder, 'disk'), join(folder, 'home')]
  for (const one of [disk, home]) mkdirSync(one)
  const path = await storeIn(disk)
  for (const [file, mode] of [
    [folder, 0o755],
    [home, 0o777],
    [path, 0o444],
    [disk, 0o555],
  ] as const)
    chmodSync(file, mode)
  const [command, args] = byReader(...program('mcp', '--store', path, '--session', 's'))
  const env = { PATH: process.env['PATH'] ?? '', TMPDIR: home, HOME: home }
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(new StdioClientTransport({ command, args, env, stderr: 'inherit' }))
  const answer = await client.callTool({ name: 'show', arguments: { id: 'c1' } })
  expect(JSON.stringify(answer.content)).toContain('a pelican')
  await client.close()
  expect(readdirSync(home)).toEqual([])
  expect(readdirSync(disk)).toEqual(['context.db'])
  chmodSync(disk, 0o755)
})

test('forgetting can be tried: it counts, and changes nothing', async () => {
  const folder = temporaryFolder('readonly-')
  const path = await storeIn(folder)
  await using store = await Store.open({ kind: 'sqlite', path })
  const counted = await store.forget([{ id: 'c1' }], 'x', { dryRun: true })
  expect(counted).toEqual({ texts: 1, versions: 1 })
  expect((await store.get('c1'))?.document.content).toBe('a pelican')
  expect(await store.verify()).toEqual([])
  expect(await store.forget([{ id: 'c1' }], 'x')).toEqual(counted)
  expect((await store.get('c1'))?.document.content).toBe(null)
})
