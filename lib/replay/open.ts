/** Finding session files and telling their formats apart. */
import { readdir, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { ClaudeCodeRecording, claudeCodeOrigin, isClaudeCodeLine } from './claude.ts'
import { jsonLines } from './lines.ts'
import { NEWEST_PI_VERSION, PiRecording, piOrigin } from './pi.ts'
import { NotReplayable } from './recording.ts'
import type { Recording } from './recording.ts'

/** Lines that are looked at before a file counts as something else. */
const LOOK_LINES = 200

/** Claude Code's kinds of lines that may come before the first message. */
const CLAUDE_CODE_TYPES = new Set(['summary', 'progress', 'system', 'file-history-snapshot', 'queue-operation'])

/**
 * Looks into a file. Throws {@link NotReplayable} for one that holds no session that is known here, and what the file
 * system says.
 */
export async function openRecording(file: string): Promise<Recording> {
  let looked = 0
  let first: Record<string, unknown> | undefined
  for await (const { value } of jsonLines(file)) {
    first ??= value
    if (value['type'] === 'session' && value === first) {
      const origin = piOrigin(value)
      if (origin.version > NEWEST_PI_VERSION || origin.version < 1) {
        const known = `versions 1 to ${NEWEST_PI_VERSION} are known`
        throw new NotReplayable(`a session of Pi in version ${origin.version} of its format; ${known}`)
      }
      return new PiRecording(file, origin)
    }
    if (isClaudeCodeLine(value)) return new ClaudeCodeRecording(file, claudeCodeOrigin(value))
    looked += 1
    if (looked >= LOOK_LINES || !CLAUDE_CODE_TYPES.has(String(value['type']))) break
  }
  if (first === undefined) throw new NotReplayable('no session: the file holds no JSON lines')
  throw new NotReplayable('neither a session of Pi nor a transcript of Claude Code')
}

/**
 * The session files that a path stands for: the file itself, or every `.jsonl` file below a folder, in the order of
 * their names. Rejects with what the file system says.
 */
export async function* sessionFiles(path: string): AsyncGenerator<string> {
  if (!(await stat(path)).isDirectory()) {
    yield path
    return
  }
  const entries = await readdir(path, { withFileTypes: true })
  entries.sort((left, right) => (left.name < right.name ? -1 : 1))
  for (const entry of entries) {
    const inner = join(path, entry.name)
    if (entry.isDirectory()) yield* sessionFiles(inner)
    else if (entry.isFile() && entry.name.endsWith('.jsonl')) yield inner
  }
}

/** Where Pi keeps its sessions: below `$PI_CODING_AGENT_DIR`, by default `~/.pi/agent`. */
export function piSessionFolder(): string {
  const agent = process.env['PI_CODING_AGENT_DIR']
  return join(agent !== undefined && agent !== '' ? agent : join(homedir(), '.pi', 'agent'), 'sessions')
}
