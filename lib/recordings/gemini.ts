/**
 * Gemini CLI's sessions (`~/.gemini/tmp/PROJECT/chats/session-*.jsonl`, and `.json` before 2026): messages, each with its calls
 * and their results, and lines that change what came before (google-gemini/gemini-cli, `chatRecordingTypes.ts`). They are read
 * as if Pi had held the conversation. A message that is written again is the same one, further on; of a message that the host
 * shortens later, the longer form is read.
 */
import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { isFields, textOf } from '../core/index.ts'
import { countsTogether, soundUsage } from '../models/index.ts'
import type { Fields } from '../core/index.ts'
import { piCall } from '../tools/index.ts'
import { jsonDocument, jsonLines } from './lines.ts'
import { folderOf, Recording, Skipped } from './recording.ts'
import type { ContentBlock, Message, Origin, Problem, RecordedEntry, RecordedUsage, Step } from './recording.ts'

/** True if a JSON document that begins so is a session. */
export function isGeminiDocument(beginning: string): boolean {
  return /^\uFEFF?\s*\{\s*"sessionId"\s*:\s*"[^"]*"\s*,\s*"projectHash"\s*:/.test(beginning)
}

/** True if a document, or the first line of a file, says whose session it is. */
export function isGeminiHeader({ type, sessionId, projectHash }: Fields): boolean {
  return type === undefined && typeof sessionId === 'string' && typeof projectHash === 'string'
}

/** Returns what it says of its session. A subagent's file is in a folder that has the name of the session that started it. */
export function geminiOrigin(file: string, header: Fields): Origin {
  const id = textOf(header['sessionId']) || 'unknown'
  const folder = dirname(file)
  const isSubagent = header['kind'] === 'subagent'
  const chats = isSubagent && basename(folder) !== 'chats' ? dirname(folder) : folder
  const who = isSubagent ? { id: chats === folder ? id : basename(folder), agent: id } : { id }
  return { format: 'gemini-cli', version: 0, ...who, cwd: projectOf(chats, header) }
}

/** The folder that a session worked in: Gemini CLI notes it beside the sessions, once for all. */
function projectOf(chats: string, { directories }: Fields): string {
  const noted = join(dirname(chats), '.project_root')
  try {
    if (existsSync(noted)) return folderOf(readFileSync(noted, 'utf8').trim())
  } catch {
    // The sessions can be read without it.
  }
  return folderOf(Array.isArray(directories) ? directories[0] : undefined)
}

/** A recording by Gemini CLI. */
export class GeminiRecording extends Recording {
  override readonly skipped = new Skipped()

  override async *steps(report: (problem: Problem) => void): AsyncGenerator<Step> {
    this.skipped.clear()
    const session = new Session()
    if (/\.json(\.gz)?$/.test(this.file)) {
      const document = await jsonDocument(this.file)
      session.take({ $set: isFields(document) ? document : {} })
    } else for await (const { value } of jsonLines(this.file, report)) session.take(value)
    yield* session.steps(this.skipped)
  }
}

/** An event of a session: a message came, or earlier ones left. */
type Event =
  | { message: string }
  | { kept: readonly string[]; /** Of them, those that bring results once more. */ again?: ReadonlySet<string> }
  | { summary: string; from: string | undefined }

class Session {
  /** The messages by ID, in their last form. */
  readonly #messages = new Map<string, Fields>()
  readonly #events: Event[] = []
  /** IDs of the conversation as it is now. */
  #now: string[] = []

  take(line: Fields): void {
    const { $set: changes, $rewindTo: to } = line
    if (typeof to === 'string') this.#rewind(to)
    else if (isFields(changes)) {
      if (Array.isArray(changes['messages'])) this.#replace(changes['messages'].filter(isFields))
    } else if (typeof line['id'] === 'string' && typeof line['type'] === 'string') this.#add(line)
  }

