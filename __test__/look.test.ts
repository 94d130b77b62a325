/** Looking into a store with the program itself: sessions, search, show and log. */
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { ContextManager } from '../lib/index.ts'
import { cli } from './replay/support.ts'
import { cleanUp, temporaryFolder } from '../rig/pi.ts'

afterEach(cleanUp)

const STEERING = 'a\x1b[2J\u202egpj.\nforged'

/** A store with a file in three versions, a call and a turn. */
async function storeIn(folder: string): Promise<string> {
  const path = join(folder, 'store', 'context.db')
  const manager = await ContextManager.open({ sessionId: 'first', cwd: folder, store: { kind: 'sqlite', path }, watch: false })
  await manager.setSystemPrompt(`Be brief.\n<cwd>\n${folder}\n</cwd>`)
  await manager.appendTurn({ role: 'user', content: [{ type: 'text', text: 'mend the\n pelican' }] })
  for (const text of ['one\ntwo\nthree\n', 'one\ntwo pelicans\nthree\n', 'one\nthree\n']) {
    writeFileSync(join(folder, 'a.txt'), text)
    await manager.indexFile('a.txt')
  }
  await manager.recordToolcall({ id: 'call_1', tool: 'bash', args: { command: 'ls  -l\n*.ts' }, content: `a heron\n\t${STEERING}`, status: 'ok' })
  await manager.close()
  return path
}

const JSON_LINES = (text: string): unknown[] =>
  text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))

