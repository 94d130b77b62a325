/** The size of the requests that the recorded program sent, followed step by step. */
import { blocksOf, isSent, keysShown, unitsOf } from '../recordings/index.ts'
import type { BranchStep, Calls, EditStep, Message, RecordedEntry } from '../recordings/index.ts'

/** A message without its content. */
type Envelope = Omit<Message, 'content'>

/** The request that the recorded program would send now. */
export class RecordedRequest {
  /** UTF-16 units of its messages. */
  units = 0
  readonly #calls: Calls
  /** Units of each message in its own form. */
  readonly #whole = new Map<string, number>()
  /** Units of messages that are shown in another form. */
  readonly #edited = new Map<string, number>()
  readonly #envelopes = new Map<string, Envelope>()
  #path: string[] = []

  constructor(calls: Calls) {
    this.#calls = calls
  }

  /** A message was added. Returns how many units of it are sent. */
  add({ key, message }: Pick<RecordedEntry, 'key' | 'message'>): number {
    const { content: _, ...envelope } = message
    this.#envelopes.set(key, envelope)
    const size = this.#sizeOf(key, message)
    this.#whole.set(key, size)
    this.#path.push(key)
    this.units += size
    return size
  }

  /** A message is shown in another form. */
  edit(key: string, content: EditStep['content']): void {
    const before = this.#shown(key)
    const envelope = this.#envelopes.get(key)
    if (envelope === undefined) return
    this.#edited.set(key, content === null ? 0 : this.#sizeOf(key, { ...envelope, content } as Message))
    if (this.#path.includes(key)) this.units += this.#shown(key) - before
  }

  /** A summary replaced everything before a message; everything if that is undefined. */
  compaction(summary: string, firstKept: string | undefined): void {
    this.#path = firstKept === undefined ? [] : this.#path.slice(Math.max(0, this.#path.indexOf(firstKept)))
    this.units = summary.length + this.#sum()
  }

  /** The conversation continues from an earlier point. */
  branch(step: BranchStep): void {
    this.#path = [...keysShown(step)]
    this.#edited.clear()
    this.units = 0
    for (const [key, content] of step.edits ?? []) this.edit(key, content)
    this.units = (step.compaction?.summary.length ?? 0) + this.#sum()
  }

  #sum(): number {
    return this.#path.reduce((sum, key) => sum + this.#shown(key), 0)
  }

  #shown(key: string): number {
    return this.#edited.get(key) ?? this.#whole.get(key) ?? 0
  }

  #sizeOf(key: string, message: Message): number {
    return isSent(message) ? unitsOf(blocksOf({ key, message }, this.#calls)) : 0
  }
}
