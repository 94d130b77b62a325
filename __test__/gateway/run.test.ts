/** The command `run` with small programs, and the MCP server with the SDK's own client. */
import { execFile } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { afterEach, describe, expect, test } from 'vitest'
import { lastingSecret } from '../../lib/cli/secret.ts'
import { programOf } from '../../lib/gateway/programs.ts'
import { folder } from '../core/setup.ts'
import { cleanUp, onCleanUp } from '../../rig/cleanup.ts'
import { startModelServer } from '../../rig/model-server.ts'
import { long, looping, referencesIn } from './support.ts'

afterEach(cleanUp)

const START = fileURLToPath(new URL('../../dist/cli/start.js', import.meta.url))

interface Ended {
  code: number
  stdout: string
  stderr: string
}

function run(args: string[], env: Record<string, string> = {}): Promise<Ended> {
  const home = folder()
  return new Promise((resolve) => {
    const options = { cwd: home, env: { PATH: process.env['PATH'] ?? '', HOME: home, ...env } }
    execFile(process.execPath, [START, 'run', '--store', join(home, 'context.db'), ...args], options, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    )
  })
}

const program = (script: string): string[] => ['--', process.execPath, '-e', script]

describe('run', () => {
  test('program has its own addresses, arguments and exit code', async () => {
    const script = 'console.log(JSON.stringify([process.env.ANTHROPIC_BASE_URL, process.env.OPENAI_BASE_URL, process.argv.slice(1)])); process.exit(7)'
    const { code, stdout } = await run([...program(script), 'a b', '--help'])
    const [anthropic, openai, args] = JSON.parse(stdout) as [string, string, string[]]
    expect(code).toBe(7)
    expect(anthropic).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/[\w-]{16}\/anthropic$/)
    expect(openai).toBe(anthropic.replace(/anthropic$/, 'openai'))
    expect(args).toEqual(['a b', '--help'])
  })

  test('base URL that was set before is where requests go', async () => {
    const server = await startModelServer(() => 'hello')
    const script = `fetch(process.env.OPENAI_BASE_URL + '/chat/completions', { method: 'POST', body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x' }] }) }).then((got) => got.text()).then((text) => console.log(text.includes('hello')))`
    const { stdout } = await run(program(script), { OPENAI_BASE_URL: `${server.url}/v1` })
    expect(stdout.trim()).toBe('true')
    expect(server.requests[0]!.path).toBe('/v1/chat/completions')
  })

  test('program that a signal ends gives its number, and one that does not exist 127', async () => {
    expect((await run(program('process.kill(process.pid, "SIGTERM"); setTimeout(() => {}, 60000)'))).code).toBe(143)
    const missing = await run(['--', 'no-such-program-here'])
    expect(missing.code).toBe(127)
    expect(missing.stderr).toContain('there is no such program')
    expect((await run([])).code).toBe(2)
  })

  test('temporary files that a process of the program still writes change neither its exit code nor what is told', async () => {
    // Writes beside the status file until this test is over, or its folder is gone.
    const writer = `const { existsSync, writeFileSync } = require('node:fs'); const [folder, stop] = process.argv.slice(1); console.log('writes'); try { for (let n = 0; !existsSync(stop) && n < 1e6; n += 1) writeFileSync(folder + '/' + n, '') } catch {}`
    const stop = join(folder(), 'stop')
    onCleanUp(() => writeFileSync(stop, ''))
    const script = `const { spawn } = require('node:child_process'); const child = spawn(process.execPath, ['-e', process.argv[1], require('node:path').dirname(process.env.PI_CONTEXT_STATUS), process.argv[2]], { detached: true, stdio: ['ignore', 'pipe', 'ignore'] }); child.stdout.once('data', () => process.exit(7))`
    const { code, stderr } = await run([...program(script), writer, stop])
    expect(code).toBe(7)
    const lines = stderr.split('\n').filter((line) => line !== '' && !line.includes('is left: ENOTEMPTY'))
    expect(lines).toEqual([expect.stringContaining('nothing collapses')])
  })

  test('program runs without a gateway if the store can not be opened', async () => {
    const server = await startModelServer(() => 'hello')
    const home = folder()
    writeFileSync(join(home, 'file'), '')
    const script = `fetch(process.env.OPENAI_BASE_URL + '/chat/completions', { method: 'POST', body: JSON.stringify({ model: 'm', tools: [{ type: 'function', function: { name: 'activate' } }], messages: [{ role: 'user', content: 'x' }] }) }).then((got) => got.text()).then((text) => console.log(text.includes('hello')))`
    const { stdout, stderr, code } = await run(['--store', join(home, 'file', 'context.db'), ...program(script)], { OPENAI_BASE_URL: `${server.url}/v1` })
    expect([code, stdout.trim()]).toEqual([0, 'true'])
    expect(stderr.split('went out without new edits').length).toBe(2)
  })

  // Gemini CLI takes no settings from below a folder such as /tmp.
  test.each<[where: string, folders: string[], env: Record<string, string>, expected: string]>([
    ['a new home', [], {}, '.local/share/pi-context-manager/'],
    ['a home with a cache', ['.cache'], {}, '.cache/'],
    ['a session of the system', ['.cache', 'run'], { XDG_RUNTIME_DIR: 'run' }, 'run/'],
    ['a session whose folder is gone', [], { XDG_RUNTIME_DIR: 'gone' }, '.local/share/pi-context-manager/'],
  ])('the files of a program lie below a folder of its user alone, in %s', async (_where, folders, env, expected) => {
    const home = folder()
    for (const name of folders) mkdirSync(join(home, name))
    mkdirSync(join(home, 'bin'))
    writeFileSync(join(home, 'bin', 'gemini'), '#!/bin/sh\nprintf %s "$GEMINI_CLI_SYSTEM_SETTINGS_PATH"\n', { mode: 0o755 })
    const variables = Object.fromEntries(Object.entries(env).map(([name, value]) => [name, join(home, value)]))
    const { stdout } = await run(['--', 'gemini'], { HOME: home, PATH: `${join(home, 'bin')}:${process.env['PATH']}`, XDG_DATA_HOME: '', ...variables })
    expect(stdout).toMatch(new RegExp(`^${join(home, expected)}/?pi-context-\\w{6}/settings\\.json$`))
    expect(existsSync(dirname(stdout))).toBe(false)
  })

  test.each([[], ['--print']])('%s a base URL without http:// starts nothing', async (...options) => {
    const { code, stdout, stderr } = await run([...options, ...program('console.log("started")')], { ANTHROPIC_BASE_URL: 'localhost:45037' })
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toBe(
      'pi-context-manager: ANTHROPIC_BASE_URL is "localhost:45037", and an address begins with http:// or https://; write http://localhost:45037\n',
    )
  })

  test('--print shows the settings, and starts nothing', async () => {
    const { stdout, code } = await run(['--print', '--', 'claude', '-p', "it's"])
    expect(code).toBe(0)
    expect(stdout).toContain('export ANTHROPIC_BASE_URL=http://127.0.0.1:PORT/TOKEN/anthropic')
    expect(stdout).toContain(`-p 'it'\\''s'`)
  })
})

