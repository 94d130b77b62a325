// Runs in a folder where the packages are installed: the API on a store in a file, and the storage entry.
import { strict as assert } from 'node:assert'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ContextManager } from 'pi-context-manager'
import { ContextManager as Outputs } from 'pi-context-manager/storage'

const folder = mkdtempSync(join(tmpdir(), 'try-'))
try {
  const store = { kind: 'sqlite', path: join(folder, 'context.db') }
  const open = () => ContextManager.open({ sessionId: 's', cwd: folder, store, watch: false })
  const path = join(folder, 'a.txt')
  writeFileSync(path, 'one\ntwo\n')
  const first = await open()
  const { id } = await first.indexFile(path)
  await first.appendTurn({ role: 'user', content: [{ type: 'text', text: 'look' }] })
  await first.recordToolcall({ id: 'call', tool: 'bash', args: { command: 'x' }, content: 'needle', status: 'ok' })
  writeFileSync(path, 'one\nthree\n')
  await first.indexFile(path)
  await first.close()

  const again = await open()
  const versions = await again.history(id)
  assert.equal(versions.length, 2)
  assert.match(await again.diff(id, versions[0].txId, versions[1].txId), /-two\n\+three/)
  assert.equal((await again.search('needle'))[0].id, 'call')
  assert.ok((await again.assemble()).text.includes('one\nthree'))
  await again.activate('absent').then((change) => assert.equal(change.ok, false))
  await again.exportSession(join(folder, 'session.jsonl'))
  await again.close()

  const outputs = new Outputs({ contextDir: join(folder, 'outputs') })
  const file = await outputs.saveContext('read', { path }, { text: 'kept' })
  assert.deepEqual((await outputs.loadContexts([file]))[0].result, { text: 'kept' })
  await outputs.close()
  console.log(`works on ${process.platform}-${process.arch}, Node ${process.versions.node}`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
