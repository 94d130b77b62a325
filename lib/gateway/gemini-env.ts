/**
 * The variables that Gemini CLI adds to its environment from one `.env` file, as version 0.61.0 looks for it. They decide how it is
 * logged in and where its requests go. Nothing of them is kept or shown.
 */
import { existsSync } from 'node:fs'
import { dirname, join, parse, resolve } from 'node:path'
import { isWithin } from '../core/index.ts'
import type { Environment, Fields } from '../core/index.ts'
import { fieldsOf } from './program-settings.ts'
import type { Place, SettingsFiles } from './program-settings.ts'

/** The CLI's folder in a home and in a project. */
const FOLDER = '.gemini'

/** In a folder that the user has not trusted, only these count, without unusual characters. */
const ALWAYS = ['GEMINI_API_KEY', 'GOOGLE_API_KEY', 'GOOGLE_CLOUD_PROJECT', 'GOOGLE_CLOUD_LOCATION']

/** The settings of Gemini CLI that apply to `.env` files, each read once. The later ones win. */
export interface GeminiSettings {
  /** The arguments of the CLI. */
  args: readonly string[]
  /** The user's settings, and the system's. */
  trusted: readonly Fields[]
  /** The project's settings. They count only in a trusted folder. */
  project: Fields
  /** The CLI's home folder. */
  home: string
}

/** The environment of the CLI: its own variables, also empty ones, and those of the first `.env` file that it finds. */
export function withEnvFile({ cwd, env }: Place, settings: GeminiSettings, read: SettingsFiles): Environment {
  const { args, trusted, project, home } = settings
  const isTrusted = isTrustedFolder({ cwd, env }, trusted, home, read)
  const advanced = [trusted[0] ?? {}, isTrusted ? project : {}, ...trusted.slice(1)].map((one) => fieldsOf(one['advanced']))
  const end = args.indexOf('--')
  const isIgnored = args.slice(0, end < 0 ? undefined : end).includes('--ignore-env') || last(advanced, 'ignoreLocalEnv') === true
  const file = envFile(cwd, home, { isTrusted, isIgnored })
  if (file === undefined) return env
  const excluded = file.includes(FOLDER) ? [] : advanced.flatMap(({ excludedEnvVars: all }) => (Array.isArray(all) ? (all as unknown[]) : []))
  const added: Record<string, string> = {}
  for (const [name, value] of variablesIn(read.text(file))) {
    if (name in env || excluded.includes(name) || (!isTrusted && !ALWAYS.includes(name))) continue
    added[name] = isTrusted ? value : value.replaceAll(/[^a-zA-Z0-9\-_./]/g, '')
  }
  return { ...env, ...added }
}

/** The variables in the text of a `.env` file, as the package dotenv reads them. */
export function variablesIn(text: string): Map<string, string> {
  const line = /^\s*(?:export\s+)?([\w.-]+)(?:\s*=\s*?|:\s+?)(\s*'(?:\\'|[^'])*'|\s*"(?:\\"|[^"])*"|\s*`(?:\\`|[^`])*`|[^#\r\n]+)?\s*(?:#.*)?$/gm
  const found = new Map<string, string>()
  for (const [, name = '', given = ''] of text.replaceAll(/\r\n?/g, '\n').matchAll(line)) {
    const value = given.trim()
    const bare = value.replace(/^(['"`])([^]*)\1$/, '$2')
    found.set(name, value.startsWith('"') ? bare.replaceAll(String.raw`\n`, '\n').replaceAll(String.raw`\r`, '\r') : bare)
  }
  return found
}

/** The first file on the way up from a folder, and then in the home. */
function envFile(cwd: string, home: string, { isTrusted, isIgnored }: { isTrusted: boolean; isIgnored: boolean }): string | undefined {
  const places: string[] = []
  const add = (folder: string, hasOwn: boolean): void => {
    if (isTrusted) places.push(join(folder, FOLDER, '.env'))
    if (hasOwn) places.push(join(folder, '.env'))
  }
  const { root } = parse(resolve(cwd))
  for (let folder = resolve(cwd); ; folder = dirname(folder)) {
    add(folder, !isIgnored || folder === home)
    if (folder === root) break
  }
  add(home, true)
  return places.find((file) => existsSync(file))
}

/** True if the user has said that this folder is trusted, or that folders need no trust. What an editor says is not known here. */
function isTrustedFolder({ cwd, env }: Place, settings: readonly Fields[], home: string, read: SettingsFiles): boolean {
  if (env['GEMINI_RESTRICTED_MODE'] === 'true' || env['GEMINI_CLI_TRUST_WORKSPACE'] === 'false') return false
  if (env['GEMINI_CLI_TRUST_WORKSPACE'] === 'true') return true
  const folderTrust = settings.map((one) => fieldsOf(fieldsOf(one['security'])['folderTrust']))
  if (last(folderTrust, 'enabled') === false) return true
  const rules = read.json(env['GEMINI_CLI_TRUSTED_FOLDERS_PATH'] || join(home, FOLDER, 'trustedFolders.json'))
  let [longest, level]: [number, unknown] = [-1, undefined]
  for (const [path, own] of Object.entries(rules)) {
    if (!['TRUST_FOLDER', 'TRUST_PARENT', 'DO_NOT_TRUST'].includes(String(own)) || path.length <= longest) continue
    if (isWithin(own === 'TRUST_PARENT' ? dirname(path) : path, cwd)) [longest, level] = [path.length, own]
  }
  return level === 'TRUST_FOLDER' || level === 'TRUST_PARENT'
}

/** The value of the last of several settings that has one. */
function last(settings: readonly Fields[], name: string): unknown {
  return settings.findLast((one) => one[name] !== undefined)?.[name]
}