  *steps(skipped: Skipped): Generator<Step> {
    let at = 0
    const entries = new Map<string, readonly RecordedEntry[]>()
    const keysOf = (id: string): string[] => (entries.get(id) ?? []).map(({ key }) => key)
    for (const event of this.#events) {
      if ('kept' in event) {
        for (const id of event.again ?? []) {
          if (keysOf(id).length > 0) continue
          const entry: RecordedEntry = { key: id, message: { role: 'custom', content: resultOf(this.#messages.get(id)?.['content']) }, at }
          entries.set(id, [entry])
          yield { kind: 'message', entry }
        }
        yield { kind: 'branch', keys: event.kept.flatMap(keysOf), at }
      } else if ('summary' in event)
        yield { kind: 'compaction', summary: event.summary, firstKept: event.from === undefined ? undefined : keysOf(event.from)[0], at }
      else {
        const own = entriesOf(this.#messages.get(event.message) as Fields, at, skipped)
        entries.set(event.message, own)
        for (const entry of own) {
          at = Math.max(at, entry.at)
          yield { kind: 'message', entry }
        }
        at = Math.max(at, timeOf(this.#messages.get(event.message)?.['timestamp']))
      }
    }
  }

  #add(message: Fields): void {
    const id = message['id'] as string
    const known = this.#messages.get(id)
    this.#messages.set(id, known === undefined ? message : merged(known, message))
    if (known !== undefined) return
    this.#events.push({ message: id })
    if (message['type'] === 'user' || message['type'] === 'gemini') this.#now.push(id)
  }

  /** The conversation continues before a message; from its start if the message is not known. */
  #rewind(to: string): void {
    this.#now = this.#now.slice(0, Math.max(0, this.#now.indexOf(to)))
    this.#events.push({ kept: [...this.#now] })
  }

  /** Messages with results that stand in a list before, too: after a resume, the program sends both. */
  #again(list: readonly Fields[]): ReadonlySet<string> {
    const seen = new Set<unknown>()
    const again = list.filter((message) => {
      const calls = answered(message) ?? []
      const isKnown = calls.length > 0 && calls.every((id) => seen.has(id))
      for (const id of calls) seen.add(id)
      return isKnown
    })
    return new Set(again.map(({ id }) => id as string).filter((id) => this.#messages.get(id)?.['type'] === 'user'))
  }

  /** The conversation consists of these messages now. */
  #replace(messages: readonly Fields[]): void {
    const named = messages.filter((one) => typeof one['id'] === 'string' && typeof one['type'] === 'string')
    const [first] = named
    const known = [...new Set(named.map(({ id }) => id as string))].filter((id) => this.#messages.has(id))
    // A summary stands before what is kept.
    if (first !== undefined && this.#now.length > 0 && !this.#messages.has(first['id'] as string)) {
      this.#events.push({ summary: textIn(first['content']), from: known[0] })
      this.#messages.set(first['id'] as string, { ...first, type: SUMMARY })
      this.#now = [first['id'] as string, ...known]
    } else if (known.join() !== this.#now.join()) {
      this.#now = known
      this.#events.push({ kept: known, again: this.#again(named) })
    }
    for (const message of named) this.#add(message)
  }
}

/** The calls that a message of the user's answers; undefined where it says anything else. */
function answered({ type, content }: Fields): readonly unknown[] | undefined {
  const parts = partsOf(content).map(({ functionResponse }) => functionResponse)
  return type === 'user' && parts.length > 0 && parts.every(isFields) ? parts.map(({ id }) => id) : undefined
}

/** The type under which a summary is kept, which is told as a compaction. */
const SUMMARY = 'summary'

/** A message that was written again: with results and counts that it lacked, and no shorter. */
function merged(known: Fields, message: Fields): Fields {
  const { content, toolCalls, tokens, ...rest } = message
  const calls = new Map((Array.isArray(known['toolCalls']) ? known['toolCalls'] : []).filter(isFields).map((call) => [call['id'], call]))
  for (const call of Array.isArray(toolCalls) ? toolCalls.filter(isFields) : []) {
    const before = calls.get(call['id'])
    calls.set(call['id'], before === undefined || textIn(before['result']) === '' ? call : { ...call, result: before['result'] })
  }
  return {
    ...known,
    ...rest,
    type: known['type'],
    content: textIn(known['content']) === '' ? content : known['content'],
    ...(calls.size > 0 && { toolCalls: [...calls.values()] }),
    tokens: tokens ?? known['tokens'],
  }
}

/** A message and the results of its calls; none for what only the screen shows. */
function entriesOf(message: Fields, before: number, skipped: Skipped): RecordedEntry[] {
  const key = message['id'] as string
  const at = Math.max(before, timeOf(message['timestamp']))
  switch (message['type']) {
    case 'user': {
      const content = blocksOf(message['content'])
      return content.length === 0 ? [] : [{ key, message: { role: 'user', content }, at }]
    }
    case 'gemini':
      return answerOf(key, message, before === 0 ? at : before, at)
    case SUMMARY:
      return []
    default:
      skipped.note(textOf(message['type']))
      return []
  }
}

function answerOf(key: string, message: Fields, asked: number, at: number): RecordedEntry[] {
  const thoughts = (Array.isArray(message['thoughts']) ? message['thoughts'] : []).filter(isFields)
  const calls = (Array.isArray(message['toolCalls']) ? message['toolCalls'] : []).filter(isFields)
  const usage = usageOf(message['tokens'])
  const model = textOf(message['model'])
  const results: RecordedEntry[] = []
  const content: ContentBlock[] = thoughts.map((one) => ({
    type: 'thinking',
    thinking: [textOf(one['subject']), textOf(one['description'])].filter((text) => text !== '').join('\n'),
  }))
  content.push(...blocksOf(message['content']))
  // Answers that the program itself has written were not paid for.
  if (model === '' && usage === undefined && calls.length === 0) return content.length === 0 ? [] : [{ key, message: { role: 'custom', content }, at }]
  for (const [index, call] of calls.entries()) {
    const id = textOf(call['id']) || `${key}-call-${index}`
    const [name, args] = piCall(textOf(call['name']), isFields(call['args']) ? call['args'] : {})
    content.push({ type: 'toolCall', id, name, arguments: args })
    const result: Message = {
      role: 'toolResult',
      toolCallId: id,
      toolName: name,
      content: resultOf(call['result']),
      isError: call['status'] === 'error' || call['status'] === 'cancelled',
    }
    results.push({ key: `${key}-${id}`, message: result, at: Math.max(at, timeOf(call['timestamp'])) })
  }
  const answer: Message = {
    role: 'assistant',
    content,
    provider: 'google',
    model: model || 'unknown',
    stopReason: calls.length > 0 ? 'toolUse' : 'stop',
    ...(usage !== undefined && { usage }),
  }
  return [{ key, message: answer, at: asked, names: [key] }, ...results]
}

/** Texts and images among parts; a string is a text. The answer to a call is with the call. */
function blocksOf(content: unknown): ContentBlock[] {
  return partsOf(content).flatMap((part): ContentBlock[] => {
    const inline = part['inlineData']
    if (isFields(inline)) return [{ type: 'image', data: textOf(inline['data']), mimeType: textOf(inline['mimeType']) }]
    if (textOf(part['text']) === '') return []
    return part['thought'] === true ? [{ type: 'thinking', thinking: textOf(part['text']) }] : [{ type: 'text', text: textOf(part['text']) }]
  })
}

/** The text of a result: its output or its error, else all of the response as JSON. */
function resultOf(result: unknown): ContentBlock[] {
  return partsOf(result).flatMap((part): ContentBlock[] => {
    const answered = part['functionResponse']
    if (!isFields(answered)) return blocksOf(part)
    const response = isFields(answered['response']) ? answered['response'] : {}
    const { output = response['error'] } = response
    return [{ type: 'text', text: typeof output === 'string' ? output : JSON.stringify(output ?? response) }]
  })
}

function textIn(content: unknown): string {
  return resultOf(content)
    .map(({ text = '' }) => text)
    .join('\n')
}

/** A list of parts from one, from several, or from a text. */
function partsOf(content: unknown): Fields[] {
  const list: unknown[] = Array.isArray(content) ? content : [content]
  return list.flatMap((one): Fields[] => (typeof one === 'string' ? [{ text: one }] : isFields(one) ? [one] : []))
}

/** The prompt's count includes what was cached, and the answer's does not include what the model thought. */
function usageOf(tokens: unknown): RecordedUsage | undefined {
  if (!isFields(tokens)) return undefined
  return soundUsage({
    input: countsTogether(tokens['input'], tokens['tool']),
    output: countsTogether(tokens['output'], tokens['thoughts']),
    cacheRead: tokens['cached'],
    cacheWrite: undefined,
    isWhole: true,
  })
}

function timeOf(noted: unknown): number {
  const at = Date.parse(textOf(noted))
  return Number.isFinite(at) ? at : 0
}
