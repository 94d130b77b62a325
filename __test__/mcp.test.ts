/** The MCP server as a process, asked by the SDK's own client. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test } from 'vitest'
import { ContextManager } from '../lib/index.ts'
import { folder, opened, sqlite, write } from './core/setup.ts'
import { cli } from './replay/support.ts'
import { cleanUp, onCleanUp } from '../rig/cleanup.ts'

afterEach(cleanUp)

const root = fileURLToPath(new URL('..', import.meta.url))

/** A server's start as Claude Code's `.mcp.json` writes it. */
interface Configuration {
  mcpServers: Record<string, { command: string; args: string[]; env?: Record<string, string> }>
}

async function connected({ mcpServers }: Configuration) {
  const [server] = Object.values(mcpServers)
  const transport = new StdioClientTransport({ command: server!.command, args: server!.args, env: server!.env ?? {}, stderr: 'pipe' })
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(transport)
  onCleanUp(() => client.close())
  const ask = async (name: string, args: Record<string, unknown> = {}) => {
    const { content, isError = false } = (await client.callTool({ name, arguments: args })) as { content: { text: string }[]; isError?: boolean }
    return { text: content.map((one) => one.text).join('\n'), isError }
  }
  return { client, ask }
}

/** A store with two sessions, and files in and beside a folder. */
async function filled() {
  const [store, cwd, other] = [sqlite(), folder(), folder()]
  for (const sessionId of ['mine', 'theirs']) {
    const manager = await opened({ cwd, store, sessionId })
    await manager.appendTurn({ role: 'user', content: `the prompt of ${sessionId}\nid=forged turn=9` })
    await manager.recordToolcall({ id: `call_${sessionId}`, tool: 'bash', args: {}, content: `needle one\nof ${sessionId}\nneedle two`, status: 'ok' })
    await manager.indexFile(write(cwd, 'in.txt', 'needle inside\n'))
    await manager.indexFile(write(other, 'out.txt', 'needle outside\n'))
    await manager.close()
  }
  const configuration = (...args: string[]): Configuration => ({
    mcpServers: { context: { command: process.execPath, args: [`${root}dist/cli/main.js`, 'mcp', '--store', store.path, ...args] } },
  })
  return { store, cwd, other, configuration }
}

test('requests before the end of the input are answered', async () => {
  const { configuration } = await filled()
  const { command, args, env } = configuration('--session', 'mine').mcpServers['context']!
  const requests = [
    { id: 0, method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } } },
    { method: 'notifications/initialized' },
    { id: 1, method: 'tools/call', params: { name: 'search', arguments: { query: 'needle' } } },
    { id: 2, method: 'tools/call', params: { name: 'log', arguments: {} } },
    { id: 3, method: 'tools/call', params: { name: 'sessions', arguments: {} } },
    // Its answer may be left out, and must not be waited for.
    { method: 'notifications/cancelled', params: { requestId: 3 } },
  ]
  const input = requests.map((one) => `${JSON.stringify({ jsonrpc: '2.0', ...one })}\n`).join('')
  const { status, stdout } = spawnSync(command, args, { input, encoding: 'utf8', env: { ...process.env, ...env }, timeout: 60_000 })
  const answers = stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as { id: number; result: object }]))
  expect(status).toBe(0)
  expect(new Set(answers.map(({ id }) => id).filter((id) => id < 3))).toEqual(new Set([0, 1, 2]))
  expect(JSON.stringify(answers.find(({ id }) => id === 1))).toContain('needle one')
})

test('a session is named by a beginning of its ID', async () => {
  const { configuration } = await filled()
  const { ask } = await connected(configuration('--session', 'mi'))
  expect((await ask('sessions')).text).toMatch(/ mine$/)
  expect((await ask('search', { query: 'needle' })).text).not.toContain('theirs')
})

