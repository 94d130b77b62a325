/** The starts of Kilo, OpenCode, the Copilot CLI, Cline and Gemini CLI by `run`: the configuration that it reads, and the settings that it adds. */
import { afterEach, describe, expect, test } from 'vitest'
import type { Launch } from '../../lib/gateway/program-settings.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { gateway, launch } from './launched.ts'

afterEach(cleanUp)

describe.each([
  ['opencode', 'opencode', 'OPENCODE'],
  ['kilo', 'kilo', 'KILO'],
  ['kilocode', 'kilo', 'KILO'],
  ['/usr/lib/node_modules/@kilocode/cli/bin/kilo', 'kilo', 'KILO'],
])('%s', (command, name, variables) => {
  const config = (base: string): string =>
    `{\n  // a comment with "quotes" and {braces\n  "provider": { "corp": { "options": { "baseURL": "${base}", }, }, }, /* the end */\n}`
  const basesOf = ({ env }: Launch): Record<string, string> =>
    Object.fromEntries(
      Object.entries(JSON.parse(env[`${variables}_CONFIG_CONTENT`]!).provider as Record<string, { options: { baseURL: string } }>).map(([key, { options }]) => [
        key,
        options.baseURL,
      ]),
    )

  test.each([
    ['the home', `.config/${name}/${name}.jsonc`, {}],
    ['the project', `a/b/${name}.json`, {}],
    ['a folder above the project', `a/${name}.jsonc`, {}],
    ["the project's own folder", `a/b/.${name}/${name}.jsonc`, {}],
    ['OpenCode, which Kilo reads too', 'a/b/opencode.json', {}],
    ['a named file', 'x.json', { [`${variables}_CONFIG`]: 'HOME/x.json' }],
    ['a named folder', `x/${name}.json`, { [`${variables}_CONFIG_DIR`]: 'HOME/x' }],
    ["the user's own variable", 'none', { [`${variables}_CONFIG_CONTENT`]: '{"provider":{"corp":{"options":{"baseURL":"https://corp.example/v1"}}}}' }],
  ])('an address in the configuration of %s leads through the gateway', (_, file, env) => {
    const found = launch(command, { [file]: config('https://corp.example/v1') }, env as Record<string, string>)
    expect(found.host).toBe(name)
    expect(basesOf(found)).toEqual({
      anthropic: `${gateway.url}/anthropic/v1`,
      openai: `${gateway.url}/openai`,
      corp: `${gateway.url}/https://corp.example/v1`,
    })
  })

  test('the configuration nearer to the project wins, and other fields of the variable stay', () => {
    const given = '{"model":"m","mcp":{"own":{"type":"local"}},"provider":{"anthropic":{"options":{"apiKey":"k"}}}}'
    const found = launch(
      command,
      { [`.config/${name}/${name}.json`]: config('https://far.example'), [`a/b/${name}.json`]: config('https://near.example') },
      { [`${variables}_CONFIG_CONTENT`]: given },
    )
    expect(basesOf(found)['corp']).toBe(`${gateway.url}/https://near.example`)
    const { model, mcp, provider } = JSON.parse(found.env[`${variables}_CONFIG_CONTENT`]!) as { model: string; mcp: object; provider: { anthropic: object } }
    expect([model, Object.keys(mcp), provider.anthropic]).toEqual([
      'm',
      ['own', 'context'],
      { options: { apiKey: 'k', baseURL: `${gateway.url}/anthropic/v1` } },
    ])
  })

  test('its usual providers go where variables say, and where a file says if it names one', () => {
    const env = { ANTHROPIC_BASE_URL: 'http://127.0.0.1:3456/v1', OPENAI_BASE_URL: 'https://corp.example/v1' }
    const led = { anthropic: `${gateway.url}/http://127.0.0.1:3456/v1`, openai: `${gateway.url}/https://corp.example/v1` }
    expect(basesOf(launch(command, {}, env))).toEqual(led)
    const file = '{"provider":{"openai":{"options":{"baseURL":"https://near.example"}}}}'
    expect(basesOf(launch(command, { [`a/b/${name}.json`]: file }, env))).toEqual({ ...led, openai: `${gateway.url}/https://near.example` })
    const usual = launch(command, {}, { ANTHROPIC_BASE_URL: 'https://api.anthropic.com/', OPENAI_BASE_URL: '' })
    expect(basesOf(usual)).toEqual({ anthropic: `${gateway.url}/anthropic/v1`, openai: `${gateway.url}/openai` })
  })

  test('a damaged file and an address that names a variable are left out', () => {
    const files = { [`a/b/${name}.json`]: '{"provider":', [`a/${name}.json`]: config('{env:BASE}') }
    expect(Object.keys(basesOf(launch(command, files)))).toEqual(['anthropic', 'openai'])
  })
})

