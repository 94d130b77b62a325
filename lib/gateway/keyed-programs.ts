/** Programs that go through the gateway where their user has an own key for a provider: GitHub's Copilot CLI and Cline; and Kimi Code. */
import { homedir } from 'node:os'
import { join } from 'node:path'
import { textOf } from '../core/index.ts'
import type { Environment, Fields } from '../core/index.ts'
import { baseUrlIn } from './base-url.ts'
import { SERVER_NAME } from './recall-tool.ts'
import { fieldsOf, SettingsFiles, valueOf } from './program-settings.ts'
import type { Place, Program } from './program-settings.ts'

/** Commands of the Copilot CLI that start no conversation. */
const COPILOT_COMMANDS: ReadonlySet<string> = new Set([
  'app',
  'login',
  'help',
  'config',
  'update',
  'version',
  'sessions',
  'memories',
  'plugin',
  'mcp',
  'skill',
  'instruction',
  'lsp',
  'sandbox',
  'completion',
])

const COPILOT_BASE = 'COPILOT_PROVIDER_BASE_URL'
const COPILOT_TRANSPORT = 'COPILOT_PROVIDER_TRANSPORT'

/** The Copilot CLI. Without a provider of the user's own, its requests go to GitHub under a login that names GitHub's address. */
export function copilot(args: readonly string[], { env }: Place): Program {
  const base = baseUrlIn(COPILOT_BASE, env[COPILOT_BASE])
  const isOwn = base !== undefined && !COPILOT_COMMANDS.has(args[0] ?? '')
  return {
    host: 'copilot',
    upstreams: {},
    launch({ url, mcpUrl, secret }, folder) {
      if (!isOwn) {
        const notes =
          base === undefined
            ? [
                `the Copilot CLI sends its requests to GitHub, past the gateway, and nothing changes in them; they go through it with a provider of your own (${COPILOT_BASE}, see "copilot help providers")`,
              ]
            : []
        return { args: [...args], env: {}, files: {}, notes }
      }
      const server = { type: 'http', url: mcpUrl, headers: { Authorization: `Bearer ${secret}` }, tools: ['*'] }
      const tools = ['activate', 'search'].map((name) => `--allow-tool=${SERVER_NAME}(${name})`)
      // It sends every request through a proxy for HTTPS.
      const names = [env['no_proxy'] || env['NO_PROXY'] || '', '127.0.0.1', 'localhost'].filter((one) => one !== '').join(',')
      const isProxied = (env['https_proxy'] || env['HTTPS_PROXY'] || '') !== ''
      return {
        args: [`--additional-mcp-config=@${join(folder, 'mcp.json')}`, ...tools, ...args],
        env: {
          [COPILOT_BASE]: `${url}/${base}`,
          // Requests through a WebSocket can't be edited.
          ...(env[COPILOT_TRANSPORT] === undefined ? {} : { [COPILOT_TRANSPORT]: 'http' }),
          ...(isProxied ? { NO_PROXY: names, no_proxy: names } : {}),
        },
        files: { 'mcp.json': JSON.stringify({ mcpServers: { [SERVER_NAME]: server } }) },
        notes: [],
      }
    },
  }
}

/** Kimi Code, which reads MCP servers from its own file alone: without our tools nothing would collapse. */
export function kimi(args: readonly string[]): Program {
  const note =
    'Kimi Code reads MCP servers from its own file alone, so that its requests go past the gateway, and nothing changes in them; they go through "pi-context-manager gateway" once its files name the gateway (docs/gateway.md)'
  return { host: 'kimi', upstreams: {}, launch: () => ({ args: [...args], env: {}, files: {}, notes: [note] }) }
}

/** Cline's providers whose address is known without a setting: their names for it, and the path at the gateway. */
const CLINE_KNOWN: Readonly<Record<string, string>> = { anthropic: '/anthropic/v1', 'openai-native': '/openai' }

/**
 * Cline's CLI. Variables name the files of its providers and of its MCP servers; the copies in their places have the gateway's
 * addresses. Its hub would work on with them after the gateway's end, so that the CLI works alone here.
 */
export function cline(args: readonly string[], { env }: Place): Program {
  const settings = join(clineData(args, env), 'settings')
  const [providerFile, serverFile] = [
    env['CLINE_PROVIDER_SETTINGS_PATH'] || join(settings, 'providers.json'),
    env['CLINE_MCP_SETTINGS_PATH'] || join(settings, 'cline_mcp_settings.json'),
  ]
  const files = new SettingsFiles()
  const file = files.json(providerFile)
  const providers = fieldsOf(file['providers'])
  const used = valueOf(args, ['-P', '--provider']) ?? textOf(file['lastUsedProvider'])
  const bases = new Map(Object.entries(providers).map(([name, entry]) => [name, baseOf(name, entry, providerFile)]))
  const isLed = (name: string): boolean => bases.get(name) !== undefined
  return {
    host: 'cline',
    upstreams: {},
    launch({ url, mcpUrl, secret }, folder) {
      if (!isLed(used)) {
        const notes = [
          `Cline sends the requests of its provider "${used === '' ? 'cline' : used}" past the gateway, and nothing changes in them; they go through it with a key of your own for a provider that has a base URL, or for Anthropic or OpenAI ("cline auth")`,
        ]
        return { args: [...args], env: {}, files: {}, notes: [...files.notes, ...notes] }
      }
      const led = Object.fromEntries(
        Object.entries(providers).map(([name, entry]) => [name, isLed(name) ? withBase(entry, `${url}${bases.get(name)}`) : entry]),
      )
      const own = files.json(serverFile)
      const transport = { type: 'streamableHttp', url: mcpUrl, headers: { Authorization: `Bearer ${secret}` } }
      return {
        args: [...args],
        env: {
          CLINE_PROVIDER_SETTINGS_PATH: join(folder, 'providers.json'),
          CLINE_MCP_SETTINGS_PATH: join(folder, 'mcp.json'),
          CLINE_SESSION_BACKEND_MODE: 'local',
        },
        files: {
          'providers.json': JSON.stringify({ ...file, providers: led }),
          'mcp.json': JSON.stringify({ ...own, mcpServers: { ...fieldsOf(own['mcpServers']), [SERVER_NAME]: { transport } } }),
        },
        notes: [...files.notes, 'what you change in the providers and MCP servers of Cline during this run is not kept'],
      }
    },
  }
}

/** The folder of its data, as its arguments and variables name it. */
function clineData(args: readonly string[], env: Environment): string {
  const own = valueOf(args, ['--config']) || env['CLINE_DIR'] || join(env['HOME'] ?? homedir(), '.cline')
  return valueOf(args, ['--data-dir']) || env['CLINE_DATA_DIR'] || join(own, 'data')
}

/** The path at the gateway that leads to a provider; undefined with a login, whose new tokens have to reach the user's own file. */
function baseOf(name: string, entry: unknown, file: string): string | undefined {
  const { auth, baseUrl } = fieldsOf(fieldsOf(entry)['settings']) as Fields
  if (entry === undefined || Object.keys(fieldsOf(auth)).length > 0) return undefined
  const base = baseUrlIn(`"baseUrl" of the provider "${name}" in ${file}`, textOf(baseUrl))
  return base === undefined ? CLINE_KNOWN[name] : `/${base}`
}

function withBase(entry: unknown, baseUrl: string): Fields {
  const own = fieldsOf(entry)
  return { ...own, settings: { ...fieldsOf(own['settings']), baseUrl } }
}
