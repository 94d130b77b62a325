/** OpenCode, and Kilo, which comes from it: the configuration that a variable adds to their own. */
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { SERVER_NAME } from './recall-tool.ts'
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
  const bases = new Map([...filesOf(kind, place).map((file) => files.json(file)), given].flatMap((config) => basesIn(config)))
  return {
    host: kind.host,
    upstreams: {},
    launch({ url, mcpUrl, secret }) {
      const known: [string, string][] = [
        ['anthropic', `${url}/anthropic/v1`],
        ['openai', `${url}/openai`],
      ]
      const named = [...bases].map(([name, base]): [string, string] => [name, `${url}/${base}`])
      const own = fieldsOf(given['provider'])
      const provider = Object.fromEntries([...known, ...named].map(([name, baseURL]) => [name, withBase(fieldsOf(own[name]), baseURL)]))
      const mcp = { [SERVER_NAME]: { type: 'remote', url: mcpUrl, headers: { Authorization: `Bearer ${secret}` }, oauth: false, enabled: true } }
      const config = { ...given, provider: { ...own, ...provider }, mcp: { ...fieldsOf(given['mcp']), ...mcp } }
      return { args: [...args], env: { [content]: JSON.stringify(config) }, files: {}, notes: files.notes }
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

function basesIn(config: Record<string, unknown>): [string, string][] {
  return Object.entries(fieldsOf(config['provider'])).flatMap(([name, provider]): [string, string][] => {
    const base = fieldsOf(fieldsOf(provider)['options'])['baseURL']
    return typeof base === 'string' && /^https?:/.test(base) ? [[name, base]] : []
  })
}

function withBase(provider: Record<string, unknown>, baseURL: string): Record<string, unknown> {
  return { ...provider, options: { ...fieldsOf(provider['options']), baseURL } }
}
