/** Pi on a database that can't be reached: a session that Pi has just begun is recorded, and one from elsewhere is refused. */
import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { ContextManager } from '../../lib/index.ts'
import { withExtension } from '../../rig/extension.ts'
import { cleanUp, readSession, runPrint } from '../../rig/pi.ts'
import { calls } from '../../rig/reply.ts'
import { awayFrom } from '../../rig/xtdb.ts'
import { lines, put, setUp } from './support.ts'

afterEach(cleanUp)

test('a new session is recorded while no node answers, and what was not sent is reported at the end', async () => {
  const { home } = await setUp((request) => (request.messages.at(-1)!.role === 'user' ? calls(['bash', { command: 'cat a.txt' }, 'call_a']) : 'done'))
  put(home, 'a.txt', lines('a', 10))
  mkdirSync(join(home.root, 'store'))
  const journal = join(home.root, 'store', 'journal.db')
  const url = await awayFrom(journal)
  const load = { home, ...withExtension({ url, journal }) }
  const { stderr, sessionFile } = await runPrint({ ...load, prompts: ['look'] })
  expect(stderr).toMatch(
    new RegExp(`^Context manager: \\d+ transactions wait in the journal for the XTDB database at ${url}; the next session on it sends them\\.$`, 'm'),
  )
  const manager = await ContextManager.open({
    sessionId: readSession(sessionFile!).header['id'] as string,
    cwd: home.cwd,
    store: { kind: 'sqlite', path: journal },
    watch: false,
  })
  expect((await manager.get('call_a'))!.content).toBe(lines('a', 10))
  await manager.close()
  // Another machine lacks that journal, and the session has messages, so it may be recorded elsewhere.
  for (const end of ['', '-wal', '-shm', '.progress']) if (existsSync(`${journal}${end}`)) rmSync(`${journal}${end}`)
  const other = await awayFrom(journal)
  const again = await runPrint({ home, ...withExtension({ url: other, journal }), prompts: ['more'], args: ['--continue'] })
  expect(again.stderr).toContain('is not on this machine, and XTDB')
  expect(again.exitCode).toBe(0)
})
