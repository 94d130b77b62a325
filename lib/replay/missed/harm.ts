/**
 * Which strong missed uses probably harm: without the text, the model would have written code or a command, or gone on in
 * words, from memory. In the other classes the recording shows that the text came anyway, or that there was less to miss. The
 * classes go by what the recorded agent did next; docs/economics.md says what they can't know.
 */
import type { Source } from './sources.ts'

/** The classes, in the order in which they are tried. */
export const HARM_CLASSES = [
  /** At least half of it stands in the results of the same answer's calls. */
  'in the next result',
  /** The recorded agent read the file again within three calls. */
  'file read again',
  /** The agent's own code from an edit or a write, written once more. */
  'own code again',
  /** Arguments of another of its calls. */
  'own arguments',
  /** A path or a pattern for a search, which would have found it. */
  'for a search',
  /** No more than one line of it. */
  'one line',
  /** More than a line, quoted in thinking or in an answer. */
  'in words',
  /** More than a line of an output, for code or a command. */
  'in code or a command',
] as const

/** A class of strong missed uses. */
export type HarmClass = (typeof HARM_CLASSES)[number]

/** True if a strong missed use of this class probably harms. */
export function isProbablyHarm(name: HarmClass): boolean {
  return name === 'in words' || name === 'in code or a command'
}

/** Calls within which the recorded agent may read the file again. */
const READ_AGAIN_CALLS = 3

/** The largest number of quotes in one line, which overlap; it has fewer names than {@link LINE_NAMES}. */
const LINE_QUOTES = 5
const LINE_NAMES = 3

/** The share of a text from which on it counts as having come anyway. */
const CAME_SHARE = 0.5

const LOOKS: ReadonlySet<string> = new Set(['read', 'grep', 'ls', 'find', 'glob'])

/** A strong missed use of tool text, whose class later messages decide. */
export class OpenUse {
  readonly #source: Source
  readonly #use: string
  readonly #probes: ReadonlySet<number>
  readonly #came = new Set<number>()
  readonly #quotes: number
  readonly #names: number
  readonly #call: number
  #readAgain = false

  /** `call` is the number of the answer that used the text; `uses` has the places of the use with what each contains of it. */
  constructor(source: Source, call: number, uses: ReadonlyMap<string, number>, quotes: ReadonlySet<number>, names: ReadonlySet<number>) {
    this.#source = source
    this.#call = call
    let most = 0
    this.#use = ''
    for (const [use, count] of uses) if (count > most) [this.#use, most] = [use, count]
    this.#probes = new Set([...quotes, ...names])
    this.#quotes = quotes.size
    this.#names = names.size
  }

  /** A result has come after `calls` answers in all; `ids` are its quotes and names. */
  result(kind: string, path: string | undefined, calls: number, ids: Uint32Array): void {
    const since = calls - this.#call
    if (since === 1) for (const id of ids) if (this.#probes.has(id)) this.#came.add(id)
    if (kind === 'read' && path !== undefined && path === this.#source.path && since <= READ_AGAIN_CALLS) this.#readAgain = true
  }

  /** True if nothing after `calls` answers can change the class. */
  isOver(calls: number): boolean {
    return calls - this.#call > READ_AGAIN_CALLS
  }

  /** The class, by what has come so far. */
  get class(): HarmClass {
    const isCode = this.#use.startsWith('edit') || this.#use.startsWith('write')
    const isArguments = this.#source.kind.endsWith(' arguments')
    if (!isCode && this.#came.size >= CAME_SHARE * this.#probes.size) return 'in the next result'
    if (this.#readAgain) return 'file read again'
    if (isArguments) return isCode ? 'own code again' : 'own arguments'
    if (LOOKS.has((this.#use.split(' ')[0] ?? '').toLowerCase())) return 'for a search'
    if (this.#quotes <= LINE_QUOTES && this.#names < LINE_NAMES) return 'one line'
    return this.#use === 'thinking' || this.#use === 'answer' ? 'in words' : 'in code or a command'
  }
}
