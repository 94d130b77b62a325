/** Finding session files and telling their formats apart. */
import { existsSync } from 'node:fs'
import type { Dirent } from 'node:fs'
import { open, readdir, realpath, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { ClaudeCodeRecording, claudeCodeOrigin, isClaudeCodeLine } from './claude.ts'
import { CodexRecording, codexOrigin, isCodexLine, isOldCodexHeader, oldCodexOrigin } from './codex.ts'
import { GeminiRecording, geminiOrigin, isGeminiDocument, isGeminiHeader } from './gemini.ts'
import { isFields } from '../core/index.ts'
import { jsonDocument, jsonLines } from './lines.ts'
import { isTrajectory, MiniSweAgentRecording } from './mini-swe-agent.ts'
import { isOpenCodeDatabase, placeInDatabase, sessionsIn } from './opencode-store.ts'
import { isOpenCodeExport, openOpenCode } from './opencode.ts'
import { NEWEST_PI_VERSION, PiRecording, piOrigin } from './pi.ts'
import { LeftOut, NotReplayable, programTitle } from './recording.ts'
import type { Recording } from './recording.ts'

/** The number of lines that are checked before a file is considered something else. */
const LOOK_LINES = 1000

/** The number of characters of a `.json` file that are checked to recognize an export. */
const LOOK_CHARACTERS = 400

/**
 * Recognizes a file's format. Throws {@link LeftOut} for a subagent's conversation, {@link NotReplayable} if the file
 * contains no session in a known format, and any file system error.
 */
export async function openRecording(file: string): Promise<Recording> {
  const recording = await openAny(file)
  const { agent, format, id } = recording.origin
  if (agent === undefined) return recording
  const whose = format === 'codex' ? `Codex, ${agent}` : `${programTitle(format)}'s session ${id}`
  throw new LeftOut(`the conversation of a subagent of ${whose}`, recording)
}

/** Opens a session file like {@link openRecording}, and also a subagent's conversation: its cost is part of the bill. */
export async function openAny(file: string): Promise<Recording> {
  if (placeInDatabase(file) !== undefined) return openOpenCode(file)
  if (/\.json(\.gz)?$/.test(file)) {
    const document = await jsonDocument(file)
    if (isFields(document) && isGeminiHeader(document)) return new GeminiRecording(file, geminiOrigin(file, document))
    return isTrajectory(document) ? new MiniSweAgentRecording(file, document) : openOpenCode(file)
  }
  let looked = 0
  let first: Record<string, unknown> | undefined
  let subagents: Record<string, unknown> | undefined
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
    if (value === first && isGeminiHeader(value)) return new GeminiRecording(file, geminiOrigin(file, value))
    if (value === first && isOldCodexHeader(value)) return new CodexRecording(file, oldCodexOrigin(value))
    if (isCodexLine(value)) return new CodexRecording(file, codexOrigin(value))
    if (isClaudeCodeLine(value)) {
      if (value['isSidechain'] !== true) return new ClaudeCodeRecording(file, claudeCodeOrigin(value))
      subagents ??= value
    }
    looked += 1
    if (looked >= LOOK_LINES) break
  }
  if (subagents !== undefined) return new ClaudeCodeRecording(file, claudeCodeOrigin(subagents))
  if (first === undefined) throw new NotReplayable('no session: the file holds no JSON lines')
  throw new NotReplayable('neither a session of Pi nor of Claude Code, Codex, Gemini CLI, OpenCode or mini-swe-agent')
}

/**
 * The session files of a path: the file itself and those of its subagents, or every `.jsonl` and `.jsonl.gz`
 * file below a folder, and Gemini CLI's earlier sessions, the exports of OpenCode and trajectories of mini-swe-agent. They are sorted by name, those of a
 * folder before those of the folders in it: a subagent's file may repeat the session that started it. Links to files are
 * followed, links to folders are not. Rejects with any file system error of the path itself; `unreadable` receives those of folders
 * below it; without it, they reject as well.
 */
