/**
 * Codex's rollouts (`~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`): a line for each item of the conversation, as
 * `{ timestamp, type, payload }` (openai/codex, `codex-rs/protocol`). They are read as if Pi had held the conversation:
 * shell commands become `bash` calls, and the items of one response become one answer. Events only repeat items for the
 * screen, so they are skipped, except for the provider's token counts; from version 0.151 on these are lines of their own
 * (`token_usage_record`), one for each response, beside the events or in their place. Patches remain calls of `apply_patch`. Rollouts of
 * 2025's first versions begin with a line `{ id, timestamp, instructions }`, and their other lines are the items themselves.
 */
import { isFields, numberOf, textOf } from '../core/index.ts'
import type { Fields } from '../core/index.ts'
import { piCall } from '../tools/index.ts'
import { codexUsage } from './counts.ts'
import { jsonLines } from './lines.ts'
import { entriesOf, folderOf, Recording, Skipped } from './recording.ts'
import type { ContentBlock, Message, OpenAnswer, Origin, Problem, RecordedUsage, Step } from './recording.ts'

/** A recording by Codex. */
export class CodexRecording extends Recording {
  override async *steps(report: (problem: Problem) => void): AsyncGenerator<Step> {
    const rollout = new Rollout()
    this.skipped = rollout.skipped
    for await (const { value } of jsonLines(this.file, report)) yield* rollout.take(value)
    yield* rollout.end()
  }
}

const LINES = new Set(['token_usage_record', 'session_meta', 'response_item', 'event_msg', 'turn_context', 'compacted'])

/** True if a line is one of a conversation in this format. */
export function isCodexLine(value: Fields): boolean {
  return LINES.has(String(value['type'])) && isFields(value['payload'])
}

/** Returns what the first line says about its session. */
export function codexOrigin(value: Fields): Origin {
  const payload = value['payload'] as Fields
  const { cwd, source } = payload
  const id = textOf(payload['id']) || 'unknown'
  const isSubagent = (isFields(source) && 'subagent' in source) || payload['thread_source'] === 'subagent'
  return { format: 'codex', version: 0, id, cwd: folderOf(cwd), ...(isSubagent && { agent: id }) }
}

/** True if a first line begins a rollout of the first versions. */
export function isOldCodexHeader(value: Fields): boolean {
  const { id, timestamp, type } = value
  return type === undefined && typeof id === 'string' && typeof timestamp === 'string' && 'instructions' in value
}

/** Returns what that line says about its session. */
export function oldCodexOrigin({ id }: Fields): Origin {
  return { format: 'codex', version: 0, id: String(id), cwd: '/' }
}

/** The items that are lines of their own in rollouts of the first versions. */
const ITEMS = new Set(['message', 'reasoning', 'function_call', 'function_call_output', 'local_shell_call', 'custom_tool_call', 'custom_tool_call_output'])

/** The kind under which they are counted. */
const SIDE_CALLS = 'calls outside the conversation'

