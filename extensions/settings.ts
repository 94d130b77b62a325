/**
 * The settings: `context-manager.json` in Pi's configuration folder, that of a trusted project (`.pi/context-manager.json`)
 * over it, and a variable over both. Every field is optional.
 */
import { readFileSync, realpathSync, statSync } from 'node:fs'
import { dirname, isAbsolute, join, relative } from 'node:path'
import picomatch from 'picomatch'
import { reasonOf, suggestion } from '../lib/ui/index.ts'
import { BINDINGS, LIFETIME_OPTIONS } from '../lib/models/index.ts'
import type { Binding, LifetimeOption } from '../lib/models/index.ts'
import { areMounts, expandHome, FILESYSTEM_ID_WANTED, isFilesystemId, isWithin, MOUNTS_WANTED, mountsIn, mountsRefused } from '../lib/core/index.ts'
import type { Mount } from './mounts.ts'
import type { XtdbPlace } from './place.ts'

/** The settings, with a value for each. */
export interface Settings {
  /** True if rolls and excerpts happen; `/context on` and `off` change it for one session. Default true. */
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
   * The layout of the model's requests. `references` (default): outputs stay where they appeared until a roll pays.
   * `sections`: the metadata pool, the conversation with references in place of outputs, and the active contents,
   * rendered again for each call.
   */
  layout: 'references' | 'sections'
  /**
   * When the model gets `activate`, `deactivate`, `pin`, `unpin` and `search_context`. `worth` (default): once adding
   * them costs at most one percent of what the session has cost. `start`: from the first call on.
   */
  modelTools: 'worth' | 'start'
  /** The number of tool outputs of one user turn that stay active. Default 5. */
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
  /**
   * The share of what a session has spent that rolls may have cost beyond what they have saved since; `none` for no bound.
   * Default undefined: 0.05.
   */
  debtCap: 'none' | number | undefined
  /**
   * Outputs that never collapse: those of these tools, and those about a file that one of these globs names (relative to the
   * working directory, or absolute). Default: none.
   */
  neverCollapse: NeverCollapse
  /**
   * The share of new sessions that are left plain, to measure the saving on one's own bills: 0.1 leaves every tenth session
   * without the context manager. Default 0.
   */
  holdout: number
  /**
   * How the paths that the agent's tools see map to folders of this machine, where the tools run inside a sandbox. Default: no
   * sandbox. A project can only name its own folder and what is in it.
   */
  mounts: readonly Mount[]
  /** The filesystem namespace of paths that no mount covers, such as a container's ID. Default: one for each session. */
  filesystemId: string | undefined
  /** True if files that were read are watched for changes from outside. Default true. */
  watch: boolean
  /**
   * True if secrets of known shapes are taken out of what is recorded, before it is stored. Files stay as they are, and
   * so does what the model is sent. Default false.
   */
  redact: boolean
  /**
   * Roll only at the start of a user's turn, for models whose reasoning depends on an unchanged prefix. Default
   * false.
   */
  rollOnlyAtUserTurn: boolean
  /**
   * The provider's handling of the model's reasoning once something before it has changed: it does not check (`none`), the
   * model still reads it (`keeps`), it drops that reasoning and all later reasoning (`drops`), or it refuses the request
   * (`refuses`). Default undefined: by the model, by what Pi's requests ask for, and by what answers report.
   */
  binding: Binding | undefined
  /**
   * How long Anthropic's own API is asked to keep what it caches: by a rule where a key pays by the token (`auto`, default), as Pi
   * asks (`client`), or always this long.
   */
  cacheLifetime: LifetimeOption
  /** The lifetime of a prompt at the provider in seconds, if Pi's model catalogue has none. Default 300, or the known one. */
  cacheLifetimeSeconds: number
  /** True if Pi's footer shows the status line. Default true. */
  statusLine: boolean
}

/** Tools by name, and files by glob. */
export interface NeverCollapse {
  tools?: readonly string[]
  files?: readonly string[]
}

/** For good, or for this many model calls. */
export type Stay = 'keep' | number

/** The settings of an empty file. */
export const DEFAULTS: Settings = {
  enabled: true,
  store: undefined,
  tools: 'override',
  layout: 'references',
  modelTools: 'worth',
  perTurn: 5,
  turnsBack: 3,
  thinking: undefined,
  calls: undefined,
  prose: undefined,
  debtCap: undefined,
  neverCollapse: {},
  holdout: 0,
  mounts: [],
  filesystemId: undefined,
  watch: true,
  redact: false,
  rollOnlyAtUserTurn: false,
  binding: undefined,
  cacheLifetime: 'auto',
  cacheLifetimeSeconds: 300,
  statusLine: true,
}

