/** The outcomes of commands: exit codes, readers that stop, stores that can only be read, secrets that are never shown. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { loaded } from '../../lib/cli/commands.ts'
import { ContextManager } from '../../lib/index.ts'
import { cli, program } from '../replay/support.ts'
import { cleanUp, temporaryFolder } from '../../rig/pi.ts'
import { byReader } from '../../rig/process.ts'

afterEach(cleanUp)

/** A token of a known shape. It was never given out. */
const KEY = `ghp_${'0123456789abcdefghijABCDEFGHIJ012345'}`

async function storeIn(folder: string, content = 'a pelican'): Promise<string> {
  const path = join(folder, 'context.db')
  const manager = await ContextManager.open({ sessionId: 'first', cwd: folder, store: { kind: 'sqlite', path }, watch: false })
  await manager.appendTurn({ role: 'user', content: 'mend it' })
  await manager.recordToolcall({ id: 'call_1', tool: 'bash', args: { command: 'ls' }, content, status: 'ok' })
  await manager.close()
  return path
}

describe('the same outcome has the same exit code in every command', () => {
  const commands = (file: string): string[][] => [
    ['doctor'],
    ['sessions'],
    ['search', 'pelican'],
    ['show', 'call_1'],
    ['log', 'call_1'],
    ['inspect'],
    ['export', file],
    ['forget', '--id', 'call_1'],
    ['prune', '--older-than', '90d'],
    ['limits'],
  ]

  test('a store that is none is a failure', async () => {
    const folder = temporaryFolder('outcome-')
    const path = join(folder, 'a.db')
    for (const [text, what] of [
      ['no database at all '.repeat(500), 'no database'],
      [undefined, 'no file'],
    ] as const) {
      if (text !== undefined) writeFileSync(path, text)
      for (const [name, ...rest] of commands(join(folder, 'out.jsonl'))) {
        const given = text === undefined ? `${path}.none` : path
        const { code, stdout, stderr } = await cli([name!, '--store', given, ...rest])
        expect({ what, name, code, stdout }).toEqual({ what, name, code: 2, stdout: '' })
        expect(stderr).toMatch(/^pi-context-manager: .+\n$/)
      }
    }
  })

  test('a machine on which nothing was used yet is not an error for doctor, and nothing is made there', async () => {
    const home = temporaryFolder('outcome-')
    const env = { HOME: home, XDG_DATA_HOME: join(home, 'data'), CONTEXT_STORE_PATH: '', CONTEXT_STORE: '', CONTEXT_XTDB_URL: '' }
    const words = await cli(['doctor'], env)
    expect([words.code, words.stderr]).toEqual([0, ''])
    expect(words.stdout).toMatch(/^store +none yet; the first session creates it:\n +\S+\.db\n/)
    expect(words.stdout).not.toMatch(/integrity|largest/)
    const { code, stdout } = await cli(['doctor', '--json'], env)
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { store: null, enabled: [], damages: [], sessions: 0, largest: [] }])
    const secrets = await cli(['doctor', '--secrets'], env)
    expect([secrets.code, secrets.stderr, secrets.stdout]).toEqual([0, '', expect.stringMatching(/^store +none yet/)])
    expect(readdirSync(home)).toEqual([])
    // A file that the user has named has to be there.
    expect((await cli(['doctor', '--store', join(home, 'none.db')], env)).code).toBe(2)
    expect((await cli(['doctor'], { ...env, CONTEXT_STORE_PATH: join(home, 'none.db') })).code).toBe(2)
  })

  test.each([
    [{ CONTEXT_STORE: 'postgres' }, 'CONTEXT_STORE is sqlite, xtdb or memory, not "postgres"'],
    [{ CONTEXT_STORE: 'xtdb' }, 'CONTEXT_STORE=xtdb needs the address of a node in CONTEXT_XTDB_URL'],
    [{ CONTEXT_STORE: 'memory' }, 'CONTEXT_STORE=memory keeps nothing after a session'],
  ])('a store that the environment names wrongly is never another one: %j', async (named, sentence) => {
    const home = temporaryFolder('outcome-')
    await storeIn(join(home, 'pi-context-manager'))
    const env = { HOME: home, XDG_DATA_HOME: home, CONTEXT_STORE_PATH: '', CONTEXT_XTDB_URL: '', ...named }
    for (const args of [['sessions'], ['doctor'], ['search', 'pelican'], ['forget', '--text', 'pelican'], ['prune', '--older-than', '1d']]) {
      const { code, stdout, stderr } = await cli(args, env)
      expect({ args, code, stdout, stderr }).toEqual({ args, code: 2, stdout: '', stderr: expect.stringContaining(sentence) })
    }
  })

  test('reports missing objects as not found', async () => {
    const folder = temporaryFolder('outcome-')
    const store = await storeIn(folder)
    for (const args of [
      ['show', 'absent'],
      ['log', 'absent'],
      ['search', 'flamingo'],
      ['search', '--session', 'absent', 'pelican'],
      ['inspect', '--session', 'absent'],
      ['export', '--session', 'absent', join(folder, 'out.jsonl')],
      ['forget', '--id', 'absent'],
      ['forget', '--session', 'absent'],
    ]) {
      const { code, stdout } = await cli([...args, '--store', store])
      expect({ args, code, stdout }).toEqual({ args, code: 1, stdout: '' })
    }
  })

  test('wrong options are named, with the right ones', async () => {
    for (const [args, words] of [
      [['serach', 'x'], 'unknown command "serach"; did you mean "search"?'],
      [['search', '--jsno', 'x'], 'search has no option --jsno; did you mean "--json"?'],
      [['search', '--none', 'x'], 'search has no option --none; "pi-context-manager search --help" lists them'],
      [['help', 'shwo'], 'did you mean "show"?'],
      [['completion', 'fissh'], 'did you mean "fish"?'],
    ] as const) {
      const { code, stdout, stderr } = await cli([...args])
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      expect(stderr).toContain(words)
    }
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
    for (const option of ['-v', '-V', '--version']) expect((await cli([option])).stdout).toBe(`${version}\n`)
  })
})

