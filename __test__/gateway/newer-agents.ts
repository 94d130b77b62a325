/** Kilo, the Copilot CLI, Cline and Kimi Code: their starts, the names of their tools, and the requests of the conversation itself. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ModelRequest } from '../../rig/exchange.ts'
import type { Agent } from './agents.ts'
import type { Installed } from './installed.ts'

/** The first message to a subagent; its host adds nothing. */
export const ASKED = 'Bring back what the other one has seen:'

/** True if a request is one of a subagent that was asked so. */
export function isAsked({ messages }: ModelRequest): boolean {
  return messages.slice(0, 3).some(({ role, json }) => role === 'user' && json.includes(ASKED))
}

/** The tools and requests of OpenCode, and of Kilo, which was made from it. */
export const OPENCODE_CALLS = {
  shell: (command) => ({ name: 'bash', args: { command, description: 'runs' } }),
  read: (filePath) => ({ name: 'read', args: { filePath } }),
  recall: (id) => ({ name: 'context_activate', args: { id } }),
  compactsAt: 199_900,
  subagent: (prompt) => ({ name: 'task', args: { description: 'helps', prompt, subagent_type: 'general' } }),
  isMain: ({ tools, headers }) => tools.length > 0 && headers['x-parent-session-id'] === undefined,
  isSubagent: ({ headers }) => headers['x-parent-session-id'] !== undefined,
  hasWhole: (output, text) => output.includes(text),
} satisfies Partial<Agent>

/** Their configuration: a provider at this address with one model. */
export function openCodeConfig(url: string): object {
  const model = { name: 'scripted', tool_call: true, limit: { context: 200_000, output: 1000 } }
  const provider = {
    scripted: { npm: '@ai-sdk/openai-compatible', name: 'scripted', options: { baseURL: `${url}/v1`, apiKey: 'none' }, models: { scripted: model } },
  }
  return { autoupdate: false, share: 'disabled', model: 'scripted/scripted', small_model: 'scripted/scripted', permission: 'allow', provider }
}

/** The variables that keep their files in a home folder. */
export function xdgFolders(home: string): Record<string, string> {
  return Object.fromEntries(['DATA', 'CONFIG', 'STATE', 'CACHE'].map((kind) => [`XDG_${kind}_HOME`, join(home, kind.toLowerCase())]))
}

export function kilo(program: Installed): Agent {
  return {
    name: 'kilo',
    host: 'kilo',
    program,
    lines: 240,
    ownBreaks: 0,
    repeats: true,
    args: (prompt, goesOn) => ['run', ...(goesOn ? ['--continue'] : []), '--print-logs', prompt],
    prepare(home, cwd, url) {
      writeFileSync(join(cwd, 'kilo.jsonc'), `// The project's own.\n${JSON.stringify(openCodeConfig(url), undefined, 2)}\n`)
      const off = ['AUTOUPDATE', 'MODELS_FETCH', 'DEFAULT_PLUGINS', 'LSP_DOWNLOAD', 'SESSION_INGEST'].map((name) => [`KILO_DISABLE_${name}`, '1'])
      return { ...xdgFolders(home), ...Object.fromEntries(off), KILO_TELEMETRY_LEVEL: 'off', npm_config_offline: 'true' }
    },
    ...OPENCODE_CALLS,
  }
}

export function copilot(program: Installed): Agent {
  return {
    name: 'copilot',
    host: 'copilot',
    program,
    lines: 240,
    ownBreaks: 0,
    // After a resume, outputs have a field besides, and answers have no reasoning.
    rewrites: true,
    repeats: true,
    args: (prompt, goesOn) => [...(goesOn ? ['--continue'] : []), '-p', prompt, '--allow-all-tools'],
    prepare(_home, _cwd, url) {
      return {
        COPILOT_PROVIDER_BASE_URL: `${url}/v1`,
        COPILOT_PROVIDER_API_KEY: 'none',
        COPILOT_MODEL: 'scripted',
        COPILOT_PROVIDER_MAX_PROMPT_TOKENS: String(this.window ?? 900_000),
        COPILOT_OFFLINE: 'true',
        COPILOT_AUTO_UPDATE: 'false',
      }
    },
    shell: (command) => ({ name: 'bash', args: { command, description: 'runs' } }),
    read: (path) => ({ name: 'view', args: { path } }),
    recall: (id) => ({ name: 'context-activate', args: { id } }),
    compactsIn: 60_000,
    subagent: (prompt) => ({ name: 'task', args: { description: 'helps', prompt, agent_type: 'general-purpose', name: 'helper', mode: 'sync' } }),
    isMain: (request) => request.tools.length > 4 && !isAsked(request),
    isSubagent: isAsked,
    hasWhole: (output, text) => output.includes(text),
  }
}

