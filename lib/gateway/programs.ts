/**
 * How the known agents are told where their provider is, and given the tools of the gateway: by variables, arguments and
 * temporary files, never in the user's own configuration.
 */
import { homedir } from 'node:os'
import { basename, join } from 'node:path'
import { hostNamed, textOf } from '../core/index.ts'
import type { Environment, HostName } from '../core/index.ts'
import { baseUrlIn } from './base-url.ts'
import { gemini } from './gemini-program.ts'
import { cline, copilot, kimi } from './keyed-programs.ts'
import { kilo, opencode } from './opencode-program.ts'
import { fieldsOf, SECRET, SettingsFiles, tomlText, valueOf } from './program-settings.ts'
import type { Addresses, Launch, Place, Program } from './program-settings.ts'
import { qwen } from './qwen-program.ts'
import { SERVER_NAME } from './recall-tool.ts'

/** Reads what a command line starts. Throws a UsageError if a base URL that it finds is none. */
export function programOf(command: string, args: readonly string[], place: Place): Program {
  const found = lookedThrough(command, args, place)
  const launch = (gateway: Addresses, folder: string): Launch => {
    const own = found.launch(gateway, folder)
    return { ...own, env: { ...withoutProxy(place.env), ...own.env } }
  }
  return { ...found, launch }
}

/** A program that sends its requests through a proxy must not send those to the gateway there; the gateway does with its own. */
function withoutProxy(env: Environment): Record<string, string> {
  const read = (name: string): string => env[name] || env[name.toUpperCase()] || ''
  if (read('http_proxy') === '' && read('all_proxy') === '') return {}
  const names = [read('no_proxy'), '127.0.0.1', 'localhost'].filter((one) => one !== '').join(',')
  return { NO_PROXY: names, no_proxy: names }
}

function lookedThrough(command: string, args: readonly string[], place: Place): Program {
  const at = LAUNCHERS.test(basename(command)) ? args.findIndex((one) => !one.startsWith('-') && hostOfCommand(one) !== 'agent') : -1
  if (at < 0) return directly(command, args, place)
  // `node path/to/qwen.js ARGS`, `npx @openai/codex ARGS`
  const inner = directly(args[at] as string, args.slice(at + 1), place)
  const launch = (gateway: Addresses, folder: string): Launch => {
    const found = inner.launch(gateway, folder)
    return { ...found, args: [...args.slice(0, at + 1), ...found.args] }
  }
  return { ...inner, launch }
}

/** Programs that start the one that their first words name. */
const LAUNCHERS = /^(?:node|bun|deno|npx|bunx|pnpm|yarn)(?:\.exe|\.cmd)?$/

function directly(command: string, args: readonly string[], place: Place): Program {
  switch (hostOfCommand(command)) {
    case 'claude-code':
      return claude(args, place)
    case 'codex':
      return codex(args, place)
    case 'opencode':
      return opencode(args, place)
    case 'kilo':
      return kilo(args, place)
    case 'copilot':
      return copilot(args, place)
    case 'cline':
      return cline(args, place)
    case 'kimi':
      return kimi(args)
    case 'qwen-code':
      return qwen(args, place)
    case 'gemini-cli':
      return gemini(args, place)
    default:
      return { ...other(args, place), host: hostOfCommand(command) }
  }
}

function hostOfCommand(command: string): HostName {
  const name = basename(command).replace(/\.(?:cmd|exe|ps1|js|mjs|cjs)$/i, '')
  if (name === 'claude' || name === 'claude-code') return 'claude-code'
  if (name === 'codex') return 'codex'
  if (name === 'qwen') return 'qwen-code'
  if (name === 'gemini') return 'gemini-cli'
  if (name === 'kilo' || name === 'kilocode') return 'kilo'
  if (name === 'kimi') return 'kimi'
  if (name === 'copilot') return 'copilot'
  return name === 'cn' ? 'continue' : hostNamed(/[\\/]/.test(command) ? command : name)
}

/** Commands of Claude Code that start no conversation. */
const CLAUDE_COMMANDS: ReadonlySet<string> = new Set([
  'mcp',
  'update',
  'upgrade',
  'doctor',
  'install',
  'plugin',
  'plugins',
  'setup-token',
  'auth',
  'config',
  'migrate-installer',
])

