/** For each agent: its start, the names of its tools, and the requests that belong to the conversation itself. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ModelRequest, ScriptedCall } from '../../rig/exchange.ts'
import type { Addresses } from '../../lib/gateway/program-settings.ts'
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
