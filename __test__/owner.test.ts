/** The objects that the owner of a store takes out of it, with the program itself. */
import { createHash } from 'node:crypto'
import { copyFileSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { ContextManager } from '../lib/index.ts'
import { cli } from './replay/support.ts'
import { cleanUp, temporaryFolder } from '../rig/pi.ts'

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

/** Number of the secrets in a text. */
function secretsIn(text: string): number {
  return Array.from({ length: SECRETS }, (_, n) => n).filter((n) => text.includes(secret(n).slice(15))).length
}

/** Number of the secrets in the raw files of a store, and in an export of it. Payloads are compressed. */
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

    // The session continues, and erased text is not stored again.
    const manager = await ContextManager.open({ sessionId: 's', cwd: folder, store: { kind: 'sqlite', path: store }, watch: false })
    await manager.appendTurn({ role: 'user', content: 'continue' })
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

  test('reports missing objects and erases nothing', async () => {
    const folder = temporaryFolder('owner-')
    const store = await storeIn(folder)
    for (const [args, code, words] of [
      [[], 2, 'name what to forget'],
      [['--id', 'absent'], 1, 'no object absent'],
      [['--path', '/outside'], 1, 'no file /outside'],
      [['--session', 'other'], 1, 'no session other'],
      [['--text', 'ab'], 2, 'at least 6 bytes'],
      [['--text-file', join(folder, 'none')], 2, 'no such file'],
    ] as const) {
      const told = await cli(['forget', '--store', store, ...args])
      expect({ code: told.code, stdout: told.stdout }).toEqual({ code, stdout: '' })
      expect(told.stderr).toContain(words)
    }
    expect((await found(store)).exported).toBe(SECRETS)
    expect(await cli(['forget', '--store', store, '--text', 'in no text of this store'])).toMatchObject({
      code: 1,
      stdout: `${store}: nothing matched, so nothing was erased\n`,
    })
    expect(JSON.parse((await cli(['forget', '--store', store, '--text', 'in no text of this store', '--json'])).stdout)).toEqual({ texts: 0, versions: 0 })
  })

  test('a file is found by a link to it, and after it was deleted', async () => {
    const folder = temporaryFolder('owner-')
    const store = await storeIn(folder)
    symlinkSync(folder, join(folder, 'link'))
    expect((await cli(['forget', '--store', store, '--path', join(folder, 'link', '0.env')])).code).toBe(0)
    rmSync(join(folder, '4.env'))
    expect((await cli(['forget', '--store', store, '--path', relative(process.cwd(), join(folder, 'link', '4.env'))])).code).toBe(0)
    expect((await found(store)).exported).toBe(SECRETS - 2)
  })

  test('erased text is not restored, and the model learns why', async () => {
    const folder = temporaryFolder('owner-')
    const store = await storeIn(folder)
    expect((await cli(['forget', '--store', store, '--id', 'c0', '--path', join(folder, '4.env'), '--why', 'a live key'])).code).toBe(0)
    const manager = await ContextManager.open({ sessionId: 's', cwd: folder, store: { kind: 'sqlite', path: store }, watch: false })
    const refused = { ok: false, code: 'NULL_CONTENT', message: expect.stringContaining('erased this text, a live key') }
    expect(await manager.activate('c0')).toMatchObject(refused)
    expect(await manager.activate((await manager.indexFile('4.env')).id)).toMatchObject(refused)
    await manager.close()
  })
})

