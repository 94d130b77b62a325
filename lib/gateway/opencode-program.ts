/** OpenCode, and Kilo, which comes from it: the configuration that a variable adds to their own. */
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { textOf } from '../core/index.ts'
import type { Fields } from '../core/index.ts'
import { baseUrlIn } from './base-url.ts'
import { SERVER_NAME } from './recall-tool.ts'
import { ANTHROPIC } from './routes.ts'
import { fieldsOf, parsed, SettingsFiles } from './program-settings.ts'
import type { Place, Program } from './program-settings.ts'

/** A program of this family: its host, the names of its files, and the beginning of its variables. */
interface Kind {
  host: 'opencode' | 'kilo'
  files: readonly string[]
  folders: readonly string[]
  variables: string
}

const OPENCODE: Kind = { host: 'opencode', files: ['opencode.json', 'opencode.jsonc'], folders: ['.opencode'], variables: 'OPENCODE' }
const KILO: Kind = {
  host: 'kilo',
  files: ['opencode.json', 'opencode.jsonc', 'kilo.json', 'kilo.jsonc'],
  folders: ['.opencode', '.kilocode', '.kilo'],
  variables: 'KILO',
}

/** OpenCode. */
export function opencode(args: readonly string[], place: Place): Program {
  return started(OPENCODE, args, place)
}

/** Kilo, which also reads OpenCode's files. */
export function kilo(args: readonly string[], place: Place): Program {
  return started(KILO, args, place)
}

function started(kind: Kind, args: readonly string[], place: Place): Program {
  const content = `${kind.variables}_CONFIG_CONTENT`
  const given = parsed(place.env[content] ?? '{}')
  const files = new SettingsFiles()
  const configs: [string, Fields][] = [...filesOf(kind, place).map((file): [string, Fields] => [file, files.json(file)]), [content, given]]
  // The last file that names a provider's address wins.
  const addresses = new Map(configs.flatMap(([file, config]) => addressesIn(config, file)).map((one) => [one.name, one]))
  const bases = new Map([...addresses].map(([name, one]) => [name, resolved(one, place)]))
  // Without an address in its files, its two usual providers go by these.
  const [anthropic, openai] = [
    ofAnthropic(baseUrlIn('ANTHROPIC_BASE_URL', place.env['ANTHROPIC_BASE_URL'])),
    baseUrlIn('OPENAI_BASE_URL', place.env['OPENAI_BASE_URL']),
  ]
  const past = [...bases].flatMap(([name, base]) =>
    base === UNKNOWN
      ? [`the base URL of the provider "${name}" is in a separate file, so that its requests go past the gateway, and nothing changes in them`]
      : [],
  )
  return {
    host: kind.host,
    upstreams: {},
    launch({ url, mcpUrl, secret }) {
      const known: [string, string][] = [
        ['anthropic', anthropic === undefined ? `${url}/anthropic/v1` : `${url}/${anthropic}`],
        ['openai', openai === undefined ? `${url}/openai` : `${url}/${openai}`],
      ]
      const named = [...bases].flatMap(([name, base]): [string, string][] => (typeof base === 'string' ? [[name, `${url}/${base}`]] : []))
      const own = fieldsOf(given['provider'])
      const provider = Object.fromEntries(
        [...known.filter(([name]) => bases.get(name) !== UNKNOWN), ...named].map(([name, baseURL]) => [name, withBase(fieldsOf(own[name]), baseURL)]),
      )
      const mcp = { [SERVER_NAME]: { type: 'remote', url: mcpUrl, headers: { Authorization: `Bearer ${secret}` }, oauth: false, enabled: true } }
      const config = { ...given, provider: { ...own, ...provider }, mcp: { ...fieldsOf(given['mcp']), ...mcp } }
      return { args: [...args], env: { [content]: JSON.stringify(config) }, files: {}, notes: [...files.notes, ...past] }
    },
  }
}

/** Its configuration files, in the order in which later ones win: the user's own, a named one, and those from `/` to the project. */
function filesOf({ host, files, folders, variables }: Kind, { cwd, env }: Place): string[] {
  const home = join(env['XDG_CONFIG_HOME'] ?? join(env['HOME'] ?? homedir(), '.config'), host)
  const above: string[] = []
  for (let at = cwd; ; at = dirname(at)) {
    above.unshift(at)
    if (dirname(at) === at) break
  }
  const below = (folder: string): string[] => files.map((name) => join(folder, name))
  const own = [join(home, 'config.json'), ...below(home), env[`${variables}_CONFIG`] ?? ''].filter((file) => file !== '')
  const named = env[`${variables}_CONFIG_DIR`]
  return [
    ...own,
    ...above.flatMap(below),
    ...above.flatMap((folder) => folders.flatMap((name) => below(join(folder, name)))),
    ...(named === undefined ? [] : below(named)),
  ]
}

/** The address as its library reads it: it adds the version to that of the API. */
function ofAnthropic(address: string | undefined): string | undefined {
  return address?.replace(/\/$/, '') === ANTHROPIC ? undefined : address
}

/** An address as a configuration names it, and where. */
interface NamedAddress {
  name: string
  address: string
  file: string
}

function addressesIn(config: Fields, file: string): NamedAddress[] {
  return Object.entries(fieldsOf(config['provider'])).flatMap(([name, provider]) => {
    const address = textOf(fieldsOf(fieldsOf(provider)['options'])['baseURL'])
    return address === '' ? [] : [{ name, address, file }]
  })
}

/** An address that is elsewhere. */
const UNKNOWN = Symbol('unknown')

/** The address with its variables, as the program fills them in; undefined if that leaves nothing. */
function resolved({ name, address, file }: NamedAddress, { env }: Place): string | typeof UNKNOWN | undefined {
  if (address.includes('{file:')) return UNKNOWN
  return baseUrlIn(
    `"baseURL" of the provider "${name}" in ${file}`,
    address.replaceAll(/\{env:([^}]*)\}/g, (_, variable: string) => env[variable.trim()] ?? ''),
  )
}

function withBase(provider: Record<string, unknown>, baseURL: string): Record<string, unknown> {
  return { ...provider, options: { ...fieldsOf(provider['options']), baseURL } }
}