describe('the Copilot CLI', () => {
  const OWN = { COPILOT_PROVIDER_BASE_URL: 'https://corp.example/v1' }

  test('a provider of the user leads through the gateway', () => {
    const found = launch('copilot -p x', {}, OWN)
    expect(found).toMatchObject({ host: 'copilot', env: { COPILOT_PROVIDER_BASE_URL: `${gateway.url}/https://corp.example/v1` }, notes: [] })
    expect(found.args).toEqual(['--additional-mcp-config=@/tmp/F/mcp.json', '--allow-tool=context(activate)', '--allow-tool=context(search)', '-p', 'x'])
    expect(JSON.parse(found.files['mcp.json']!)).toEqual({
      mcpServers: { context: { type: 'http', url: gateway.mcpUrl, headers: { Authorization: 'Bearer S' }, tools: ['*'] } },
    })
    expect(launch('npx @github/copilot -p x', {}, OWN)).toMatchObject({ host: 'copilot', args: expect.arrayContaining(['@github/copilot', '-p']) as string[] })
  })

  test.each(['', 'unset'])('with the address %j, requests go to GitHub, and one note says so', (base) => {
    const found = launch('copilot -p x', {}, base === '' ? { COPILOT_PROVIDER_BASE_URL: '' } : {})
    expect(found).toMatchObject({ args: ['-p', 'x'], env: {}, files: {}, notes: [expect.stringContaining('past the gateway')] })
  })

  test('a command without a conversation, WebSockets, a proxy for HTTPS', () => {
    expect(launch('copilot mcp list', {}, OWN)).toMatchObject({ args: ['mcp', 'list'], env: {}, notes: [] })
    const { env } = launch('copilot', {}, { ...OWN, COPILOT_PROVIDER_TRANSPORT: 'websockets', HTTPS_PROXY: 'http://p:1', NO_PROXY: 'corp' })
    expect([env['COPILOT_PROVIDER_TRANSPORT'], env['NO_PROXY'], env['no_proxy']]).toEqual(['http', 'corp,127.0.0.1,localhost', 'corp,127.0.0.1,localhost'])
  })
})