describe('a reader that stops reading', () => {
  test.each([
    ['export', 2, 'so it is incomplete'],
    ['show', 0, ''],
  ])('%s ends with %i', async (name, expected, words) => {
    const folder = temporaryFolder('outcome-')
    const store = await storeIn(folder, 'line after line\n'.repeat(100_000))
    const args = name === 'export' ? ['export', '--store', store, '-'] : ['show', '--store', store, 'call_1']
    const child = spawn(...program(...args), { stdio: ['ignore', 'pipe', 'pipe'] })
    let stderr = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
    child.stdout.once('data', () => child.stdout.destroy())
    const [code] = await once(child, 'close')
    expect({ code, stderr }).toEqual({ code: expected, stderr: words === '' ? '' : expect.stringContaining(words) })
  })
})

describe('a store that can only be read', () => {
  const asReader = (args: string[], temporary: string): { code: number | null; stdout: string; stderr: string } => {
    const { status, stdout, stderr } = spawnSync(...byReader(...program(...args)), {
      encoding: 'utf8',
      env: { ...process.env, TMPDIR: temporary, HOME: temporary },
    })
    return { code: status, stdout, stderr }
  }

  test.skipIf(process.platform !== 'linux')('is read by every command that looks', async () => {
    const folder = temporaryFolder('outcome-')
    const [disk, temporary] = [join(folder, 'disk'), join(folder, 'temporary')]
    mkdirSync(temporary)
    chmodSync(folder, 0o755)
    chmodSync(temporary, 0o777)
    const live = await storeIn(temporaryFolder('outcome-'))
    // With a log that was never copied back, as after a power failure.
    const manager = await ContextManager.open({ sessionId: 'second', cwd: folder, store: { kind: 'sqlite', path: live }, watch: false })
    await manager.recordToolcall({ id: 'call_2', tool: 'bash', args: {}, content: 'a late heron', status: 'ok' })
    mkdirSync(disk)
    for (const end of ['', '-wal']) cpSync(`${live}${end}`, join(disk, `context.db${end}`))
    await manager.close()
    for (const name of readdirSync(disk)) chmodSync(join(disk, name), 0o444)
    chmodSync(disk, 0o555)
    const store = join(disk, 'context.db')
    for (const [args, words] of [
      [['sessions'], 'mend it'],
      [['search', 'heron'], 'a late heron'],
      [['show', 'call_2'], 'a late heron'],
      [['log', 'call_1'], '+a pelican'],
      [['doctor'], 'every version matches'],
      [['inspect'], 'first'],
      [['export', '-'], 'a late heron'],
      [['export', join(temporary, 'out.jsonl')], 'objects in'],
    ] as const) {
      const { code, stdout, stderr } = asReader([args[0], '--store', store, ...args.slice(1)], temporary)
      expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: '' })
      expect(stdout).toContain(words)
    }
    expect(readdirSync(disk).sort()).toEqual(['context.db', 'context.db-wal'])
    expect(readdirSync(temporary)).toEqual(['out.jsonl'])
    const { code, stderr } = asReader(['forget', '--store', store, '--id', 'call_1'], temporary)
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(/^pi-context-manager: .+\n$/) })
  })
})

test('doctor --secrets and forget --secrets name the places of secrets, never the secrets', async () => {
  const folder = temporaryFolder('outcome-')
  const path = join(folder, 'context.db')
  const manager = await ContextManager.open({ sessionId: 's', cwd: folder, store: { kind: 'sqlite', path }, watch: false })
  await manager.recordToolcall({ id: `call_${KEY}`, tool: `curl ${KEY}`, args: { command: `curl -H ${KEY}` }, content: `token ${KEY}`, status: 'ok' })
  writeFileSync(join(folder, `${KEY}.txt`), `key = ${KEY}\n`)
  await manager.indexFile(`${KEY}.txt`)
  await manager.close()
  for (const args of [
    ['doctor', '--secrets'],
    ['doctor', '--secrets', '--json'],
    ['forget', '--secrets'],
  ]) {
    const { code, stdout, stderr } = await cli([...args, '--store', path])
    expect({ args, code }).toEqual({ args, code: args[0] === 'doctor' ? 1 : 0 })
    expect(stdout).toContain('github-pat')
    expect(stdout + stderr).not.toContain(KEY.slice(0, 20))
  }
})

test('completion knows every command and option', async () => {
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { code, stdout } = await cli(['completion', shell])
    expect(code).toBe(0)
    for (const [name, { options }] of Object.entries(await loaded())) {
      expect(stdout).toContain(name)
      for (const option of Object.keys(options)) expect(stdout).toContain(option)
    }
  }
  const script = `${(await cli(['completion', 'bash'])).stdout}
    complete_for() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _pi_context_manager; echo "\${COMPREPLY[@]}"; }
    complete_for pi-context-manager se; complete_for pi-context-manager doctor --se; complete_for pi-context-manager help lo`
  expect(spawnSync('bash', ['-c', script], { encoding: 'utf8' })).toMatchObject({ status: 0, stdout: 'sessions search\n--secrets\nlog\n' })
})
