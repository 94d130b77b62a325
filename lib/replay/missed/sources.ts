/** The text that the recorded agent had in sight, and where each quote and name stands in it. */
import type { Calls, Message, RecordedEntry } from '../../recordings/index.ts'
import { grown } from './vocabulary.ts'

/** A block that was put before the recorded agent. */
export interface Source {
  /** The message that it belongs to. */
  key: string
  /** For an output, the tool (for a shell, what was run); otherwise the kind of text. */
  kind: string
  /** The number of the first call that showed it. */
  born: number
  /** The file that it shows, or that its call named. */
  path?: string | undefined
  /** UTF-16 units of its texts. */
  units: number
  isShown: boolean
}

/** Kinds of sources that are not tool text. */
export const OWN_WORDS: ReadonlySet<string> = new Set(['thinking', 'answer', 'user', 'notice', 'user bash'])

/** The kind of a recorded summary. Text repeated in it does not count as a use. */
export const SUMMARY = 'summary'

const NONE = 0xffffffff

/** The sources of one session. */
export class Sources {
  readonly #sources: Source[] = []
  readonly #byKey = new Map<string, Source[]>()
  /** The newest place of each vocabulary number, and for each place the one before it. */
  readonly #newest: Uint32Array
  #before = new Uint32Array(1 << 12)
  #source = new Uint32Array(1 << 12)
  #places = 0

  /** `size` is the size of the vocabulary. */
  constructor(size: number) {
    this.#newest = new Uint32Array(size).fill(NONE)
  }

  /** A block came into sight; `ids` are its quotes and names. */
  add(source: Source, ids: Uint32Array): void {
    const number = this.#sources.push(source) - 1
    const mates = this.#byKey.get(source.key)
    if (mates === undefined) this.#byKey.set(source.key, [source])
    else mates.push(source)
    for (const id of ids) {
      if (this.#places === this.#before.length) {
        this.#before = grown(this.#before, 2 * this.#places)
        this.#source = grown(this.#source, 2 * this.#places)
      }
      this.#before[this.#places] = this.#newest[id] as number
      this.#source[this.#places] = number
      this.#newest[id] = this.#places
      this.#places += 1
    }
  }

  /** Only the blocks of these messages are in sight now. */
  only(keys: Iterable<string>): void {
    for (const source of this.#sources) source.isShown = false
    for (const key of keys) for (const source of this.#byKey.get(key) ?? []) source.isShown = true
  }

  /** Everything before a message goes out of sight; if it is undefined, everything does. */
  from(key: string | undefined): void {
    let keeps = false
    for (const [own, sources] of this.#byKey) {
      keeps ||= own === key
      if (!keeps) for (const source of sources) source.isShown = false
    }
  }

  /** The blocks in sight that contain a quote or name, newest first. */
  *with(id: number): Generator<Source> {
    for (let place = this.#newest[id] as number; place !== NONE; place = this.#before[place] as number) {
      const source = this.#sources[this.#source[place] as number] as Source
      if (source.isShown) yield source
    }
  }
}

const PLAIN_TOOLS = new Set(['read', 'grep', 'edit', 'write', 'find', 'ls'])

/** The kinds of work that a shell was asked to do, by the words of its command; the first match counts. */
const COMMANDS: readonly [pattern: RegExp, kind: string][] = [
  [/\b(test|pytest|vitest|jest|check|clippy|lint|tsc|build|golangci|make|mise run|cargo|go vet|gofmt|fmt)\b/, 'bash: build, test'],
  [/\b(git|gh)\b/, 'bash: git'],
  [/\b(cat|head|tail|sed -n|less|jq)\b/, 'bash: show'],
  [/\b(grep|rg|find|ls|fd|tree|wc)\b/, 'bash: search'],
]

/** The kind of a tool's output. */
function kindOfOutput(message: Message, calls: Calls): string {
  const call = calls.of(message.toolCallId)
  const tool = (message.toolName ?? call?.name ?? '').toLowerCase()
  if (tool === 'bash') {
    const command = String(call?.args['command'] ?? '')
    return COMMANDS.find(([pattern]) => pattern.test(command))?.[1] ?? 'bash: other'
  }
  if (PLAIN_TOOLS.has(tool)) return tool
  if (/task|agent/.test(tool)) return 'agent'
  return tool.includes('web') ? 'web' : 'other tool'
}

/** The kind of one block of a message. */
export function kindOf({ message }: RecordedEntry, label: string, calls: Calls): string {
  return message.role === 'toolResult' ? kindOfOutput(message, calls) : label
}
