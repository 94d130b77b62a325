/** For each agent: its start, the names of its tools, and the requests that belong to the conversation itself. */
import { spawn } from 'node:child_process'
import type { ChildProcess, ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { folder } from '../core/setup.ts'
import { onCleanUp } from '../../rig/cleanup.ts'
import type { ModelRequest, ScriptedCall } from '../../rig/exchange.ts'
import type { Addresses } from '../../lib/gateway/program-settings.ts'
import { programOf } from '../../lib/gateway/programs.ts'
import { gemini } from './gemini-cli.ts'
import { installed } from './installed.ts'
import type { Installed, ProgramName } from './installed.ts'
import { cline, copilot, isAsked, kilo, kimi, OPENCODE_CALLS, openCodeConfig, xdgFolders } from './newer-agents.ts'

/** An agent. */
export interface Agent {
  name: ProgramName
  host: string
  program: Installed
  /** Number of times that the host itself changes earlier messages: Qwen Code and Gemini CLI clear old outputs. */
  ownBreaks: number
  /** It writes the same history in another form in a new process, which costs the provider's cache with the gateway and without it. */
  rewrites?: true
  /** True if it sends the same history in a new process. Qwen Code sends outputs again that it had cleared. */
  repeats: boolean
  /** Lines of an output that the host shows whole. */
  lines: number
  /** The words of a command that asks `prompt`, in a new session or in the last one. */
  args(prompt: string, goesOn: boolean): string[]
  /** Its way to take several turns of its user in one process; undefined if each needs its own. */
  chat?: { args: readonly string[]; line(prompt: string): string; isEnd(line: string): boolean }
  /** Writes its configuration, and gives its environment. `url` is the provider's, without a path. */
  prepare(home: string, cwd: string, url: string): Record<string, string>
  /** The gateway that it runs beside. */
  gateway?: Addresses
  shell(command: string): ScriptedCall
  read?(path: string): ScriptedCall
  recall(id: string): ScriptedCall
  /** True if it finds its provider and our tools only in its own configuration: it then runs beside a gateway. */
  isBeside?: boolean
  /** Its user's command for a summary of the conversation; undefined if that can't be asked for without a terminal. */
  compact?: string
  /** The limit from which it summarizes by itself: more input than this in an answer, in tokens. */
  compactsAt?: number
  /** The same: a window that the conversation does not fit into, in tokens. */
  compactsIn?: number
  /** Variables that a test adds to its environment. */
  more?: Record<string, string>
  /** The way in which Gemini CLI is logged in. */
  login?: 'key' | 'google' | 'vertex'
  /** The window that its configuration names. */
  window?: number
  /** Continue's own tool, a beta, fails without a terminal: "No active session found". */
  subagent?(prompt: string): ScriptedCall
  /** The call with which it waits for a subagent that works beside it. `started` is the output of the call that started it. */
  waits?(started: string): ScriptedCall
  /** True if a request is one of the main conversation. */
  isMain(request: ModelRequest): boolean
  isSubagent?(request: ModelRequest): boolean
  /** True if an output of the agent's tool contains the whole text. */
  hasWhole(output: string, text: string): boolean
}

const START = fileURLToPath(new URL('../../dist/cli/start.js', import.meta.url))

function claude(program: Installed): Agent {
  return {
    name: 'claude',
    host: 'claude-code',
    program,
    lines: 450,
    ownBreaks: 0,
    repeats: true,
    args: (prompt, goesOn) => [
      '-p',
      prompt,
      ...(goesOn ? ['--continue'] : []),
      '--dangerously-skip-permissions',
      '--output-format',
      'json',
      '--model',
      'claude-opus-5-5',
    ],
    chat: {
      args: [
        '-p',
        '--input-format',
        'stream-json',
        '--output-format',
        'stream-json',
        '--verbose',
        '--dangerously-skip-permissions',
        '--model',
        'claude-opus-5-5',
      ],
      line: (prompt) => JSON.stringify({ type: 'user', message: { role: 'user', content: prompt } }),
      isEnd: (line) => line.includes('"type":"result"'),
    },
    prepare: (_home, _cwd, url) => ({
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_API_KEY: 'sk-dummy',
      IS_SANDBOX: '1',
      DISABLE_TELEMETRY: '1',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    }),
    shell: (command) => ({ name: 'Bash', args: { command, description: 'runs' } }),
    read: (file_path) => ({ name: 'Read', args: { file_path } }),
    recall: (id) => ({ name: 'mcp__context__activate', args: { id } }),
    compact: '/compact',
    subagent: (prompt) => ({ name: 'Agent', args: { description: 'helps', prompt, subagent_type: 'general-purpose', run_in_background: false } }),
    isMain: ({ tools, headers }) => tools.length > 0 && headers['x-claude-code-agent-id'] === undefined,
    isSubagent: ({ headers }) => headers['x-claude-code-agent-id'] !== undefined,
    // Arguments that have collapsed come after it, in a block of their own.
    hasWhole: (output, text) => output === text || output.startsWith(`${text}\narguments of the call: `),
  }
}

function codex(program: Installed): Agent {
  const provider = (url: string): string =>
    `model = "gpt-5.1"\nmodel_provider = "scripted"\n[model_providers.scripted]\nname = "scripted"\nbase_url = "${url}/v1"\nwire_api = "responses"\nenv_key = "SCRIPTED_KEY"\nrequest_max_retries = 4\n`
  return {
    name: 'codex',
    host: 'codex',
    program,
    lines: 150,
    ownBreaks: 0,
    repeats: true,
    args: (prompt, goesOn) => ['exec', ...(goesOn ? ['resume', '--last'] : []), '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', prompt],
    prepare(home, _cwd, url) {
      mkdirSync(join(home, '.codex'), { recursive: true })
      writeFileSync(join(home, '.codex', 'config.toml'), provider(url))
      return { SCRIPTED_KEY: 'sk-dummy' }
    },
    shell: (cmd) => ({ name: 'exec_command', args: { cmd } }),
    recall: (id) => ({ name: 'activate', namespace: 'mcp__context', args: { id } }),
    compactsAt: 500_000,
    subagent: (message) => ({ name: 'spawn_agent', namespace: 'multi_agent_v1', args: { message } }),
    waits: (started) => ({ name: 'wait_agent', namespace: 'multi_agent_v1', args: { targets: [/"agent_id":\s*"([^"]+)"/.exec(started)?.[1] ?? started] } }),
    isMain: ({ headers, tools }) => tools.length > 0 && headers['x-openai-subagent'] === undefined,
    isSubagent: ({ headers }) => headers['x-openai-subagent'] === 'collab_spawn',
    hasWhole: (output, text) => output.includes(text),
  }
}

function opencode(program: Installed): Agent {
  return {
    name: 'opencode',
    host: 'opencode',
    program,
    lines: 240,
    ownBreaks: 0,
    repeats: true,
    args: (prompt, goesOn) => ['run', ...(goesOn ? ['--continue'] : []), '--print-logs', prompt],
    prepare(home, cwd, url) {
      writeFileSync(join(cwd, 'opencode.json'), JSON.stringify(openCodeConfig(url)))
      return {
        ...xdgFolders(home),
        OPENCODE_DISABLE_AUTOUPDATE: '1',
        OPENCODE_DISABLE_MODELS_FETCH: '1',
        OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
        OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
        npm_config_offline: 'true',
      }
    },
    ...OPENCODE_CALLS,
  }
}

function qwen(program: Installed): Agent {
  return {
    name: 'qwen',
    host: 'qwen-code',
    program,
    lines: 240,
    ownBreaks: 2,
    repeats: false,
    args: (prompt, goesOn) => [...(goesOn ? ['--continue'] : []), '--yolo', '-p', prompt],
    prepare(home, _cwd, url) {
      mkdirSync(join(home, '.qwen'), { recursive: true })
      writeFileSync(
        join(home, '.qwen', 'settings.json'),
        JSON.stringify({ security: { auth: { selectedType: 'openai' } }, privacy: { usageStatisticsEnabled: false }, telemetry: { enabled: false } }),
      )
      return { OPENAI_API_KEY: 'none', OPENAI_BASE_URL: `${url}/v1`, OPENAI_MODEL: 'scripted' }
    },
    shell: (command) => ({ name: 'run_shell_command', args: { command, is_background: false } }),
    read: (file_path) => ({ name: 'read_file', args: { file_path } }),
    recall: (id) => ({ name: 'mcp__context__activate', args: { id } }),
    compact: '/compress',
    subagent: (prompt) => ({ name: 'agent', args: { description: 'helps', prompt, subagent_type: 'general-purpose', run_in_background: false } }),
    isMain: (request) => request.tools.length > 4 && !isAsked(request),
    isSubagent: isAsked,
    hasWhole: (output, text) => output.includes(text),
  }
}

function continued(program: Installed): Agent {
  return {
    name: 'continue',
    host: 'continue',
    program,
    lines: 240,
    ownBreaks: 0,
    repeats: true,
    isBeside: true,
    args: (prompt, goesOn) => [...(goesOn ? ['--resume'] : []), '--auto', '-p', prompt, '--config', 'config.yaml'],
    prepare(_home, cwd, url) {
      const { mcpUrl = '', secret = '', url: gateway = url } = this.gateway ?? {}
      writeFileSync(
        join(cwd, 'config.yaml'),
        `name: test\nversion: 0.0.1\nschema: v1\nmodels:\n  - name: scripted\n    provider: openai\n    model: scripted\n    apiKey: none\n    apiBase: ${gateway}/${url}/v1\n    useResponsesApi: false\n    defaultCompletionOptions:\n      contextLength: ${this.window ?? 1_000_000}\n      maxTokens: 1000\n    capabilities: [tool_use]\n    roles: [chat]\nmcpServers:\n  - name: context\n    type: streamable-http\n    url: ${mcpUrl}\n    requestOptions:\n      headers:\n        Authorization: Bearer ${secret}\n`,
      )
      return { CONTINUE_TELEMETRY_ENABLED: '0', CONTINUE_CLI_ENABLE_TELEMETRY: '0' }
    },
    shell: (command) => ({ name: 'Bash', args: { command } }),
    read: (filepath) => ({ name: 'Read', args: { filepath } }),
    recall: (id) => ({ name: 'activate', args: { id } }),
    compactsIn: 30_000,
    isMain: ({ tools, messages }) => tools.length > 0 && messages.at(-1)?.json.includes('Please provide a concise summary of our conversation') !== true,
    // It shows its model the blocks of an MCP server's answer as JSON.
    hasWhole: (output, text) => output.includes(JSON.stringify({ type: 'text', text })),
  }
}

const AGENTS = { claude, codex, opencode, qwen, gemini, continue: continued, kilo, copilot, cline, kimi } as const

/** The agent of this name; undefined where its program can't be had. */
export function agentNamed(name: ProgramName): Agent | undefined {
  const program = installed(name)
  return program === undefined ? undefined : AGENTS[name](program)
}

/** A program's outputs until its end. */
interface Ran {
  code: number | null
  stdout: string
  stderr: string
}

/** An agent that takes one turn after the other. */
export class Chat {
  readonly #child: ChildProcess
  readonly #ended: Promise<Ran>
  readonly #how: NonNullable<Agent['chat']>

  constructor({ child, ended }: { child: ChildProcess; ended: Promise<Ran> }, how: NonNullable<Agent['chat']>) {
    this.#child = child
    this.#ended = ended
    this.#how = how
  }

  /** One turn. Rejects with what the agent has said if it ends in the middle. */
  async turn(prompt: string): Promise<void> {
    const { stdout, stdin } = this.#child
    const done = new Promise<void>((resolve, reject) => {
      let text = ''
      const hear = (data: Buffer): void => {
        const lines = (text + data.toString()).split('\n')
        text = lines.pop() ?? ''
        if (!lines.some((line) => this.#how.isEnd(line))) return
        stdout?.off('data', hear)
        resolve()
      }
      stdout?.on('data', hear)
      void this.#ended.then(({ stderr, stdout: said }) => reject(new Error(`${stderr}\n${said.slice(-2000)}`)))
    })
    stdin?.write(`${this.#how.line(prompt)}\n`)
    await done
  }

  /** Ends it; it has nothing more to do. */
  end(): Promise<Ran> {
    this.#child.stdin?.end()
    return this.#ended
  }
}

/** A gateway beside an agent. */
interface Beside {
  child: ChildProcess
  ended: Promise<Ran>
  addresses: Addresses
}

/** An agent's place of work: a home, a project, and a store. */
export class Workplace {
  readonly home = folder()
  readonly cwd = join(this.home, 'project')
  readonly store = join(this.home, 'context.db')
  readonly agent: Agent
  readonly #url: string
  /** The options of its gateway. */
  readonly #options: readonly string[]
  #env: Record<string, string>
  #beside: Beside | undefined

  constructor(agent: Agent, url: string, options: readonly string[] = []) {
    mkdirSync(this.cwd)
    delete agent.window
    this.agent = agent
    this.#url = url
    this.#options = options
    this.#env = this.#prepared()
  }

  #prepared(): Record<string, string> {
    return { PATH: process.env['PATH'] ?? '', HOME: this.home, LANG: 'C.UTF-8', ...PROXY(this.agent), ...this.agent.prepare(this.home, this.cwd, this.#url) }
  }

  /** Starts a gateway beside the agent. A later one takes the port of the one before. */
  async startBeside(): Promise<Addresses> {
    const port = this.#beside === undefined ? await freePort() : Number(new URL(this.#beside.addresses.url).port)
    const { child, ended } = this.start(process.execPath, [
      START,
      'gateway',
      '--listen',
      String(port),
      '--store',
      this.store,
      '--anthropic',
      this.#url,
      '--openai',
      `${this.#url}/v1`,
      ...this.#options,
    ])
    const text = await new Promise<string>((resolve, reject) => {
      let said = ''
      child.stdout?.on('data', (data: Buffer) => {
        said += data.toString()
        if (/^page .*\n/m.test(said)) resolve(said)
      })
      void ended.then(({ stderr }) => reject(new Error(stderr)))
    })
    const [, mcpUrl = '', secret = ''] = /^MCP server +(\S+) .*Bearer (\S+)$/m.exec(text) ?? []
    const addresses = { url: `http://127.0.0.1:${port}`, mcpUrl, secret }
    this.#beside = { child, ended, addresses }
    this.agent.gateway = addresses
    this.prepare()
    return addresses
  }

  /** Ends the gateway beside the agent: with what it says at its end, or at once. */
  async endBeside(signal: 'SIGTERM' | 'SIGKILL'): Promise<Ran> {
    const { child, ended } = this.#beside as Beside
    child.kill(signal)
    return ended
  }

  /** Writes the agent's configuration anew. */
  prepare(): void {
    this.#env = this.#prepared()
  }

  /** Runs the agent with the gateway beside it. */
  askBeside(prompt: string, goesOn = false): { child: ChildProcess; ended: Promise<Ran> } {
    const { command, args } = this.agent.program
    const own = [...args, ...this.agent.args(prompt, goesOn)]
    const launch = programOf(command, own, { cwd: this.cwd, env: this.#env }).launch((this.#beside as Beside).addresses, this.home)
    for (const [name, content] of Object.entries(launch.files)) writeFileSync(join(this.home, name), content)
    // A program without its own setting for addresses follows its configuration.
    return this.agent.isBeside === true ? this.start(command, own) : this.start(command, launch.args, launch.env)
  }

  /** Runs the agent behind a gateway: its own, or the one beside it. The result has the words of both. */
  async ask(prompt: string, goesOn = false, more: string[] = []): Promise<Ran> {
    const { command, args } = this.agent.program
    if (this.agent.isBeside === true) {
      await this.startBeside()
      const ran = await this.askBeside(prompt, goesOn).ended
      const { stderr } = await this.endBeside('SIGTERM')
      return { ...ran, stderr: `${ran.stderr}\n${stderr}` }
    }
    return this.run(process.execPath, [
      START,
      'run',
      '--store',
      this.store,
      ...this.#options,
      '--',
      command,
      ...args,
      ...this.agent.args(prompt, goesOn),
      ...more,
    ])
  }

  /** Starts a chat behind a separate gateway. */
  chat(goesOn: boolean): Chat {
    const { command, args } = this.agent.program
    const chat = this.agent.chat as NonNullable<Agent['chat']>
    const own = [...args, ...chat.args, ...(goesOn ? ['--continue'] : [])]
    return new Chat(this.start(process.execPath, [START, 'run', '--store', this.store, ...this.#options, '--', command, ...own], {}, 'pipe'), chat)
  }

  /** Starts any program here. */
  start(command: string, args: string[], env: Record<string, string> = {}, stdin: 'ignore' | 'pipe' = 'ignore'): { child: ChildProcess; ended: Promise<Ran> } {
    const child = spawn(command, args, { cwd: this.cwd, env: { ...this.#env, ...env }, stdio: [stdin, 'pipe', 'pipe'] }) as ChildProcessByStdio<
      Writable | null,
      Readable,
      Readable
    >
    onCleanUp(() => void child.kill('SIGKILL'))
    const ran: Ran = { code: null, stdout: '', stderr: '' }
    child.stdout.on('data', (data: Buffer) => (ran.stdout += data.toString()))
    child.stderr.on('data', (data: Buffer) => (ran.stderr += data.toString()))
    const ended = new Promise<Ran>((resolve) => child.once('close', (code) => resolve({ ...ran, code })))
    return { child, ended }
  }

  run(command: string, args: string[], env: Record<string, string> = {}): Promise<Ran> {
    return this.start(command, args, env).ended
  }
}

/** A proxy that does not exist: no program may ask it for the gateway. A program that runs beside a gateway says so by itself. */
const PROXY = ({ isBeside }: Agent): Record<string, string> =>
  isBeside === true ? {} : { HTTP_PROXY: 'http://127.0.0.1:1', HTTPS_PROXY: 'http://127.0.0.1:1' }

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}