describe('Cline', () => {
  const entry = (settings: object): object => ({ settings: { provider: 'p', model: 'm', ...settings }, updatedAt: 'then', tokenSource: 'manual' })
  const PROVIDERS = {
    version: 1,
    lastUsedProvider: 'openai-compatible',
    providers: {
      'openai-compatible': entry({ apiKey: 'k', baseUrl: 'https://corp.example/v1' }),
      anthropic: entry({ apiKey: 'k' }),
      'openai-native': entry({ apiKey: 'k' }),
      cline: entry({ auth: { refreshToken: 'r' }, baseUrl: 'https://api.example' }),
      zai: entry({ apiKey: 'k' }),
    },
  }
  const file = (used = PROVIDERS.lastUsedProvider): string => JSON.stringify({ ...PROVIDERS, lastUsedProvider: used })
  const USUAL = '.cline/data/settings/providers.json'

  test.each([
    ['cline x', USUAL, {}],
    ['cline x', 'c/data/settings/providers.json', { CLINE_DIR: 'HOME/c' }],
    ['cline x', 'd/settings/providers.json', { CLINE_DATA_DIR: 'HOME/d' }],
    ['cline x', 'p.json', { CLINE_PROVIDER_SETTINGS_PATH: 'HOME/p.json' }],
  ])('%s with %s: addresses in the copy lead through the gateway', (command, path, env) => {
    const found = launch(command, { [path]: file() }, env as Record<string, string>)
    expect(found).toMatchObject({
      host: 'cline',
      args: ['x'],
      env: { CLINE_PROVIDER_SETTINGS_PATH: '/tmp/F/providers.json', CLINE_MCP_SETTINGS_PATH: '/tmp/F/mcp.json', CLINE_SESSION_BACKEND_MODE: 'local' },
    })
    const { providers, ...rest } = JSON.parse(found.files['providers.json']!) as {
      providers: Record<string, { settings: { baseUrl?: string; apiKey?: string } }>
    }
    expect(rest).toEqual({ version: 1, lastUsedProvider: 'openai-compatible' })
    const bases = Object.fromEntries(Object.entries(providers).map(([name, { settings }]) => [name, settings.baseUrl]))
    expect(bases).toEqual({
      'openai-compatible': `${gateway.url}/https://corp.example/v1`,
      anthropic: `${gateway.url}/anthropic/v1`,
      'openai-native': `${gateway.url}/openai`,
      cline: 'https://api.example',
      zai: undefined,
    })
    expect(providers['anthropic']!.settings.apiKey).toBe('k')
  })

  test('MCP servers of the user stay, and ours is added', () => {
    const own = '{"mcpServers":{"mine":{"command":"x"}}}'
    const found = launch('cline x', { [USUAL]: file(), '.cline/data/settings/cline_mcp_settings.json': own })
    const transport = { type: 'streamableHttp', url: gateway.mcpUrl, headers: { Authorization: 'Bearer S' } }
    expect(JSON.parse(found.files['mcp.json']!)).toEqual({ mcpServers: { mine: { command: 'x' }, context: { transport } } })
  })

  test.each([
    ['cline x', file('cline'), 'cline'],
    ['cline x', file('zai'), 'zai'],
    ['cline x', '', 'cline'],
    ['cline -P cline x', file(), 'cline'],
    ['cline --provider=zai x', file(), 'zai'],
  ])('%s: a login, and a provider without a known address, go past the gateway', (command, content, name) => {
    const found = launch(command, content === '' ? {} : { [USUAL]: content })
    expect(found).toMatchObject({ args: command.split(' ').slice(1), env: {}, files: {}, notes: [expect.stringContaining(`"${name}" past the gateway`)] })
  })
})

test.each(['kimi -p x', 'npx @moonshot-ai/kimi-code -p x'])('%s: one note says that it needs a gateway beside it', (command) => {
  const found = launch(command)
  expect(found).toMatchObject({ host: 'kimi', args: command.split(' ').slice(1), env: {}, files: {}, notes: [expect.stringContaining('past the gateway')] })
})

