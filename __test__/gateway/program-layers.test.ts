/** The places where Qwen Code and Codex find the address of their provider: their arguments, variables, `.env` files, settings and profiles. */
import { afterEach, describe, expect, test } from 'vitest'
import type { Launch } from '../../lib/gateway/program-settings.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { gateway, launch } from './launched.ts'

afterEach(cleanUp)

describe('Qwen Code', () => {
  const to = (host: string): string => `${gateway.url}/https://${host}.example/v1`
  const line = (host: string): string => `OPENAI_BASE_URL=https://${host}.example/v1\n`
  const auth = (host: string): string => JSON.stringify({ security: { auth: { baseUrl: `https://${host}.example/v1` } } })
  const inEnv = (host: string): string => JSON.stringify({ env: { OPENAI_BASE_URL: `https://${host}.example/v1` } })
  const untrusted = { '.qwen/settings.json': '{"security":{"folderTrust":{"enabled":true}}}', '.qwen/trustedFolders.json': '{"HOME/a/b":"DO_NOT_TRUST"}' }
  const baseOf = ({ env }: Launch): unknown => env['OPENAI_BASE_URL']

  test('without any, its requests go to OpenAI', () => {
    expect(baseOf(launch('qwen'))).toBe(`${gateway.url}/openai`)
  })

  test.each(['a/b/.qwen/.env', 'a/b/.env', 'a/.qwen/.env', 'a/.env', '.qwen/.env', '.env'])('the variable in %s', (file) => {
    expect(baseOf(launch('qwen', { [file]: line('router') }))).toBe(to('router'))
  })

  test.each<[name: string, file: string, content: string]>([
    ['the settings of the user', '.qwen/settings.json', auth('router')],
    ['the settings of the project', 'a/b/.qwen/settings.json', auth('router')],
    ['the settings of the system', 'etc/settings.json', auth('router')],
    ["the system's defaults", 'etc/system-defaults.json', auth('router')],
    ["the settings' variables", '.qwen/settings.json', inEnv('router')],
    ['a variable that the settings name', '.qwen/settings.json', '{"security":{"auth":{"baseUrl":"https://${NAME}.example/v1"}}}'],
  ])('%s', (_, file, content) => {
    expect(baseOf(launch('qwen', { [file]: content }, { NAME: 'router' }))).toBe(to('router'))
  })

  test.each<[name: string, first: Record<string, string>, env: Record<string, string>]>([
    ['a variable before a file', { '.env': line('other') }, { OPENAI_BASE_URL: 'https://router.example/v1' }],
    ['a file before the variables of settings', { '.qwen/.env': line('router'), '.qwen/settings.json': inEnv('other') }, {}],
    ['variables before the address of settings', { 'a/.env': line('router'), 'a/b/.qwen/settings.json': auth('other') }, {}],
    ['the nearest file', { 'a/b/.env': line('router'), 'a/b/.qwen/other.env': line('x'), 'a/.qwen/.env': line('other'), '.env': line('other') }, {}],
    ['the first file also if it lacks the variable', { 'a/b/.env': 'X=1\n', '.env': line('other'), '.qwen/settings.json': auth('router') }, {}],
    ['the project before the user', { 'a/b/.qwen/settings.json': auth('router'), '.qwen/settings.json': auth('other') }, {}],
    ['the system before all', { 'etc/settings.json': auth('router'), 'a/b/.qwen/settings.json': auth('other') }, {}],
    ['another folder of the CLI', { 'x/settings.json': auth('router'), '.qwen/settings.json': auth('other') }, { QWEN_HOME: 'HOME/x' }],
    ['another folder, named by a file', { 'x/settings.json': auth('router'), '.env': 'QWEN_HOME=HOME/x\n', '.qwen/settings.json': auth('other') }, {}],
    ['no settings of an untrusted folder', { ...untrusted, 'a/b/.qwen/settings.json': auth('other'), 'etc/settings.json': auth('router') }, {}],
    ['no file of an untrusted folder', { ...untrusted, 'a/b/.env': line('other'), '.env': line('router') }, {}],
    [
      'no excluded variable',
      {
        '.qwen/settings.json': '{"advanced":{"excludedEnvVars":["OPENAI_BASE_URL"]},"env":{"OPENAI_BASE_URL":"https://router.example/v1"}}',
        'a/b/.env': line('other'),
      },
      {},
    ],
  ])('%s', (_, files, env) => {
    expect(baseOf(launch('qwen', files, env))).toBe(to('router'))
  })

  test('an address among the arguments leads through the gateway too', () => {
    const found = launch('qwen --openai-base-url https://router.example/v1 -p x', { '.env': line('other') })
    expect(found.args).toEqual(['--openai-base-url', to('router'), '-p', 'x'])
    expect(baseOf(found)).toBe(to('router'))
    expect(launch('qwen --openai-base-url=https://router.example/v1').args).toEqual([`--openai-base-url=${to('router')}`])
  })

  test('the system keeps its defaults, and models with own addresses are named in a note', () => {
    const defaults = { model: { name: 'm' }, mcpServers: { own: { command: 'x' } }, modelProviders: { openai: [{ id: 'm', baseUrl: 'https://own.example' }] } }
    const found = launch('qwen', { 'etc/system-defaults.json': JSON.stringify(defaults) })
    const written = JSON.parse(found.files['settings.json']!) as typeof defaults & { mcpServers: Record<string, unknown> }
    expect([written.model, Object.keys(written.mcpServers)]).toEqual([defaults.model, ['own', 'context']])
    expect(found.notes).toEqual([expect.stringContaining('"modelProviders"')])
  })

  test.each<[file: string, content: string, what: string]>([
    ['a/.env', 'OPENAI_BASE_URL=localhost:1/v1', 'OPENAI_BASE_URL in .*/a/.env'],
    ['.qwen/settings.json', '{"env":{"OPENAI_BASE_URL":"localhost:1/v1"}}', 'OPENAI_BASE_URL in .*/.qwen/settings.json'],
    ['.qwen/settings.json', '{"security":{"auth":{"baseUrl":"localhost:1/v1"}}}', '"baseUrl" of "security.auth" in .*/.qwen/settings.json'],
  ])('an address in %s that is none is refused: %s', (file, content, what) => {
    expect(() => launch('qwen', { [file]: content })).toThrow(new RegExp(`^${what} is "localhost:1/v1", and an address begins with`))
  })
})

