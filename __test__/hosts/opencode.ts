/** OpenCode's real binary as a server, in isolation, with our plugin or without it. */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { folder } from '../core/setup.ts'
import { deadline, onCleanUp } from '../../rig/cleanup.ts'
import type { ModelServer } from '../../rig/model-server.ts'

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

/** A message as OpenCode's server gives it. */
interface StoredMessage {
  info: { id: string; role: 'user' | 'assistant' }
  parts: { id: string; type: string; [field: string]: any }[]
}

/** A running OpenCode with one session. */
export class OpenCode {
  readonly cwd: string
  readonly home: string
  #url = ''
  #child: ChildProcess | undefined
  #ended: Promise<void> = Promise.resolve()
  #session = ''
  output = ''
  readonly #model: string
  readonly #npm: string

  /** `model` is the name of the scripted model, and `npm` the package with which OpenCode asks it. */
  constructor(model = 'scripted', npm = '@ai-sdk/openai-compatible') {
    this.#model = model
    this.#npm = npm
    this.home = folder()
    this.cwd = join(this.home, 'project')
    mkdirSync(this.cwd)
  }

  /**
   * Starts the server, and a session the first time. `plugin` is what its configuration names, `more` are other fields of
   * it.
   */
  async start(server: ModelServer, plugin: unknown[], env: Record<string, string> = {}, more: object = {}): Promise<this> {
    this.output = ''
    const config = {
      autoupdate: false,
      share: 'disabled',
      model: `scripted/${this.#model}`,
      small_model: `scripted/${this.#model}`,
      plugin,
      permission: 'allow',
      provider: {
        scripted: {
          npm: this.#npm,
          name: 'scripted',
          options: { baseURL: server.baseUrl('openai-completions'), apiKey: 'none' },
          models: {
            [this.#model]: {
              name: this.#model,
              tool_call: true,
              reasoning: this.#model !== 'scripted',
              limit: { context: 200_000, output: 1000 },
              cost: { input: 1, output: 1, cache_read: 0.1, cache_write: 1.25 },
            },
          },
        },
      },
      ...more,
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
        // It would install its plugins' types from the registry before the first answer; no test here needs them.
        npm_config_offline: 'true',
        ...env,
      },
    })
    this.#child = child
    this.#ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
    onCleanUp(() => this.kill9())
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
    if (this.#session === '') this.#session = ((await this.#ask('POST', '/session', {})) as { id: string }).id
    return this
  }

  /** SIGKILL: no handler of the process runs. */
  async kill9(): Promise<void> {
    this.#child?.kill('SIGKILL')
    await this.#ended
  }

  get sessionId(): string {
    return this.#session
  }

  /** One prompt, until the model has nothing more to call. */
  async prompt(text: string): Promise<void> {
    const parts = [{ type: 'text', text }]
    await this.#ask('POST', `/session/${this.#session}/message`, { model: { providerID: 'scripted', modelID: this.#model }, parts })
  }

  /** The session's messages, as OpenCode keeps them. */
  async messages(): Promise<StoredMessage[]> {
    return (await this.#ask('GET', `/session/${this.#session}/message`)) as StoredMessage[]
  }

  /** Puts a part of a message in the place of the one that it was. */
  async replace(message: StoredMessage, part: StoredMessage['parts'][number]): Promise<void> {
    await this.#ask('PATCH', `/session/${this.#session}/message/${message.info.id}/part/${part.id}`, part)
  }

  /** Takes a message out of the session. */
  async remove({ info }: StoredMessage): Promise<void> {
    await this.#ask('DELETE', `/session/${this.#session}/message/${info.id}`)
  }

  async #ask(method: string, path: string, body?: object): Promise<unknown> {
    const content = body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
    const sent = fetch(`${this.#url}${path}`, { method, ...content })
    const response = await deadline(sent, 120_000, () => `no answer to ${path}: ${this.output.slice(-3000)}`)
    const text = await response.text()
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`)
    return JSON.parse(text)
  }
}