describe('Gemini CLI', () => {
  const settings = (type: string): string => JSON.stringify({ security: { auth: { selectedType: type } } })
  const GOOGLE = 'http://127.0.0.1:1/T/https://cloudcode-pa.googleapis.com'

  test.each<[how: string, files: Record<string, string>, env: Record<string, string>]>([
    ['a key', {}, { GEMINI_API_KEY: 'k' }],
    ['an address', {}, { GOOGLE_GEMINI_BASE_URL: 'https://corp.example' }],
    ['a login with Google by variable', {}, { GOOGLE_GENAI_USE_GCA: 'true' }],
    ['Vertex by variable', {}, { GOOGLE_GENAI_USE_VERTEXAI: 'true' }],
    ['a key in a cloud shell', {}, { GEMINI_API_KEY: 'k', CLOUD_SHELL: 'true' }],
    ['a login with Google by setting', { '.gemini/settings.json': settings('oauth-personal') }, {}],
    ["a project's setting", { 'a/b/.gemini/settings.json': settings('vertex-ai') }, {}],
    ["a setting of the system's", { 'etc.json': settings('oauth-personal') }, { GEMINI_CLI_SYSTEM_SETTINGS_PATH: 'HOME/etc.json' }],
    ['another home of the CLI', { 'x/.gemini/settings.json': settings('oauth-personal') }, { GEMINI_CLI_HOME: 'HOME/x' }],
  ])('each of its addresses leads through the gateway with %s', (_, files, env) => {
    const found = launch('gemini', files, env)
    expect(found.notes).toEqual([])
    expect(found.env).toMatchObject({
      GOOGLE_GEMINI_BASE_URL: 'http://127.0.0.1:1/T/gemini',
      CODE_ASSIST_ENDPOINT: GOOGLE,
      GOOGLE_VERTEX_BASE_URL: 'http://127.0.0.1:1/T/https://aiplatform.googleapis.com',
    })
    expect(found.upstreams).toEqual(env['GOOGLE_GEMINI_BASE_URL'] === undefined ? {} : { gemini: 'https://corp.example' })
  })

  /** The values of variables that the CLI takes for a login only if they are exactly `true`. */
  const UNTRUE = ['false', '0', '1', 'TRUE', 'True', 'yes', ' true', '']
  const TRUE_ONLY = ['GOOGLE_GENAI_USE_GCA', 'GOOGLE_GENAI_USE_VERTEXAI', 'CLOUD_SHELL', 'GEMINI_CLI_USE_COMPUTE_ADC']

  test.each<Record<string, string>>([
    {},
    ...TRUE_ONLY.flatMap((name) => UNTRUE.map((value) => ({ [name]: value }))),
    { GEMINI_API_KEY: '', GOOGLE_GEMINI_BASE_URL: '' },
    { GOOGLE_API_KEY: 'k' },
    { GOOGLE_API_KEY: 'k', GOOGLE_GENAI_USE_VERTEXAI: 'false' },
  ])('a new user is asked to log in, and a login with Google goes through the gateway: %j', (env) => {
    const found = launch('gemini', { '.gemini/settings.json': '{"ui":{}}' }, env)
    expect(found.env['GOOGLE_GEMINI_BASE_URL']).toBeUndefined()
    expect(found.env['CODE_ASSIST_ENDPOINT']).toBe(GOOGLE)
    expect(found.notes.join()).toContain('not logged in yet')
  })

  test.each(['CLOUD_SHELL', 'GEMINI_CLI_USE_COMPUTE_ADC'])("with %s the machine's own login stays the one that the CLI takes", (name) => {
    const found = launch('gemini', {}, { [name]: 'true' })
    expect(found.env['GOOGLE_GEMINI_BASE_URL']).toBeUndefined()
    expect(found.env['CODE_ASSIST_ENDPOINT']).toBe(GOOGLE)
    expect(found.notes).toEqual([])
  })

  test.each<[env: Record<string, string>, expected: string]>([
    [{ GOOGLE_CLOUD_LOCATION: 'global', GOOGLE_CLOUD_PROJECT: 'p' }, 'https://aiplatform.googleapis.com'],
    [{ GOOGLE_CLOUD_LOCATION: 'europe-west4', GOOGLE_CLOUD_PROJECT: 'p' }, 'https://europe-west4-aiplatform.googleapis.com'],
    [{ GOOGLE_CLOUD_LOCATION: 'eu', GOOGLE_CLOUD_PROJECT: 'p' }, 'https://aiplatform.eu.rep.googleapis.com'],
    [{ GOOGLE_CLOUD_LOCATION: 'europe-west4', GOOGLE_API_KEY: 'k' }, 'https://aiplatform.googleapis.com'],
    [{ GOOGLE_VERTEX_BASE_URL: 'https://corp.example' }, 'https://corp.example'],
  ])('Vertex is where the CLI would look for it: %j', (env, expected) => {
    const found = launch('gemini', {}, { GOOGLE_GENAI_USE_VERTEXAI: 'true', ...env })
    expect(found.env['GOOGLE_VERTEX_BASE_URL']).toBe(`http://127.0.0.1:1/T/${expected}`)
  })
})

