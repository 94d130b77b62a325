/**
 * A recorded session, from any program: a series of steps, each taken at a known time. Messages have pi-ai's types,
 * because the engine accepts those.
 */
import { hostTitle } from '../core/index.ts'

/** A block of a message's content, as pi-ai shapes it; other fields are kept. */
export interface ContentBlock {
  type: string
  text?: string
  thinking?: string
  /** A tool call's ID. */
  id?: string
  /** A tool call's name. */
  name?: string
  arguments?: Record<string, unknown>
  /** An image's base64 data. */
  data?: string
  [field: string]: unknown
}

/** The provider's counts for one answer, in tokens; costs in dollars where the recorder knew them. */
export interface RecordedUsage {
  input: number
  output: number
  cacheRead: number
  cacheWrite: number
  /** Those of `cacheWrite` that were written to be kept for an hour; the others are kept for five minutes. */
  cacheWriteHour?: number
  /** A count was missing, could not be true, or contradicted another one. */
  isDoubtful?: true
  /** The model's context window in tokens, where the recorder noted it. */
  window?: number
  /** The recorder noted that a plan at a flat rate paid for it. */
  isPlan?: true
  totalTokens?: number
  cost?: { input?: number; output?: number; cacheRead?: number; cacheWrite?: number }
}

/** A message as pi-ai shapes it: user, assistant, toolResult, bashExecution, custom, branchSummary, compactionSummary, system. */
export interface Message {
  role: string
  content?: string | ContentBlock[]
  toolCallId?: string
  toolName?: string
  isError?: boolean
  model?: string
  provider?: string
  stopReason?: string
  usage?: RecordedUsage
  summary?: string
  command?: string
  output?: string
  [field: string]: unknown
}

/** One message in its place. */
export interface RecordedEntry {
  /** Unique in the recording. */
  readonly key: string
  readonly message: Message
  /** Milliseconds since the epoch. For an answer: when it was asked for. */
  readonly at: number
  /** Names of an answer that every copy of the session repeats, such as the provider's ID; one in common is enough. */
  readonly names?: readonly string[]
  /** The whole text of the file that a tool result is about, after the call, if the recording has it. */
  readonly file?: { path: string; content: string }
  /** The level of thinking that was asked of an answer's model, in the program's words, if the recording tells. */
  readonly effort?: string
}

/** The next step of the recorded program. */
export type Step =
  | { kind: 'message'; entry: RecordedEntry }
  | BranchStep
  /** The recorded program replaced everything before `firstKept` with a summary; everything if that is undefined. */
  | { kind: 'compaction'; summary: string; firstKept: string | undefined; at: number }
  | EditStep
  /** The context manager ran in the recorded session, and says what it had saved on this branch so far. */
  | { kind: 'managed'; saved: Saved; at: number }
  /** The same of a session in which the context manager was switched off, on a plan at a flat rate. */
  | { kind: 'off'; saved: Saved; at: number }
  /** The context manager left the session plain, to compare with. */
  | { kind: 'heldOut'; at: number }
  | SideCall

/** A model call outside the conversation that was paid for: a subagent's, or one that wrote a summary. */
export interface SideCall {
  kind: 'side'
  /** As of {@link RecordedEntry}. */
  names: readonly string[]
  /** `provider/model`. */
  model: string
  usage: RecordedUsage | undefined
  at: number
}

/** Savings by the context manager's own account. */
export interface Saved {
  /** In fresh input tokens. */
  tokens: number
  /** As far as the models' prices were known. */
  dollars: number
  /** For the calls that a plan at a flat rate paid for: tokens of their prompts, as sent and without us. */
  plan?: { sent: number; without: number }
}

/** The recorded program shows a message in another form from now on. */
export interface EditStep {
  kind: 'edit'
  key: string
  /** The content that replaces the message's own; null if the message is left out. */
  content: NonNullable<Message['content']> | null
  at: number
}

/** The conversation continues from an earlier point: it now consists of these messages, in order. */
export interface BranchStep {
  kind: 'branch'
  keys: readonly string[]
  at: number
  /** The newest compaction of the recorded program on that branch. */
  compaction?: Summarized
  /** The forms of messages on that branch that differ from their own. */
  edits?: ReadonlyMap<string, EditStep['content']>
  /** The context manager's savings on that branch. */
  saved?: Saved
}

/** A summary in place of all messages before one of them. */
export interface Summarized {
  summary: string
  /** The first message that is still sent after the summary; undefined if none is. */
  kept: string | undefined
}