describe('Codex', () => {
  const providers = ['one', 'two'].map((name) => `[model_providers.${name}]\nbase_url = "https://${name}.example/v1"\n`).join('')
  const profiles = `[profiles.deep]\nmodel_provider = "two"\n[profiles.plain]\nmodel = "m"\n[profiles.own]\nmodel_provider = "openai"\nopenai_base_url = "https://own.example/v1"\n`
  const config = (first: string): Record<string, string> => ({ '.codex/config.toml': `${first}\n${providers}${profiles}` })
  const baseOf = ({ args }: Launch): string | undefined => args.find((word) => word.includes('base_url'))
  const custom = (name: string): string => `model_providers.${name}.base_url="${gateway.url}/https://${name}.example/v1"`
  const plain = `openai_base_url="${gateway.url}/openai"`

  test.each<[name: string, command: string, first: string, base: string]>([
    ['no provider', 'codex', '', plain],
    ['a provider', 'codex', 'model_provider = "one"', custom('one')],
    ['the provider of the profile that the file names', 'codex', 'profile = "deep"', custom('two')],
    ['that before the one of the file', 'codex', 'profile = "deep"\nmodel_provider = "one"', custom('two')],
    ['the one of the file for a profile without', 'codex', 'profile = "plain"\nmodel_provider = "one"', custom('one')],
    ['the profile of an argument', 'codex --profile deep', 'model_provider = "one"', custom('two')],
    ['the same in short', 'codex exec -p deep x', 'profile = "plain"\nmodel_provider = "one"', custom('two')],
    ['a profile with OpenAI', 'codex --profile=own', 'model_provider = "one"', plain],
    ['the provider of an argument', 'codex -c model_provider="two"', 'model_provider = "one"', custom('two')],
    ['the same before the profile', 'codex --profile deep --config=model_provider=one', '', custom('one')],
    ['words behind the options', 'codex exec -- -c model_provider=two', 'model_provider = "one"', custom('one')],
  ])('%s', (_, command, first, base) => {
    expect(baseOf(launch(command, config(first)))).toBe(base)
  })

  test('the address of OpenAI in a profile', () => {
    expect(launch('codex --profile own', config('openai_base_url = "https://other.example/v1"')).upstreams).toEqual({ openai: 'https://own.example/v1' })
  })

  test('the file of a profile', () => {
    const file = { '.codex/deep.config.toml': 'model_provider = "three"\n[model_providers.three]\nbase_url = "https://three.example/v1"\n' }
    expect(baseOf(launch('codex --profile deep', { ...config('model_provider = "one"'), ...file }))).toBe(custom('three'))
    expect(baseOf(launch('codex', { ...config('model_provider = "one"'), ...file }))).toBe(custom('one'))
    const lacks = { '.codex/deep.config.toml': 'model_provider = "one"\n' }
    expect(baseOf(launch('codex --profile deep', { ...config(''), ...lacks }))).toBe(custom('one'))
  })
})
