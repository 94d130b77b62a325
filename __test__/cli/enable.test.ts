/** Agents that stay enabled: what is added to the user's files, what is taken away again, and what stays untouched. */
import { execFile, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, lstatSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { enabledParts, planDisable, planEnable } from '../../lib/enable/enable.ts'
import type { EnabledCommand } from '../../lib/enable/enable.ts'
import type { ShellName } from '../../lib/enable/shells.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { program, temporaryFolder } from '../replay/support.ts'

afterEach(cleanUp)

/** A home with some files, by their names; a name that ends with a slash is a folder. */
function given(files: Readonly<Record<string, string>> = {}): { home: string; env: Record<string, string>; file: (name: string) => string } {
  const home = temporaryFolder()
  const file = (name: string): string => join(home, name)
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(name.endsWith('/') ? file(name) : dirname(file(name)), { recursive: true })
    if (name.endsWith('/')) continue
    writeFileSync(file(name), text, 'latin1')
  }
  return { home, env: { HOME: home }, file }
}

/** All folders and files of a folder: files with their bytes and rights, and where links lead. */
function state(folder: string): Record<string, string> {
  const names = readdirSync(folder, { recursive: true }).map(String).sort()
  return Object.fromEntries(
    names.flatMap((name) => {
      const about = lstatSync(join(folder, name))
      if (about.isDirectory()) return [[name, 'folder']]
      return [
        [
          name,
          about.isSymbolicLink()
            ? `-> ${readlinkSync(join(folder, name))}`
            : `${(about.mode & 0o777).toString(8)} ${readFileSync(join(folder, name), 'latin1')}`,
        ],
      ]
    }),
  )
}

function enableAll(env: Record<string, string>, shell: ShellName, ...commands: EnabledCommand[]): void {
  for (const command of commands) for (const change of planEnable(command, shell, env).changes) change.apply()
}

function disableAll(env: Record<string, string>, ...commands: EnabledCommand[]): void {
  for (const command of commands) for (const change of planDisable(command, env).changes) change.apply()
}

