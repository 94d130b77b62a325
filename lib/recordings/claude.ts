/**
 * Claude Code's transcripts. They are read as if Pi had held the conversation: tools and arguments get Pi's names, so
 * that the engine sees what it would have seen in Pi. A subagent's conversation is separate: in its own file it is
 * read like any other; inside another transcript only its calls are reported. Lines that are not messages are counted and left out.
 */
import { isFields, textOf } from '../core/index.ts'
import type { Fields } from '../core/index.ts'
import { piCall } from '../tools/index.ts'
import { anthropicUsage } from './counts.ts'
import { edited, replacementsOf } from './files.ts'
import { jsonLines } from './lines.ts'
import { entriesOf, folderOf, Recording, Skipped } from './recording.ts'
import type { BranchStep, ContentBlock, RecordedEntry, Message, OpenAnswer, Origin, Problem, SideCall, Step } from './recording.ts'

/** A recording by Claude Code. */
export class ClaudeCodeRecording extends Recording {
  override async *steps(report: (problem: Problem) => void): AsyncGenerator<Step> {
    const transcript = new Transcript(this.origin.agent !== undefined)
    this.skipped = transcript.skipped
    for await (const { number, value } of jsonLines(this.file, report)) {
      if (value['type'] === 'session' && value['cwd'] !== undefined) {
        const message = 'a session of Pi begins here; the file is replayed up to this line'
        report({ file: this.file, line: number, message, fatal: false })
        break
      }
      yield* transcript.take(value)
    }
    yield* transcript.end()
  }
}

/** True if a line is one of a conversation in this format. */
export function isClaudeCodeLine(value: Fields): boolean {
  const { type, uuid, message } = value
  return (type === 'user' || type === 'assistant') && typeof uuid === 'string' && isFields(message)
}

/** Returns what a line of a conversation says about its session, or about the subagent whose file begins with it. */
export function claudeCodeOrigin(value: Fields): Origin {
  const agent = value['isSidechain'] === true ? textOf(value['agentId']) || textOf(value['uuid']) : undefined
  const origin = { version: 0, id: textOf(value['sessionId']) || 'unknown', cwd: folderOf(value['cwd']) }
  return { format: 'claude-code', ...origin, ...(agent !== undefined && { agent }) }
}

/** The kind under which lines of subagents' conversations are counted. */
const SUBAGENT_CALLS = 'calls of subagents'

/** The model of an answer that the program wrote itself. */
const SYNTHETIC = '<synthetic>'

/** The words of a user, as a line has them. */
interface Typed {
  uuid: string
  key: string
  content: ContentBlock[]
  at: number
}

class Transcript {
  readonly skipped = new Skipped()
  /** True if the file is a subagent's. */
  readonly #isAgents: boolean
  /** Calls of subagents in another's transcript, by their answers' IDs: an answer comes in several lines. */
  readonly #subagents = new Map<string, SideCall>()
  /** Answers that have ended. */
  readonly #answers = new Set<string>()
  readonly #parents = new Map<string, string | null>()
  /** Lines that belong to a message, by the line's uuid. */
  readonly #keys = new Map<string, string>()
  readonly #calls = new Map<string, { name: string; args: Fields }>()
  readonly #results = new Set<string>()
  /** Compactions by their lines' uuids, each with the number of messages before it. */
  readonly #compactions = new Map<string, { summary: string; before: number }>()
  #path: string[] = []
  /** The answer whose lines are still coming. */
  #unfinished: OpenAnswer | undefined
  /** Prompts that a user has typed meanwhile. The next request has them behind that answer. */
  readonly #typed: Typed[] = []
  #lastKey: string | undefined
  #at = 0

  constructor(isAgents: boolean) {
    this.#isAgents = isAgents
  }