describe('a base URL that is none is refused at the start', () => {
  const variables: [command: string, name: string, env?: Record<string, string>][] = [
    ['claude', 'ANTHROPIC_BASE_URL'],
    ['claude', 'ANTHROPIC_FOUNDRY_BASE_URL', { CLAUDE_CODE_USE_FOUNDRY: '1' }],
    ['codex', 'OPENAI_BASE_URL'],
    ['copilot', 'COPILOT_PROVIDER_BASE_URL'],
    ['qwen', 'OPENAI_BASE_URL'],
    ['opencode', 'ANTHROPIC_BASE_URL'],
    ['kilo', 'OPENAI_BASE_URL'],
    ['gemini', 'GOOGLE_GEMINI_BASE_URL'],
    ['gemini', 'CODE_ASSIST_ENDPOINT'],
    ['gemini', 'GOOGLE_VERTEX_BASE_URL'],
    ['aider', 'ANTHROPIC_BASE_URL'],
    ['aider', 'OPENAI_BASE_URL'],
    ['aider', 'OPENAI_API_BASE'],
    ['node x.mjs', 'ANTHROPIC_BASE_URL'],
  ]
  test.each(variables)('%s with %s', (command, name, env) => {
    expect(() => launch(command, {}, { ...env, [name]: 'localhost:45037' })).toThrow(
      `${name} is "localhost:45037", and an address begins with http:// or https://; write http://localhost:45037`,
    )
  })

  test.each([
    ['myrouter/v1', 'http://myrouter/v1'],
    ['127.0.0.1:3456', 'http://127.0.0.1:3456'],
    ['[::1]:3456', 'http://[::1]:3456'],
    ['api.corp.example/v1', 'https://api.corp.example/v1'],
    ['api.corp.example:8080', 'http://api.corp.example:8080'],
    ['http:/localhost:1', 'http://localhost:1'],
    ['https:localhost', 'https://localhost'],
    ['https:///corp.example', 'https://corp.example'],
    [' http://localhost:1', 'http://localhost:1'],
  ])('%j: the sentence says to write %s', (given, mended) => {
    expect(() => launch('claude', {}, { ANTHROPIC_BASE_URL: given })).toThrow(new RegExp(`; write ${mended.replaceAll(/[[\]]/g, '\\$&')}$`))
  })

  test.each(['no address', 'ftp://x', '/v1', 'http://', '{}', 'http://a b'])('%j: the sentence has an example', (given) => {
    expect(() => launch('claude', {}, { ANTHROPIC_BASE_URL: given })).toThrow(
      `ANTHROPIC_BASE_URL needs an address such as http://localhost:8080, not "${given}"`,
    )
  })

  test.each(['http://localhost:1', 'HTTPS://corp.example/v1', 'http://[::1]:1/a?b'])('%j is one', (given) => {
    expect(launch('claude', {}, { ANTHROPIC_BASE_URL: given }).upstreams).toEqual({ anthropic: given })
  })

  const open = (name: string): string => JSON.stringify({ provider: { [name]: { options: { baseURL: 'localhost:1/v1' } } } })
  const files: [command: string, file: string, content: string, what: string][] = [
    ['claude', '.claude/settings.json', '{"env":{"ANTHROPIC_BASE_URL":"localhost:1/v1"}}', 'ANTHROPIC_BASE_URL'],
    ['claude', 'a/b/.claude/settings.local.json', '{"env":{"ANTHROPIC_BASE_URL":"localhost:1/v1"}}', 'ANTHROPIC_BASE_URL'],
    ['codex', '.codex/config.toml', 'openai_base_url = "localhost:1/v1"', 'openai_base_url'],
    ['codex', '.codex/config.toml', 'model_provider = "p"\n[model_providers.p]\nbase_url = "localhost:1/v1"', 'model_providers.p.base_url'],
    ['opencode', 'a/b/opencode.json', open('p'), '"baseURL" of the provider "p"'],
    ['opencode', 'a/b/opencode.json', open('anthropic'), '"baseURL" of the provider "anthropic"'],
    ['kilo', 'a/b/kilo.json', open('openai'), '"baseURL" of the provider "openai"'],
    [
      'cline',
      '.cline/data/settings/providers.json',
      '{"lastUsedProvider":"anthropic","providers":{"anthropic":{"settings":{"apiKey":"k","baseUrl":"localhost:1/v1"}}}}',
      '"baseUrl" of the provider "anthropic"',
    ],
  ]
  test.each(files)('%s with the settings in %s', (command, file, content, what) => {
    expect(() => launch(command, { [file]: content })).toThrow(
      new RegExp(
        `^${what.replaceAll('.', '\\.')} in .*/${file} is "localhost:1/v1", and an address begins with http:// or https://; write http://localhost:1/v1$`,
      ),
    )
  })

  test('in the `.env` file of Gemini CLI', () => {
    const env = { GEMINI_CLI_TRUST_WORKSPACE: 'true' }
    expect(() => launch('gemini', { 'a/b/.env': 'GOOGLE_GEMINI_BASE_URL=localhost:1' }, env)).toThrow(/^GOOGLE_GEMINI_BASE_URL is "localhost:1"/)
  })

  test("OpenCode's addresses are what their variables say, and one in a separate file is left alone", () => {
    const file = (base: string): Record<string, string> => ({
      'a/b/opencode.json': JSON.stringify({ provider: { anthropic: { options: { baseURL: base } } } }),
    })
    const baseOf = ({ env }: Launch): unknown =>
      (JSON.parse(env['OPENCODE_CONFIG_CONTENT']!) as { provider: Record<string, { options: { baseURL: string } }> }).provider['anthropic']?.options.baseURL
    expect(baseOf(launch('opencode', file('{env:BASE}/v1'), { BASE: 'https://corp.example' }))).toBe(`${gateway.url}/https://corp.example/v1`)
    expect(() => launch('opencode', file('{env:BASE}/v1'), { BASE: 'localhost:1' })).toThrow(/; write http:\/\/localhost:1\/v1$/)
    const past = launch('opencode', file('{file:~/base}'))
    expect([baseOf(past), past.notes]).toEqual([undefined, [expect.stringContaining('"anthropic" is in a separate file')]])
  })
})

