/** The quotes and names in answers and in what the model sees. */
import type { ContentBlock, Message, ReplayBlock } from '../../recordings/index.ts'
import { Scanner, textsIn } from './probes.ts'
import type { Sink } from './probes.ts'
import type { Vocabulary } from './vocabulary.ts'

/** A part of an answer: where its text goes, such as `thinking` or `edit: new text`, and the texts. */
interface Part {
  use: string
  texts: string[]
}

/** The parts of an answer. */
export function partsOf(message: Message): Part[] {
  return Array.isArray(message.content) ? message.content.flatMap(partsOfBlock) : []
}

/** The texts of a block as the model reads them. */
export function textsOf(block: ReplayBlock): readonly string[] {
  return block.thinking === undefined ? block.texts : [block.thinking]
}

/** Finds the numbers that a session's vocabulary has for texts. */
export class Reader implements Sink {
  readonly #vocabulary: Vocabulary
  readonly #cwd: string
  readonly #scanner = new Scanner()
  /** The last search in which a number was found. */
  #found = new Uint32Array(1 << 11)
  #search = 0
  #ids: number[] = []
  #adds = false

  /** `cwd` is the agent's working directory. */
  constructor(vocabulary: Vocabulary, cwd: string) {
    this.#vocabulary = vocabulary
    this.#cwd = cwd
  }

  /** Adds an answer's quotes and names to the vocabulary. */
  learn(message: Message): void {
    this.#adds = true
    for (const { texts } of partsOf(message)) this.ids(texts)
    this.#adds = false
  }

  /** The numbers of what the texts contain, each once. */
  ids(texts: readonly string[]): Uint32Array {
    this.#search += 1
    this.#ids = []
    for (const text of texts) this.#scanner.scan(text, this.#cwd, this)
    return Uint32Array.from(this.#ids)
  }

  quote(high: number, low: number): void {
    this.#take(high, low, false)
  }

  name(high: number, low: number): void {
    this.#take(high, low, true)
  }

  #take(high: number, low: number, isName: boolean): void {
    const vocabulary = this.#vocabulary
    const id = this.#adds ? vocabulary.add(high, low, isName) : vocabulary.find(high, low)
    if (id === undefined) return
    if (id >= this.#found.length) {
      const wider = new Uint32Array(Math.max(2 * this.#found.length, id + 1))
      wider.set(this.#found)
      this.#found = wider
    }
    if (this.#found[id] === this.#search) return
    this.#found[id] = this.#search
    this.#ids.push(id)
  }
}

function partsOfBlock(block: ContentBlock): Part[] {
  if (block.type === 'text') return [{ use: 'answer', texts: [block.text ?? ''] }]
  if (block.type === 'thinking') return [{ use: 'thinking', texts: [block.thinking ?? ''] }]
  if (block.type !== 'toolCall') return []
  const args = block.arguments ?? {}
  if (block.name !== 'edit') return [{ use: `${block.name ?? ''} arguments`, texts: textsIn(args) }]
  const edits = (Array.isArray(args['edits']) ? args['edits'] : [args]) as (Record<string, unknown> | null)[]
  const texts = (name: string): string[] => edits.flatMap((edit) => textsIn(edit?.[name]))
  return [
    { use: 'edit: old text', texts: texts('oldText') },
    { use: 'edit: new text', texts: texts('newText') },
    { use: 'edit: path', texts: textsIn(args['path']) },
  ]
}