describe('what was enabled and is disabled leaves every file as it was', () => {
  const SETTINGS = '.claude/settings.json'
  test.each<[what: string, shell: ShellName, files: Record<string, string>]>([
    ['an empty home', 'bash', {}],
    ['an empty home with zsh', 'zsh', {}],
    ['an empty home with fish', 'fish', {}],
    ['folders with nothing in them', 'fish', { '.config/fish/conf.d/': '', '.claude/': '' }],
    ['a folder with one of the user’s', 'fish', { '.config/a': 'b' }],
    ['files that are empty', 'bash', { '.bashrc': '', [SETTINGS]: '' }],
    ['a file of the shell', 'bash', { '.bashrc': 'export A=1\n' }],
    ['a last line without its line break', 'zsh', { '.zshrc': 'export A=1' }],
    ['several empty lines at the end', 'bash', { '.bashrc': 'a\n\n\n' }],
    ['line breaks of Windows', 'bash', { '.bashrc': 'a\r\nb\r\n' }],
    ['bytes that are no UTF-8', 'bash', { '.bashrc': 'export A=\xff\xfe\x00\n' }],
    ['settings with two spaces', 'bash', { [SETTINGS]: '{\n  "model": "opus",\n  "env": { "A": "\xc3\xa4" }\n}\n' }],
    ['settings on one line', 'bash', { [SETTINGS]: '{"model":"opus"}' }],
    ['settings with tabs', 'bash', { [SETTINGS]: '{\n\t"model": "opus"\n}' }],
    ['settings that are empty', 'bash', { [SETTINGS]: '{}\n' }],
    ['settings that are empty, with a space', 'bash', { [SETTINGS]: '{ }' }],
    ['settings with a mark at their front', 'bash', { [SETTINGS]: '\xef\xbb\xbf{\n  "a": 1\n}\n' }],
    ['the user’s status line', 'bash', { [SETTINGS]: '{"statusLine": {"type": "command", "command": "date"}}' }],
  ])('%s', (_what, shell, files) => {
    const { home, env } = given(files)
    const before = state(home)
    enableAll(env, shell, 'claude', 'codex')
    expect(enabledParts(env).map(({ command, part }) => `${command} ${part}`)).toEqual([
      'claude function',
      ...(files[SETTINGS]?.includes('statusLine') === true ? [] : ['claude status line']),
      'codex function',
    ])
    const during = state(home)
    for (const [name, text] of Object.entries(before))
      if (during[name] !== text) expect(during[`${name}.before-pi-context-manager`]).toBe(`600 ${text.slice(4)}`)
    disableAll(env, 'codex', 'claude')
    expect(state(home)).toEqual(before)
  })

  test('a folder that the user has put something into since stays', () => {
    const { home, env, file } = given()
    enableAll(env, 'fish', 'claude')
    writeFileSync(file('.config/fish/conf.d/own.fish'), 'set a b')
    disableAll(env, 'claude')
    expect(Object.keys(state(home)).filter((name) => !state(home)[name]!.startsWith('folder'))).toEqual(['.config/fish/conf.d/own.fish'])
  })

  test('in any order, and enabled twice', () => {
    const { home, env } = given({ '.bashrc': 'a' })
    const before = state(home)
    enableAll(env, 'bash', 'claude', 'gemini', 'codex', 'claude', 'gemini')
    disableAll(env, 'claude', 'gemini', 'codex')
    expect(state(home)).toEqual(before)
  })

  test('the rights of a file stay, also while it is enabled', () => {
    const { env, file } = given({ '.bashrc': 'a\n' })
    chmodSync(file('.bashrc'), 0o640)
    enableAll(env, 'bash', 'codex')
    expect(statSync(file('.bashrc')).mode & 0o777).toBe(0o640)
  })

  test('changes that the user has made since stay', () => {
    const { env, file } = given({ '.bashrc': 'a', '.claude/settings.json': '{\n  "a": 1\n}\n' })
    enableAll(env, 'bash', 'claude', 'codex')
    writeFileSync(file('.bashrc'), `first\n${readFileSync(file('.bashrc'), 'utf8')}last\n`)
    // Claude Code writes its settings anew, with its own order and spaces.
    const settings = JSON.parse(readFileSync(file('.claude/settings.json'), 'utf8')) as object
    writeFileSync(file('.claude/settings.json'), JSON.stringify({ ...settings, model: 'opus' }, null, 2))
    disableAll(env, 'claude', 'codex')
    expect(readFileSync(file('.bashrc'), 'utf8')).toBe('first\na\nlast\n')
    expect(JSON.parse(readFileSync(file('.claude/settings.json'), 'utf8'))).toEqual({ a: 1, model: 'opus' })
    // The copies say something that the files no longer say.
    expect(readFileSync(file('.bashrc.before-pi-context-manager'), 'utf8')).toBe('a')
  })
})