/** The settings, which of them were given, and a message for each invalid part. */
interface ReadSettings {
  settings: Settings
  /** Those that were given, in whatever place, and can be used. */
  given: ReadonlySet<keyof Settings>
  problems: string[]
}

/** The sources of settings. */
interface Sources {
  /** Pi's configuration folder. */
  user: string
  /** The configuration folder of a project that the user trusts. */
  project?: string | undefined
  /** A JSON text that takes precedence over both files; by default the variable CONTEXT_SETTINGS. */
  over?: string | undefined
}

/** The name of the file in either folder. */
export const SETTINGS_FILE = 'context-manager.json'

/** Reads the settings. Never throws: invalid values are reported and replaced by defaults. */
export function readSettings({ user, project, over = process.env['CONTEXT_SETTINGS'] }: Sources): ReadSettings {
  const problems: string[] = []
  const fields: Partial<Settings> = {}
  /** `root`: the folder of the project whose file it is. */
  const take = (name: string, text: string, root?: string): void => {
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch (error) {
      problems.push(`${name} is not JSON, so nothing in it counts: ${(error as Error).message}`)
      return
    }
    const checked = checkSettings(value)
    problems.push(...checked.problems.map((problem) => `${name}: ${problem}`))
    for (const field of checked.given) {
      const reason = root === undefined ? undefined : refusedOfProject(field, checked.settings, root)
      if (reason === undefined) Object.assign(fields, { [field]: checked.settings[field] })
      else problems.push(`${name}: ${reason}`)
    }
  }
  const takeFile = (folder: string, isProject: boolean): void => {
    const path = join(folder, SETTINGS_FILE)
    try {
      const real = realpathSync(path)
      // A project is trusted for what is in it.
      if (isProject && relative(realpathSync(dirname(folder)), real).startsWith('..'))
        problems.push(`${path} leads out of the project, to ${real}, so it is not read; copy the file`)
      else if (!statSync(real).isFile()) problems.push(`${path} is not a file, so no settings are read from it`)
      else take(path, readFileSync(real, 'utf8'), isProject ? dirname(folder) : undefined)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') problems.push(`${path} can't be read: ${reasonOf(error)}`)
    }
  }
  takeFile(user, false)
  if (project !== undefined) takeFile(project, true)
  if (over !== undefined && over !== '') take('CONTEXT_SETTINGS', over)
  return { settings: { ...DEFAULTS, ...fields }, given: new Set(Object.keys(fields) as (keyof Settings)[]), problems }
}

/** Why a project's file can't say this; undefined if it can. Where data goes, what is kept and what is read is the user's choice. */
function refusedOfProject(field: keyof Settings, { redact, mounts }: Settings, root: string): string | undefined {
  if (field === 'mounts' && !mounts.every(({ canonicalPrefix }) => isWithin(root, canonicalPrefix)))
    return '"mounts" of a project can only name its own folder and what is in it; name other folders in your own settings'
  if (field === 'store') return '"store" can only be set in your own settings, because a project must not say where your data goes'
  if (field === 'redact' && !redact) return '"redact" can only be switched off in your own settings'
  return undefined
}

/** The number of characters of a wrong value that a message shows. */
const MOST_SHOWN = 200

/** A value as messages show it: not the whole of a long one. */
function shown(value: unknown): string {
  const text = JSON.stringify(value)
  return text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)}… (${text.length} characters)` : text
}

/** The settings in a parsed file. `given`: those that it has, and that can be used. */
export function checkSettings(value: unknown): ReadSettings {
  const settings: Record<string, unknown> = { ...DEFAULTS }
  const [given, problems] = [new Set<keyof Settings>(), [] as string[]]
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return { settings: { ...DEFAULTS }, given, problems: [`the settings must be a JSON object such as { "perTurn": 5 }, not ${JSON.stringify(value)}`] }
  }
  for (const [name, one] of Object.entries(value)) {
    const check = Object.hasOwn(CHECKS, name) ? CHECKS[name as keyof Settings] : undefined
    if (check === undefined) problems.push(`there is no setting "${name}"${suggestion(name, Object.keys(CHECKS))}`)
    else if (!check.test(one)) problems.push(`"${name}" ${check.refused?.(one) ?? `must be ${check.wanted}, not ${shown(one)}`}`)
    else {
      settings[name] = valueOf(name, one)
      given.add(name as keyof Settings)
    }
  }
  return { settings: settings as unknown as Settings, given, problems }
}

function valueOf(name: string, value: unknown): unknown {
  if (name === 'store') return storeOf(value as string | XtdbPlace)
  return name === 'mounts' ? mountsIn(value as Mount[]) : value
}

interface Check {
  wanted: string
  test(value: unknown): boolean
  /** The reason why a value of the right form is refused, as a sentence after the setting's name; undefined for others. */
  refused?(value: unknown): string | undefined
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

const LIST: Check['test'] = (value) => value === undefined || (Array.isArray(value) && value.every((one) => typeof one === 'string' && one !== ''))

const CHECKS: Record<keyof Settings, Check> = {
  enabled: YES_OR_NO,
  store: {
    wanted: 'an absolute path, the http address of an XTDB node, or { "url", "urls", "journal" }',
    test: (value) => isAddress(value) || isFile(value) || isXtdb(value),
  },
  tools: { wanted: '"override" or "observe"', test: (value) => value === 'override' || value === 'observe' },
  layout: { wanted: '"references" or "sections"', test: (value) => value === 'references' || value === 'sections' },
  modelTools: { wanted: '"worth" or "start"', test: (value) => value === 'worth' || value === 'start' },
  perTurn: COUNT,
  turnsBack: COUNT,
  thinking: STAY,
  calls: STAY,
  prose: STAY,
  debtCap: {
    wanted: '"none" or a share of what was spent, 0 or more',
    test: (value) => value === undefined || value === 'none' || (typeof value === 'number' && Number.isFinite(value) && value >= 0),
  },
  neverCollapse: {
    wanted: '{ "tools": names, "files": globs }, each a list of texts',
    test: (value) => isNeverCollapse(value) && wrongGlob(value) === undefined,
    refused: (value) => (isNeverCollapse(value) ? wrongGlob(value) : undefined),
  },
  holdout: {
    wanted: 'a share of sessions from 0 to 1',
    test: (value) => typeof value === 'number' && value >= 0 && value <= 1,
  },
  mounts: { wanted: MOUNTS_WANTED, test: areMounts, refused: mountsRefused },
  filesystemId: { wanted: FILESYSTEM_ID_WANTED, test: (value) => value === undefined || isFilesystemId(value) },
  watch: YES_OR_NO,
  redact: YES_OR_NO,
  rollOnlyAtUserTurn: YES_OR_NO,
  binding: {
    wanted: '"none", "keeps", "drops" or "refuses"',
    test: (value) => value === undefined || (BINDINGS as readonly unknown[]).includes(value),
  },
  cacheLifetime: {
    wanted: '"auto", "client", "5m" or "1h"',
    test: (value) => (LIFETIME_OPTIONS as readonly unknown[]).includes(value),
  },
  cacheLifetimeSeconds: {
    wanted: 'a number of seconds above 0',
    test: (value) => typeof value === 'number' && Number.isFinite(value) && value > 0,
  },
  statusLine: YES_OR_NO,
}

function isNeverCollapse(value: unknown): value is NeverCollapse {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const { tools, files, ...others } = value as NeverCollapse
  return LIST(tools) && LIST(files) && Object.keys(others).length === 0
}

/** The first glob that can't be one, as a sentence. Without this, it would stand for a file of that very name. */
function wrongGlob({ files = [] }: NeverCollapse): string | undefined {
  const wrong = files.find((glob) => {
    try {
      picomatch.makeRe(glob, { debug: true, strictBrackets: true })
      return false
    } catch {
      return true
    }
  })
  return wrong === undefined ? undefined : `has a glob with a bracket that is never closed, or a range that ends before it begins: ${shown(wrong)}`
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
  return isAddress(url) && Array.isArray(urls) && urls.every(isAddress) && (journal === undefined || isFile(journal)) && Object.keys(others).length === 0
}

function storeOf(given: string | XtdbPlace): string | XtdbPlace {
  if (typeof given === 'string') return isAddress(given) ? { url: given } : expandHome(given)
  return given.journal === undefined ? given : { ...given, journal: expandHome(given.journal) }
}
