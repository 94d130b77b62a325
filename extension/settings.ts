/** The settings: `context-manager.json` in Pi's configuration folder, and a variable over it. Every field is optional. */
import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { isAbsolute, join, sep } from 'node:path'
import type { XtdbPlace } from './place.ts'

/** The settings, with a value for each. */
export interface Settings {
  /** Whether rolls and excerpts happen; `/context on` and `off` change it for one session. Default true. */
  enabled: boolean
  /**
   * The store: a SQLite file, or an XTDB database (in the file also as the address of its node). Default: the file at
   * `defaultStorePath()`. The variables CONTEXT_STORE and CONTEXT_STORE_PATH take precedence.
   */
  store: string | XtdbPlace | undefined
  /**
   * `override` (default): read, write and edit are replaced by definitions that also hand us the bytes. `observe`: no
   * tool is replaced, for use with other extensions that replace them. The flag `--context-tools` takes precedence.
   */
  tools: 'override' | 'observe'
  /**
   * What the model is sent. `anchored` (default): outputs stay where they appeared until a roll pays. `sections`: the
   * metadata pool, the conversation with references in place of outputs, and the active contents, rendered again for
   * each call.
   */
  layout: 'anchored' | 'sections'
  /**
   * When the model gets `activate`, `deactivate`, `pin`, `unpin` and `search_context`. `worth` (default): once adding
   * them costs at most one percent of what the session has cost. `start`: from the first call on.
   */
  modelTools: 'worth' | 'start'
  /** How many tool outputs of one user turn stay active. Default 5. */
  perTurn: number
  /** For how many user turns tool outputs stay active, including the current one. Default 3. */
  turnsBack: number
  /**
   * How long the model still sees its own reasoning, if the provider allows removing it: `keep` for good, or a number of
   * model calls. Default undefined: as long as keeping it costs less than the expected cost of needing it again.
   */
  thinking: Stay | undefined
  /** The same for calls. Once their outputs and arguments are old, one line of each stays. */
  calls: Stay | undefined
  /** The same for the model's prose and the user's long texts. Their beginning stays. */
  prose: Stay | undefined
  /** Whether files that were read are watched for changes from outside. Default true. */
  watch: boolean
  /**
   * Whether secrets of known shapes are taken out of what is recorded, before it is stored. Files stay as they are, and so
   * does what the model is sent. Default false.
   */
  redact: boolean
  /**
   * Roll only at the start of a user's turn, for models whose reasoning depends on an unchanged prefix. Default
   * false.
   */
  rollOnlyAtUserTurn: boolean
  /** How many seconds the provider keeps a prompt, if Pi's model catalogue does not say. Default 300. */
  cacheLifetimeSeconds: number
  /** Whether Pi's footer shows the status line. Default true. */
  statusLine: boolean
}

/** For good, or for this many model calls. */
export type Stay = 'keep' | number

/** The settings of an empty file. */
export const DEFAULTS: Settings = {
  enabled: true,
  store: undefined,
  tools: 'override',
  layout: 'anchored',
  modelTools: 'worth',
  perTurn: 5,
  turnsBack: 3,
  thinking: undefined,
  calls: undefined,
  prose: undefined,
  watch: true,
  redact: false,
  rollOnlyAtUserTurn: false,
  cacheLifetimeSeconds: 300,
  statusLine: true,
}

/** The settings, and a message for each invalid part of the file. */
export interface ReadSettings {
  settings: Settings
  problems: string[]
}

/**
 * Reads the settings in a configuration folder; those in `over`, a JSON text (by default the variable CONTEXT_SETTINGS),
 * take precedence. Never throws: invalid values are reported and replaced by defaults.
 */
