/** OpenCode's real binary as a server, in isolation, with our plugin or without it. */
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { folder } from '../core/setup.ts'
import { deadline, onCleanUp } from '../rig/cleanup.ts'
import type { ModelServer } from '../rig/model-server.ts'

/** The binary for this machine, which npm has installed; undefined where there is none. */
export const binary = ((): string | undefined => {
  try {
    const name = `opencode-${process.platform}-${process.arch}`
    const path = join(dirname(createRequire(import.meta.url).resolve(`${name}/package.json`)), 'bin', 'opencode')
    return existsSync(path) ? path : undefined
  } catch {
    return undefined
  }
})()

/** The plugin as it is published. */
export const PLUGIN = pathToFileURL(fileURLToPath(new URL('../../dist/hosts/opencode.js', import.meta.url))).href

/** A running OpenCode with one session. */
export class OpenCode {
  readonly cwd: string
  readonly home: string
  #url = ''
  #session = ''
  output = ''

  constructor() {
    this.home = folder()
    this.cwd = join(this.home, 'project')
    mkdirSync(this.cwd)
  }

  /** Starts the server and a session. `plugin` is what its configuration names. */
  async start(server: ModelServer, plugin: unknown[], env: Record<string, string> = {}): Promise<this> {
    const config = {
      autoupdate: false,
      share: 'disabled',
      model: 'scripted/scripted',
      small_model: 'scripted/scripted',
      plugin,
      permission: 'allow',
      provider: {
        scripted: {
          npm: '@ai-sdk/openai-compatible',
          name: 'scripted',
          options: { baseURL: server.baseUrl('openai-completions'), apiKey: 'none' },
          models: {
            scripted: {
              name: 'scripted',
              tool_call: true,
              limit: { context: 200_000, output: 1000 },
              cost: { input: 1, output: 1, cache_read: 0.1, cache_write: 1.25 },
            },
          },
        },
      },
    }
    writeFileSync(join(this.cwd, 'opencode.json'), JSON.stringify(config))
    const child = spawn(binary!, ['serve', '--port', '0', '--hostname', '127.0.0.1', '--print-logs'], {
      cwd: this.cwd,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env['PATH'] ?? '',
        HOME: this.home,
        XDG_DATA_HOME: join(this.home, 'data'),
        XDG_CONFIG_HOME: join(this.home, 'config'),
        XDG_STATE_HOME: join(this.home, 'state'),
        XDG_CACHE_HOME: join(this.home, 'cache'),
        OPENCODE_DISABLE_AUTOUPDATE: '1',
        OPENCODE_DISABLE_MODELS_FETCH: '1',
        OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
        OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
        // It would install its plugins' types from the registry before the first answer; nobody here needs them.
        npm_config_offline: 'true',
        ...env,
      },
    })
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
    onCleanUp(async () => {
      child.kill('SIGKILL')
      await ended
    })
    const listening = new Promise<string>((resolve, reject) => {
      const read = (data: Buffer) => {
        this.output += data.toString()
        const found = /listening on (http:\/\/\S+)/.exec(this.output)
        if (found !== null) resolve(found[1]!)
      }
      child.stdout.on('data', read)
      child.stderr.on('data', read)
      child.once('exit', (code) => reject(new Error(`opencode ended with ${code}: ${this.output.slice(-2000)}`)))
    })
    this.#url = await deadline(listening, 60_000, () => `opencode does not listen: ${this.output.slice(-2000)}`)
    this.#session = ((await this.#post('/session', {})) as { id: string }).id
    return this
  }

  get sessionId(): string {
    return this.#session
  }

  /** One prompt, until the model has nothing more to call. */
  async prompt(text: string): Promise<void> {
    const parts = [{ type: 'text', text }]
    await this.#post(`/session/${this.#session}/message`, { model: { providerID: 'scripted', modelID: 'scripted' }, parts })
  }

  async #post(path: string, body: object): Promise<unknown> {
    const sent = fetch(`${this.#url}${path}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
    const response = await deadline(sent, 120_000, () => `no answer to ${path}: ${this.output.slice(-3000)}`)
    const text = await response.text()
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`)
    return JSON.parse(text)
  }
}
