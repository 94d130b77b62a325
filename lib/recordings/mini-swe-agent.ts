/**
 * mini-swe-agent's trajectories (`*.traj.json`): one JSON document with the messages of a benchmark run (SWE-agent/
 * mini-swe-agent). The agent has one tool, a shell. In older runs a command is a code block in the answer and its output a
 * user's message; in newer ones they are tool calls. Both are read as if Pi had held the conversation.
 */
import { isFields, numberOf, textOf } from '../core/index.ts'
import { soundUsage } from '../models/index.ts'
import type { Fields } from '../core/index.ts'
import { jsonDocument } from './lines.ts'
import { folderOf, NotReplayable, Recording, Skipped } from './recording.ts'
import type { ContentBlock, RecordedEntry, Message, Problem, RecordedUsage, Step } from './recording.ts'

/** True if a JSON document is a trajectory: its messages have roles. */
export function isTrajectory(document: unknown): document is Fields {
  if (!isFields(document) || !Array.isArray(document['messages'])) return false
  const { trajectory_format: format, messages } = document
  if (typeof format === 'string') return format.startsWith('mini-swe-agent')
  const first: unknown = messages[0]
  return isFields(first) && typeof first['role'] === 'string'
}

/** A recording by mini-swe-agent. */
export class MiniSweAgentRecording extends Recording {
  constructor(file: string, document: Fields) {
    const environment = at(document, 'info', 'config', 'environment')
    const cwd = folderOf(isFields(environment) ? environment['cwd'] : undefined)
    super(file, { format: 'mini-swe-agent', version: 0, id: textOf(document['instance_id']) || 'unknown', cwd })
  }

  override async *steps(_report: (problem: Problem) => void): AsyncGenerator<Step> {
    const skipped = new Skipped()
    this.skipped = skipped
    const document = await jsonDocument(this.file)
    if (!isTrajectory(document)) throw new NotReplayable('no trajectory of mini-swe-agent')
    const model = textOf(at(document, 'info', 'config', 'model', 'model_name'))
    const run = new Run(model, skipped)
    for (const message of document['messages'] as unknown[]) if (isFields(message)) yield* run.take(message)
  }
}

class Run {
  readonly #provider: string
  readonly #model: string
  readonly #skipped: Skipped
  /** Calls without an output yet, in their order. */
  #waiting: string[] = []
  #count = 0
  #at = 0

  constructor(model: string, skipped: Skipped) {
    const [provider, ...name] = model.split('/')
    this.#provider = name.length > 0 ? (provider ?? 'unknown') : 'unknown'
    this.#model = (name.length > 0 ? name.join('/') : model) || 'unknown'
    this.#skipped = skipped
  }

  *take(message: Fields): Generator<Step> {
    const seconds = at(message, 'extra', 'timestamp') ?? message['timestamp']
    if (typeof seconds === 'number' && Number.isFinite(seconds)) this.#at = Math.max(this.#at, seconds * 1000)
    switch (message['role']) {
      case 'system':
        // A part of every request that is fitted, as for the other programs.
        return
      case 'assistant':
        yield this.#step(this.#answer(message))
        return
      case 'tool':
        yield this.#step(this.#output(message, textOf(message['tool_call_id'])))
        return
      case 'user': {
        const [call] = this.#waiting
        yield this.#step(call === undefined ? { role: 'user', content: contentOf(message['content']) } : this.#output(message, call))
        return
      }
      default: {
        const kind = textOf(message['role']) || textOf(message['type']) || textOf(message['object']) || 'messages without a role'
        this.#skipped.note(kind)
      }
    }
  }

  #step(message: Message): Step {
    this.#count += 1
    const entry: RecordedEntry = { key: `message-${this.#count}`, message, at: this.#at }
    return { kind: 'message', entry }
  }