describe('the secret of the gateway that runs alone', () => {
  test('stays the same, and is the same for two that start at once', () => {
    const path = join(folder(), 'new', 'gateway.secret')
    const secret = lastingSecret(path)
    expect(secret).toMatch(/^[\w-]{24}$/)
    expect(lastingSecret(path)).toBe(secret)
    expect(statSync(path).mode & 0o777).toBe(0o600)
  })

  test('a damaged file is replaced, and one that others can read is closed to them', () => {
    const path = join(folder(), 'gateway.secret')
    writeFileSync(path, 'short', { mode: 0o644 })
    const secret = lastingSecret(path)
    expect(readFileSync(path, 'utf8')).toBe(secret)
    chmodSync(path, 0o644)
    expect(lastingSecret(path)).toBe(secret)
    expect(statSync(path).mode & 0o777).toBe(0o600)
  })
})

describe('programs', () => {
  const gateway = { url: 'http://127.0.0.1:1/T', mcpUrl: 'http://127.0.0.1:1/T/_context/mcp', secret: 'S' }
  const launch = (command: string, args: string[], env: Record<string, string> = {}, cwd = folder()) => {
    const found = programOf(command, args, { cwd, env: { HOME: cwd, ...env } })
    return { ...found, ...found.launch(gateway, '/tmp/F') }
  }

  test('Claude Code: settings that name a base URL are overridden, and their URL is upstream', () => {
    const home = folder()
    const plain = launch('/usr/bin/claude', ['-p', 'x'], {}, home)
    expect(plain).toMatchObject({ host: 'claude-code', upstreams: {}, env: { ANTHROPIC_BASE_URL: 'http://127.0.0.1:1/T/anthropic' } })
    expect(plain.args.slice(-2)).toEqual(['-p', 'x'])
    expect(plain.args.join(' ')).not.toContain('S')
    const config = folder()
    writeFileSync(join(config, 'settings.json'), '{"env":{"ANTHROPIC_BASE_URL":"https://corp.example"}}')
    const settled = launch('claude', [], { CLAUDE_CONFIG_DIR: config })
    expect(settled.upstreams).toEqual({ anthropic: 'https://corp.example' })
    expect(settled.args).toContain('--settings={"env":{"ANTHROPIC_BASE_URL":"http://127.0.0.1:1/T/anthropic"}}')
    expect(launch('claude', ['update']).args).toEqual(['update'])
    for (const on of ['1', 'true']) expect(launch('claude', [], { CLAUDE_CODE_USE_BEDROCK: on }).notes).toEqual([expect.stringContaining('past the gateway')])
    for (const off of ['0', 'false', '']) expect(launch('claude', [], { CLAUDE_CODE_USE_BEDROCK: off }).notes).toEqual([])
    writeFileSync(join(config, 'settings.json'), '{"env":{"CLAUDE_CODE_USE_VERTEX":"1"}}')
    expect(launch('claude', [], { CLAUDE_CONFIG_DIR: config, CLAUDE_CODE_USE_VERTEX: '0' }).notes).toEqual([expect.stringContaining('CLAUDE_CODE_USE_VERTEX')])
  })

  test.each([
    ['https://api.anthropic.com', false],
    ['https://eu.api.anthropic.com/v1', false],
    ['', false],
    ['http://127.0.0.1:9931', true],
    ['https://anthropic.com.example', true],
    ['https://notanthropic.com', true],
  ])('Claude Code at %j: the line that changes with each request is off: %j', (address, isOff) => {
    const { env, notes } = launch('claude', [], { ANTHROPIC_BASE_URL: address })
    expect(env['CLAUDE_CODE_ATTRIBUTION_HEADER']).toBe(isOff ? '0' : undefined)
    expect(notes).toEqual(isOff ? [expect.stringMatching(/^CLAUDE_CODE_ATTRIBUTION_HEADER=0 is set/)] : [])
  })

  test("Claude Code: the user's own choice of that line stays", () => {
    const local = { ANTHROPIC_BASE_URL: 'http://127.0.0.1:9931' }
    expect(launch('claude', [], { ...local, CLAUDE_CODE_ATTRIBUTION_HEADER: '1' })).toMatchObject({
      env: { ANTHROPIC_BASE_URL: `${gateway.url}/anthropic` },
      notes: [],
    })
    const config = folder()
    writeFileSync(join(config, 'settings.json'), '{"env":{"CLAUDE_CODE_ATTRIBUTION_HEADER":"1"}}')
    expect(launch('claude', [], { ...local, CLAUDE_CONFIG_DIR: config }).env['CLAUDE_CODE_ATTRIBUTION_HEADER']).toBeUndefined()
  })

  test('Claude Code with Foundry is led through where its address is named', () => {
    const foundry = { CLAUDE_CODE_USE_FOUNDRY: '1' }
    expect(launch('claude', [], foundry)).toMatchObject({ notes: [expect.stringContaining('past the gateway')] })
    const led = launch('claude', [], { ...foundry, ANTHROPIC_FOUNDRY_BASE_URL: 'https://x.services.example/anthropic' })
    expect([led.env, led.notes]).toEqual([{ ANTHROPIC_FOUNDRY_BASE_URL: `${gateway.url}/https://x.services.example/anthropic` }, []])
  })

  test('no program asks a proxy for the gateway', () => {
    expect(launch('claude', [], { HTTPS_PROXY: 'http://p:1' }).env['NO_PROXY']).toBeUndefined()
    for (const name of ['http_proxy', 'HTTP_PROXY', 'ALL_PROXY']) {
      const { env } = launch('codex', [], { [name]: 'http://p:1', NO_PROXY: 'corp.example' })
      expect([env['NO_PROXY'], env['no_proxy']]).toEqual(['corp.example,127.0.0.1,localhost', 'corp.example,127.0.0.1,localhost'])
    }
  })

  test('Codex: the provider that its configuration chooses is overridden', () => {
    expect(launch('codex', ['exec', 'x']).args.slice(0, 2)).toEqual(['-c', 'openai_base_url="http://127.0.0.1:1/T/openai"'])
    const home = folder()
    writeFileSync(join(home, 'config.toml'), '# c\nmodel_provider = "corp"\n[model_providers.corp]\nname = "x"\nbase_url = "https://corp.example/v1" # y\n')
    expect(launch('codex', ['exec'], { CODEX_HOME: home }).args).toContain('model_providers.corp.base_url="http://127.0.0.1:1/T/https://corp.example/v1"')
  })

  test('variables of two names lead each to its own address', () => {
    const { env } = launch('aider', [], { OPENAI_BASE_URL: 'https://one.example/v1', OPENAI_API_BASE: 'https://two.example/v1' })
    expect(env).toMatchObject({ OPENAI_BASE_URL: `${gateway.url}/https://one.example/v1`, OPENAI_API_BASE: `${gateway.url}/https://two.example/v1` })
    const old = launch('aider', [], { OPENAI_BASE_URL: '', OPENAI_API_BASE: 'https://two.example/v1' })
    expect(old.env['OPENAI_BASE_URL']).toBe(`${gateway.url}/https://two.example/v1`)
  })

  test('a launcher is looked through', () => {
    expect(launch('npx', ['@openai/codex', 'exec']).args[0]).toBe('@openai/codex')
    expect(launch('node', ['/x/@qwen-code/qwen-code/cli.js', '-p', 'x'])).toMatchObject({
      host: 'qwen-code',
      args: ['/x/@qwen-code/qwen-code/cli.js', '-p', 'x'],
    })
    expect(launch('aider', ['x']).host).toBe('agent')
  })
})

test('MCP client of the SDK finds the tools and brings an output back', async () => {
  const { server, gateway, loop } = await looping()
  for (let n = 0; n < 20; n += 1) await loop.call('Bash', { command: `cat n${n}` }, long(`n${n}`))
  const [id] = referencesIn(server.requests.at(-1)!)
  const client = new Client({ name: 'test', version: '1' })
  onCleanUp(() => client.close())
  await client.connect(
    new StreamableHTTPClientTransport(new URL(gateway.mcpUrl), { requestInit: { headers: { authorization: `Bearer ${gateway.secret}` } } }) as never,
  )
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['activate', 'search'])
  const got = (await client.callTool({ name: 'activate', arguments: { id } })) as { content: { text: string }[] }
  const name = /^(n\d+) /.exec(got.content[0]!.text)?.[1]
  expect(got.content[0]!.text).toBe(long(name!))
  const hits = (await client.callTool({ name: 'search', arguments: { query: '"n3 line 7"' } })) as { content: { text: string }[] }
  expect(hits.content[0]!.text).toContain('n3 line')
  const none = (await client.callTool({ name: 'activate', arguments: {} })) as { content: { text: string }[] }
  expect(none.content[0]!.text).toContain('pass the id')
})
