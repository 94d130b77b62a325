/** Pi's session files: version 1 is a list; versions 2 and 3 are a tree, written in chronological order. */
import { headerOf } from '../lines/index.ts'
import { soundUsage } from '../models/index.ts'
import { isFields } from '../core/index.ts'
import { soundDollars } from './counts.ts'
import { jsonLines } from './lines.ts'
import { callsOf, folderOf, Recording } from './recording.ts'
import { hasOddParts, soundContent, soundMessage } from './sound.ts'
import type { BranchStep, EditStep, RecordedEntry, Message, Origin, Problem, RecordedUsage, Saved, SideCall, Step, Summarized } from './recording.ts'

/** The type of the extension's entry that marks a session of the holdout. */
const HELD_OUT = 'pi-context-manager-holdout'

/** The newest version of Pi's format that is read here. */
export const NEWEST_PI_VERSION = 3

/** Returns what the header line says. Throws nothing: fields that are missing get neutral values. */
export function piOrigin(header: Record<string, unknown>): Origin {
  return {
    format: 'pi',
    version: typeof header['version'] === 'number' ? header['version'] : 1,
    id: typeof header['id'] === 'string' ? header['id'] : 'unknown',
    cwd: folderOf(header['cwd']),
  }
}

/** A recording in Pi's format. */
export class PiRecording extends Recording {
  override async *steps(report: (problem: Problem) => void): AsyncGenerator<Step> {
    const tree = new Tree()
    let seen = false
    for await (const { number, value } of jsonLines(this.file, report)) {
      if (value['type'] === 'session') {
        if (seen) {
          const message = 'a second session begins here; the file is replayed up to this line'
          report({ file: this.file, line: number, message, fatal: false })
          return
        }
        seen = true
        tree.skip()
        continue
      }
      const content = isFields(value['message']) ? value['message']['content'] : value['content']
      if (hasOddParts(content)) report({ file: this.file, line: number, message: "a part of the message can't be read and is left out", fatal: false })
      yield* tree.take(value)
    }
  }
}

interface Node {
  parent: string | null
  /** True if the entry adds a message that the model sees. */
  sent: boolean
  /** The summary that the entry put in place of earlier messages; `kept` is undefined for all of them. */
  compaction?: Summarized
  /** The form that the entry gave to an earlier message. */
  edit?: Pick<EditStep, 'key' | 'content'>
  /** The context manager's savings up to this point. */
  saved?: Saved
}

class Tree {
  readonly #nodes = new Map<string, Node>()
  /** Entry IDs by position in the file, the header included: version 1 names entries by position. */
  readonly #order: string[] = []
  #leaf: string | null = null
  #at = 0
  /** `provider/model` of the latest answer. */
  #model = 'unknown/unknown'
  /** The last level of thinking in the file. */
  #effort: string | undefined
  /** Arguments of calls still waiting for their results. */
  readonly #calls = new Map<string, Record<string, unknown>>()

  /** The header has a position too. */
  skip(): void {
    this.#order.push('')
  }

