/** Failures are reported once, in a clear sentence, and Pi continues. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test } from 'vitest'
import { checkAppendOnly } from '../../rig/checks.ts'
import { cleanUp, runPrint, startRpc, temporaryFolder } from '../../rig/pi.ts'
import { onCleanUp } from '../../rig/cleanup.ts'
import type { RpcEvent } from '../../rig/rpc.ts'
import { calls } from '../../rig/reply.ts'
import { resultsById } from '../../rig/request.ts'
import { command, handle, header, lines, notices, onFile, openStore, put, sessionIdOf, setUp, TOOLS_AT_ONCE } from './support.ts'
import { some } from '../rows.ts'
import { NODE } from '../replay/support.ts'

afterEach(cleanUp)

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const FAULTY = fileURLToPath(new URL('faulty.ts', import.meta.url))

describe('tools of the model', () => {
  test.each([
    ['a missing file', 'read', { path: 'nowhere.txt' }, /ENOENT/],
    ['a directory', 'read', { path: 'folder' }, /folder is a directory; list it with ls/],
    ['a named pipe', 'read', { path: 'pipe' }, /pipe is not a regular file but a named pipe/],
    ['an edit of a missing file', 'edit', { path: 'nowhere.txt', edits: [{ oldText: 'a', newText: 'b' }] }, /ENOENT/],
    ['a write below a file', 'write', { path: 'a.txt/b.txt', content: 'x' }, /ENOTDIR|EEXIST/],
    ['an unknown id', 'activate', { id: 'call_nobody' }, /no object of this session has the id call_nobody/],
    ['an empty id', 'activate', { id: '' }, /no object of this session has the id/],
    ['the chat', 'activate', { id: 'chat:SESSION' }, /part of the session itself/],
    ['the system prompt', 'pin', { id: 'system_prompt:SESSION' }, /part of the session itself/],
    ['the session', 'deactivate', { id: 'session:SESSION' }, /part of the session itself/],
    ['a binary file', 'activate', { id: 'BINARY' }, /has no text: .*(is not text|NUL)/],
    ['what is not active', 'deactivate', { id: 'BINARY' }, /is not active/],
    ['lines that are none', 'activate', { id: 'call_0_0', lines: 'ten' }, /lines is a range such as "120-180", not "ten"/],
    ['lines beyond the end', 'activate', { id: 'call_0_0', lines: '900-901' }, /\b900\b/],
    ['lines and a text', 'activate', { id: 'call_0_0', lines: '1', grep: 'x' }, /give either lines or grep, not both/],
    ['a version that never was', 'activate', { id: 'call_0_0@1' }, /does not exist/],
  ])('%s', async (_name, tool, args, sentence) => {
    let session = ''
    const { server, home, store, load } = await setUp(
      async (_request, n) => {
        if (n === 0) return calls(['read', { path: 'a.txt' }], ['ls', { path: '.' }])
        if (n > 1) return 'I see'
        const manager = await openStore(store, session, home.cwd)
        const [file] = await manager.query({ type: 'file', pathPrefix: join(home.cwd, 'data.bin') })
        await manager.close()
        const text = JSON.stringify(args)
          .replace('SESSION', session)
          .replace('BINARY', file?.['xt/id'] ?? 'none')
        return calls([tool, text, 'call_bad'])
      },
      { context: TOOLS_AT_ONCE },
    )
    put(home, 'a.txt', lines('a', 40))
    put(home, 'data.bin', Uint8Array.from([0, 1, 2, 255, 0]))
    mkdirSync(join(home.cwd, 'folder'))
    execFileSync('mkfifo', [join(home.cwd, 'pipe')])
    const rpc = await startRpc(load)
    session = (await rpc.state())['sessionId']
    const events = await rpc.prompt('try')
    checkAppendOnly(server.requests)
    expect(resultsById(server.requests[2]!).get('call_bad')).toMatch(sentence)
    const end = events.find((event) => event.type === 'tool_execution_end' && event['toolCallId'] === 'call_bad')!
    expect(end['isError']).toBe(true)
    expect(notices(rpc.events)).toEqual([])
    expect(rpc.events.filter((event) => event.type === 'extension_error')).toEqual([])
  })

  test('a binary file is read as Pi reads it, and known without text', async () => {
    const { home, store, load } = await setUp([calls(['read', { path: 'data.bin' }, 'call_bin']), 'I see'])
    put(home, 'data.bin', Uint8Array.from([0, 1, 2, 255, 0]))
    const run = await runPrint({ ...load, prompts: ['try'] })
    expect(run).toMatchObject({ exitCode: 0, stderr: '' })
    const manager = await openStore(store, sessionIdOf(run.sessionFile!), home.cwd)
    const [file] = await manager.query({ type: 'file', pathPrefix: join(home.cwd, 'data.bin') })
    expect(file).toMatchObject({ content: null, source_hash: expect.stringMatching(/^[0-9a-f]{64}$/) })
  })

  // The owner of everything may read everything: there is nothing that could not be read.
  test('a file without permission to read', async ({ skip }) => {
    skip(process.getuid?.() === 0, 'root may read any file: run this test as another user')
    const { server, home, load } = await setUp([calls(['read', { path: 'locked.txt' }, 'call_locked']), 'I see'])
    writeFileSync(join(home.cwd, 'locked.txt'), 'x', { mode: 0 })
    const run = await runPrint({ ...load, prompts: ['try'] })
    expect(run).toMatchObject({ exitCode: 0, stderr: '' })
    expect(resultsById(server.requests[1]!).get('call_locked')).toMatch(/EACCES/)
  })

  test('an object of another session is not known in this one', async () => {
    const { server, home, load } = await setUp(
      (_request, n) => {
        if (n === 0) return calls(['read', { path: 'a.txt' }, 'call_other'])
        if (n === 2) return calls(['search_context', { query: 'lorem' }, 'call_search'], ['activate', { id: 'call_other' }, 'call_bad'])
        return 'fine'
      },
      { context: TOOLS_AT_ONCE },
    )
    put(home, 'a.txt', lines('a', 40))
    await runPrint({ ...load, prompts: ['one'] })
    await runPrint({ ...load, prompts: ['two'] })
    const results = resultsById(server.requests[3]!)
    expect(results.get('call_search')).toBe('no match')
    expect(results.get('call_bad')).toMatch(/no object of this session has the id call_other/)
  })
})

describe('the store and the addon', () => {
  const script = [calls(['bash', { command: 'cat a.txt' }, 'call_a']), 'done', 'again']

  /** Plain Pi did all of it, and said one line on standard error. */
  async function expectPlain(
    { server, home, load }: Awaited<ReturnType<typeof setUp>>,
    more: { extension?: string; env?: Record<string, string> },
    sentence: RegExp,
  ): Promise<void> {
    const text = lines('a', 40)
    put(home, 'a.txt', text)
    const run = await runPrint({
      ...load,
      ...more,
      env: { ...load.env, ...more.env },
      prompts: ['one', 'two'],
    })
    expect(run).toMatchObject({ exitCode: 0, stdout: 'again\n' })
    expect(run.stderr.trim().split('\n')).toEqual([expect.stringMatching(sentence)])
    checkAppendOnly(server.requests)
    expect(resultsById(server.requests[1]!).get('call_a')).toBe(text)
  }

  onFile('a store path that can not be written')('a store path that can not be written', async () => {
    const setting = await setUp(script)
    put(setting.home, 'file', '')
    const path = join(setting.home.cwd, 'file', 'context.db')
    await expectPlain(setting, { env: { CONTEXT_STORE_PATH: path } }, /^The context manager could not start: .*file\/context\.db/)
  })

  onFile('a file that is not a database')('a store that is not a database', async () => {
    const setting = await setUp(script)
    put(setting.home, 'context.db', 'this is a text file, and not a short one either'.repeat(100))
    const path = join(setting.home.cwd, 'context.db')
    await expectPlain(setting, { env: { CONTEXT_STORE_PATH: path } }, /^The context manager could not start: .*context\.db/)
  })

  onFile('the status line')('a store that another process has locked is waited for, and the status line says so', async () => {
    const { home, load } = await setUp(script)
    const path = join(home.cwd, 'kept', 'context.db')
    const rpc = await startRpc({ ...load, env: { CONTEXT_STORE_PATH: path } })
    await rpc.prompt('one')
    const holds =
      'const db = new (require("node:sqlite").DatabaseSync)(process.argv[1]); db.exec("BEGIN EXCLUSIVE"); console.log("held"); process.stdin.resume()'
    const holder = spawn(NODE[0]!, ['--experimental-sqlite', '--disable-warning=ExperimentalWarning', '-e', holds, path], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    onCleanUp(() => void holder.kill())
    await once(holder.stdout, 'data')
    const from = rpc.mark
    const two = rpc.prompt('two')
    const status = (text: string | undefined) => (event: RpcEvent) => event['method'] === 'setStatus' && event['statusText'] === text
    await rpc.waitFor(status('context: waiting for the store'), from)
    const told = rpc.mark
    holder.kill()
    await two
    expect(rpc.events.slice(told).some(status(undefined))).toBe(true)
    expect(notices(rpc.events)).toEqual([])
  })

  test('an addon that is missing', async () => {
    const copy = temporaryFolder('no-addon-')
    for (const name of ['extensions', 'lib', 'index.js', 'package.json']) {
      cpSync(join(ROOT, name), join(copy, name), { recursive: true })
    }
    symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'))
    const setting = await setUp(script)
    await expectPlain(
      setting,
      { extension: join(copy, 'extensions', 'index.ts') },
      /^The context manager could not start: the native addon of pi-context-manager for \S+ is missing .*npm install --include=optional/,
    )
  })

  onFile('a store path that can be written later')('opening that fails, and works later', async () => {
    const { server, home, load } = await setUp(script)
    put(home, 'a.txt', lines('a', 40))
    put(home, 'file', '')
    const path = join(home.cwd, 'file', 'context.db')
    const rpc = await startRpc({ ...load, env: { CONTEXT_STORE_PATH: path } })
    await rpc.prompt('one')
    expect(notices(rpc.events)).toEqual([expect.stringMatching(/could not start.*\/context on tries again\.$/)])
    expect(await command(rpc, '/context')).toEqual([expect.stringMatching(/^\/context: .*could not start/)])
    expect(await command(rpc, '/context on')).toEqual([expect.stringMatching(/^The context manager could not start: .*tries again\.$/)])
    execFileSync('rm', [join(home.cwd, 'file')])
    expect(await command(rpc, '/context on')).toEqual([expect.stringContaining('is on')])
    await rpc.prompt('two')
    const [report] = await command(rpc, '/context')
    expect(report).toContain('cat a.txt  ')
    expect(resultsById(server.requests[2]!).get('call_a')).toBe(lines('a', 40))
  })

  test('settings that can not be used are told, and the rest of them holds', async () => {
    const { home, load } = await setUp(['fine'])
    writeFileSync(join(home.agentDir, 'context-manager.json'), '{ "perTurn": "many", "colour": 1, "enabled": true }')
    const rpc = await startRpc(load)
    await rpc.prompt('hello')
    expect(notices(rpc.events)).toEqual([
      expect.stringMatching(/context-manager\.json: "perTurn" must be a whole number of at least 1, not "many"$/),
      expect.stringMatching(/context-manager\.json: there is no setting "colour"$/),
    ])
    expect(await command(rpc, '/context')).toEqual([expect.stringContaining('Context:')])
  })
})