export function readSettings(folder: string, over = process.env['CONTEXT_SETTINGS']): ReadSettings {
  const path = join(folder, 'context-manager.json')
  const problems: string[] = []
  const fields: Record<string, unknown> = {}
  const take = (name: string, text: string): void => {
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch (error) {
      problems.push(`${name} is not JSON: ${(error as Error).message}`)
      return
    }
    const checked = checkSettings(value)
    problems.push(...checked.problems.map((problem) => `${name}: ${problem}`))
    for (const field of Object.keys(Object(value))) {
      if (Object.hasOwn(DEFAULTS, field)) fields[field] = checked.settings[field as keyof Settings]
    }
  }
  try {
    take(path, readFileSync(path, 'utf8'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') problems.push(`${path}: ${(error as Error).message}`)
  }
  if (over !== undefined && over !== '') take('CONTEXT_SETTINGS', over)
  return { settings: { ...DEFAULTS, ...fields }, problems }
}

/** The settings in a parsed file. */
export function checkSettings(value: unknown): ReadSettings {
  const settings: Record<string, unknown> = { ...DEFAULTS }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return { settings: { ...DEFAULTS }, problems: ['the settings are a JSON object'] }
  }
  const problems: string[] = []
  for (const [name, given] of Object.entries(value)) {
    const check = Object.hasOwn(CHECKS, name) ? CHECKS[name as keyof Settings] : undefined
    if (check === undefined) problems.push(`there is no setting "${name}"`)
    else if (check.test(given)) settings[name] = name === 'store' ? storeOf(given as string | XtdbPlace) : given
    else problems.push(`"${name}" must be ${check.wanted}, not ${JSON.stringify(given)}`)
  }
  return { settings: settings as unknown as Settings, problems }
}

interface Check {
  wanted: string
  test(value: unknown): boolean
}

const YES_OR_NO: Check = { wanted: 'true or false', test: (value) => typeof value === 'boolean' }
const COUNT: Check = {
  wanted: 'a whole number of at least 1',
  test: (value) => Number.isInteger(value) && (value as number) >= 1 && (value as number) < 2 ** 31,
}

const STAY: Check = {
  wanted: '"keep" or a whole number of model calls of at least 1',
  test: (value) => value === undefined || value === 'keep' || COUNT.test(value),
}

const CHECKS: Record<keyof Settings, Check> = {
  enabled: YES_OR_NO,
  store: {
    wanted: 'an absolute path, the http address of an XTDB node, or { "url", "urls", "journal" }',
    test: (value) => isAddress(value) || isFile(value) || isXtdb(value),
  },
  tools: { wanted: '"override" or "observe"', test: (value) => value === 'override' || value === 'observe' },
  layout: { wanted: '"anchored" or "sections"', test: (value) => value === 'anchored' || value === 'sections' },
  modelTools: { wanted: '"worth" or "start"', test: (value) => value === 'worth' || value === 'start' },
  perTurn: COUNT,
  turnsBack: COUNT,
  thinking: STAY,
  calls: STAY,
  prose: STAY,
  watch: YES_OR_NO,
  redact: YES_OR_NO,
  rollOnlyAtUserTurn: YES_OR_NO,
  cacheLifetimeSeconds: {
    wanted: 'a number of seconds above 0',
    test: (value) => typeof value === 'number' && Number.isFinite(value) && value > 0,
  },
  statusLine: YES_OR_NO,
}

function isFile(value: unknown): boolean {
  return typeof value === 'string' && isAbsolute(expandHome(value))
}

function isAddress(value: unknown): boolean {
  return typeof value === 'string' && /^https?:\/\/[^/]/.test(value)
}

function isXtdb(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const { url, urls = [], journal, ...others } = value as Record<string, unknown>
  return (
    isAddress(url) &&
    Array.isArray(urls) &&
    urls.every(isAddress) &&
    (journal === undefined || isFile(journal)) &&
    Object.keys(others).length === 0
  )
}

function storeOf(given: string | XtdbPlace): string | XtdbPlace {
  if (typeof given === 'string') return isAddress(given) ? { url: given } : expandHome(given)
  return given.journal === undefined ? given : { ...given, journal: expandHome(given.journal) }
}

function expandHome(path: string): string {
  return path === '~' || path.startsWith('~/') || path.startsWith(`~${sep}`) ? join(homedir(), path.slice(1)) : path
}