  *take(entry: Record<string, unknown>): Generator<Step> {
    const id = typeof entry['id'] === 'string' ? entry['id'] : `line-${this.#order.length}`
    const parent = parentOf(entry, this.#leaf)
    this.#order.push(id)
    const at = this.#time(entry)
    if (parent !== this.#leaf) yield this.#branch(parent, at)
    this.#leaf = id
    if (entry['type'] === 'thinking_level_change' && typeof entry['thinkingLevel'] === 'string') this.#effort = entry['thinkingLevel']
    if (entry['type'] !== 'message' && entry['usage'] !== undefined) yield this.#side(entry, id, at)
    const message = messageOf(entry)
    if (message?.role === 'assistant' && typeof message.model === 'string') this.#model = `${message.provider ?? 'unknown'}/${message.model}`
    const node: Node = { parent, sent: message !== undefined }
    this.#nodes.set(id, node)
    if (message !== undefined) {
      yield { kind: 'message', entry: this.#entry(id, message, at) }
    } else if (entry['type'] === 'compaction') {
      const summary = typeof entry['summary'] === 'string' ? entry['summary'] : ''
      const firstKept = this.#firstKept(entry, id)
      node.compaction = { summary, kept: firstKept }
      yield { kind: 'compaction', summary, firstKept, at }
    } else if (entry['type'] === 'context_edit') {
      node.edit = editOf(entry)
      yield { kind: 'edit', ...node.edit, at }
    } else if (entry['type'] === 'custom' && entry['customType'] === HELD_OUT) {
      yield { kind: 'heldOut', at }
    } else {
      const point = pointAt(entry)
      if (point === undefined) return
      node.saved = point.saved
      yield { ...point, at }
    }
  }

  /** A call outside the conversation: one that wrote a summary, or kept the cache warm. */
  #side(entry: Record<string, unknown>, id: string, at: number): SideCall {
    const { provider, model } = entry
    const own = typeof model === 'string' ? `${typeof provider === 'string' ? provider : 'unknown'}/${model}` : this.#model
    return { kind: 'side', names: [`${id} ${at}`], model: own, usage: soundNoted(entry['usage']), at }
  }

  /** The messages from the root to an entry, and the newest compaction among them. */
  #branch(leaf: string | null, at: number): BranchStep {
    const keys: string[] = []
    const seen = new Set<string>()
    let compaction: Summarized | undefined
    let saved: Saved | undefined
    const edits = new Map<string, EditStep['content']>()
    for (let id = leaf; id !== null && !seen.has(id);) {
      seen.add(id)
      const node = this.#nodes.get(id)
      if (node === undefined) break
      if (node.sent) keys.push(id)
      saved ??= node.saved
      if (node.edit !== undefined && !edits.has(node.edit.key)) edits.set(node.edit.key, node.edit.content)
      if (compaction === undefined && node.compaction !== undefined) {
        const { summary, kept } = node.compaction
        compaction = { summary, kept: kept ?? keys.at(-1) }
      }
      id = node.parent
    }
    return {
      kind: 'branch',
      keys: keys.reverse(),
      at,
      ...(compaction !== undefined && { compaction }),
      ...(edits.size > 0 && { edits }),
      ...(saved !== undefined && { saved }),
    }
  }

  #firstKept(entry: Record<string, unknown>, own: string): string | undefined {
    const index = entry['firstKeptEntryIndex']
    const id = typeof index === 'number' ? this.#order[index] : entry['firstKeptEntryId']
    if (typeof id !== 'string' || id === own) return undefined
    // An entry without a message means the first message after it.
    const from = this.#order.indexOf(id)
    return from < 0 ? undefined : this.#order.slice(from).find((one) => this.#nodes.get(one)?.sent === true)
  }

  #time(entry: Record<string, unknown>): number {
    const inner = (entry['message'] as { timestamp?: unknown } | undefined)?.timestamp
    const at = typeof inner === 'number' ? inner : Date.parse(String(entry['timestamp']))
    if (Number.isFinite(at)) this.#at = at
    return this.#at
  }

  #entry(key: string, message: Message, at: number): RecordedEntry {
    for (const call of callsOf(message)) this.#calls.set(call.id ?? '', call.arguments ?? {})
    const file = wholeRead(message, this.#calls.get(message.toolCallId ?? ''))
    const effort = message.role === 'assistant' ? this.#effort : undefined
    return { key, message, at, ...(file !== undefined && { file }), ...(effort !== undefined && { effort }) }
  }
}

function parentOf(entry: Record<string, unknown>, leaf: string | null): string | null {
  const parent = entry['parentId']
  // Version 1 has no parents: each entry follows the one before it.
  return typeof parent === 'string' || parent === null ? parent : leaf
}

function messageOf(entry: Record<string, unknown>): Message | undefined {
  switch (entry['type']) {
    case 'message': {
      const message = entry['message'] as Message | null | undefined
      if (typeof message !== 'object' || message === null || typeof message.role !== 'string') return undefined
      return message.role === 'hookMessage' ? { ...soundMessage(message), role: 'custom' } : withSoundUsage(withoutHeader(soundMessage(message)))
    }
    case 'custom_message':
      return {
        role: 'custom',
        customType: entry['customType'],
        content: soundContent(entry['content']),
      }
    case 'branch_summary':
      return { role: 'branchSummary', summary: String(entry['summary'] ?? '') }
    default:
      return undefined
  }
}