describe('handlers that fail on purpose leave a working Pi and one notice', () => {
  const methods = [
    'open',
    'restore',
    'resync',
    'setSystemPrompt',
    'advance',
    'checkArguments',
    'receive',
    'indexFile',
    'answerRead',
    'guardEdit',
    'indexWritten',
    'settle',
  ]

  test.each(some([...methods.map((name) => [name]), [methods.join(',')], ['close'], ['sessionSets']], 5))('%s', async (fault) => {
    const { server, home, load } = await setUp([
      calls(['read', { path: 'a.txt' }, 'call_a'], ['bash', { command: 'cat a.txt' }, 'call_b']),
      calls(['edit', { path: 'a.txt', edits: [{ oldText: 'a line 2:', newText: 'second:' }] }, 'call_e']),
      calls(['write', { path: 'b.txt', content: 'b' }, 'call_w']),
      calls(['read', { path: 'b.txt' }, 'call_r']),
      'done',
      'again',
    ])
    const text = lines('a', 40)
    put(home, 'a.txt', text)
    const rpc = await startRpc({ ...load, extension: FAULTY, env: { ...load.env, FAULT: fault } })
    await rpc.prompt('one')
    await rpc.prompt('two')
    expect(await rpc.command({ type: 'get_last_assistant_text' })).toEqual({ text: 'again' })
    expect(await rpc.close()).toEqual({ code: 0, signal: null })
    expect(rpc.events.filter((event) => event.type === 'extension_error' || event.type === 'not_json')).toEqual([])
    const results = resultsById(server.requests.at(-1)!)
    for (const id of ['call_a', 'call_b']) expect(results.get(id)!.replace(/^id=.*\n/, '')).toBe(text)
    expect(results.get('call_e')).toContain('Successfully replaced 1 block(s) in a.txt.')
    expect(results.get('call_r')).toBe('b')
    // A failure that concerns only a display, or that happens at the very end, is not a failure of the session.
    const silent = ['close', 'sessionSets'].includes(fault)
    const told = notices(rpc.events)
    if (silent) expect(told).toEqual([])
    else expect(told).toEqual([expect.stringMatching(/^The context manager (could not start|stopped): .*\w+ fails on purpose/)])
  })

  test('reports a failure that concerns one call, and the session continues', async () => {
    const { server, home, load } = await setUp([calls(['bash', { command: 'cat a.txt' }, 'call_a']), 'done', 'again'])
    put(home, 'a.txt', lines('a', 40))
    const env = { ...load.env, FAULT: 'receive', FAULT_CODE: 'INVALID_ARGUMENT' }
    const rpc = await startRpc({ ...load, extension: FAULTY, env })
    await rpc.prompt('one')
    await rpc.prompt('two')
    expect(notices(rpc.events)).toEqual([expect.stringMatching(/receive fails on purpose \(INVALID_ARGUMENT\)/)])
    const [report] = await command(rpc, '/context')
    expect(report).toContain('cat a.txt  ')
    expect(resultsById(server.requests[1]!).get('call_a')).toBe(lines('a', 40))
  })
})

