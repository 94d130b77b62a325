/**
 * The package that npm would publish, installed into an empty folder without a Rust toolchain and without the network: it loads, Pi
 * runs with it, and so do the plain loop and the MCP server as docs/hosts.md configures it.
 */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { execFile } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { findRuntime } from '../../pi-runtime/index.mjs'
import { installHere } from '../../scripts/release/install.mjs'
import { folder, opened, sqlite, write } from '../core/setup.ts'
import { cleanUp, onCleanUp } from '../../rig/cleanup.ts'
import { startModelServer } from '../../rig/model-server.ts'
import { createPiHome } from '../../rig/pi.ts'
import { calls } from '../../rig/reply.ts'
import { READS_A, startPlainServer } from './plain-server.ts'
import { output } from './script.ts'

const execute = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))
/** All tests run in one installation, so it is not one of the folders that go after each test. */
const place = realpathSync(mkdtempSync(join(tmpdir(), 'packed-')))
let project = ''

beforeAll(async () => {
  project = await installHere(place)
}, 180_000)
afterEach(cleanUp)
afterAll(() => rmSync(place, { recursive: true, force: true }))

/** Runs a program without input: one that waits for it would wait for ever. */
function run(file: string, args: string[], options: { cwd: string; env?: Record<string, string> }) {
  const running = execute(file, args, { ...options, encoding: 'utf8' })
  running.child.stdin?.end()
  return running
}

test('the packed packages load without cargo and run in Pi', async () => {
  const main = join(project, 'node_modules', 'pi-context-manager')
  expect(existsSync(join(main, 'crates'))).toBe(false)
  expect(readdirSync(main).filter((name) => name.endsWith('.node'))).toEqual([])

  const script = `
    import { ContextManager, defaultStorePath } from 'pi-context-manager'
    import { ContextManager as Outputs } from 'pi-context-manager/storage'
    const manager = await ContextManager.open({ sessionId: 's', cwd: '/', store: { kind: 'memory' }, watch: false })
    const id = await manager.recordToolcall({ id: 'c', tool: 'bash', args: {}, content: 'out', status: 'ok' })
    console.log(id, (await manager.get(id)).content, typeof defaultStorePath(), Outputs.hashQuery('q').length)
    await manager.close()`
  writeFileSync(join(project, 'try.mjs'), script)
  const { stdout } = await run(process.execPath, ['try.mjs'], { cwd: project })
  expect(stdout.trim()).toBe('c out string 12')

  const server = await startModelServer([calls(['read', { path: 'a.txt' }]), 'done'])
  const home = createPiHome({ server })
  writeFileSync(join(home.cwd, 'a.txt'), 'a line of the file\n'.repeat(40))
  const [file = '', ...first] = findRuntime().command
  const pi = (...args: string[]) => run(file, [...first, ...args], { cwd: home.cwd, env: home.env })
  await pi('install', main)
  const settings = JSON.parse(readFileSync(join(home.agentDir, 'settings.json'), 'utf8')) as { packages?: unknown[] }
  expect(settings.packages).toHaveLength(1)
  expect((await pi('-p', 'Read the file.')).stdout.trim()).toBe('done')
  server.check()

  const request = server.agentRequests[1]
  const results = request?.messages.filter((message) => message.role === 'tool') ?? []
  expect(JSON.stringify(results)).toMatch(/id=[0-9a-f]{8}\\na line/)
  expect(request?.tools).toContain('read')
  expect(existsSync(join(home.home, '.local', 'share', 'pi-context-manager', 'context.db'))).toBe(true)
})

test('messages.mjs', async () => {
  copyFileSync(join(project, 'node_modules/pi-context-manager/examples/messages.mjs'), join(project, 'messages.mjs'))
  writeFileSync(join(project, 'a.txt'), output('a'))
  const { url, requests } = await startPlainServer(READS_A)
  const { stdout, stderr } = await run(process.execPath, ['messages.mjs', 'Read a.txt'], {
    cwd: project,
    env: { PATH: process.env['PATH'] ?? '', HOME: project, OPENAI_BASE_URL: url, OPENAI_API_KEY: 'none', MODEL: 'scripted' },
  })
  expect(stdout.trim()).toBe('a.txt has 40 lines')
  expect(stderr).toBe('')
  expect(requests[1]!.messages.at(-1)!.content).toBe(output('a'))
})

test('the MCP server, as docs/hosts.md configures it for Claude Code', async () => {
  const [store, cwd] = [sqlite(), folder()]
  const manager = await opened({ cwd, store, sessionId: 'mine' })
  await manager.appendTurn({ role: 'user', content: 'look' })
  await manager.recordToolcall({ id: 'call_mine', tool: 'bash', args: {}, content: 'needle one', status: 'ok' })
  await manager.indexFile(write(cwd, 'in.txt', 'needle inside\n'))
  await manager.close()
  // The SDK is a separate package, which the client's user installs beside ours.
  mkdirSync(join(project, 'node_modules/@modelcontextprotocol'), { recursive: true })
  symlinkSync(realpathSync(join(root, 'node_modules/@modelcontextprotocol/sdk')), join(project, 'node_modules/@modelcontextprotocol/sdk'))
  const page = readFileSync(join(root, 'docs/hosts.md'), 'utf8')
  const text = /^## MCP\n```json\n([^]*?)```/m.exec(page)![1]!
  // The person's own session, folder and store stand in place of the page's.
  const { mcpServers } = JSON.parse(text.replace('review-42', 'mine').replace('/home/me/project', cwd)) as {
    mcpServers: Record<string, { command: string; args: string[] }>
  }
  const { command, args } = Object.values(mcpServers)[0]!
  const transport = new StdioClientTransport({
    command,
    args: [...args, '--store', store.path],
    cwd: project,
    // The installed files are enough: nothing is fetched.
    env: { PATH: process.env['PATH'] ?? '', HOME: project, npm_config_offline: 'true', npm_config_update_notifier: 'false' },
    stderr: 'pipe',
  })
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(transport)
  onCleanUp(() => client.close())
  const { tools } = await client.listTools()
  expect(tools.map(({ name }) => name)).toEqual(['sessions', 'search', 'show', 'log'])
  const ask = async (name: string, input: Record<string, unknown>) =>
    ((await client.callTool({ name, arguments: input })) as { content: { text: string }[] }).content.map((one) => one.text).join('\n')
  expect(await ask('show', { id: 'call_mine' })).toBe('needle one')
  expect((await ask('search', { query: 'inside' })).split('\n')).toEqual([expect.stringContaining('in.txt')])
})
