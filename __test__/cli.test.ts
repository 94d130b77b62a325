/** The program's output: files for their owner alone, and words that control no terminal. */
import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { inStore } from '../lib/native/in-store.ts'
import { plain, shown } from '../lib/ui/terminal.ts'
import { ContextManager } from '../lib/index.ts'
import { cleanUp, temporaryFolder } from '../rig/pi.ts'
import { inTerminal } from '../rig/process.ts'
import { cli, fixture, program } from './replay/support.ts'

afterEach(cleanUp)

// A name that clears the screen, sets the window's title and turns the direction of writing.
const STEERING = 'a\x1b[2J\x1b]0;title\x07\u202egpj.\u2066\x9b31m\nforged'

async function storeIn(folder: string): Promise<string> {
  const path = join(folder, 'context.db')
  const manager = await ContextManager.open({ sessionId: 's', cwd: folder, store: { kind: 'sqlite', path }, watch: false })
  await manager.indexFile(STEERING, 'text')
  await manager.close()
  return path
}

/** Everything that a terminal would take for more than text. */
const RAW = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/

describe('words on a terminal', () => {
  test('escapes terminal control characters', () => {
    expect(shown('é 日本 \u{1f600}\n')).toBe('é 日本 \u{1f600}\n')
    expect(plain(STEERING)).toBe('a\\u001b[2J\\u001b]0;title\\u0007\\u202egpj.\\u2066\\u009b31m\\u000aforged')
    expect(JSON.parse(shown(JSON.stringify({ STEERING })))).toEqual({ STEERING })
  })

  test('doctor, inspect and errors show stored names', async () => {
    const folder = temporaryFolder('cli-')
    const store = await storeIn(folder)
    for (const args of [
      ['doctor', '--store', store],
      ['doctor', '--store', store, '--json'],
      ['inspect', '--store', store],
      ['export', '--store', store, join(folder, STEERING, 'out')],
      ['import', '--store', store, join(folder, STEERING)],
      ['inspect', '--store', store, '--session', STEERING],
      [STEERING],
    ]) {
      const { stdout, stderr } = await cli(args)
      expect(stdout + stderr, plain(args[0]!)).not.toMatch(RAW)
      expect(stdout + stderr).not.toMatch(/^forged/m)
    }
    expect((await cli(['doctor', '--store', store])).stdout).toContain('a\\u001b[2J')
  })

  test('doctor tells a store that it can not read from a damaged one', async () => {
    const folder = temporaryFolder('cli-')
    const path = join(folder, 'a.db')
    writeFileSync(path, 'no database at all '.repeat(500))
    for (const args of [[], ['--secrets'], ['--json']]) {
      const { code, stdout, stderr } = await cli(['doctor', '--store', path, ...args])
      expect({ args, code, stdout }).toEqual({ args, code: 2, stdout: '' })
      expect(stderr).toMatch(/^pi-context-manager: .+\n$/)
    }
  })

  test('a replay shows the names of a recording and of its contents', async () => {
    const path = join(temporaryFolder('cli-'), `${STEERING}.jsonl`)
    const name = JSON.stringify(STEERING).slice(1, -1)
    const call = { type: 'toolCall', id: STEERING, name: STEERING, arguments: { path: STEERING, command: STEERING } }
    const entries = [
      { type: 'session', version: 3, id: STEERING, timestamp: '2026-01-31T12:00:00.000Z', cwd: `/${STEERING}` },
      { message: { role: 'user', content: STEERING, timestamp: 1 } },
      { message: { role: 'assistant', content: [call], provider: STEERING, model: STEERING, api: STEERING, stopReason: 'toolUse', timestamp: 2 } },
      { message: { role: 'toolResult', toolCallId: STEERING, toolName: STEERING, content: [{ type: 'text', text: STEERING }], isError: false, timestamp: 3 } },
      { message: { role: STEERING, content: STEERING } },
      { type: STEERING },
    ]
    const line = (entry: object, n: number): string =>
      JSON.stringify({ type: 'message', id: `e${n}`, parentId: n > 1 ? `e${n - 1}` : null, timestamp: '2026-01-31T12:00:00.000Z', ...entry })
    writeFileSync(path, [...entries.map(line), `{"broken ${name}`].join('\n'))
    for (const args of [[path], [path, '--check', path], [path, path, '--all'], [`${path}.none`]]) {
      const { stdout, stderr } = await cli(['replay', ...args])
      expect(stdout + stderr).not.toBe('')
      expect(stdout + stderr).not.toMatch(RAW)
      expect(stdout + stderr).not.toMatch(/^forged/m)
    }
  })
})

