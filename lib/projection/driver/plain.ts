/**
 * The conversation as its agent would have it without us: all messages as they came, and behind the agent's own summary once
 * it would have compacted. Sizes only, in characters; no text is kept.
 */
import { firstKept, INSTRUCTIONS } from '../../models/index.ts'
import type { CompactionRule } from '../../models/index.ts'

/** A message as the agent would send it. */
export interface PlainMessage {
  key: string
  /** The speaker: the user, the model, a tool, or another source, such as a command that the user has run. */
  kind: 'user' | 'answer' | 'result' | 'other'
  /** Its characters in a request. */
  size: number
  /** Its characters in a request for a summary. */
  told: number
  /** Files that it reads or writes; the agent lists them behind its summaries. */
  files?: readonly string[]
}

/** A summary that stands before the messages. Points keep it. */
export interface PlainSummary {
  /** The first message after it. */
  kept: string
  /** Its characters. */
  size: number
  /** The agent really made it, and it is not only what the agent would have made. */
  isReal?: true
  /** No request has had it yet. */
  isNew?: true
  /** The last real compaction that is accounted for. */
  seen?: string
}

/** A compaction that the agent has really made. */
export interface RealCompaction {
  /** Its entry in the agent's record. */
  id: string
  /** The first message that it has kept. */
  kept: string
  /** Characters of its summary. */
  size: number
  /** Characters of each text by the model in it. */
  told: number
}

/** The requests of one compaction, in characters. */
export interface Compacted {
  /** The text sent for each summary, where a separate request asks for it. */
  asked: number[]
  /** The summaries that come back. */
  answered: number[]
}

/** One conversation. */
export class PlainConversation {
  #messages: PlainMessage[] = []
  readonly #places = new Map<string, number>()
  #size = 0
  #summary: PlainSummary | undefined
  /** The files of what is summarized. */
  readonly #files = new Set<string>()
  /** The characters of the last real summary, by which the next one is estimated. */
  #usual: number | undefined

  /** Characters of everything that a request would send now, without the system prompt and the tools. */
  get size(): number {
    return this.#size + (this.#summary?.size ?? 0)
  }

  /** The summary before the messages. */
  get summary(): PlainSummary | undefined {
    return this.#summary
  }

  /** True if everything was so far compacted as the agent really did it. */
  get isReal(): boolean {
    return this.#summary === undefined || this.#summary.isReal === true
  }

  /** Continues with the summary of a point. {@link PlainConversation.reset} has to follow. */
  takeOver(summary: PlainSummary | undefined): void {
    this.#summary = summary === undefined ? undefined : { ...summary }
  }

  /** All messages of the branch, the summarized ones included, and the last real compaction on it. */
  reset(messages: Iterable<PlainMessage>, real?: RealCompaction): void {
    if (real !== undefined) {
      this.learn(real)
      // It was made while we were away.
      if (this.#summary?.seen !== real.id) this.adopt(real)
    }
    const all = [...messages]
    const kept = this.#summary?.kept
    const first = kept === undefined ? 0 : all.findIndex(({ key }) => key === kept)
    this.#files.clear()
    if (first > 0) this.#note(all.slice(0, first))
    this.#messages = []
    this.#places.clear()
    this.#size = 0
    for (const message of all.slice(Math.max(0, first))) this.add(message)
  }

  /** A message was added, or has another size. */
  add(message: PlainMessage): void {
    const place = this.#places.get(message.key)
    if (place === undefined) this.#places.set(message.key, this.#messages.push(message) - 1)
    else {
      this.#size -= (this.#messages[place] as PlainMessage).size
      this.#messages[place] = message
    }
    this.#size += message.size
  }

  /** A request with the summary was answered. */
  sent(): void {
    if (this.#summary !== undefined) delete this.#summary.isNew
  }

  /** Later summaries are as long as this one. */
  learn({ told }: RealCompaction): void {
    this.#usual = told
  }

  /** The agent has compacted, as it would have without us. {@link PlainConversation.reset} has to follow. */
  adopt({ id, kept, size }: RealCompaction): void {
    this.#summary = { kept, size, isReal: true, isNew: true, seen: id }
  }

  /** The agent has compacted, as it would not have without us. */
  passOver({ id }: RealCompaction): void {
    this.#summary = { ...(this.#summary ?? { kept: this.#messages[0]?.key ?? '', size: 0, isReal: true }), seen: id }
  }

  /** Compacts as the agent would. Undefined if there is nothing to summarize. */
  compact({ keep, summary }: CompactionRule): Compacted | undefined {
    const all = this.#messages
    const kept = firstKept(
      all.length,
      keep,
      (at) => Math.ceil((all[at] as PlainMessage).size / 4),
      (at) => all[at]?.kind === 'result',
    )
    if (kept <= 0) return undefined
    // If a turn is cut in two, its first part gets a separate summary.
    const turn = startsTurn(all[kept]) ? -1 : all.findLastIndex((one, at) => at < kept && startsTurn(one))
    const before = this.#summary?.size ?? 0
    const usual = this.#usual ?? 4 * summary
    const [history, part] = turn < 0 ? [all.slice(0, kept), []] : [all.slice(0, turn), all.slice(turn, kept)]
    const asked: number[] = []
    if (history.length > 0) asked.push(told(history) + before + (before > 0 ? INSTRUCTIONS.update : INSTRUCTIONS.first))
    if (part.length > 0) asked.push(told(part) + INSTRUCTIONS.turn)
    this.#note(all.slice(0, kept))
    const size = (history.length > 0 ? usual : before) + (part.length > 0 ? usual : 0) + this.#listed
    const { seen } = this.#summary ?? {}
    this.#summary = { kept: (all[kept] as PlainMessage).key, size, isNew: true, ...(seen !== undefined && { seen }) }
    const left = all.slice(kept)
    this.#messages = []
    this.#places.clear()
    this.#size = 0
    for (const message of left) this.add(message)
    return { asked, answered: asked.map(() => usual) }
  }

  #note(messages: readonly PlainMessage[]): void {
    for (const { files = [] } of messages) for (const file of files) this.#files.add(file)
  }

  /** Characters of the list of files. */
  get #listed(): number {
    let size = this.#files.size === 0 ? 0 : 30
    for (const file of this.#files) size += file.length + 1
    return size
  }
}

function startsTurn(message: PlainMessage | undefined): boolean {
  return message?.kind === 'user' || message?.kind === 'other'
}

function told(messages: readonly PlainMessage[]): number {
  return messages.reduce((sum, one) => sum + one.told, 0)
}