  #answer(message: Fields): Message {
    const whole = joinedText(message['content'])
    const calls = callsIn(message, whole, this.#count)
    this.#waiting = calls.map(({ id }) => id)
    const thinking = textOf(message['reasoning_content'])
    const prose = calls.some(({ isInText }) => isInText) ? whole.replace(COMMAND, '').trim() : whole
    const content: ContentBlock[] = [
      ...(thinking === '' ? [] : [{ type: 'thinking', thinking }]),
      ...(prose === '' ? [] : [{ type: 'text', text: prose }]),
      ...calls.map(({ id, command }) => ({ type: 'toolCall', id, name: 'bash', arguments: { command } })),
    ]
    const usage = usageOf(at(message, 'extra', 'response', 'usage'))
    return {
      role: 'assistant',
      content,
      provider: this.#provider,
      model: this.#model,
      stopReason: calls.length > 0 ? 'toolUse' : 'stop',
      ...(usage !== undefined && { usage }),
    }
  }

  #output(message: Fields, id: string): Message {
    this.#waiting = this.#waiting.filter((one) => one !== id)
    const content = contentOf(message['content'])
    const code = at(message, 'extra', 'returncode') ?? RETURN_CODE.exec(content[0]?.text ?? '')?.[1]
    return { role: 'toolResult', toolCallId: id, toolName: 'bash', content, isError: code !== undefined && Number(code) !== 0 }
  }
}

/** A command in the text of an answer. */
const COMMAND = /```(?:bash|mswea_bash_command)\s*\n([\s\S]*?)\n?```|<mswea_bash_command>([\s\S]*?)<\/mswea_bash_command>/

const RETURN_CODE = /^\s*<returncode>(-?\d+)<\/returncode>/

interface Command {
  id: string
  command: string
  /** It is a part of the answer's text. */
  isInText: boolean
}

function callsIn(message: Fields, whole: string, count: number): Command[] {
  const called = Array.isArray(message['tool_calls']) ? message['tool_calls'].filter(isFields) : []
  if (called.length > 0) {
    return called.map((call, index) => ({
      id: textOf(call['id']) || `call-${count}-${index}`,
      command: commandOf(at(call, 'function', 'arguments')),
      isInText: false,
    }))
  }
  const found = COMMAND.exec(whole)
  const actions = at(message, 'extra', 'actions')
  const listed = Array.isArray(actions) ? actions.flatMap((one) => (isFields(one) ? [textOf(one['command'])] : typeof one === 'string' ? [one] : [])) : []
  const commands = listed.length > 0 ? listed : found === null ? [] : [found[1] ?? found[2] ?? '']
  return commands.map((command, index) => ({ id: `call-${count}-${index}`, command, isInText: found !== null }))
}

function commandOf(value: unknown): string {
  try {
    const parsed: unknown = typeof value === 'string' ? JSON.parse(value) : value
    return isFields(parsed) ? textOf(parsed['command']) : ''
  } catch {
    return textOf(value)
  }
}

/** The counts of an answer as LiteLLM has them: OpenAI's names, and Anthropic's for the cache. */
function usageOf(usage: unknown): RecordedUsage | undefined {
  if (!isFields(usage)) return undefined
  if (numberOf(usage['prompt_tokens']) === 0) return undefined
  const cacheRead = numberOf(usage['cache_read_input_tokens']) || at(usage, 'prompt_tokens_details', 'cached_tokens')
  return soundUsage({
    input: usage['prompt_tokens'],
    output: usage['completion_tokens'],
    cacheRead,
    cacheWrite: usage['cache_creation_input_tokens'],
    hour: at(usage, 'cache_creation', 'ephemeral_1h_input_tokens'),
    isWhole: true,
  })
}

function contentOf(value: unknown): ContentBlock[] {
  return [{ type: 'text', text: joinedText(value) }]
}

/** A content that is a text, or a list of `{ type: 'text', text }`. */
function joinedText(value: unknown): string {
  if (!Array.isArray(value)) return textOf(value)
  return value.flatMap((part) => (isFields(part) && typeof part['text'] === 'string' ? [part['text']] : [])).join('\n')
}

function at(value: unknown, ...path: string[]): unknown {
  return path.reduce((inner: unknown, name) => (isFields(inner) ? inner[name] : undefined), value)
}