export async function* sessionFiles(path: string, unreadable?: (folder: string, error: unknown) => void): AsyncGenerator<string> {
  if (placeInDatabase(path) !== undefined) return yield path
  if ((await stat(path)).isDirectory()) yield* filesBelow(path, unreadable)
  else if (isOpenCodeDatabase(path)) yield* sessionsIn(path)
  else {
    yield path
    const agents = join(path.replace(/\.jsonl(\.gz)?$/, ''), 'subagents')
    if (agents.length < path.length + '/subagents'.length && existsSync(agents)) yield* filesBelow(agents, unreadable)
  }
}

async function* filesBelow(folder: string, unreadable?: (folder: string, error: unknown) => void): AsyncGenerator<string> {
  const entries = await readdir(folder, { withFileTypes: true })
  entries.sort((left, right) => Number(left.isDirectory()) - Number(right.isDirectory()) || (left.name < right.name ? -1 : 1))
  for (const entry of entries) {
    const inner = join(folder, entry.name)
    try {
      if (entry.isDirectory()) yield* filesBelow(inner, unreadable)
      else if (entry.isFile() && isOpenCodeDatabase(inner)) yield* sessionsIn(inner)
      else if (await isSessionFile(inner, entry)) yield inner
    } catch (error) {
      if (unreadable === undefined) throw error
      unreadable(inner, error)
    }
  }
}

/**
 * The session files that several paths stand for, each once, however many of the paths lead to it. `missing` is told of a
 * path for which there is none, and of folders and files below one that can't be read, with the file system's error.
 */
export async function allSessionFiles(paths: readonly string[], missing: (path: string, error?: unknown) => void): Promise<string[]> {
  const files = new Map<string, string>()
  for (const path of paths) {
    let found = 0
    try {
      for await (const file of sessionFiles(path, missing)) {
        found += 1
        const real = await realpath(file).catch(() => file)
        if (!files.has(real)) files.set(real, file)
      }
      if (found === 0) missing(path)
    } catch (error) {
      missing(path, error)
    }
  }
  return [...files.values()]
}

/** The ID in a session file's name, as Pi, Claude Code and Codex write it, and its first eight digits of Gemini CLI's; the whole name for any other. */
export function idInName(name: string): string {
  const { session } = placeInDatabase(name) ?? {}
  if (session !== undefined) return session
  const stem = name.replace(/^.*[/\\]/, '').replace(/\.(?:jsonl|traj\.json|json)(?:\.gz)?$/, '')
  return (
    /([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$/i.exec(stem)?.[1] ??
    /^session-[\dT-]+-([0-9a-f]{8})$/.exec(stem)?.[1] ??
    /_([^_]+)$/.exec(stem)?.[1] ??
    stem
  )
}

async function isSessionFile(path: string, entry: Dirent): Promise<boolean> {
  const lines = /\.jsonl(\.gz)?$/.test(entry.name)
  const trajectory = /\.traj\.json(\.gz)?$/.test(entry.name)
  if (!lines && !trajectory && !entry.name.endsWith('.json')) return false
  const isFile = entry.isFile() || (entry.isSymbolicLink() && (await stat(path).catch(() => undefined))?.isFile() === true)
  return isFile && (lines || trajectory || isDocument(await beginning(path)))
}

function isDocument(beginning: string): boolean {
  return isOpenCodeExport(beginning) || isGeminiDocument(beginning)
}

async function beginning(path: string): Promise<string> {
  const file = await open(path)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(LOOK_CHARACTERS), 0, LOOK_CHARACTERS, 0)
    return buffer.toString('utf8', 0, bytesRead)
  } finally {
    await file.close()
  }
}

/** The folder of Pi's sessions: below `$PI_CODING_AGENT_DIR`, by default `~/.pi/agent`. */
export function piSessionFolder(): string {
  const agent = process.env['PI_CODING_AGENT_DIR']
  return join(agent !== undefined && agent !== '' ? agent : join(homedir(), '.pi', 'agent'), 'sessions')
}