test('a tool that gives one text where Pi expects a list fails as in plain Pi, and the session continues', async () => {
  const { server, home, load } = await setUp([calls(['odd', {}, 'call_odd']), calls(['bash', { command: 'cat a.txt' }, 'call_a']), 'done'])
  put(home, 'a.txt', lines('a', 40))
  const odd = join(home.cwd, 'odd.ts')
  writeFileSync(
    odd,
    `export default (pi) => pi.registerTool({ name: 'odd', label: 'odd', description: 'odd', parameters: { type: 'object', properties: {} }, execute: async () => ({ content: 'one text', details: {} }) })`,
  )
  const rpc = await startRpc({ ...load, extension: [load.extension, odd] })
  await rpc.prompt('one')
  expect(notices(rpc.events)).toEqual([])
  const results = resultsById(server.requests.at(-1)!)
  expect(results.get('call_odd')).toMatch(/is not a function|one text/)
  expect(results.get('call_a')).toBe(`${header('call_a')}\n${lines('a', 40)}`)
})

test('a file that changed under the model: an edit beside the change is made and shows it, one that meets it is refused once', async () => {
  const edit = (oldText: string, id: string) => calls(['edit', { path: 'a.txt', edits: [{ oldText, newText: 'mine' }] }, id])
  const bash = (command: string, id: string) => calls(['bash', { command }, id])
  const write = (id: string) => calls(['write', { path: 'a.txt', content: 'all mine' }, id])
  const answers = [
    calls(['read', { path: 'a.txt' }, 'call_read']),
    bash("printf 'theirs\\n' | cat - a.txt > b.txt; mv b.txt a.txt", 'call_insert'),
    edit('a line 2:', 'call_beside'),
    bash("sed 's/a line 9:/their line 9:/' a.txt > b.txt; mv b.txt a.txt", 'call_change'),
    edit('a line 9:', 'call_conflict'),
    edit('their line 9:', 'call_late'),
    bash("sed 's/a line 12:/their line 12:/' a.txt > b.txt; mv b.txt a.txt", 'call_again'),
    write('call_blind'),
    write('call_write'),
  ]
  const { server, home, load } = await setUp((_request, n) => answers[n] ?? 'done')
  put(home, 'a.txt', lines('a', 40))
  const run = await runPrint({ ...load, prompts: ['go'] })
  expect(run).toMatchObject({ exitCode: 0, stderr: '' })
  const results = resultsById(server.requests[answers.length]!)
  expect(results.get('call_beside')).toContain('Successfully replaced')
  expect(results.get('call_beside')).toContain('+theirs')
  expect(results.get('call_conflict')).toContain('has changed since you last saw it')
  expect(results.get('call_conflict')).toContain('+their line 9:')
  expect(results.get('call_late')).toContain('Successfully replaced')
  expect(results.get('call_blind')).toContain('+their line 12:')
  expect(results.get('call_write')).toContain('Successfully wrote')
})

test('a read of a still visible text says where it is; after a change it shows the change', async () => {
  const { server, home, load } = await setUp((_request, n) => {
    if (n === 0) return calls(['read', { path: 'a.txt' }, 'call_first'])
    if (n === 1) return calls(['read', { path: 'a.txt' }, 'call_second'])
    if (n === 2) return calls(['read', { path: 'a.txt' }, 'call_third'])
    return 'done'
  })
  const text = lines('a', 40)
  put(home, 'a.txt', text)
  const run = await runPrint({ ...load, prompts: ['go'] })
  expect(run).toMatchObject({ exitCode: 0, stderr: '' })
  const results = resultsById(server.requests[3]!)
  expect(results.get('call_first')).toBe(`${header('call_first')}\n${text}`)
  expect(results.get('call_second')).toContain(`id=${handle('call_first')}`)
  expect(results.get('call_second')!.length).toBeLessThan(text.length / 4)
  expect(results.get('call_third')).toBe(`${header('call_third')}\n${text}`)
})