/** With one of these, its requests go to a cloud of another provider. */
const FOUNDRY = 'CLAUDE_CODE_USE_FOUNDRY'
const CLOUDS = [
  'CLAUDE_CODE_USE_BEDROCK',
  'CLAUDE_CODE_USE_MANTLE',
  'CLAUDE_CODE_USE_VERTEX',
  FOUNDRY,
  'CLAUDE_CODE_USE_ANTHROPIC_AWS',
  'CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD',
]

const ANTHROPIC_URL = 'ANTHROPIC_BASE_URL'

/** Foundry speaks Anthropic's format; if it has its own address, its requests go through the gateway. */
const FOUNDRY_URL = 'ANTHROPIC_FOUNDRY_BASE_URL'

/** Switches off the line of Claude Code's system prompt that names the request, which changes with each of them. */
const ATTRIBUTION = 'CLAUDE_CODE_ATTRIBUTION_HEADER'

/** True if requests for this address, or without one, go to Anthropic's own API. */
function isAnthropic(address: string | undefined): boolean {
  if (address === undefined) return true
  const host = new URL(address).hostname
  return host === 'anthropic.com' || host.endsWith('.anthropic.com')
}

function claude(args: readonly string[], { cwd, env }: Place): Program {
  const home = env['CLAUDE_CONFIG_DIR'] ?? join(env['HOME'] ?? homedir(), '.claude')
  const files = [join(home, 'settings.json'), join(cwd, '.claude', 'settings.json'), join(cwd, '.claude', 'settings.local.json')]
  const read = new SettingsFiles()
  const envs = files.map((file) => fieldsOf(read.json(file)['env']))
  const settled = (name: string): string => textOf(envs.map((own) => own[name]).findLast((one) => one !== undefined))
  const isSet = (name: string): boolean => ['1', 'true', 'yes', 'on'].includes((settled(name) || (env[name] ?? '')).trim().toLowerCase())
  const addressIn = (name: string): string | undefined => {
    const at = envs.findLastIndex((own) => own[name] !== undefined)
    return settled(name) === '' ? baseUrlIn(name, env[name]) : baseUrlIn(`${name} in ${files[at]}`, settled(name))
  }
  const anthropic = addressIn(ANTHROPIC_URL)
  const foundry = isSet(FOUNDRY) ? addressIn(FOUNDRY_URL) : undefined
  return {
    host: 'claude-code',
    upstreams: anthropic === undefined ? {} : { anthropic },
    launch({ url, mcpUrl, secret }, folder) {
      const config = { mcpServers: { [SERVER_NAME]: { type: 'http', url: mcpUrl, headers: { Authorization: `Bearer ${secret}` }, alwaysLoad: true } } }
      const base = foundry === undefined ? { [ANTHROPIC_URL]: `${url}/anthropic` } : { [FOUNDRY_URL]: `${url}/${foundry}` }
      const isQuiet = foundry === undefined && !isAnthropic(anthropic) && settled(ATTRIBUTION) === '' && env[ATTRIBUTION] === undefined
      const set = { ...base, ...(isQuiet ? { [ATTRIBUTION]: '0' } : {}) }
      // Its settings files win over the environment, and arguments win over them.
      const settings = Object.keys(base).every((name) => settled(name) === '') ? [] : [`--settings=${JSON.stringify({ env: base })}`]
      const tools = `--allowedTools=mcp__${SERVER_NAME}__activate,mcp__${SERVER_NAME}__search`
      const own = CLAUDE_COMMANDS.has(args[0] ?? '') ? [] : [`--mcp-config=${join(folder, 'mcp.json')}`, tools, ...settings]
      const cloud = CLOUDS.find((name) => isSet(name) && (name !== FOUNDRY || foundry === undefined))
      const unstable = isQuiet
        ? [
            `${ATTRIBUTION}=0 is set, because the requests do not go to Anthropic's own API: a line at the front of the system prompt that changes with each request would keep other servers from finding it in their caches`,
          ]
        : []
      const past =
        cloud === undefined ? [] : [`${cloud} is set: Claude Code sends its requests straight to that cloud, past the gateway, and nothing changes in them`]
      return { args: [...own, ...args], env: set, files: { 'mcp.json': JSON.stringify(config) }, notes: [...read.notes, ...unstable, ...past] }
    },
  }
}

/**
 * Codex. Its settings have layers: a file of the profile that an argument names, the profile's table, which earlier versions have, and
 * the beginning of the file.
 */
