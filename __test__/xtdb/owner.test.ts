/** The objects that the owner of an XTDB database takes out of it, with the program itself. */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ContextManager } from '../../lib/index.ts'
import type { StoreOptions } from '../../lib/index.ts'
import { cli } from '../replay/support.ts'
import { cleanUp, onCleanUp, temporaryFolder } from '../../rig/pi.ts'
import { freshNode, withoutXtdb } from '../../rig/xtdb.ts'

let before: string | undefined
beforeEach(() => {
  before = process.env['CONTEXT_XTDB_JOURNAL']
})
afterEach(async () => {
  if (before === undefined) delete process.env['CONTEXT_XTDB_JOURNAL']
  else process.env['CONTEXT_XTDB_JOURNAL'] = before
  await cleanUp()
})

const missing = withoutXtdb('xtdb/owner: 1 test against a real XTDB was')

test.skipIf(missing)('a text is forgotten by the node and by the journal', async () => {
  const folder = temporaryFolder('owner-')
  const node = await freshNode()
  const journal = join(folder, 'journal', 'journal.db')
  process.env['CONTEXT_XTDB_JOURNAL'] = journal
  const store: StoreOptions = { kind: 'xtdb', url: node.url, journal }
  const secret = `sk-${createHash('sha256').update('a key').digest('hex').slice(0, 32)}`
  const open = async (sessionId: string): Promise<ContextManager> => {
    const manager = await ContextManager.open({ sessionId, cwd: folder, store, filesystemId: 'here', watch: false })
    onCleanUp(() => manager.close())
    return manager
  }
  let manager = await open('s1')
  writeFileSync(join(folder, 'a.env'), `KEY=${secret}\n`)
  const { id } = await manager.indexFile('a.env')
  await manager.appendTurn({ role: 'user', content: `the key is ${secret}, and the rest stays` })
  await manager.recordToolcall({ id: 'c1', tool: 'bash', args: { command: `use ${secret}` }, content: 'done', status: 'ok' })
  await manager.close()
  const inJournal = (): boolean =>
    readdirSync(join(folder, 'journal'), { withFileTypes: true })
      .filter((entry) => entry.isFile())
      .some(({ name }) => readFileSync(join(folder, 'journal', name)).includes(secret))
  expect(inJournal()).toBe(true)

  const forgotten = await cli(['forget', '--store', node.url, '--text', secret, '--why', 'a live key', '--json'])
  expect({ code: forgotten.code, stderr: forgotten.stderr }).toEqual({ code: 0, stderr: '' })
  expect(JSON.parse(forgotten.stdout).versions).toBeGreaterThanOrEqual(3)
  expect(inJournal()).toBe(false)
  expect((await cli(['export', '--store', node.url, '-'])).stdout).not.toContain(secret)
  expect((await cli(['search', '--store', node.url, secret])).code).toBe(1)
  expect((await cli(['forget', '--store', node.url, '--text', secret])).code).toBe(1)

  manager = await open('s1')
  expect(await manager.activate(id)).toMatchObject({ ok: false, code: 'NULL_CONTENT', message: expect.stringContaining('a live key') })
  expect(JSON.stringify(await manager.get('chat:s1'))).toContain('and the rest stays')
  await manager.close()

  const dry = await cli(['prune', '--store', node.url, '--project', folder, '--dry-run', '--json'])
  expect(dry.code).toBe(0)
  // Sessions of the last day stay.
  expect(JSON.parse(dry.stdout).sessions).toEqual([])
})