describe('secrets', () => {
  /** Put together here, so that no scanner takes this file for a leak. */
  const token = (n: number): string => `gh${'p_'}${createHash('sha256').update(`token ${n}`).digest('hex').slice(0, 36)}`
  const tokensIn = (text: string): number => [0, 1, 2, 3].filter((n) => text.includes(token(n).slice(12))).length

  /** Secrets in a file, a turn, an argument and an output. */
  async function record(folder: string, path: string, redact: boolean): Promise<ContextManager> {
    const options = { sessionId: 's', cwd: folder, store: { kind: 'sqlite' as const, path }, watch: false, redact }
    const manager = await ContextManager.open(options)
    writeFileSync(join(folder, 'a.env'), `first\nTOKEN=${token(0)}\n`)
    await manager.indexFile('a.env')
    await manager.appendTurn({ role: 'user', content: `use ${token(1)}` })
    await manager.recordToolcall({ id: 'c1', tool: 'bash', args: { command: `curl -H 'X: ${token(2)}'` }, content: `and ${token(3)}`, status: 'ok' })
    return manager
  }

  async function everything(folder: string, path: string): Promise<string> {
    const page = join(folder, 'page.html')
    expect((await cli(['inspect', '--store', path, '--html', page])).code).toBe(0)
    const { stdout } = await cli(['export', '--store', path, '-'])
    const raw = readdirSync(dirname(path)).map((name) => readFileSync(join(dirname(path), name), 'latin1'))
    return [stdout, readFileSync(page, 'utf8'), ...raw].join('\n')
  }

  test('are found in all places, never printed, and forgotten', async () => {
    const folder = temporaryFolder('owner-')
    const path = join(folder, 'store', 'context.db')
    await (await record(folder, path, false)).close()
    const found = await cli(['doctor', '--store', path, '--secrets', '--json'])
    expect(found.code).toBe(1)
    const places = JSON.parse(found.stdout) as { id: string; rule: string; path?: string; tool?: string; line?: number; count: number }[]
    const told = places.map(({ id, path: file, tool, rule, line, count }) => [file ?? id, tool, rule, line, count])
    expect(told).toHaveLength(3)
    expect(told).toEqual(
      expect.arrayContaining([
        [join(folder, 'a.env'), undefined, 'github-pat', 2, 1],
        ['chat:s', undefined, 'github-pat', undefined, 1],
        ['c1', 'bash', 'github-pat', 1, 2],
      ]),
    )
    const words = await cli(['doctor', '--store', path, '--secrets'])
    expect(words.stdout).toContain('3 places with secrets. "forget --secrets" erases them')
    expect(tokensIn(found.stdout + words.stdout)).toBe(0)
    expect(tokensIn(await everything(folder, path))).toBe(4)

    expect((await cli(['forget', '--store', path, '--secrets'])).code).toBe(0)
    const { code, stdout } = await cli(['doctor', '--store', path, '--secrets'])
    expect({ code, stdout }).toEqual({ code: 0, stdout: `${path}: no secrets of known shapes\n` })
    expect(tokensIn(await everything(folder, path))).toBe(0)
  })

  test('are not recorded with "redact", and files, edits and restored outputs continue to work', async () => {
    const folder = temporaryFolder('owner-')
    const path = join(folder, 'store', 'context.db')
    const env = join(folder, 'a.env')
    const manager = await record(folder, path, true)
    // The file is not touched, and the same bytes are not a change.
    expect(readFileSync(env, 'utf8')).toContain(token(0))
    expect((await manager.indexFile('a.env')).action).toBe('unchanged')
    const { id } = await manager.indexFile('a.env')
    expect((await manager.get(id))?.['content']).toBe('first\nTOKEN=[redacted: github-pat]\n')
    // The same process restores the original output.
    expect((await manager.activate(id)).content).toBe(`first\nTOKEN=${token(0)}\n`)
    expect((await manager.activate('c1')).content).toBe(`and ${token(3)}`)
    expect(
      await manager.recordToolcall({ id: 'c1', tool: 'bash', args: { command: `curl -H 'X: ${token(2)}'` }, content: `and ${token(3)}`, status: 'ok' }),
    ).toBe('c1')
    await manager.close()
    expect(tokensIn(await everything(folder, path))).toBe(0)
    expect((await cli(['doctor', '--store', path, '--secrets'])).code).toBe(0)
    expect((await cli(['doctor', '--store', path])).stdout).toContain('every version matches')

    // Later, a file comes from the disk, and an output with a mark. The same call is still the same object.
    const later = await ContextManager.open({ sessionId: 's', cwd: folder, store: { kind: 'sqlite', path }, watch: false, redact: true })
    expect((await later.indexFile('a.env')).action).toBe('unchanged')
    expect((await later.activate(id)).content).toBe(`first\nTOKEN=${token(0)}\n`)
    expect((await later.activate('c1')).content).toBe('and [redacted: github-pat]')
    expect(
      await later.recordToolcall({ id: 'c1', tool: 'bash', args: { command: `curl -H 'X: ${token(2)}'` }, content: `and ${token(3)}`, status: 'ok' }),
    ).toBe('c1')
    // Another key in the same place is a change, though the stored texts are equal.
    writeFileSync(env, `first\nTOKEN=${token(1)}\n`)
    expect((await later.indexFile('a.env')).action).toBe('updated')
    expect((await later.activate(id)).content).toBe(`first\nTOKEN=${token(1)}\n`)
    await later.close()
    expect(tokensIn(await everything(folder, path))).toBe(0)
  })
})

test.each([
  ['no XTDB node answers', 'forget', '--text', 'something long'],
  ['no XTDB node answers', 'forget', '--secrets'],
  ['no XTDB node answers', 'prune', '--older-than', '90d'],
  ['on XTDB, run "prune"', 'limits'],
])('without a node it says %s: %s', async (words, ...args) => {
  const { code, stdout, stderr } = await cli([...args, '--store', 'http://127.0.0.1:9'])
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toContain(words)
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
    expect(project.stdout).toMatch(
      /^2026-01-\d\d \d\d:\d\d {5}1 turn {3}alpha {2}\/home\/me\/p {2}do alpha\n\S+: would remove 1 session with 4 objects, about [\d.]+ KiB of [\d.]+ KiB\n$/,
    )
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
    expect(await limits('--older-than', '6m', '--max-size', '2GB')).toContain(
      'removes sessions not opened for 180 days, and the oldest sessions while it uses more than 2.0 GiB',
    )
    expect(JSON.parse(await limits('--json'))).toEqual({ maxDays: 180, maxBytes: 2 * 1024 ** 3 })
    expect(await limits('--none')).toContain('no limits')
  })

  test('reports unreadable data and deletes nothing', async () => {
    const store = oldStore()
    for (const args of [
      ['prune'],
      ['prune', '--older-than', 'x'],
      ['prune', '--older-than', '0d'],
      ['prune', '--max-size', '-1'],
      ['limits', '--none', '--older-than', '1d'],
      ['limits', '--max-size', '0'],
      ['limits', '--max-size', '100KB'],
    ]) {
      const { code, stdout, stderr } = await cli([args[0]!, '--store', store, ...args.slice(1)])
      expect({ args, code, stdout }).toEqual({ args, code: 2, stdout: '' })
      expect(stderr).toMatch(/^pi-context-manager: .+\n$/)
    }
  })
})
