/**
 * Qwen Code: its requests go to the address that an argument names, then its environment, then one `.env` file, then its settings, as
 * version 0.24.4 reads them. A variable wins over all but the argument, so the gateway has to know what it replaces: a key for a
 * router must not go to another host.
 */
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, dirname, join, normalize, resolve } from 'node:path'
import { isWithin, textOf } from '../core/index.ts'
import type { Environment, Fields } from '../core/index.ts'
import { baseUrlIn } from './base-url.ts'
import { variablesIn } from './gemini-env.ts'
import { fieldsOf, SettingsFiles, valueOf } from './program-settings.ts'
import type { Place, Program } from './program-settings.ts'
import { SERVER_NAME } from './recall-tool.ts'

const BASE = 'OPENAI_BASE_URL'

/** The arguments that name an address. */
const ARGUMENTS = ['--openai-base-url', '--openaiBaseUrl']

/** The variable by which Qwen Code finds settings that a user's own override. */
const DEFAULTS = 'QWEN_CODE_SYSTEM_DEFAULTS_PATH'

/** The CLI's folder in a home and in a project. */
const FOLDER = '.qwen'

/** A settings file. */
interface Settings {
  file: string
  fields: Fields
}

export function qwen(args: readonly string[], place: Place): Program {
  const read = new SettingsFiles()
  const found = settingsOf(place, read)
  const openai = addressOf(args, place, found, read)
  return {
    host: 'qwen-code',
    upstreams: {},
    launch({ url, mcpUrl, secret }, folder) {
      const own = found.defaults.fields
      const server = { httpUrl: mcpUrl, headers: { Authorization: `Bearer ${secret}` }, trust: true }
      const settings = { ...own, mcpServers: { ...fieldsOf(own['mcpServers']), [SERVER_NAME]: server } }
      const base = openai === undefined ? `${url}/openai` : `${url}/${openai}`
      const isPast = found.all.some(({ fields }) => Object.values(fieldsOf(fields['modelProviders'])).some(hasAddress))
      return {
        args: withAddress(args, base),
        env: { [BASE]: base, [DEFAULTS]: join(folder, 'settings.json') },
        files: { 'settings.json': JSON.stringify(settings) },
        notes: [
          ...read.notes,
          ...(isPast ? ['requests to models that "modelProviders" of Qwen Code gives a base URL go past the gateway, and nothing changes in them'] : []),
        ],
      }
    },
  }
}

/** The settings of Qwen Code that count in a place, the latest of which win, and where it finds more. */
interface Found {
  all: readonly Settings[]
  /** The system's, which the others override. */
  defaults: Settings
  home: string
  /** The CLI's folder in the home, or elsewhere. */
  folder: string
  isTrusted: boolean
}

function settingsOf({ cwd, env }: Place, read: SettingsFiles): Found {
  const home = env['HOME'] || homedir()
  const own = join(home, FOLDER)
  // Only files of the user may move it.
  const moved = env['QWEN_HOME'] || [own, home].map((folder) => variablesIn(read.text(join(folder, '.env'))).get('QWEN_HOME') ?? '').find((one) => one !== '')
  const folder = moved === undefined ? own : resolve(home, moved.replace(/^~(?=$|[\\/])/, home))
  const of = (file: string): Settings => ({ file, fields: read.json(file) })
  const systemFile = env['QWEN_CODE_SYSTEM_SETTINGS_PATH'] || SYSTEM_FILE
  const system = of(systemFile)
  const defaults = of(env[DEFAULTS] || join(dirname(systemFile), 'system-defaults.json'))
  const user = of(join(folder, 'settings.json'))
  const rules = env['QWEN_CODE_TRUSTED_FOLDERS_PATH'] || join(folder, 'trustedFolders.json')
  const isTrusted = isTrustedFolder(cwd, [defaults, user, system], read.json(rules))
  const project = isTrusted ? [of(join(cwd, FOLDER, 'settings.json'))] : []
  return { all: [defaults, user, ...project, system], defaults, home, folder, isTrusted }
}

const SYSTEM_FILE =
  process.platform === 'darwin'
    ? '/Library/Application Support/QwenCode/settings.json'
    : process.platform === 'win32'
      ? String.raw`C:\ProgramData\qwen-code\settings.json`
      : '/etc/qwen-code/settings.json'

