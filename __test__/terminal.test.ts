/** The program in a terminal: colours, the pager, and nothing that controls the terminal. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { ContextManager } from '../lib/index.ts'
import { fixture, program } from './replay/support.ts'
import { cleanUp, temporaryFolder } from '../rig/pi.ts'
import { inTerminal } from '../rig/process.ts'
import { progressLine } from '../lib/ui/terminal.ts'

afterEach(cleanUp)

/** A progress bar. */
const BAR = /\[[#-]{24}\]/

const STEERING = '\x1b[2J\u202e'

async function storeIn(folder: string): Promise<string> {
  const path = join(folder, 'store', 'context.db')
  const manager = await ContextManager.open({ sessionId: 'first', cwd: folder, store: { kind: 'sqlite', path }, watch: false })
  for (const last of ['one', 'two']) {
    writeFileSync(join(folder, 'a.txt'), `${STEERING}pelican\n${'line\n'.repeat(20_000)}${last}\n`)
    await manager.indexFile('a.txt')
  }
  writeFileSync(join(folder, 'named.log'), 'x\n'.repeat(200_000))
  await manager.recordToolcall({ id: 'tail', tool: 'bash', args: { command: 'tail -1 named.log' }, content: 'x', status: 'ok' })
  await manager.close()
  return path
}

/** Runs the program in its own terminal. Returns the screen and the exit code. */
function shownBy(args: string[], env: Record<string, string> = {}, width = 80): Promise<{ code: number | null; screen: string }> {
  const [file, own] = program(...args)
  return new Promise((resolve, reject) => {
    const { PAGER: _pager, LESS: _less, NO_COLOR: _colour, ...rest } = process.env
    const child = spawn(...inTerminal([file, ...own], { columns: width, rows: 24 }), {
      env: { ...rest, TERM: 'xterm', ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let screen = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => (screen += text))
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, screen: screen.replaceAll('\r\n', '\n') }))
  })
}

describe.runIf(process.platform === 'linux')('in a terminal', () => {
  test('lists are coloured, and stored text controls nothing', async () => {
    const store = await storeIn(temporaryFolder('terminal-'))
    const { code, screen } = await shownBy(['search', '--store', store, 'pelican'], { PAGER: 'cat' })
    expect(code).toBe(0)
    expect(screen).toMatch(/^\x1b\[33m\w{8}@\d+\x1b\[m \x1b\[36m\S+a\.txt\x1b\[m/)
    expect(screen).toContain('\\u001b[2J\\u202epelican')
    expect(screen.replaceAll(/\x1b\[\d*m/g, '')).not.toMatch(/[\x1b\u202e]/)
    const log = await shownBy(['log', '--store', store, '--limit', '1', join(store, '../../a.txt')], { PAGER: 'cat' })
    expect(log.screen).toContain('\x1b[31m-one\x1b[m\n\x1b[32m+two\x1b[m')
    for (const env of [{ NO_COLOR: '1' }, { TERM: 'dumb' }]) {
      const bare = await shownBy(['search', '--store', store, 'pelican'], { PAGER: 'cat', ...env })
      expect(bare.screen).not.toContain('\x1b')
    }
  })

  test.each<[string, Record<string, string>, RegExp]>([
    ['the user’s pager shows it', { PAGER: "sed 's/^/> /'" }, /^> \x1b\[2mlibrary {2}session first {2}.*\n(> .*\n){20002}$/],
    ['a pager that stops reading ends it quietly', { PAGER: 'head -2' }, /^\x1b\[2mlibrary .*\n\\u001b.*\n$/],
    ['a pager that reads nothing ends it quietly', { PAGER: 'true' }, /^$/],
    [
      'without the user’s pager, it is shown without one',
      { PAGER: 'no-such-pager' },
      /no-such-pager.*not found\n\x1b\[2mlibrary .*\n\\u001b.*\n(line\n){20000}two\n/,
    ],
    ['an empty PAGER is none', { PAGER: '' }, /^\x1b\[2mlibrary .*\n\\u001b.*\n(line\n){20000}two\n$/],
  ])('%s', async (_name, env, expected) => {
    const store = await storeIn(temporaryFolder('terminal-'))
    const { code, screen } = await shownBy(['show', '--store', store, join(store, '../../a.txt')], env)
    expect(screen).toMatch(expected)
    expect(code).toBe(0)
  })

  test.each([60, 100, 180])('a long error breaks between words at %i columns, and a command in it stays whole', async (width) => {
    const folder = temporaryFolder('terminal-')
    const env = { HOME: folder, XDG_DATA_HOME: '', CONTEXT_STORE_PATH: '', SHELL: '/bin/sh', PATH: `${folder}:/usr/bin:/bin` }
    writeFileSync(join(folder, 'claude'), '#!/bin/sh\n', { mode: 0o755 })
    for (const [args, words] of [
      [['sessions'], 'pi-context-manager: there is no store at PATH; the first session of Pi or of the gateway creates it, and --store names another one'],
      [
        ['enable', 'claude'],
        'pi-context-manager: no folder of $PATH has pi-context-manager, so a shell would not find it; "npm install --global pi-context-manager" puts it there',
      ],
    ] as const) {
      const { code, screen } = await shownBy([...args], env, width)
      expect(code).toBe(2)
      const lines = screen.trimEnd().split('\n')
      const path = join(folder, '.local/share/pi-context-manager/context.db')
      expect(lines.join(' ').replace(path, 'PATH')).toBe(words)
      // A path is one word, and only a longer one passes the edge.
      expect(lines.filter((line) => line.length > width && !line.includes(path))).toEqual([])
      expect(lines.length).toBeGreaterThan(width < 160 ? 1 : 0)
      expect(screen.includes('npm')).toBe(args[0] === 'enable')
      if (args[0] === 'enable') expect(screen).toContain('"npm install --global pi-context-manager"')
    }
  })

  test('Ctrl-C in the middle of long work removes the bar and ends with a whole line', async () => {
    const folder = temporaryFolder('terminal-')
    const text = readFileSync(fixture('claude-code.jsonl'), 'utf8')
    for (let n = 0; n < 300; n += 1) writeFileSync(join(folder, `${n}.jsonl`), text)
    const [file, own] = program('usage', folder)
    const child = spawn(...inTerminal([file, ...own], { columns: 80, rows: 24 }), {
      env: { ...process.env, TERM: 'xterm', CONTEXT_STORE_PATH: join(folder, 'none.db') },
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    let screen = ''
    child.stdout.setEncoding('utf8').on('data', (said: string) => {
      const isFirst = !BAR.test(screen) && BAR.test(screen + said)
      screen += said
      if (isFirst) child.stdin.write('\x03')
    })
    const [code] = (await once(child, 'close')) as [number]
    expect([code, screen.split('\x1b[K').at(-1)]).toEqual([130, 'stopped before the end\r\n'])
    // Behind the bar there is room for the ^C that a terminal shows.
    for (const bar of screen.match(/\[[#-]{24}\][^\r]*/g) ?? []) expect(bar.replace('^C', '').length).toBeLessThanOrEqual(78)
  })

  test('a file without text says why', async () => {
    const store = await storeIn(temporaryFolder('terminal-'))
    const { code, screen } = await shownBy(['show', '--store', store, join(store, '../../named.log')])
    expect({ code, screen: screen.replaceAll('\n', ' ').replace(/\S*\/named\.log/, 'FILE') }).toEqual({
      code: 1,
      screen:
        'pi-context-manager: FILE has no text: only the hash of its bytes was recorded, because it is not text, is too large, or was only named by a shell command ',
    })
  })
})

test.each([
  [80, 60_000],
  [40, 60_000],
  [40, 0],
  [30, 60_000],
  [20, 60_000],
])('a progress line fits into %i columns after %i ms', (columns, elapsedMs) => {
  for (const part of [0, 0.5, 0.999, 1]) {
    for (const text of ['', 'a.jsonl', '/home/somewhere/0123456789/0123456789/0123456789/a.jsonl']) {
      const line = progressLine(part, text, elapsedMs, columns)
      expect(line.length).toBeLessThanOrEqual(columns - 2)
      expect(line).toContain(`${Math.floor(100 * part)} %`)
      if (columns >= 40) expect(line).toMatch(/^\[[#-]{4,24}\] /)
    }
  }
})