function codex(args: readonly string[], { env }: Place): Program {
  const home = env['CODEX_HOME'] ?? join(env['HOME'] ?? homedir(), '.codex')
  const read = new SettingsFiles()
  const file = join(home, 'config.toml')
  const toml = read.text(file)
  const named = valueOf(args, ['-p', '--profile'])
  const profile = named ?? tomlText(toml, '', 'profile')
  const own = named !== undefined && /^[\w-]+$/.test(named) ? join(home, `${named}.config.toml`) : undefined
  const files = [...(own === undefined ? [] : [{ file: own, toml: read.text(own) }]), { file, toml }]
  const layers = [...files.slice(0, -1).map((one) => ({ ...one, table: '' })), { file, toml, table: `profiles.${profile ?? ''}` }, { file, toml, table: '' }]
  const settled = (name: string): (typeof layers)[number] | undefined => layers.find((one) => tomlText(one.toml, one.table, name) !== undefined)
  const chosen = settled('model_provider')
  const provider = setBy(args, 'model_provider') ?? (chosen === undefined ? undefined : tomlText(chosen.toml, chosen.table, 'model_provider'))
  const addressIn = (one: { file: string; toml: string } | undefined, table: string, name: string): string | undefined =>
    one === undefined ? undefined : baseUrlIn(`${table === '' ? name : `${table}.${name}`} in ${one.file}`, tomlText(one.toml, table, name))
  const table = `model_providers.${provider}`
  const custom =
    provider === undefined || provider === 'openai'
      ? undefined
      : addressIn(
          files.find((one) => tomlText(one.toml, table, 'base_url') !== undefined),
          table,
          'base_url',
        )
  const withOpenai = settled('openai_base_url')
  const openai = addressIn(withOpenai, withOpenai?.table ?? '', 'openai_base_url') ?? baseUrlIn('OPENAI_BASE_URL', env['OPENAI_BASE_URL'])
  return {
    host: 'codex',
    upstreams: openai === undefined ? {} : { openai },
    launch({ url, mcpUrl, secret }) {
      const base = custom === undefined ? ['openai_base_url', `${url}/openai`] : [`model_providers.${provider}.base_url`, `${url}/${custom}`]
      const pairs = [base, [`mcp_servers.${SERVER_NAME}.url`, mcpUrl], [`mcp_servers.${SERVER_NAME}.bearer_token_env_var`, SECRET]]
      const own = pairs.flatMap(([name, value]) => ['-c', `${name}=${JSON.stringify(value)}`])
      return { args: [...own, ...args], env: { [SECRET]: secret }, files: {}, notes: read.notes }
    },
  }
}

/** The text that arguments of Codex set a value to: the last of `-c NAME=TEXT`, with quotes or without. */
function setBy(args: readonly string[], name: string): string | undefined {
  const end = args.indexOf('--')
  const own = end < 0 ? args : args.slice(0, end)
  const pairs = own.map((word, at) => (['-c', '--config'].includes(own[at - 1] ?? '') ? word : /^(?:--config=|-c=?)(.*)$/.exec(word)?.[1]))
  const pair = pairs.findLast((one) => one?.split('=')[0]?.trim() === name)
  return pair
    ?.slice(pair.indexOf('=') + 1)
    .trim()
    .replace(/^(["'])(.*)\1$/, '$2')
}

/** Any program that reads the usual variables. */
function other(args: readonly string[], { env }: Place): Program {
  const named = (name: string): string | undefined => baseUrlIn(name, env[name])
  const [anthropic, openai, old] = [named(ANTHROPIC_URL), named('OPENAI_BASE_URL'), named('OPENAI_API_BASE')]
  return {
    host: 'agent',
    upstreams: {},
    launch({ url, mcpUrl, secret }) {
      const to = (base: string | undefined, fallback: string): string => (base === undefined ? `${url}/${fallback}` : `${url}/${base}`)
      return {
        args: [...args],
        env: {
          ANTHROPIC_BASE_URL: to(anthropic, 'anthropic'),
          OPENAI_BASE_URL: to(openai ?? old, 'openai'),
          OPENAI_API_BASE: to(old ?? openai, 'openai'),
          PI_CONTEXT_MCP_URL: mcpUrl,
          [SECRET]: secret,
        },
        files: {},
        notes: [
          `nothing collapses until the program has an MCP server "${SERVER_NAME}" at $PI_CONTEXT_MCP_URL with the header "Authorization: Bearer $${SECRET}"`,
        ],
      }
    },
  }
}
