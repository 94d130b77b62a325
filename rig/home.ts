/** A private home for Pi: its own configuration, sessions and environment, nothing of the user's. */
import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findRuntime, runtimePath } from '../pi-runtime/index.mjs'
import { onCleanUp } from './cleanup.ts'
import type { Api } from './exchange.ts'

/** The name that the scripted model has in Pi, as `--model` takes it. */
export const MODEL = 'rig/scripted'

/** The parts of a home. */
export interface PiHomeOptions {
  /** The scripted provider. */
  server: { baseUrl(api: Api): string }
  /** The provider format; default `openai-completions`. */
  api?: Api
  /** The model's window in tokens; default 200,000. */
  contextWindow?: number
  /** More fields of the model's entry in models.json, such as `cost`, `compat`, `reasoning`. */
  model?: Record<string, unknown>
  /** Entries of more models of the same provider. */
  models?: Record<string, unknown>[]
  /** Fields of settings.json over the rig's own. */
  settings?: Record<string, unknown>
  /** Variables over the rig's own. */
  env?: Record<string, string>
  /** An existing folder to live in, which then stays; default a temporary one that `cleanUp` removes. */
  root?: string
}

/** A home; every path is absolute and real. */
export interface PiHome {
  readonly root: string
  /** The user's home, as Pi sees it. */
  readonly home: string
  /** Pi's configuration folder, with models.json and settings.json. */
  readonly agentDir: string
  /** The folder of Pi's session files, with a folder for each working directory. */
  readonly sessionsDir: string
  /** An empty folder to work in. */
  readonly cwd: string
  /** The whole environment of a Pi process. */
  readonly env: Record<string, string>
}

/** Makes a home. Pi's off-switches for network use are set; retries wait one millisecond instead of seconds. */
export function createPiHome(options: PiHomeOptions): PiHome {
  const root = options.root ?? temporaryFolder('pi-rig-')
  const home = join(root, 'home')
  const agentDir = join(root, 'agent')
  const sessionsDir = join(agentDir, 'sessions')
  const cwd = join(root, 'work')
  for (const folder of [home, agentDir, cwd]) mkdirSync(folder, { recursive: true })
  const api = options.api ?? 'openai-completions'
  const model = {
    id: 'scripted',
    contextWindow: options.contextWindow ?? 200_000,
    maxTokens: 8192,
    input: ['text', 'image'],
    ...options.model,
  }
  const provider = { baseUrl: options.server.baseUrl(api), api, apiKey: 'scripted', models: [model, ...(options.models ?? [])] }
  writeJson(join(agentDir, 'models.json'), { providers: { rig: provider } })
  writeJson(join(agentDir, 'settings.json'), {
    defaultProvider: 'rig',
    defaultModel: 'scripted',
    defaultTools: ['read', 'bash', 'edit', 'write', 'grep', 'ls'],
    retry: { baseDelayMs: 1 },
    quietStartup: true,
    ...options.settings,
  })
  return { root, home, agentDir, sessionsDir, cwd, env: { ...environment(home, agentDir), ...options.env } }
}

/** A temporary folder by its real path, removed by `cleanUp`. */
export function temporaryFolder(prefix: string): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), prefix)))
  onCleanUp(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
  return folder
}

/** Variables that a process needs to run at all; everything else of this process's environment stays out. */
const INHERITED = ['PATH', 'TMPDIR', 'TEMP', 'TMP', 'LANG', 'LC_ALL', 'TZ', 'SystemRoot', 'ComSpec', 'PATHEXT']

function environment(home: string, agentDir: string): Record<string, string> {
  const env: Record<string, string> = {}
  for (const name of INHERITED) {
    const value = process.env[name]
    if (value !== undefined) env[name] = value
  }
  return {
    ...env,
    PATH: runtimePath(findRuntime()),
    HOME: home,
    USERPROFILE: home,
    XDG_DATA_HOME: join(home, '.local', 'share'),
    XDG_CONFIG_HOME: join(home, '.config'),
    XDG_CACHE_HOME: join(home, '.cache'),
    NO_COLOR: '1',
    PI_CODING_AGENT_DIR: agentDir,
    PI_OFFLINE: '1',
    PI_SKIP_VERSION_CHECK: '1',
    PI_TELEMETRY: '0',
  }
}

function writeJson(path: string, value: unknown): void {
  writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`)
}
