/** The agents whose conversations are recorded, and how they are recognized. */

/**
 * A host: a coding agent, whose sessions' IDs begin with its name and a colon; those of Pi have no such beginning. `agent`: one that the
 * gateway does not know. `library`: a harness that opens its sessions through the package, with IDs of its choice.
 */
export type HostName =
  | 'pi'
  | 'claude-code'
  | 'codex'
  | 'opencode'
  | 'qwen-code'
  | 'gemini-cli'
  | 'cline'
  | 'continue'
  | 'crush'
  | 'goose'
  | 'kilo'
  | 'kimi'
  | 'copilot'
  | 'agent'
  | 'library'

/** Names for people. */
const TITLES: Readonly<Record<HostName, string>> = {
  pi: 'Pi',
  'claude-code': 'Claude Code',
  codex: 'Codex',
  opencode: 'OpenCode',
  'qwen-code': 'Qwen Code',
  'gemini-cli': 'Gemini CLI',
  cline: 'Cline',
  continue: 'Continue',
  crush: 'Crush',
  goose: 'Goose',
  kilo: 'Kilo',
  kimi: 'Kimi Code',
  copilot: 'Copilot CLI',
  agent: 'an agent',
  library: 'library',
}

/** The host's name as people write it. */
export function hostTitle(host: HostName): string {
  return TITLES[host]
}

/** The host of a session, from its ID. Pi makes UUIDs of version 7. */
export function hostOfSession(sessionId: string): HostName {
  const name = /^([a-z-]+):/.exec(sessionId)?.[1]
  if (name !== undefined && Object.hasOwn(TITLES, name)) return name as HostName
  return UUID_7.test(sessionId) ? 'pi' : 'library'
}

const UUID_7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/** The host that a session of this name belongs to: `claude-code` and `ID` become `claude-code:ID`. */
export function sessionOf(host: HostName, id: string): string {
  return `${host}:${id}`
}

const AGENTS: readonly [pattern: RegExp, host: HostName][] = [
  [/\bclaude-(?:cli|code)\b/i, 'claude-code'],
  [/\bcodex[_/-]/i, 'codex'],
  [/\bopencode\b/i, 'opencode'],
  [/\bqwen-?code\b/i, 'qwen-code'],
  [/\bgemini-?cli\b/i, 'gemini-cli'],
  [/\bcline\b/i, 'cline'],
  [/\bcontinue\b/i, 'continue'],
  [/\bcrush\b/i, 'crush'],
  [/\bgoose\b/i, 'goose'],
  [/\bkilo-?code\b/i, 'kilo'],
  [/\bkimi-?(?:code|cli)\b/i, 'kimi'],
  [/\bcopilot-cli\b|@github[\\/]copilot\b/i, 'copilot'],
]

/** The host that a `User-Agent` header, the like of it, or a program's name names; `agent` if it is none of the known ones. */
export function hostNamed(text: string): HostName {
  return AGENTS.find(([pattern]) => pattern.test(text))?.[1] ?? 'agent'
}
