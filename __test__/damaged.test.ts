/** One damaged text in a store: what looks into the store tells of it, and shows all others. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { afterEach, expect, test } from 'vitest'
import { Store } from '../lib/index.ts'
import { findNode } from '../pi-runtime/index.mjs'
import { cleanUp } from '../rig/cleanup.ts'
import { folder, opened, sqlite } from './core/setup.ts'
import { cli } from './replay/support.ts'

afterEach(cleanUp)

const DAMAGED = "(the text is damaged and can't be read; it may have these words)"

/** Damages a text in the file of a store. */
const DAMAGE = `const db = new (require('node:sqlite').DatabaseSync)(process.argv[1])
for (const { name } of db.prepare("SELECT name FROM sqlite_master WHERE type = 'trigger'").all()) db.exec('DROP TRIGGER ' + name)
const { changes } = db.prepare("UPDATE contents SET text = 'nothing' WHERE sha256 = ?").run(Buffer.from(process.argv[2], 'hex'))
if (changes !== 1) throw new Error(changes + ' texts')`

test('a search lists it without a line, and every other hit', async () => {
  const [store, cwd] = [sqlite(), folder()]
  const manager = await opened({ cwd, store, sessionId: 'one' })
  for (const name of ['whole', 'broken'])
    await manager.recordToolcall({ id: `call_${name}`, tool: 'bash', args: {}, content: `a heron\nthat is ${name}`, status: 'ok' })
  await manager.search('heron')
  await manager.close()
  const hash = createHash('sha256').update('a heron\nthat is broken').digest('hex')
  execFileSync(findNode(), ['--disable-warning=ExperimentalWarning', '-e', DAMAGE, store.path, hash])

  const { code, stdout, stderr } = await cli(['search', '--store', store.path, 'heron'])
  expect([code, stderr]).toEqual([0, ''])
  expect(stdout).toContain('\n    1: a heron\n')
  expect(stdout).toContain(`\n    ${DAMAGED}\n`)
  const opening = await Store.open({ ...store, readOnly: true })
  const lines = (await opening.search('heron')).map(({ id, line, snippet }) => [id, line, snippet])
  expect(Object.fromEntries(lines.map(([id, ...rest]) => [id, rest]))).toEqual({ call_whole: [1, 'a heron'], call_broken: [0, DAMAGED] })
  await opening.close()
  const session = await opened({ cwd, store, sessionId: 'one' })
  expect((await session.search('heron', { sessionId: 'one' })).map(({ line }) => line).toSorted()).toEqual([0, 1])
  await session.close()
})