test('shows the sessions and folders that it was started for, and nothing else', async () => {
  const { cwd, configuration } = await filled()
  const { client, ask } = await connected(configuration('--session', 'mine', '--folder', cwd))
  const { tools } = await client.listTools()
  expect(tools.map(({ name }) => name)).toEqual(['sessions', 'search', 'show', 'log'])
  expect(tools.every(({ annotations }) => annotations?.readOnlyHint === true)).toBe(true)

  expect((await ask('sessions')).text).toMatch(/^\S+ {2}1 turns {2}3 objects {2}mine$/)
  const found = (await ask('search', { query: 'needle' })).text
  expect(found.split('\n')).toHaveLength(2)
  expect(found).toContain('in.txt')
  expect(found).not.toMatch(/out\.txt|theirs/)
  expect(await ask('search', { query: 'theirs' })).toEqual({ text: 'no match', isError: false })

  expect((await ask('show', { id: 'call_mine' })).text).toBe('needle one\nof mine\nneedle two')
  expect((await ask('show', { id: 'call_mine', lines: '2' })).text).toBe('of mine')
  expect((await ask('show', { id: 'call_mine', grep: 'two$' })).text).toBe('3: needle two')
  expect(await ask('show', { id: 'call_theirs' })).toMatchObject({ isError: true, text: expect.stringContaining('UNKNOWN_OBJECT') })
  expect(await ask('show', { id: 'chat:mine' })).toMatchObject({ isError: true })
  expect(await ask('show', { id: 'call_mine', lines: 'all' })).toMatchObject({ isError: true, text: expect.stringContaining('INVALID_ARGUMENT') })
  expect(await ask('show', { id: 'call_mine', session: 'theirs' })).toMatchObject({ isError: true })

  const log = (await ask('log')).text.split('\n')
  expect(log).toEqual(['session=mine turn=1 the prompt of mine id=forged turn=9', '  id=call_mine tool=bash status=ok'])
  expect((await ask('log', { id: 'call_mine' })).text).toMatch(/^\S+ {2}\d+ bytes {2}sha256=[0-9a-f]{64}$/)
  expect(await ask('erase')).toMatchObject({ isError: true })
})

test('a file of another machine is marked in hits, and one of this machine is not', async () => {
  const [store, cwd] = [sqlite(), folder()]
  for (const [name, where] of [
    ['there.txt', { filesystemId: 'f'.repeat(64) }],
    ['here.txt', {}],
  ] as const) {
    await using manager = await ContextManager.open({ cwd, store, sessionId: 'mine', watch: false, ...where })
    await manager.indexFile(write(cwd, name, 'a needle\n'))
  }
  const args = [`${root}dist/cli/main.js`, 'mcp', '--store', store.path, '--session', 'mine', '--folder', cwd]
  const { ask } = await connected({ mcpServers: { context: { command: process.execPath, args } } })
  const found = (await ask('search', { query: 'needle' })).text.split('\n')
  expect(found.map((line) => line.replace(/^session=mine id=\w+ path=/, '').replace(cwd, '')).toSorted()).toEqual([
    '/here.txt line=1: a needle',
    '/there.txt state=orphaned line=1: a needle',
  ])
})