describe('a file stays untouched, and a sentence says why', () => {
  test.each<[what: string, make: (file: (name: string) => string) => void, path: string, why: RegExp]>([
    ['settings that are broken', (file) => writeFileSync(file('.claude/settings.json'), '{"a": 1,}'), '.claude/settings.json', /not JSON/],
    ['settings that are a list', (file) => writeFileSync(file('.claude/settings.json'), '[]'), '.claude/settings.json', /not a JSON object/],
    ['settings that are read-only', (file) => writeFileSync(file('.claude/settings.json'), '{}', { mode: 0o444 }), '.claude/settings.json', /read-only/],
    ['settings that are a link', (file) => symlinkSync('elsewhere', file('.claude/settings.json')), '.claude/settings.json', /symbolic link/],
    ['settings that are a folder', (file) => mkdirSync(file('.claude/settings.json')), '.claude/settings.json', /not a file/],
    ['a shell’s file that is a link', (file) => symlinkSync('dotfiles/bashrc', file('.bashrc')), '.bashrc', /symbolic link/],
    ['a shell’s file that is read-only', (file) => writeFileSync(file('.bashrc'), 'a\n', { mode: 0o400 }), '.bashrc', /read-only/],
    [
      'a shell’s file with an alias of that name',
      (file) => writeFileSync(file('.bashrc'), 'alias claude="$HOME/.claude/local/claude"\n'),
      '.bashrc',
      /an alias claude/,
    ],
    [
      'a shell’s file with such an alias among others',
      (file) => writeFileSync(file('.bashrc'), "  alias -g ll='ls -l' claude='x'\n"),
      '.bashrc',
      /an alias claude/,
    ],
    ['a shell’s file with a function of that name', (file) => writeFileSync(file('.bashrc'), 'claude () { true; }\n'), '.bashrc', /a function claude/],
    ['a shell’s file with another such function', (file) => writeFileSync(file('.bashrc'), 'function claude { true; }\n'), '.bashrc', /a function claude/],
  ])('%s', (_what, make, path, why) => {
    const { home, env, file } = given({ '.claude/x': '' })
    make(file)
    const before = state(home)
    const { changes, refusals } = planEnable('claude', 'bash', env)
    expect(refusals).toEqual([expect.objectContaining({ path: file(path), why: expect.stringMatching(why) })])
    expect(changes.map((change) => change.path)).not.toContain(file(path))
    expect(state(home)).toEqual(before)
  })

  test.each(['alias claude-dev=x\n', '# alias claude=x\n', 'myclaude() { :; }\n', 'export claude=1\n'])('but not one with %j', (text) => {
    const { env } = given({ '.bashrc': text })
    expect(planEnable('claude', 'bash', env).refusals).toEqual([])
  })

  test.each<[what: string, edit: (text: string) => string | undefined]>([
    ['changed', (text) => `${text}more\n`],
    ['removed', () => undefined],
    ['made a link', () => '->'],
  ])('one that was %s in the meantime', (_what, edit) => {
    const { env, file } = given({ '.bashrc': 'a\n', other: 'b\n' })
    const { changes } = planEnable('codex', 'bash', env)
    const text = edit('a\n')
    spawnSync('rm', [file('.bashrc')])
    if (text === '->') symlinkSync('other', file('.bashrc'))
    else if (text !== undefined) writeFileSync(file('.bashrc'), text)
    expect(() => changes[0]?.apply()).toThrow(/has changed in the meantime|symbolic link/)
    expect(existsSync(file('.bashrc')) ? readFileSync(file('.bashrc'), 'utf8') : undefined).toBe(text === '->' ? 'b\n' : text)
    expect(readdirSync(dirname(file('x'))).filter((name) => name.endsWith('.part'))).toEqual([])
  })

  test('one whose lines of ours were changed is told, and not counted as disabled', () => {
    const { env, file } = given({ '.bashrc': 'a\n' })
    enableAll(env, 'bash', 'codex')
    writeFileSync(file('.bashrc'), readFileSync(file('.bashrc'), 'utf8').replace('run -- codex', 'run -- codex --search'))
    const { changes, refusals } = planDisable('codex', env)
    expect([changes, refusals]).toEqual([
      [],
      [expect.objectContaining({ path: file('.bashrc'), isOurs: true, why: expect.stringContaining('have been changed') })],
    ])
    expect(enabledParts(env)).toEqual([{ command: 'codex', path: file('.bashrc'), part: 'function' }])
  })

  test('a backup of something else is never replaced', () => {
    const { env, file } = given({ '.bashrc': 'new\n', '.bashrc.before-pi-context-manager': 'older\n' })
    enableAll(env, 'bash', 'codex')
    expect(readFileSync(file('.bashrc.before-pi-context-manager'), 'utf8')).toBe('older\n')
    expect(readFileSync(file('.bashrc.before-pi-context-manager-2'), 'utf8')).toBe('new\n')
  })
})

interface Ended {
  code: number
  stdout: string
  stderr: string
}