  #step(entry: RecordedEntry): Step {
    this.#path.push(entry.key)
    this.#lastKey = entry.key
    return { kind: 'message', entry }
  }

  *take(line: Fields): Generator<Step> {
    const uuid = line['uuid']
    if (typeof uuid === 'string') {
      const parent = line['parentUuid'] ?? line['logicalParentUuid']
      this.#parents.set(uuid, typeof parent === 'string' ? parent : null)
    }
    if (this.#isSkipped(line)) return
    const before = this.#at
    const at = Date.parse(String(line['timestamp']))
    if (Number.isFinite(at)) this.#at = Math.max(this.#at, at)
    if (line['isCompactSummary'] === true) yield* this.#compaction(line)
    else if (line['type'] === 'assistant') yield* this.#answer(line, before === 0 ? this.#at : before)
    else yield* this.#user(line)
  }

  #isSkipped(line: Fields): boolean {
    if (line['isSidechain'] === true && !this.#isAgents) {
      this.#subagent(line)
      return true
    }
    if (isClaudeCodeLine(line)) return line['isApiErrorMessage'] === true
    this.skipped.note(typeof line['type'] === 'string' ? line['type'] : 'lines without a type')
    return true
  }

  #subagent(line: Fields): void {
    const { message } = line
    if (line['type'] !== 'assistant' || !isFields(message) || message['model'] === SYNTHETIC) return
    const name = textOf(message['id']) || textOf(line['uuid'])
    const usage = anthropicUsage(message['usage']) ?? this.#subagents.get(name)?.usage
    const at = Date.parse(String(line['timestamp']))
    const model = `anthropic/${textOf(message['model']) || 'unknown'}`
    this.#subagents.set(name, { kind: 'side', names: [name], model, usage, at: Number.isFinite(at) ? at : this.#at })
    this.skipped.set(SUBAGENT_CALLS, this.#subagents.size)
  }

  *end(): Generator<Step> {
    yield* this.#answered()
    for (const call of this.#subagents.values()) if (call.usage !== undefined) yield call
  }

  *#answered(): Generator<Step> {
    const open = this.#unfinished
    if (open === undefined) return
    this.#unfinished = undefined
    this.#answers.add(open.names?.[0] ?? open.key)
    for (const entry of entriesOf(open)) yield this.#step(entry)
    for (const typed of this.#typed.splice(0)) yield* this.#said(typed)
  }

  *#answer(line: Fields, asked: number): Generator<Step> {
    const recorded = line['message'] as Fields
    const uuid = String(line['uuid'])
    const id = typeof recorded['id'] === 'string' ? recorded['id'] : uuid
    const model = String(recorded['model'] ?? '')
    if (model === SYNTHETIC) return
    if (this.#unfinished?.names?.[0] !== id) {
      yield* this.#answered()
      const message = { role: 'assistant', content: [], provider: 'anthropic', model, stopReason: 'stop' }
      // Lines of an answer that come after other messages are part of a call that is known already.
      const key = this.#answers.has(id) ? `${id}-${uuid}` : id
      this.#unfinished = { key, message, at: asked, names: [id], results: [] }
    }
    const open = this.#unfinished as OpenAnswer
    this.#keys.set(uuid, open.key)
    const usage = anthropicUsage(recorded['usage'])
    if (usage !== undefined) open.message.usage = usage
    for (const block of blocksOf(recorded['content'])) {
      const own = answerBlock(block)
      if (own === undefined) continue
      if (own.type === 'toolCall') {
        this.#calls.set(own.id ?? '', { name: own.name ?? '', args: own.arguments ?? {} })
        open.message.stopReason = 'toolUse'
      }
      open.message.content.push(own)
    }
  }

  /** Everything before this leaves the next request; the line's uuid means the last message before it. */
  *#compaction(line: Fields): Generator<Step> {
    yield* this.#answered()
    if (this.#lastKey !== undefined) this.#keys.set(String(line['uuid']), this.#lastKey)
    const { content } = line['message'] as { content?: unknown }
    const summary =
      typeof content === 'string'
        ? content
        : blocksOf(content)
            .map(({ text }) => textOf(text))
            .join('\n')
    this.#compactions.set(String(line['uuid']), { summary, before: this.#path.length })
    yield { kind: 'compaction', summary, firstKept: undefined, at: this.#at }
  }

  *#user(line: Fields): Generator<Step> {
    const uuid = String(line['uuid'])
    const content = (line['message'] as { content?: unknown })['content']
    const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : blocksOf(content)
    const results = blocks.filter((block) => block['type'] === 'tool_result')
    const others = blocks.filter((block) => block['type'] !== 'tool_result').flatMap(userBlock)
    results.forEach((block, index) => {
      const key = results.length === 1 ? uuid : `${uuid}-${index}`
      const entry = this.#result(key, block, results.length === 1 ? line['toolUseResult'] : undefined)
      this.#unfinished?.results.push(entry)
    })
    if (results.length > 0) this.#keys.set(uuid, this.#unfinished?.key ?? uuid)
    if (results.length > 0 && this.#unfinished === undefined) {
      for (const [index, block] of results.entries()) {
        yield this.#step(this.#result(`${uuid}-${index}`, block, undefined))
      }
    }
    if (others.length === 0) return
    const typed = { uuid, key: results.length === 0 ? uuid : `${uuid}-text`, content: others, at: this.#at }
    if (this.#unfinished === undefined) yield* this.#said(typed)
    else this.#typed.push(typed)
  }

  *#said({ uuid, key, content, at }: Typed): Generator<Step> {
    const branch = this.#branch(uuid)
    if (branch !== undefined) {
      this.#path = [...branch.keys]
      yield branch
    }
    this.#keys.set(uuid, key)
    yield this.#step({ key, message: { role: 'user', content }, at })
  }

  /** The messages to continue from if a user's message does not follow the newest one: the user went back. */
  #branch(uuid: string): BranchStep | undefined {
    let last: string | undefined
    let compaction: { summary: string; before: number } | undefined
    for (const ancestor of this.#ancestors(uuid)) {
      last ??= this.#keys.get(ancestor)
      compaction ??= this.#compactions.get(ancestor)
      if (last !== undefined && (compaction !== undefined || this.#compactions.size === 0)) break
    }
    if (last === undefined || this.#lastKey === undefined) return undefined
    let index = this.#path.lastIndexOf(last)
    if (index < 0) return undefined
    // The messages from an answer to the next answer or user's message are its results.
    const newest = this.#path.length - 1
    while (index < newest && this.#results.has(this.#path[index + 1] as string)) index += 1
    if (index >= newest) return undefined
    const keys = this.#path.slice(0, index + 1)
    const step: BranchStep = { kind: 'branch', keys, at: this.#at }
    if (compaction === undefined) return step
    return { ...step, compaction: { summary: compaction.summary, kept: keys[compaction.before] } }
  }

  /** The lines before a line of its branch, nearest first. */
  *#ancestors(uuid: string): Generator<string> {
    const seen = new Set<string>()
    let parent = this.#parents.get(uuid) ?? null
    while (parent !== null && !seen.has(parent)) {
      yield parent
      seen.add(parent)
      parent = this.#parents.get(parent) ?? null
    }
  }

  #result(key: string, block: Fields, details: unknown): RecordedEntry {
    this.#results.add(key)
    const id = textOf(block['tool_use_id'])
    const call = this.#calls.get(id)
    const failed = block['is_error'] === true
    const read = failed || call?.name !== 'read' ? undefined : readOf(details)
    const content = read === undefined ? resultContent(block['content']) : [{ type: 'text', text: asPiShows(read) }]
    const message: Message = {
      role: 'toolResult',
      toolCallId: id,
      toolName: call?.name ?? 'unknown',
      content,
      isError: failed,
    }
    const entry = { key, message, at: this.#at }
    const file = fileOf(call, failed, read, details)
    return file === undefined ? entry : { ...entry, file }
  }
}

function blocksOf(content: unknown): Fields[] {
  return Array.isArray(content) ? content.filter(isFields) : []
}

function answerBlock(block: Fields): ContentBlock | undefined {
  switch (block['type']) {
    case 'text':
      return { type: 'text', text: textOf(block['text']) }
    case 'thinking':
      return { type: 'thinking', thinking: textOf(block['thinking']), thinkingSignature: textOf(block['signature']) }
    case 'tool_use': {
      const [name, args] = piCall(textOf(block['name']), isFields(block['input']) ? block['input'] : {})
      return { type: 'toolCall', id: textOf(block['id']), name, arguments: args }
    }
    default:
      return undefined
  }
}

function userBlock(block: Fields): ContentBlock[] {
  if (block['type'] === 'text') return [{ type: 'text', text: textOf(block['text']) }]
  return block['type'] === 'image' ? [image(block)] : []
}

function resultContent(content: unknown): ContentBlock[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return blocksOf(content).flatMap(userBlock)
}

function image(block: Fields): ContentBlock {
  const source = isFields(block['source']) ? block['source'] : {}
  return { type: 'image', data: textOf(source['data']), mimeType: textOf(source['media_type']) }
}

/** The lines of a file that a read shows, as the recorder stores them beside the numbered ones for the model. */
interface ReadLines {
  content: string
  startLine: number
  numLines: number
  totalLines: number
}

function readOf(details: unknown): ReadLines | undefined {
  const file = (details as { file?: Partial<ReadLines> } | undefined)?.file
  const { content, numLines, totalLines, startLine = 1 } = file ?? {}
  if (typeof content !== 'string' || typeof numLines !== 'number' || typeof totalLines !== 'number') return undefined
  return { content, numLines, totalLines, startLine }
}

/** A read in the form of Pi's tool: plain lines, and a final line if there are more. */
function asPiShows({ content, startLine, numLines, totalLines }: ReadLines): string {
  const next = startLine + numLines
  const more = totalLines - next + 1
  return more <= 0 ? content : `${content}\n\n[${more} more lines in file. Use offset=${next} to continue.]`
}

/** The whole text of a file after a call that read or changed it, if the recorder kept it. */
function fileOf(
  call: { name: string; args: Fields } | undefined,
  failed: boolean,
  read: ReadLines | undefined,
  details: unknown,
): { path: string; content: string } | undefined {
  const path = call?.args['path']
  if (call === undefined || typeof path !== 'string' || failed) return undefined
  if (read !== undefined) {
    return read.startLine === 1 && read.numLines === read.totalLines ? { path, content: read.content } : undefined
  }
  const before = (details as { originalFile?: unknown } | undefined)?.originalFile
  if (call.name !== 'edit' || typeof before !== 'string') return undefined
  const content = edited(before, replacementsOf(call.args), call.args['replace_all'] === true)
  return content === undefined ? undefined : { path, content }
}