/** The programs whose recordings are read. */
export type Format = 'pi' | 'claude-code' | 'codex' | 'gemini-cli' | 'opencode' | 'mini-swe-agent'

/** A program's name as people write it. */
export function programTitle(format: Format): string {
  return format === 'mini-swe-agent' ? format : hostTitle(format)
}

/** The facts about a recording that are known before its first step. */
export interface Origin {
  format: Format
  /** Pi's format version; 0 for others. */
  version: number
  /** The recorded session's own ID; for a subagent's conversation that of the session that started it. */
  id: string
  /** The subagent whose conversation it is. */
  agent?: string
  /** The agent's working directory, absolute. */
  cwd: string
}

/** Something wrong with a file. */
export interface Problem {
  file: string
  /** Counted from 1; absent if the problem concerns the whole file. */
  line?: number
  /** A sentence for people. */
  message: string
  /** The file could not be replayed at all. */
  fatal: boolean
}

/** A file that could not be replayed, with a sentence that says why. */
export class NotReplayable extends Error {}

/** A file that is left out on purpose, such as the conversation of a subagent, with a sentence that says what it is. */
export class LeftOut extends NotReplayable {
  /** The conversation, which was paid for although it is not replayed. */
  readonly recording: Recording | undefined

  constructor(message: string, recording?: Recording) {
    super(message)
    this.recording = recording
  }
}

/** A session file whose format has been recognized. */
export abstract class Recording {
  readonly file: string
  readonly origin: Origin
  /** Lines of the file that are not part of the conversation, by kind. Known once the file has been read. */
  skipped: ReadonlyMap<string, number> = new Map()

  constructor(file: string, origin: Origin) {
    this.file = file
    this.origin = origin
  }

  /** Reads the file from its start. May be called more than once; nothing is kept between calls. */
  abstract steps(report: (problem: Problem) => void): AsyncGenerator<Step>
}

/** Counts what is not part of a conversation, by kind. */
export class Skipped extends Map<string, number> {
  note(kind: string): void {
    this.set(kind, (this.get(kind) ?? 0) + 1)
  }
}

/** An answer whose parts are still coming, and the results that came in between. */
export interface OpenAnswer {
  key: string
  message: Message & { content: ContentBlock[] }
  at: number
  names?: readonly string[]
  effort?: string
  results: RecordedEntry[]
}

/** The entries of an answer that is complete. */
export function entriesOf({ key, message, at, names, effort, results }: OpenAnswer): RecordedEntry[] {
  return [{ key, message, at, ...(names !== undefined && { names }), ...(effort !== undefined && { effort }) }, ...results]
}

/** The working directory that a recorder noted; the root if it noted none. */
export function folderOf(noted: unknown): string {
  return typeof noted === 'string' && noted.startsWith('/') ? noted : '/'
}

/** The messages of a branch that the recorded program kept sending. */
export function keysShown({ keys, compaction }: BranchStep): readonly string[] {
  if (compaction === undefined) return keys
  const from = compaction.kept === undefined ? -1 : keys.indexOf(compaction.kept)
  return from < 0 ? [] : keys.slice(from)
}

/** The model of an answer, as `provider/model`. */
export function modelOf(message: Message): string {
  return `${message.provider ?? 'unknown'}/${message.model ?? 'unknown'}`
}

/** The text blocks of a message as one text. */
export function textOf(message: Message): string {
  const { content } = message
  if (typeof content === 'string') return content
  return (content ?? []).flatMap((block) => (block.type === 'text' ? [block.text ?? ''] : [])).join('\n')
}

/** The tool calls of an answer. */
export function callsOf(message: Message): ContentBlock[] {
  return Array.isArray(message.content) ? message.content.filter((block) => block.type === 'toolCall') : []
}

/** True if an answer was requested and not refused, so that the provider was paid for it. */
export function isCall(message: Message): boolean {
  return message.role === 'assistant' && message.stopReason !== 'error'
}

/**
 * True if a message is part of later requests: pi-ai leaves out failed answers, and Pi what the user kept
 * private.
 */
export function isSent(message: Message): boolean {
  switch (message.role) {
    case 'assistant':
      return message.stopReason !== 'error' && message.stopReason !== 'aborted'
    case 'bashExecution':
      return message['excludeFromContext'] !== true
    case 'system':
      return false
    default:
      return true
  }
}