describe('looking into a store', () => {
  test('sessions have their folder and first prompt', async () => {
    const folder = temporaryFolder('look-')
    const store = await storeIn(folder)
    const { code, stdout, stderr } = await cli(['sessions', '--store', store])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d {2}first {2}library {9}1 turn {3}\S+\n {4}mend the pelican\n$/)
    expect(stdout).toContain(folder)
    const list = JSON.parse((await cli(['sessions', '--store', store, '--json', '--project', folder])).stdout)
    expect(list).toMatchObject([{ id: 'first', host: 'library', turns: 1, objects: 2, folder, firstPrompt: 'mend the pelican' }])
    expect(await cli(['sessions', '--store', store, '--project', `${folder}x`])).toEqual({ code: 1, stdout: '', stderr: '' })
    const inspected = await cli(['inspect', '--store', store])
    expect(inspected.stdout).toContain(folder)
    expect(inspected.stdout).toContain('mend the pelican')
  })

  test('a session belongs to the folder that it was opened in, whatever it has read', async () => {
    const folder = temporaryFolder('look-')
    const [here, there] = [join(folder, 'here'), join(folder, 'there')] as const
    mkdirSync(here)
    mkdirSync(there)
    writeFileSync(join(there, 'a.txt'), 'text')
    const path = join(folder, 'store', 'context.db')
    const begin = async (sessionId: string, cwd: string, file?: string): Promise<void> => {
      const manager = await ContextManager.open({ sessionId, cwd, store: { kind: 'sqlite', path }, watch: false })
      if (file !== undefined) await manager.indexFile(file)
      await manager.close()
    }
    await begin('reads-there', here, join(there, 'a.txt'))
    await begin('empty', here)
    await begin('works-there', there, 'a.txt')
    const found = async (project: string): Promise<string[]> => {
      const { stdout } = await cli(['sessions', '--store', path, '--json', '--project', project])
      return (JSON.parse(stdout || '[]') as { id: string; folder: string }[]).map(({ id, folder: of }) => `${id} ${of}`).sort()
    }
    expect(await found(here)).toEqual([`empty ${here}`, `reads-there ${here}`])
    expect(await found(there)).toEqual([`works-there ${there}`])
    const link = join(folder, 'link')
    symlinkSync(there, link)
    expect(await found(link)).toEqual([`works-there ${there}`])
    // An export carries it.
    const copy = join(folder, 'copy.db')
    const file = join(folder, 'all.jsonl')
    expect((await cli(['export', '--store', path, file])).code).toBe(0)
    expect((await cli(['import', '--store', copy, file])).code).toBe(0)
    const { stdout } = await cli(['sessions', '--store', copy, '--json', '--project', here])
    expect(JSON.parse(stdout)).toHaveLength(2)
  })

  test('search has the exit codes of grep, and finds older versions', async () => {
    const folder = temporaryFolder('look-')
    const store = await storeIn(folder)
    const older = await cli(['search', '--store', store, 'pelicans'])
    expect(older.code).toBe(0)
    expect(older.stdout).toMatch(
      /^\w+@\d+ \S+a\.txt \(older version\)\n {4}\d{4}-\d\d-\d\d \d\d:\d\d {2}library {2}session first {2}\S+\n {4}2: two pelicans\n$/,
    )
    const call = await cli(['search', '--store', store, 'heron', '--type', 'toolcall', '--session', 'first'])
    expect(call.stdout).toMatch(/^[0-9a-f]{8}@\d+ bash ls -l \*\.ts\n {4}.* session first .*\n {4}1: a heron\n$/)
    expect(JSON.parse((await cli(['search', '--store', store, '--json', 'heron'])).stdout)).toMatchObject([
      { id: 'call_1', type: 'toolcall', tool: 'bash', args: { command: 'ls  -l\n*.ts' }, line: 1, isLatest: true, session: 'first', host: 'library' },
    ])
    expect(await cli(['search', '--store', store, 'flamingo'])).toEqual({ code: 1, stdout: '', stderr: '' })
    for (const args of [[], ['--type', 'chat', 'x'], ['--limit', '0', 'x'], ['--limit', '1.5', 'x'], ['--none']]) {
      const { code, stdout, stderr } = await cli(['search', '--store', store, ...args])
      expect({ args, code, stdout }).toEqual({ args, code: 2, stdout: '' })
      expect(stderr).toMatch(/^pi-context-manager: .+\n$/)
    }
  })

  test('show gives a text byte for byte, of any version', async () => {
    const folder = temporaryFolder('look-')
    const store = await storeIn(folder)
    const path = join(folder, 'a.txt')
    expect((await cli(['show', '--store', store, path])).stdout).toBe('one\nthree\n')
    const [hit] = JSON.parse((await cli(['search', '--store', store, '--json', 'pelicans'])).stdout)
    expect((await cli(['show', '--store', store, `${hit.id.slice(0, 12)}@${hit.txId}`])).stdout).toBe('one\ntwo pelicans\nthree\n')
    expect((await cli(['show', '--store', store, 'call_1'])).stdout).toBe(`a heron\n\t${STEERING}`)
    expect(JSON.parse((await cli(['show', '--store', store, 'call_1', '--json'])).stdout)).toMatchObject({
      document: { tool: 'bash' },
      session: 'first',
      host: 'library',
      folder,
    })
    for (const [name, words] of [
      ['absent', 'has no object absent'],
      ['call_1@1', 'has no version at transaction 1'],
    ] as const) {
      const { code, stdout, stderr } = await cli(['show', '--store', store, name])
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
      expect(stderr).toContain(words)
    }
  })

  test('show finds a file whose own name ends as a version does', async () => {
    const folder = temporaryFolder('look-')
    const store = await storeIn(folder)
    const manager = await ContextManager.open({ sessionId: 's', cwd: folder, store: { kind: 'sqlite', path: store }, watch: false })
    writeFileSync(join(folder, 'logo@2'), 'twice as large')
    await manager.indexFile('logo@2')
    await manager.close()
    const version = JSON.parse((await cli(['show', '--store', store, join(folder, 'logo@2'), '--json'])).stdout)
    expect(version).toMatchObject({ document: { content: 'twice as large' } })
    expect((await cli(['show', '--store', store, `${join(folder, 'logo@2')}@${version.txId}`])).stdout).toBe('twice as large')
  })

  test.skipIf(!existsSync('/dev/full'))('an output that can not be written is one sentence', async () => {
    const store = await storeIn(temporaryFolder('look-'))
    for (const command of [['show', 'call_1'], ['log', 'call_1'], ['sessions']]) {
      const full = openSync('/dev/full', 'w')
      const { code, stderr } = await cli([...command, '--store', store], {}, full)
      closeSync(full)
      expect({ command, code }).toEqual({ command, code: 2 })
      expect(stderr).toMatch(/^pi-context-manager: the output can't be written: ENOSPC.*\n$/)
    }
  })

  test('log shows each version with its changes', async () => {
    const folder = temporaryFolder('look-')
    const store = await storeIn(folder)
    const path = join(folder, 'a.txt')
    const { code, stdout } = await cli(['log', '--store', store, path])
    expect(code).toBe(0)
    expect(stdout.replaceAll(/^\w+@\d+ {2}\S+ \S+ {2}/gm, '')).toBe(
      `library  session first  ${folder}\n` +
        '10 bytes\n one\n-two pelicans\n three\n \n\n23 bytes\n one\n-two\n+two pelicans\n three\n \n\n14 bytes\n+one\n+two\n+three\n\n',
    )
    expect((await cli(['log', '--store', store, '--limit', '1', '--no-patch', path])).stdout).toMatch(/^library .*\n\w+@\d+ .* 10 bytes\n$/)
    expect(JSON_LINES((await cli(['log', '--store', store, '--json', path])).stdout)).toMatchObject(
      Array(3).fill({ session: 'first', host: 'library', folder }),
    )
    expect((await cli(['log', '--store', store, 'call_1'])).stdout).not.toContain('\x1b')
    expect((await cli(['log', '--store', store, join(folder, 'none')])).code).toBe(1)

    expect((await cli(['forget', '--store', store, '--path', path, '--why', 'a key'])).code).toBe(0)
    expect((await cli(['log', '--store', store, '--no-patch', path])).stdout).toMatch(/^library .*\n(\w+@\d+ .* erased .*, a key\n){3}$/)
    const erased = await cli(['show', '--store', store, path])
    expect({ code: erased.code, stdout: erased.stdout }).toEqual({ code: 1, stdout: '' })
    expect(erased.stderr).toContain('has no text: erased')
  })

  test('every session has its agent, from its ID or because Pi has its file', async () => {
    const folder = temporaryFolder('look-')
    const store = await storeIn(folder)
    const made = '01a20e93-fb24-7abc-8def-0123456789ab'
    for (const [index, sessionId] of ['claude-code:5f', 'codex:5f', 'someone:5f', made, 'my-own'].entries()) {
      const manager = await ContextManager.open({ sessionId, cwd: folder, store: { kind: 'sqlite', path: store }, watch: false })
      await manager.recordToolcall({ id: `call_${index + 2}`, tool: 'bash', args: { command: 'ls' }, content: `heron ${index}`, status: 'ok' })
      await manager.close()
    }
    const env = { PI_CODING_AGENT_DIR: join(folder, 'agent') }
    const sessions = join(folder, 'agent', 'sessions', '--w--')
    mkdirSync(sessions, { recursive: true })
    writeFileSync(join(sessions, '2026-03-01T10-00-00-000Z_my-own.jsonl'), '')
    const listed = JSON.parse((await cli(['sessions', '--store', store, '--json'], env)).stdout) as { id: string; host: string }[]
    const hosts = Object.fromEntries(listed.map(({ id, host }) => [id, host]))
    const known = { 'claude-code:5f': 'claude-code', 'codex:5f': 'codex', [made]: 'pi', 'my-own': 'pi' }
    expect(hosts).toEqual({ ...known, first: 'library', 'someone:5f': 'library' })
    expect((await cli(['search', '--store', store, '"heron 4"'], env)).stdout).toContain('  Pi  session my-own')
    const { stdout } = await cli(['sessions', '--store', store])
    expect(stdout).toMatch(/claude-code:5f {2}Claude Code {2}/)
    // Also without the agent's name, and without an option.
    expect((await cli(['inspect', '--store', store, 'claude-code:5f', '--json'])).stdout).toContain('"id": "claude-code:5f"')
    expect((await cli(['inspect', '--store', store, '5f'])).stderr).toMatch(/5f may be .*claude-code:5f/)
    const found = await cli(['search', '--store', store, 'heron', '--session', 'claude-code:5f'])
    expect(found.stdout).toContain('  Claude Code  session claude-code:5f')
    expect((await cli(['log', '--store', store, 'call_3'])).stdout).toContain(`Codex  session codex:5f  ${folder}\n`)
    expect(JSON.parse((await cli(['show', '--store', store, 'session:codex:5f', '--json'])).stdout)).toMatchObject({ session: 'codex:5f', host: 'codex' })
  })

  test('the version, and a failed import that leaves no store', async () => {
    const folder = temporaryFolder('look-')
    const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
    expect(await cli(['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })
    writeFileSync(join(folder, 'broken'), 'no export\n')
    const store = join(folder, 'new', 'context.db')
    expect((await cli(['import', '--store', store, join(folder, 'broken')])).code).toBe(2)
    expect(existsSync(join(folder, 'new'))).toBe(false)
  })
})