export function cline(program: Installed): Agent {
  return {
    name: 'cline',
    host: 'cline',
    program,
    // It cuts results of MCP servers at 8,000 characters.
    lines: 120,
    // It continues a session only in a terminal: a new process has a new conversation.
    ownBreaks: 1,
    repeats: false,
    // A single word would be a command.
    args: (prompt) => [`${prompt}, please`],
    prepare(home, _cwd, url) {
      const settings = { provider: 'openai-compatible', apiKey: 'none', model: 'scripted', baseUrl: `${url}/v1` }
      const file = {
        version: 1,
        lastUsedProvider: 'openai-compatible',
        modes: {},
        providers: { 'openai-compatible': { settings, updatedAt: '2026-11-28T00:00:00.000Z', tokenSource: 'manual' } },
      }
      mkdirSync(join(home, '.cline', 'data', 'settings'), { recursive: true })
      writeFileSync(join(home, '.cline', 'data', 'settings', 'providers.json'), JSON.stringify(file))
      return { CLINE_NO_AUTO_UPDATE: '1' }
    },
    shell: (command) => ({ name: 'run_commands', args: { commands: [command] } }),
    recall: (id) => ({ name: 'context__activate', args: { id } }),
    isMain: (request) => request.tools.length > 4 && !isAsked(request),
    isSubagent: isAsked,
    // Its outputs are JSON, and so is what it makes of an MCP server's answer.
    hasWhole: (output, text) => output.includes(inJson(text)) || output.includes(inJson(inJson(text))),
  }
}

function inJson(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}

export function kimi(program: Installed): Agent {
  return {
    name: 'kimi',
    host: 'kimi',
    program,
    lines: 240,
    ownBreaks: 0,
    repeats: true,
    isBeside: true,
    args: (prompt, goesOn) => [...(goesOn ? ['--continue'] : []), '-p', prompt],
    prepare(home, _cwd, url) {
      const { mcpUrl = '', secret = '', url: gateway = url } = this.gateway ?? {}
      mkdirSync(join(home, '.kimi-code'), { recursive: true })
      writeFileSync(
        join(home, '.kimi-code', 'mcp.json'),
        JSON.stringify({ mcpServers: { context: { url: mcpUrl, headers: { Authorization: `Bearer ${secret}` } } } }),
      )
      return {
        KIMI_MODEL_NAME: 'scripted',
        KIMI_MODEL_API_KEY: 'none',
        KIMI_MODEL_BASE_URL: `${gateway}/${url}/v1`,
        KIMI_MODEL_MAX_CONTEXT_SIZE: String(this.window ?? 1_000_000),
        KIMI_DISABLE_TELEMETRY: '1',
        KIMI_CODE_NO_AUTO_UPDATE: '1',
      }
    },
    shell: (command) => ({ name: 'Bash', args: { command } }),
    read: (path) => ({ name: 'Read', args: { path } }),
    recall: (id) => ({ name: 'mcp__context__activate', args: { id } }),
    compactsIn: 110_000,
    subagent: (prompt) => ({ name: 'Agent', args: { description: 'helps', prompt } }),
    isMain: (request) => request.tools.length > 4 && !isAsked(request) && request.messages.at(-1)?.text.includes('Create a handoff summary') !== true,
    isSubagent: isAsked,
    hasWhole: (output, text) => output.includes(text),
  }
}