/** The shells of this machine among those that are known. */
const SHELLS = (['bash', 'zsh', 'fish'] as const).filter((name) => spawnSync(name, ['--version'], { stdio: 'ignore' }).status === 0)

/** A user's line in any of them: an agent's exit code is that of the whole. */
const ENTERED = "codex resume; claude -p 'a  b' '$HOME' --resume x"

/** Runs a program without input. */
function ended([command = '', ...args]: readonly string[], env: Record<string, string>): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(command, args, { env }, (error, stdout, stderr) => resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr })).stdin?.end()
  })
}

/** A home with an agent that says how it was started, and our program. */
function withPrograms(): ReturnType<typeof given> {
  const own = given({ '.bashrc': 'export A=1\n' })
  const folder = own.file('bin')
  mkdirSync(folder)
  writeFileSync(join(folder, 'claude'), '#!/bin/sh\necho "agent $ANTHROPIC_BASE_URL $@"\nexit 7\n', { mode: 0o755 })
  const [node, args] = program()
  writeFileSync(join(folder, 'pi-context-manager'), `#!/bin/sh\nexec ${[node, ...args].map((word) => `'${word}'`).join(' ')} "$@"\n`, { mode: 0o755 })
  return { ...own, env: { ...own.env, SHELL: '/bin/bash', PATH: `${folder}:/usr/bin:/bin` } }
}

