/** The folders in which agents keep their sessions, and the agents that are installed. */
import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { idInName, piSessionFolder, sessionFiles } from '../recordings/index.ts'

/** An agent whose sessions can be read. */
export interface AgentFolder {
  /** The agent's name as people write it. */
  agent: string
  /** The agent's name before the IDs of the gateway's sessions: `claude-code`. */
  host: string
  /** The command that starts it. */
  command: string
  /** The folder of its sessions, or its database. */
  path: string
}

/** The folders of all agents whose sessions can be read, Pi's first, whether they exist or not. */
export function agentFolders(env: NodeJS.ProcessEnv = process.env): [AgentFolder, ...AgentFolder[]] {
  const home = homedir()
  const set = (name: string, usual: string): string => (env[name] === undefined || env[name] === '' ? join(home, usual) : (env[name] as string))
  return [
    { agent: 'Pi', host: 'pi', command: 'pi', path: piSessionFolder() },
    { agent: 'Claude Code', host: 'claude-code', command: 'claude', path: join(set('CLAUDE_CONFIG_DIR', '.claude'), 'projects') },
    { agent: 'Codex', host: 'codex', command: 'codex', path: join(set('CODEX_HOME', '.codex'), 'sessions') },
    { agent: 'Gemini CLI', host: 'gemini-cli', command: 'gemini', path: join(set('GEMINI_CLI_HOME', ''), '.gemini', 'tmp') },
    { agent: 'OpenCode', host: 'opencode', command: 'opencode', path: join(set('XDG_DATA_HOME', join('.local', 'share')), 'opencode', 'opencode.db') },
  ]
}

/** Those that exist. */
export function usedFolders(): AgentFolder[] {
  return agentFolders().filter(({ path }) => existsSync(path))
}

/** The folders as a sentence names them: `~/.pi/agent/sessions, ~/.claude/projects and ~/.codex/sessions`. */
export function folderNames(): string {
  const names = agentFolders().map(({ path }) => shortPath(path))
  return `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`
}

/** A path with `~` for the user's own folder. */
export function shortPath(path: string): string {
  const home = homedir()
  return path === home || path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path
}

/** The path of a command's program, as a shell finds it; undefined if it is not installed. */
export function programPath(command: string, env: NodeJS.ProcessEnv = process.env): string | undefined {
  const suffixes = process.platform === 'win32' ? ['.exe', '.cmd', '.bat', ''] : ['']
  for (const folder of (env['PATH'] ?? '').split(delimiter)) {
    if (folder === '') continue
    for (const suffix of suffixes) {
      const path = join(folder, command + suffix)
      if (isProgram(path)) return path
    }
  }
  return undefined
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

/** The part of an ID that Gemini CLI's files have. */
const GEMINI_ID = /^[0-9a-f]{8}$/

/** The session files in these folders whose ID is, or begins with, a name: by ID. The agent's name may stand before it. */
export async function filesOfSession(folders: readonly AgentFolder[], name: string): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  const [, agent, given = name] = /^([a-z-]+):([^:]+)$/.exec(name) ?? []
  if (given === '') return found
  for (const { path, host } of folders) {
    if (!existsSync(path) || (agent !== undefined && agent !== host)) continue
    for await (const file of sessionFiles(path, () => {})) {
      const id = idInName(file)
      // Gemini CLI's files have the beginning of the ID only.
      if ((id.startsWith(given) || (GEMINI_ID.test(id) && given.startsWith(id))) && !found.has(id)) found.set(id, file)
    }
  }
  return found
}