test('a replay has its colours on a terminal, and shows none of a name', async () => {
  const path = join(temporaryFolder('cli-'), 'a\x1b[31m.jsonl')
  copyFileSync(fixture('pi-version-3.jsonl'), path)
  const [file, args] = inTerminal(program('replay', path).flat(), { columns: 200, rows: 40 })
  const env = { ...process.env, TERM: 'xterm-256color', NO_COLOR: '' }
  const { status, stdout } = spawnSync(file, args, { env, encoding: 'utf8' })
  expect([status, stdout]).toEqual([0, expect.stringContaining('a\\u001b[31m.jsonl')])
  expect(stdout).toContain('\x1b[1m')
  expect(stdout).not.toMatch(/\\u001b\[(1|2|32|0)m|\x1b\[31m/)
})

describe('files', () => {
  test('an export goes where it is told, and through nothing that was planted', async () => {
    const folder = temporaryFolder('cli-')
    const store = await storeIn(folder)
    const options = { kind: 'sqlite', path: store } as const
    const out = join(folder, 'out.jsonl')
    const secret = join(folder, 'secret')
    writeFileSync(secret, 'secret')
    symlinkSync(secret, `${out}.part`)
    writeFileSync(out, 'old')
    chmodSync(out, 0o666)
    await Promise.all(Array.from({ length: 6 }, () => inStore(options, (store) => store.export(out))))
    expect(readFileSync(secret, 'utf8')).toBe('secret')
    expect(statSync(out).mode & 0o777).toBe(0o600)
    expect((await inStore({ kind: 'memory' }, (store) => store.import(out))).versions).toBeGreaterThan(0)
    expect(readdirSync(folder).sort()).toEqual(['context.db', 'out.jsonl', 'out.jsonl.part', 'secret'])

    const link = join(folder, 'link')
    symlinkSync(secret, link)
    for (const path of ['/dev/null', '/dev/stdout', link, folder]) {
      await expect(inStore(options, (store) => store.export(path))).rejects.toMatchObject({ code: 'IO' })
    }
    expect(readFileSync(secret, 'utf8')).toBe('secret')

    const printed = await cli(['export', '--store', store, '-'])
    expect(printed).toEqual({ code: 0, stdout: readFileSync(out, 'utf8'), stderr: '' })
  })

  test('an import waits for no pipe', async () => {
    const folder = temporaryFolder('cli-')
    const pipe = join(folder, 'pipe')
    expect(spawnSync('mkfifo', [pipe]).status).toBe(0)
    await expect(inStore({ kind: 'memory' }, (store) => store.import(pipe))).rejects.toMatchObject({ code: 'IO' })
    const options = { sessionId: 's', cwd: folder, store: { kind: 'memory' }, watch: false } as const
    await expect(ContextManager.importSession(pipe, options)).rejects.toMatchObject({ code: 'IO' })
  })

  test('a page is for its owner alone', async () => {
    const folder = temporaryFolder('cli-')
    const store = await storeIn(folder)
    const page = join(folder, 'page.html')
    writeFileSync(page, '<!doctype html>old')
    chmodSync(page, 0o666)
    expect((await cli(['inspect', '--store', store, '--html', page])).code).toBe(0)
    expect(statSync(page).mode & 0o777).toBe(0o600)
    expect(readFileSync(page, 'utf8')).toContain('<h1>Context store</h1>')
    expect((await cli(['inspect', '--store', store, '--html', '/dev/null'])).code).toBe(2)
  })
})