/** False if the user has said that this folder is not trusted. What an editor says is not known here. */
function isTrustedFolder(cwd: string, settings: readonly Settings[], rules: Fields): boolean {
  const trust = settings.map(({ fields }) => fieldsOf(fieldsOf(fields['security'])['folderTrust'])['enabled'])
  if (trust.findLast((one) => one !== undefined) !== true) return true
  const all = Object.entries(rules)
  const isWithinTrusted = ([path, level]: [string, unknown]): boolean =>
    (level === 'TRUST_FOLDER' && isWithin(path, cwd)) || (level === 'TRUST_PARENT' && isWithin(dirname(path), cwd))
  return all.some(isWithinTrusted) || !all.some(([path, level]) => level === 'DO_NOT_TRUST' && normalize(path) === normalize(cwd))
}

/** The address to which its requests went so far; undefined for OpenAI's own. */
function addressOf(args: readonly string[], { cwd, env }: Place, found: Found, read: SettingsFiles): string | undefined {
  const given = baseUrlIn(ARGUMENTS[0] as string, valueOf(args, ARGUMENTS))
  if (given !== undefined) return given
  const own = baseUrlIn(BASE, env[BASE])
  if (own !== undefined) return own
  // An empty variable keeps the files from setting it.
  const added = env[BASE] === undefined ? variableIn(cwd, found, read) : undefined
  if (added?.value !== undefined && added.value !== '') return baseUrlIn(`${BASE} in ${added.file}`, added.value)
  const latest = (read: (fields: Fields) => unknown): [file: string, value: string] | undefined => {
    const one = found.all.findLast(({ fields }) => textOf(read(fields)) !== '')
    return one === undefined ? undefined : [one.file, resolved(textOf(read(one.fields)), env)]
  }
  const set = added === undefined && env[BASE] === undefined ? latest((fields) => fieldsOf(fields['env'])[BASE]) : undefined
  if (set !== undefined) return baseUrlIn(`${BASE} in ${set[0]}`, set[1])
  const [file, value] = latest((fields) => fieldsOf(fieldsOf(fields['security'])['auth'])['baseUrl']) ?? []
  return baseUrlIn(`"baseUrl" of "security.auth" in ${file}`, value)
}

/** The variable in the one `.env` file that Qwen Code reads; undefined if it has none. */
function variableIn(cwd: string, found: Found, read: SettingsFiles): { file: string; value: string } | undefined {
  const file = envFile(cwd, found)
  const value = file === undefined ? undefined : variablesIn(read.text(file)).get(BASE)
  if (file === undefined || value === undefined) return undefined
  const excluded = found.all.flatMap(({ fields }) => fieldsOf(fields['advanced'])['excludedEnvVars'] ?? [])
  const isOwn = basename(dirname(file)) === FOLDER || usersFiles(found).includes(file)
  return !isOwn && excluded.includes(BASE) ? undefined : { file, value }
}

/** The first file on the way up from a folder. Those of the user come in the place of the home, or last. */
function envFile(cwd: string, found: Found): string | undefined {
  const { home, isTrusted } = found
  const places: string[] = []
  let hasHome = false
  for (let folder = resolve(cwd); ; folder = dirname(folder)) {
    if (folder === home) places.push(...usersFiles(found))
    else if (isTrusted) places.push(join(folder, FOLDER, '.env'), join(folder, '.env'))
    hasHome ||= folder === home
    if (folder === dirname(folder)) break
  }
  return [...places, ...(hasHome ? [] : usersFiles(found))].find((file) => existsSync(file))
}

function usersFiles({ home, folder }: Found): string[] {
  return [...new Set([join(folder, '.env'), join(home, FOLDER, '.env'), join(home, '.env')])]
}

/** A text of the settings with the variables that it names. */
function resolved(text: string, env: Environment): string {
  return text.replaceAll(/\$(?:(\w+)|\{(\w+)\})/g, (all, one: string | undefined, other: string | undefined) => env[(one ?? other) as string] ?? all)
}

function hasAddress(models: unknown): boolean {
  return Array.isArray(models) && models.some((model) => textOf(fieldsOf(model)['baseUrl']) !== '')
}

/** The arguments with another address, where they name one. */
function withAddress(args: readonly string[], base: string): string[] {
  const end = args.indexOf('--')
  return args.map((word, at) => {
    if (end >= 0 && at > end) return word
    if (ARGUMENTS.includes(args[at - 1] ?? '')) return base
    const name = ARGUMENTS.find((one) => word.startsWith(`${one}=`))
    return name === undefined ? word : `${name}=${base}`
  })
}