describe('the commands', () => {
  const us = (...args: string[]): string[] => ['pi-context-manager', ...args]

  test('show the lines, ask, enable for the next terminal, are told by doctor, and disable', async () => {
    const { home, env, file } = withPrograms()
    const before = state(home)
    const asked = await ended(us('enable', 'claude'), env)
    expect(asked).toEqual({
      code: 1,
      stdout: expect.stringContaining('~/.bashrc gets:\n    # >>> pi-context-manager enable claude >>>\n'),
      stderr: expect.stringContaining('"--yes" adds these lines'),
    })
    expect(state(home)).toEqual(before)
    expect(await ended(us('enable', 'claude', '--yes'), env)).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringContaining('claude: enabled for each new terminal; in this one after ". ~/.bashrc"'),
    })
    // An interactive shell reads the same file.
    const run = await ended(['bash', '-c', '. ~/.bashrc; claude -p "a b" --resume x'], env)
    expect([run.code, run.stdout]).toEqual([7, expect.stringMatching(/^agent http:\/\/127\.0\.0\.1:\d+\/[\w-]+\/anthropic .*-p a b --resume x\n$/)])
    expect((await ended(us('doctor'), env)).stdout).toContain(
      `enabled    claude: the function in ${file('.bashrc')}\n           claude: the status line in ${file('.claude/settings.json')}\n`,
    )
    expect(await ended(us('disable'), env)).toMatchObject({ code: 0, stderr: '' })
    expect(readFileSync(file('.bashrc'), 'utf8')).toBe('export A=1\n')
    expect(existsSync(file('.claude/settings.json'))).toBe(false)
    expect(await ended(us('disable'), env)).toMatchObject({ code: 1, stderr: 'pi-context-manager: no agent is enabled\n' })
  })

  test('say that the user’s own status line stays, and leave it as it is', async () => {
    const { env, file } = withPrograms()
    mkdirSync(file('.claude'), { recursive: true })
    const own = '{"statusLine": {"type": "command", "command": "date"}}'
    writeFileSync(file('.claude/settings.json'), own)
    const done = await ended(us('enable', 'claude', '--yes'), env)
    expect(done).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(/^~\/\.claude\/settings\.json keeps your own status line/m) })
    expect(readFileSync(file('.claude/settings.json'), 'utf8')).toBe(own)
    // Ours is none of the user's.
    writeFileSync(file('.claude/settings.json'), '{}')
    await ended(us('enable', 'claude', '--yes'), env)
    expect((await ended(us('enable', 'claude', '--yes'), env)).stdout).toBe('claude: enabled already\n')
  })

  test('quote a path in the words for the terminal that is open', async () => {
    const { home, env, file } = withPrograms()
    mkdirSync(file('z d (ü)'))
    const { stdout } = await ended(us('enable', 'claude', '--shell', 'zsh', '--yes'), { ...env, ZDOTDIR: file('z d (ü)') })
    const [, read = ''] = /in this one after "(.*)"\n$/.exec(stdout) ?? []
    const seen = await ended(['bash', '-c', `${read.replace(/^\./, 'echo')}`], env)
    expect(seen.stdout).toBe(`${join(home, 'z d (ü)', '.zshrc')}\n`)
  })

  test('name the cause where a folder can’t be written, and change nothing', async () => {
    const { home, env, file } = withPrograms()
    writeFileSync(file('.config'), 'a file\n')
    const before = state(home)
    expect(await ended(us('enable', 'claude', '--shell', 'fish', '--yes'), { ...env, XDG_CONFIG_HOME: '' })).toMatchObject({
      code: 1,
      stdout: expect.not.stringContaining('enabled for'),
      stderr: expect.stringMatching(/pi-context-manager-claude\.fish stays untouched: it can't be looked at \(not a directory\)/),
    })
    expect(state(home)).toEqual(before)
  })

  test.each(SHELLS)('in a terminal with %s, the agent gets its words and its exit code', async (shell) => {
    const { home, env: bare, file } = withPrograms()
    const env = { ...bare, SHELL: `/usr/bin/${shell}`, TERM: 'dumb' }
    writeFileSync(file('bin/codex'), '#!/bin/sh\nshift $(($# - 1))\necho "second $1"\n', { mode: 0o755 })
    const before = state(home)
    const { stdout } = await ended(us('enable', 'claude', 'codex', '--yes'), env)
    const [, read = ''] = /in this one after "(.*)"\n$/.exec(stdout) ?? []
    // In the terminal that is open, the told words do it.
    for (const words of [['-i', '-c', ENTERED], ...(shell === 'fish' ? [['-c', `${read}; ${ENTERED}`]] : [])]) {
      const run = await ended([shell, ...words], env)
      expect([run.code, run.stdout]).toEqual([
        7,
        expect.stringMatching(/^second resume\nagent http:\/\/127\.0\.0\.1:\d+\/[\w-]+\/anthropic .*-p a  b \$HOME --resume x$/m),
      ])
    }
    expect(await ended(us('disable'), env)).toMatchObject({ code: 0, stderr: '' })
    // The shell also writes other files, such as a history.
    expect(state(home)).toMatchObject(before)
    expect(Object.keys(state(home)).filter((name) => /rc$|conf\.d|settings\.json|before-pi/.test(name))).toEqual(['.bashrc'])
  })

  test('without our program, the agent starts as it did', async () => {
    const { env, file } = withPrograms()
    enableAll(env, 'bash', 'claude')
    spawnSync('rm', [file('bin/pi-context-manager')])
    expect(await ended(['bash', '-c', '. ~/.bashrc; claude -p x'], env)).toEqual({ code: 7, stdout: 'agent  -p x\n', stderr: '' })
  })

  test.each<[args: string[], env: Record<string, string>, code: number, sentence: string]>([
    [[], {}, 2, 'enable needs an agent: claude, cline, codex'],
    [['cluade'], {}, 2, 'did you mean "claude"'],
    [['pi'], {}, 2, 'pi install npm:pi-context-manager'],
    [['codex'], {}, 1, 'codex is not installed'],
    [['claude'], { SHELL: '/bin/tcsh' }, 2, 'your shell is not known here'],
    [['claude', '--shell', 'tcsh'], {}, 2, '--shell is bash, zsh or fish'],
  ])('enable %j says what is wrong', async (args, more, code, sentence) => {
    const { home, env } = withPrograms()
    const before = state(home)
    expect(await ended(us('enable', ...args), { ...env, ...more })).toMatchObject({ code, stderr: expect.stringContaining(sentence) })
    expect(state(home)).toEqual(before)
  })
})