describe('settings that can not be read are named in a note, and the start is the one without them', () => {
  const rows: [command: string, file: string][] = [
    ['claude -p x', '.claude/settings.json'],
    ['claude -p x', 'a/b/.claude/settings.local.json'],
    ['codex exec x', '.codex/config.toml'],
    ['opencode run x', '.config/opencode/opencode.json'],
    ['kilo run x', 'a/b/.kilo/kilo.json'],
    ['gemini -p x', '.gemini/settings.json'],
    ['cline x', '.cline/data/settings/providers.json'],
  ]
  test.each(rows)('%s: a folder in the place of %s', (command, file) => {
    const plain = launch(command)
    const found = launch(command, { [`${file}/x`]: '' })
    const added = found.notes.filter((note) => !plain.notes.includes(note))
    expect(added).toEqual([expect.stringMatching(new RegExp(`^the settings in .*/${file} were not taken into account: it can't be read \\(EISDIR\\)$`))])
    expect([found.args, found.env]).toEqual([plain.args, plain.env])
  })

  test.each(rows.filter(([, file]) => file.endsWith('.json')))('%s: %s is damaged', (command, file) => {
    const added = launch(command, { [file]: '{"env": ' }).notes.filter((note) => note.includes(file))
    expect(added).toEqual([expect.stringMatching(/ were not taken into account: it is not JSON$/)])
  })

  test.each(rows)('%s: an empty file counts as none', (command, file) => {
    expect(launch(command, { [file]: '' }).notes).toEqual(launch(command).notes)
  })
})
