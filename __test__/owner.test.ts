/** What the owner of a store takes out of it, with the program itself. */
import { createHash } from 'node:crypto'
import { copyFileSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { ContextManager } from '../lib/index.ts'
import { cli } from './replay/support.ts'
import { cleanUp, temporaryFolder } from './rig/pi.ts'

afterEach(cleanUp)

const SECRETS = 40

/** A secret that can't be compressed, so that it stands in a file as it is or not at all. */
function secret(n: number): string {
  return `sk-${createHash('sha256').update(`secret ${n}`).digest('hex').slice(0, 32)}`
}

/** A store with secrets in files, outputs, arguments and turns. */
async function storeIn(folder: string): Promise<string> {
  const path = join(folder, 'store', 'context.db')
  const manager = await ContextManager.open({ sessionId: 's', cwd: folder, store: { kind: 'sqlite', path }, watch: false })
  for (let n = 0; n < SECRETS; n += 4) {
    writeFileSync(join(folder, `${n}.env`), `KEY=${secret(n)}\n`)
    await manager.indexFile(`${n}.env`)
    await manager.appendTurn({ role: 'user', content: `the key is ${secret(n + 1)}` })
    await manager.recordToolcall({ id: `c${n}`, tool: 'bash', args: { command: `export K=${secret(n + 2)}` }, content: secret(n + 3), status: 'ok' })
  }
  await manager.close()
  return path
}

/** How many of the secrets a text has. */
function secretsIn(text: string): number {
  return Array.from({ length: SECRETS }, (_, n) => n).filter((n) => text.includes(secret(n).slice(15))).length
}

/** How many of the secrets are in the raw files of a store, and in an export of it. Payloads are compressed. */
async function found(store: string): Promise<{ raw: number; exported: number }> {
  const folder = dirname(store)
  const files = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile())
  const bytes = files.map(({ name }) => readFileSync(join(folder, name), 'latin1').toLowerCase()).join('\n')
  const { code, stdout } = await cli(['export', '--store', store, '-'])
  expect(code).toBe(0)
  return { raw: secretsIn(bytes), exported: secretsIn(stdout) }
}

const NONE = { raw: 0, exported: 0 }