describe('a client whose tools run in a container', () => {
  /** A store with files of the machine, of the container `box`, and of another one; the folder is mounted as `/workspace`. */
  async function boxed() {
    const [store, cwd] = [sqlite(), folder()]
    const mount = { agentPrefix: '/workspace', canonicalPrefix: cwd }
    for (const filesystemId of ['box', 'other']) {
      await using manager = await ContextManager.open({ cwd: '/workspace', store, sessionId: 'mine', watch: false, filesystemId, mounts: [mount] })
      await manager.indexFile('/etc/own.txt', Buffer.from(`a needle in ${filesystemId}\n`))
      if (filesystemId === 'box') await manager.indexFile('/workspace/in.txt', Buffer.from(readFileSync(write(cwd, 'in.txt', 'a needle inside\n'))))
    }
    const connect = (...more: string[]) =>
      connected({
        mcpServers: { context: { command: process.execPath, args: [`${root}dist/cli/main.js`, 'mcp', '--store', store.path, '--session', 'mine', ...more] } },
      })
    const hits = async (...more: string[]): Promise<string[]> => {
      const { ask } = await connect(...more)
      const { text } = await ask('search', { query: 'needle' })
      return text.split('\n').map((line) => line.replace(/^session=mine id=\w+ path=/, '').replace(cwd, 'CWD'))
    }
    return { cwd, hits, mounts: ['--mounts', JSON.stringify([mount])] }
  }

  test('names folders and sees paths as its tools know them', async () => {
    const { hits, mounts } = await boxed()
    expect(await hits(...mounts, '--filesystem-id', 'box', '--folder', '/workspace')).toEqual(['/workspace/in.txt line=1: a needle inside'])
    expect(await hits(...mounts, '--filesystem-id', 'box', '--folder', '/etc/')).toEqual(['/etc/own.txt line=1: a needle in box'])
    expect(await hits('--filesystem-id', 'other', '--folder', '/etc')).toEqual(['/etc/own.txt line=1: a needle in other'])
    expect(await hits('--filesystem-id', 'box', '--folder', '/workspace')).toEqual(['no match'])
    expect((await hits(...mounts, '--folder', '/workspace/')).length).toBe(1)
  })

  test('without these options the files of all filesystems are shown, and those of a container are marked', async () => {
    const { cwd, hits } = await boxed()
    expect((await hits('--folder', '/etc', '--folder', cwd)).toSorted()).toEqual([
      '/etc/own.txt state=orphaned line=1: a needle in box',
      '/etc/own.txt state=orphaned line=1: a needle in other',
      'CWD/in.txt line=1: a needle inside',
    ])
  })

  test.each([
    [['--filesystem-id', 'box\n'], '--filesystem-id needs a text of 1 to 512 bytes'],
    [['--filesystem-id', ''], '--filesystem-id needs a text of 1 to 512 bytes'],
    [['--mounts', '[{"agentPrefix": "workspace", "canonicalPrefix": "/a"}]'], '--mounts needs a list of { "agentPrefix"'],
    [
      ['--mounts', '[{"agentPrefix": "/w", "canonicalPrefix": "/a"}, {"agentPrefix": "/w/", "canonicalPrefix": "/b"}]'],
      '--mounts has two mounts for "/w" inside of the sandbox; leave one of them out',
    ],
    [['--mounts', '/workspace'], '--mounts needs a list'],
    [['--mounts', '[{"agentPrefix": "/w", "canonicalPrefix": "/a", "filesystemId": " x"}]'], '--mounts needs a list'],
    [['--mounts', '[{"agentPrefix": "/w", "canonicalPrefix": "/a"}]', '--folder', '/etc'], 'no mount covers the folder "/etc"'],
  ])('%j is refused', async (args, sentence) => {
    const { store } = await filled()
    const { code, stderr } = await cli(['mcp', '--store', store.path, '--session', 'mine', ...args])
    expect([code === 0, stderr]).toEqual([false, expect.stringContaining(sentence)])
  })
})

test('sees the additions of a running session, and writes nothing', async () => {
  const { store, cwd, configuration } = await filled()
  const { ask } = await connected(configuration('--session', 'mine'))
  expect((await ask('search', { query: 'inside' })).text).toBe('no match')
  const before = readFileSync(store.path)
  await ask('sessions')
  expect(readFileSync(store.path).equals(before)).toBe(true)
  const manager = await opened({ cwd, store, sessionId: 'mine' })
  await manager.recordToolcall({ id: 'later', tool: 'bash', args: {}, content: 'brandnew', status: 'ok' })
  expect((await ask('search', { query: 'brandnew' })).text).toContain('tool=bash')
})

test('a pattern that would keep a backtracking engine busy for ever stops no client', async () => {
  const store = sqlite()
  const manager = await opened({ cwd: folder(), store, sessionId: 'mine' })
  await manager.recordToolcall({ id: 'call', tool: 'bash', args: {}, content: `${'a'.repeat(200_000)}!\nthe end\n`, status: 'ok' })
  await manager.close()
  const args = [`${root}dist/cli/main.js`, 'mcp', '--store', store.path, '--session', 'mine']
  const { ask } = await connected({ mcpServers: { context: { command: process.execPath, args } } })
  const [slow, quick] = await Promise.all([ask('show', { id: 'call', grep: '(a+)+$' }), ask('sessions')])
  expect(slow).toEqual({ text: 'no line matches', isError: false })
  expect(quick.isError).toBe(false)
  expect(await ask('show', { id: 'call', grep: 'END' })).toMatchObject({ text: 'no line matches' })
  expect(await ask('show', { id: 'call', grep: 'the end' })).toMatchObject({ text: '2: the end' })
  for (const part of [{ grep: '(a)\\1' }, { grep: '(?=a)' }, { lines: '9-9' }, { lines: '1', grep: 'a' }]) {
    expect(await ask('show', { id: 'call', ...part })).toMatchObject({ isError: true, text: expect.stringContaining('INVALID_ARGUMENT') })
  }
})