function editOf(entry: Record<string, unknown>): Pick<EditStep, 'key' | 'content'> {
  const replacement = entry['replacement'] as { content?: EditStep['content'] } | null | undefined
  return { key: String(entry['targetId']), content: replacement?.content ?? null }
}

/** The type of the entries in which the context manager's extension keeps its state. */
const POINT = 'pi-context-manager'

/** Returns what a point of the context manager says was saved; undefined for any other entry. */
function pointAt(entry: Record<string, unknown>): { kind: 'managed' | 'off'; saved: Saved } | undefined {
  if (entry['type'] !== 'custom' || entry['customType'] !== POINT) return undefined
  const { saved, dollars, plan, off } = (entry['data'] ?? {}) as { saved?: unknown; dollars?: unknown; plan?: unknown; off?: unknown }
  const onPlan = isPlanTokens(plan) ? { sent: plan.sent, without: plan.without } : undefined
  const isOff = !isAmount(saved) && off === true
  if (isOff && onPlan === undefined) return undefined
  return {
    kind: isOff ? 'off' : 'managed',
    saved: { tokens: isAmount(saved) ? saved : 0, dollars: isAmount(dollars) ? dollars : 0, ...(onPlan !== undefined && { plan: onPlan }) },
  }
}

function isPlanTokens(value: unknown): value is NonNullable<Saved['plan']> {
  const { sent, without } = (value ?? {}) as { sent?: unknown; without?: unknown }
  return isAmount(sent) && isAmount(without)
}

function isAmount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}

/** The kinds of costs that Pi notes. */
const NOTED = ['input', 'output', 'cacheRead', 'cacheWrite'] as const

/** A message whose counts and costs are numbers that can be added up. */
function withSoundUsage(message: Message): Message {
  if (message.role !== 'assistant') return message
  const { usage: noted, ...rest } = message
  const usage = soundNoted(noted)
  return usage === undefined ? rest : { ...rest, usage }
}

function soundNoted(noted: unknown): RecordedUsage | undefined {
  const { input, output, cacheRead, cacheWrite, cacheWrite1h: hour, totalTokens: whole, cost } = (noted ?? {}) as Record<string, unknown>
  // A part can not be larger than the whole.
  const part = (count: unknown): unknown => (isAmount(whole) && whole > 0 && isAmount(count) && count > whole ? Number.NaN : count)
  const usage = soundUsage({ input: part(input), output: part(output), cacheRead: part(cacheRead), cacheWrite: part(cacheWrite), hour })
  if (usage === undefined || cost === null || cost === undefined) return usage
  const dollars = cost as Record<string, unknown>
  return { ...usage, cost: Object.fromEntries(NOTED.map((name) => [name, soundDollars(dollars[name])])) }
}

/** A result as the tool gave it. */
function withoutHeader(message: Message): Message {
  if (message.role !== 'toolResult' || !Array.isArray(message.content)) return message
  const first = message.content.findIndex((block) => block.type === 'text')
  const text = message.content[first]?.text
  const header = text === undefined ? undefined : headerOf(text)
  if (text === undefined || header === undefined) return message
  const content = message.content.map((block, index) => (index === first ? { ...block, text: text.slice(header.length) } : block))
  return { ...message, content }
}

/** The last line that Pi adds to a truncated text. */
const CUT = /\n\n?\[(?:Showing lines|\d+ more lines|Line \d+ is|Output truncated|Truncated)[^\n]*\]\s*$/

/** The file behind the result of a read that showed all of it. */
function wholeRead(message: Message, args: Record<string, unknown> | undefined): { path: string; content: string } | undefined {
  if (message.role !== 'toolResult' || message.toolName !== 'read' || message.isError === true) return undefined
  const path = args?.['path']
  if (typeof path !== 'string' || args?.['offset'] !== undefined || args?.['limit'] !== undefined) return undefined
  if (!Array.isArray(message.content) || message.content.length !== 1) return undefined
  const content = message.content[0]?.text
  return content === undefined || CUT.test(content) ? undefined : { path, content }
}