describe('forget', () => {
  test('each line of the input goes, wherever it stands', async () => {
    const folder = temporaryFolder('owner-')
    const store = await storeIn(folder)
    const before = await found(store)
    expect(before.exported).toBe(SECRETS)
    expect(before.raw).toBeGreaterThan(SECRETS / 2)
    const keys = join(folder, 'keys')
    writeFileSync(keys, Array.from({ length: SECRETS }, (_, n) => `${secret(n)}\n`).join(''))
    const { code, stdout, stderr } = await cli(['forget', '--store', store, '--text-file', keys, '--why', 'live keys'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/context\.db: erased \d+ texts; \d+ versions now say so\n$/)
    expect(await found(store)).toEqual(NONE)

    // Neither a page nor an export has them, and both can still be made.
    const page = join(folder, 'page.html')
    expect((await cli(['inspect', '--store', store, '--html', page])).code).toBe(0)
    expect((await cli(['export', '--store', store, join(folder, 'all.jsonl')])).code).toBe(0)
    for (const file of [page, join(folder, 'all.jsonl')]) {
      expect(secretsIn(readFileSync(file, 'utf8'))).toBe(0)
      expect(statSync(file).mode & 0o777).toBe(0o600)
    }
    expect((await cli(['doctor', '--store', store])).stdout).toContain('every version matches')

    // The session goes on, and what was erased is not stored again.
    const manager = await ContextManager.open({ sessionId: 's', cwd: folder, store: { kind: 'sqlite', path: store }, watch: false })
    await manager.appendTurn({ role: 'user', content: 'go on' })
    await manager.indexFile('0.env')
    await manager.close()
    expect(await found(store)).toEqual(NONE)
  })

  test('an object, a path and a session go, and the versions say so', async () => {
    const folder = temporaryFolder('owner-')
    const store = await storeIn(folder)
    const forgotten = await cli(['forget', '--store', store, '--path', join(folder, '0.env'), '--id', 'c0', '--json'])
    expect(forgotten.code).toBe(0)
    expect(JSON.parse(forgotten.stdout)).toEqual({ texts: 2, versions: 2 })
    expect((await found(store)).exported).toBe(SECRETS - 3)
    expect((await cli(['forget', '--store', store, '--session', 's'])).code).toBe(0)
    expect(await found(store)).toEqual(NONE)
  })

  test('what is not there is told, and nothing goes', async () => {
    const folder = temporaryFolder('owner-')
    const store = await storeIn(folder)
    for (const [args, code, words] of [
      [[], 2, 'name what to forget'],
      [['--id', 'nobody'], 1, 'no object nobody'],
      [['--path', '/outside'], 1, 'no file /outside'],
      [['--session', 'other'], 1, 'no session other'],
      [['--text', 'ab'], 1, '6 bytes or more'],
      [['--text-file', join(folder, 'none')], 2, 'no such file'],
    ] as const) {
      const told = await cli(['forget', '--store', store, ...args])
      expect({ code: told.code, stdout: told.stdout }).toEqual({ code, stdout: '' })
      expect(told.stderr).toContain(words)
    }
    expect((await found(store)).exported).toBe(SECRETS)
  })
})

describe('prune and limits', () => {
  /** A copy of a store with the sessions alpha and beta, which were last written in January 2026. */
  function oldStore(): string {
    const store = join(temporaryFolder('owner-'), 'context.db')
    copyFileSync(new URL('../fixtures/stores/old.db', import.meta.url), store)
    return store
  }

  test('old sessions go, after they were shown', async () => {
    const store = oldStore()
    const names = async (): Promise<string[]> => {
      const { stdout } = await cli(['sessions', '--store', store, '--json'])
      return (JSON.parse(stdout) as { id: string }[]).map(({ id }) => id)
    }
    expect(await names()).toEqual(['beta', 'alpha'])
    const project = await cli(['prune', '--store', store, '--project', '/home/me/p', '--dry-run'])
    expect(project.stdout).toMatch(/^2026-01-\d\d \d\d:\d\d {5}1 turn {3}alpha {2}\/home\/me\/p {2}do alpha\n\S+: would remove 1 session with 4 objects, about [\d.]+ KiB of [\d.]+ KiB\n$/)
    expect(await names()).toEqual(['beta', 'alpha'])
    const { code, stdout } = await cli(['prune', '--store', store, '--max-size', '1KB', '--older-than', '30d', '--json'])
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ sessions: [{ id: 'alpha' }, { id: 'beta' }], isShorter: true })
    expect(await names()).toEqual([])
    expect((await cli(['prune', '--store', store, '--older-than', '1d'])).stdout).toContain('nothing to remove')
    expect((await cli(['doctor', '--store', store])).stdout).toContain('every version matches')
  })

  test('limits are set and shown', async () => {
    const store = oldStore()
    const limits = async (...args: string[]): Promise<string> => (await cli(['limits', '--store', store, ...args])).stdout
    expect(await limits()).toContain('no limits; nothing is removed automatically')
    expect(await limits('--older-than', '6m', '--max-size', '2GB')).toContain('removes sessions not opened for 180 days, and the oldest sessions while it uses more than 2.0 GiB')
    expect(JSON.parse(await limits('--json'))).toEqual({ maxDays: 180, maxBytes: 2 * 1024 ** 3 })
    expect(await limits('--none')).toContain('no limits')
  })

  test('what can not be understood is told, and nothing goes', async () => {
    const store = oldStore()
    for (const args of [['prune'], ['prune', '--older-than', 'x'], ['prune', '--older-than', '0d'], ['prune', '--max-size', '-1'], ['limits', '--none', '--older-than', '1d']]) {
      const { code, stdout, stderr } = await cli([args[0]!, '--store', store, ...args.slice(1)])
      expect({ args, code, stdout }).toEqual({ args, code: 2, stdout: '' })
      expect(stderr).toMatch(/^pi-context-manager: .+\n$/)
    }
  })
})
