/** Journals of XTDB databases on this machine that have what their databases lack. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ContextManager } from '../lib/index.ts'
import { unsentJournals } from '../lib/cli/unsent.ts'

let home = ''
let before: string | undefined

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'pcm-unsent-'))
  before = process.env['XDG_DATA_HOME']
  process.env['XDG_DATA_HOME'] = home
})

afterEach(() => {
  if (before === undefined) delete process.env['XDG_DATA_HOME']
  else process.env['XDG_DATA_HOME'] = before
  rmSync(home, { recursive: true })
})

test.runIf(process.platform === 'linux')('a journal is named with its waiting writes, unless it is the one in use or all is sent', async () => {
  const folder = join(home, 'pi-context-manager')
  mkdirSync(folder)
  const path = join(folder, 'xtdb-0123456789ab.db')
  const manager = await ContextManager.open({ sessionId: 's', cwd: home, store: { kind: 'sqlite', path }, watch: false })
  await manager.recordToolcall({ id: 'one', tool: 'bash', args: { command: 'ls' }, content: 'a', status: 'ok' })
  await manager.close()
  writeFileSync(join(folder, 'xtdb-of-another-kind.db'), 'not a journal')
  writeFileSync(join(folder, 'xtdb-ba9876543210.db'), 'not a store')
  const [all, ...others] = await unsentJournals()
  expect(others).toEqual([])
  expect(all).toMatchObject({ path })
  expect(all?.queued).toBeGreaterThan(1)
  writeFileSync(`${path}.progress`, JSON.stringify({ sent: 1, seen: 0 }))
  expect(await unsentJournals()).toEqual([{ path, queued: (all?.queued ?? 0) - 1 }])
  expect(await unsentJournals(path)).toEqual([])
  writeFileSync(`${path}.progress`, JSON.stringify({ sent: 1_000, seen: 0 }))
  expect(await unsentJournals()).toEqual([])
})