/** Texts with the user role that no person wrote. */
const INJECTED = /^\s*(?:<(?:environment_context|user_instructions|permissions|collaboration_mode|turn_aborted)|# AGENTS\.md)/

class Rollout {
  readonly skipped = new Skipped()
  /** The sessions whose lines may stand here: the rollout's own, and those that it was forked from. */
  readonly #sessions: string[] = []
  /** IDs of the responses whose counts have come in lines of their own, and whether there were any such lines. */
  readonly #counted = new Set<string>()
  #hasRecords = false
  /** The usage of all responses so far, by the latest event. */
  #total = ''
  /** The counts of the open response come from the provider's own line, and not from an event. */
  #isExact = false
  /** The model's context window in tokens, as the latest event has it; 0 before the first. */
  #window = 0
  /** ChatGPT has told the limits of a plan, which it does for no key. */
  #isPlan = false
  readonly #calls = new Map<string, string>()
  #model = 'unknown'
  #effort: string | undefined
  #at = 0
  #count = 0
  #open: OpenAnswer | undefined;

  *take(line: Fields): Generator<Step> {
    const before = this.#at
    const at = Date.parse(String(line['timestamp']))
    if (Number.isFinite(at)) this.#at = Math.max(this.#at, at)
    const payload = isFields(line['payload']) ? line['payload'] : {}
    if (line['payload'] === undefined) {
      if (isOldCodexHeader(line)) return
      if (ITEMS.has(textOf(line['type']))) {
        yield* this.#item(line, before === 0 ? this.#at : before)
        return
      }
    }
    switch (line['type']) {
      case 'session_meta':
        for (const name of ['id', 'forked_from_id']) if (textOf(payload[name]) !== '') this.#sessions.push(textOf(payload[name]))
        return
      case 'turn_context':
        if (typeof payload['model'] === 'string') this.#model = payload['model']
        this.#effort = typeof payload['effort'] === 'string' ? payload['effort'] : undefined
        return
      case 'response_item':
        yield* this.#item(payload, before === 0 ? this.#at : before)
        return
      case 'compacted':
        yield* this.#compacted(payload)
        return
      case 'event_msg':
        if (payload['type'] === 'token_count') yield* this.#event(payload['info'], payload['rate_limits'])
        return
      case 'token_usage_record':
        yield* this.#record(payload)
        return
      default:
        this.skipped.note(typeof line['type'] === 'string' ? line['type'] : 'lines without a type')
    }
  }

  *end(): Generator<Step> {
    const open = this.#open
    if (open === undefined) return
    this.#open = undefined
    this.#isExact = false
    for (const entry of entriesOf(open)) yield { kind: 'message', entry }
  }

  *#item(item: Fields, asked: number): Generator<Step> {
    switch (item['type']) {
      case 'message':
        yield* this.#message(item, asked)
        return
      case 'reasoning': {
        const thinking = [...textsOf(item['summary']), ...textsOf(item['content'])].join('\n')
        yield* this.#answer({ type: 'thinking', thinking, thinkingSignature: textOf(item['encrypted_content']) }, asked)
        return
      }
      case 'function_call':
        yield* this.#call(item, piCall(textOf(item['name']), argumentsOf(item['arguments'])), asked)
        return
      case 'custom_tool_call':
        yield* this.#call(item, [textOf(item['name']) || 'unknown', { input: item['input'] }], asked)
        return
      case 'local_shell_call': {
        const { type: _, ...action } = isFields(item['action']) ? item['action'] : {}
        yield* this.#call(item, piCall('shell', action), asked)
        return
      }
      case 'function_call_output':
      case 'custom_tool_call_output':
        this.#output(item)
        return
      default:
        this.skipped.note(textOf(item['type']) || 'items without a type')
    }
  }

  *#message(item: Fields, asked: number): Generator<Step> {
    const content = contentOf(item['content'])
    if (item['role'] === 'assistant') {
      for (const block of content) yield* this.#answer(block, asked)
      return
    }
    yield* this.end()
    const injected = item['role'] !== 'user' || INJECTED.test(content[0]?.text ?? '')
    const message: Message = { role: injected ? 'custom' : 'user', content }
    yield { kind: 'message', entry: { key: this.#key('message'), message, at: this.#at } }
  }

  /** Adds a block to the open response, or to the next one once outputs have arrived. */
  *#answer(block: ContentBlock, asked: number): Generator<Step> {
    if (this.#open !== undefined && (this.#open.results.length > 0 || this.#open.message.usage !== undefined)) {
      yield* this.end()
    }
    this.#open ??= {
      key: this.#key('answer'),
      at: asked,
      message: { role: 'assistant', content: [], provider: 'openai', model: this.#model, stopReason: 'stop' },
      ...(this.#effort !== undefined && { effort: this.#effort }),
      results: [],
    }
    this.#open.message.content.push(block)
  }

  *#call(item: Fields, [name, args]: [string, Fields], asked: number): Generator<Step> {
    const id = textOf(item['call_id']) || textOf(item['id'])
    this.#calls.set(id, name)
    yield* this.#answer({ type: 'toolCall', id, name, arguments: args }, asked)
    if (this.#open !== undefined) this.#open.message.stopReason = 'toolUse'
  }

  #output(item: Fields): void {
    const id = textOf(item['call_id'])
    const { content, failed } = outputOf(item['output'])
    const message: Message = {
      role: 'toolResult',
      toolCallId: id,
      toolName: this.#calls.get(id) ?? 'unknown',
      content,
      isError: failed,
    }
    // An output without a call is skipped: a compaction removed the call.
    if (this.#open === undefined || !this.#calls.has(id)) this.skipped.note('outputs without their call')
    else this.#open.results.push({ key: this.#key('output'), message, at: this.#at })
  }

  /** The provider's counts for one response, by its ID. */
  *#record(payload: Fields): Generator<Step> {
    const id = textOf(payload['response_id'])
    if (id !== '' && this.#counted.has(id)) return
    if (id !== '') this.#counted.add(id)
    const usage = codexUsage(payload['usage'])
    if (usage === undefined) return
    this.#noteOn(usage)
    this.#hasRecords = true
    const open = this.#open
    const names = id === '' ? [] : [id]
    if (open === undefined || this.#isExact) {
      yield this.#side(names, usage)
      return
    }
    // The event of the same response may have come first: it says the same, and less.
    const isFirst = open.message.usage === undefined
    open.message.usage = usage
    open.names = [...names, ...(isFirst ? [] : (open.names ?? []))]
    this.#isExact = true
  }

  /** Counts as Codex shows them. It repeats them, and where the lines of single responses are, they say no more. */
  *#event(info: unknown, limits: unknown): Generator<Step> {
    this.#isPlan ||= isPlan(limits)
    if (!isFields(info)) return
    const total = JSON.stringify(info['total_token_usage'] ?? null)
    const isRepeated = total !== 'null' && total === this.#total
    this.#total = total
    this.#window = numberOf(info['model_context_window']) || this.#window
    const usage = codexUsage(info['last_token_usage'])
    for (const one of [usage, this.#open?.message.usage]) if (one !== undefined) this.#noteOn(one)
    if (isRepeated || usage === undefined || this.#hasRecords || !(usage.input + usage.cacheRead + usage.cacheWrite > 0)) return
    const names = total === 'null' ? [] : this.#sessions.map((session) => `${session} ${total}`)
    const open = this.#open
    if (open !== undefined && open.message.usage === undefined) {
      open.message.usage = usage
      if (names.length > 0) open.names = names
    } else if (total !== 'null') yield this.#side(names, usage)
  }

  #noteOn(usage: RecordedUsage): void {
    if (this.#window > 0) usage.window = this.#window
    if (this.#isPlan) usage.isPlan = true
  }

  /** A response outside the conversation, such as the one that wrote a summary. */
  #side(names: readonly string[], usage: RecordedUsage): Step {
    this.skipped.note(SIDE_CALLS)
    return { kind: 'side', names, model: `openai/${this.#model}`, usage, at: this.#at }
  }

  *#compacted(payload: Fields): Generator<Step> {
    yield* this.end()
    const history = Array.isArray(payload['replacement_history']) ? payload['replacement_history'] : []
    const kept = history.flatMap((item) => (isFields(item) ? textsOf(item['content']) : []))
    const summary = textOf(payload['message']) || kept.join('\n')
    yield { kind: 'compaction', summary, firstKept: undefined, at: this.#at }
  }

  #key(kind: string): string {
    this.#count += 1
    return `${kind}-${this.#count}`
  }
}

/** The texts of `[{ type, text }]`. */
function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.flatMap((one) => (isFields(one) && textOf(one['text']) !== '' ? [textOf(one['text'])] : [])) : []
}

function contentOf(value: unknown): ContentBlock[] {
  if (typeof value === 'string') return [{ type: 'text', text: value }]
  if (!Array.isArray(value)) return []
  return value.filter(isFields).flatMap((one): ContentBlock[] => {
    if (one['type'] === 'input_image') return [{ type: 'image', data: textOf(one['image_url']), mimeType: 'image/png' }]
    return textOf(one['text']) === '' ? [] : [{ type: 'text', text: textOf(one['text']) }]
  })
}

function argumentsOf(value: unknown): Fields {
  try {
    const parsed: unknown = JSON.parse(textOf(value) || '{}')
    return isFields(parsed) ? parsed : { input: parsed }
  } catch {
    return { input: value }
  }
}

const EXIT_CODE = /^(?:Exit code:|Process exited with code) (-?\d+)/m

/** Number of characters at the start of an output that are searched for the exit code. */
const HEAD_CHARS = 400

/** An output: a text, a list of texts and images, or (for shells in older rollouts) JSON with text and exit code. */
function outputOf(value: unknown): { content: ContentBlock[]; failed: boolean } {
  if (isFields(value)) return { ...outputOf(value['content'] ?? value['body']), failed: value['success'] === false }
  if (typeof value === 'string' && value.startsWith('{"output":')) {
    const { output, metadata } = argumentsOf(value)
    const code = isFields(metadata) ? metadata['exit_code'] : 0
    return { content: [{ type: 'text', text: textOf(output) }], failed: typeof code === 'number' && code !== 0 }
  }
  const content = contentOf(value)
  const code = EXIT_CODE.exec((content[0]?.text ?? '').slice(0, HEAD_CHARS))?.[1]
  return { content, failed: code !== undefined && code !== '0' }
}

/** True if the limits that came with an answer are those of a ChatGPT plan. With a key there are none, or empty ones. */
function isPlan(limits: unknown): boolean {
  return isFields(limits) && (isFields(limits['primary']) || isFields(limits['secondary']) || textOf(limits['plan_type']) !== '')
}
