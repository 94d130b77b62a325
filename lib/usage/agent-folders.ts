/** Where agents keep their sessions. */
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { idInName, piSessionFolder, sessionFiles } from '../recordings/index.ts'

/** A folder of sessions of one agent. */
export interface AgentFolder {
  /** The agent's name as people write it. */
  agent: string
  path: string
}

/** The folders of all agents whose sessions can be read, whether they exist or not. */
export function agentFolders(env: NodeJS.ProcessEnv = process.env): AgentFolder[] {
  const home = homedir()
  const set = (name: string, usual: string): string => (env[name] === undefined || env[name] === '' ? join(home, usual) : (env[name] as string))
  return [
    { agent: 'Pi', path: piSessionFolder() },
    { agent: 'Claude Code', path: join(set('CLAUDE_CONFIG_DIR', '.claude'), 'projects') },
    { agent: 'Codex', path: join(set('CODEX_HOME', '.codex'), 'sessions') },
  ]
}

/** The folders that exist, without Pi's: for a sentence that says where there is something to read. */
export function otherFolders(): string[] {
  return agentFolders()
    .slice(1)
    .map(({ path }) => path)
    .filter((path) => existsSync(path))
    .map((path) => path.replace(homedir(), '~'))
}

/** The session files in these folders whose ID is, or begins with, a name: by ID. */
export async function filesOfSession(folders: readonly AgentFolder[], given: string): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  if (given === '') return found
  for (const { path } of folders) {
    if (!existsSync(path)) continue
    for await (const file of sessionFiles(path)) {
      const id = idInName(file)
      if (id.startsWith(given) && !found.has(id)) found.set(id, file)
    }
  }
  return found
}
