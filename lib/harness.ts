/**
 * The projection for harnesses that have no Pi: `transformContext` for pi-agent-core's `Agent`, or for any array of
 * messages. Only messages that are new cross to the engine; what comes back is applied to a copy that this file keeps.
 */
import type { ContextManager, Edit, IncomingMessage, ModelCall, ModelPrices, RollReceipt } from '../index.js'
import { sections } from './sections.ts'
import type { Message } from './sections.ts'

/** The model that the projection is made for. */
export interface ProjectedModel extends ModelPrices {
  /** The context window in tokens; 0 when unknown. */
  contextWindow: number
  /** How long the provider keeps a prompt prefix, in milliseconds. Default 300,000. */
  cacheTtlMs?: number
  /** The model's name. Another one than before has a cold cache. */
  name?: string
  /** How many content blocks back the provider looks for a cached prefix: 20 for Anthropic's API. */
  lookbackBlocks?: number
}

/** How a projection is made. */
export interface ProjectionOptions {
  /**
   * `anchored` (default): outputs stay where they appeared until a roll pays. `sections`: the canonical four sections,
   * rendered anew at each call.
   */
  layout?: 'anchored' | 'sections'
  /** The model in use; a function where it may change. Without one, prices of 0.1 (read) and 1 (write) are assumed. */
  model?: ProjectedModel | (() => ProjectedModel)
  /** Estimated tokens of system prompt and tool declarations. Default 0. */
  systemTokens?: number
  /** Told of each roll. */
  onRoll?: (receipt: RollReceipt) => void
  /** Milliseconds since the epoch; for tests and replays. Default `Date.now`. */
  now?: () => number
}

const UNKNOWN_MODEL: ProjectedModel = { contextWindow: 0, input: 0, cacheRead: 0, cacheWrite: 0 }

/** The projection of one session's messages. Calls act one after the other. */
export class Projection {
  readonly #manager: ContextManager
  readonly #options: ProjectionOptions
  /** The harness's messages as they were handed over. */
  #seen: Message[] = []
  /** What the provider gets: the harness's messages with edits, and notices between them. */
  #out: Message[] = []
  /** Where in `#out` each of the harness's messages is. */
  #places: number[] = []
  #synchronized = false
  #queue: Promise<unknown> = Promise.resolve()

  constructor(manager: ContextManager, options: ProjectionOptions = {}) {
    this.#manager = manager
    this.#options = options
  }

  /**
   * What to send in place of a conversation's messages. New messages are recorded: turns, and tool results that were
   * not recorded by `receive` or `recordToolcall`. Its cost follows what is new, besides copying the array.
   *
   * Rejects with what the engine reports; the messages can then be sent as they are.
   */
  transform(messages: readonly unknown[]): Promise<unknown[]> {
    const result = this.#queue.then(() => this.#transform(messages as Message[]))
    this.#queue = result.catch(() => {})
    return result
  }

  async #transform(messages: readonly Message[]): Promise<unknown[]> {
    if (!this.#synchronized || !this.#extendsSeen(messages)) await this.#synchronize(messages)
    else await this.#advance(messages.slice(this.#seen.length))
    await this.#manager.settle()
    if (this.#options.layout === 'sections') return sections(messages, await this.#manager.assemble())
    return [...this.#out]
  }

  /** Whether the messages begin with those that were handed over. */
  #extendsSeen(messages: readonly Message[]): boolean {
    if (messages.length < this.#seen.length) return false
    return this.#seen.every((seen, index) => {
      const message = messages[index]
      return seen === message || (message !== undefined && print(seen) === print(message))
    })
  }

  /** A first call, or a history that was changed behind us: what is visible is rebuilt from all messages. */
  async #synchronize(messages: readonly Message[]): Promise<void> {
    this.#synchronized = false
    const document = await this.#manager.get(`chat:${this.#manager.sessionId}`)
    const turns = (document?.['turns'] ?? []) as { user: unknown; assistant: unknown[]; toolcall_ids: unknown[] }[]
    const recorded = this.#seen.length > 0 ? common(this.#seen, messages) : recordedOf(turns, messages)
    this.#seen = []
    this.#out = []
    this.#places = []
    const incoming = this.#append(messages)
    await this.#manager.resync(incoming, recorded, this.#call(messages))
    this.#synchronized = true
    await this.#advance([])
  }

  async #advance(fresh: readonly Message[]): Promise<void> {
    const incoming = this.#append(fresh)
    this.#synchronized = false
    const plan = await this.#manager.advance(incoming, this.#call(fresh))
    this.#synchronized = true
    for (const edit of plan.edits) this.#apply(edit)
    if (plan.notices.length > 0) {
      const text = plan.notices.join('\n')
      this.#out.push({ role: 'user', content: [{ type: 'text', text }], timestamp: this.#now() })
    }
    if (plan.receipt !== undefined) this.#options.onRoll?.(plan.receipt)
  }

  #append(messages: readonly Message[]): IncomingMessage[] {
    return messages.map((message) => {
      const key = String(this.#seen.length)
      this.#seen.push(message)
      this.#places.push(this.#out.length)
      this.#out.push(message)
      return { key, message }
    })
  }

  #apply(edit: Edit): void {
    const index = Number(edit.key)
    const place = this.#places[index]
    const raw = this.#seen[index]
    const shown = place === undefined ? undefined : this.#out[place]
    if (place === undefined || raw === undefined || shown === undefined) return
    this.#out[place] = edit.kind === 'result' ? withText(raw, edit.text) : withArguments(raw, edit.calls)
  }

  #call(fresh: readonly Message[]): ModelCall {
    const { model: given, systemTokens = 0 } = this.#options
    const model = (typeof given === 'function' ? given() : given) ?? UNKNOWN_MODEL
    const { input, cacheRead, cacheWrite, caches } = model
    return {
      model: model.name ?? '',
      prices: { input, cacheRead, cacheWrite, ...(caches === undefined ? {} : { caches }) },
      ...(model.lookbackBlocks === undefined ? {} : { lookbackBlocks: model.lookbackBlocks }),
      contextWindow: model.contextWindow,
      cacheTtlMs: model.cacheTtlMs ?? 300_000,
      nowMs: this.#now(),
      systemTokens,
      onlyAtUserTurn: false,
      atUserTurn: fresh.some((message) => message.role === 'user'),
      rolls: this.#options.layout !== 'sections',
    }
  }

  #now(): number {
    return (this.#options.now ?? Date.now)()
  }
}

/** How many messages two conversations have in common from their start on. */
function common(one: readonly Message[], other: readonly Message[]): number {
  let count = 0
  while (count < one.length && count < other.length && print(one[count]) === print(other[count])) count += 1
  return count
}

/** How many of a conversation's messages the recorded turns stand for: a resumed harness hands all of them over. */
function recordedOf(turns: readonly { assistant: unknown[] }[], messages: readonly Message[]): number {
  let users = turns.length
  const answers = turns.reduce((sum, turn) => sum + turn.assistant.length, 0)
  let left = answers
  for (const [index, message] of messages.entries()) {
    if (message.role === 'user' && users-- === 0) return index
    if (message.role === 'assistant' && left-- === 0) return index
  }
  return messages.length
}

/** What tells two messages apart without comparing their texts. */
function print(message: Message | undefined): string {
  if (message === undefined) return ''
  const { role, timestamp, toolCallId, content } = message
  const size = typeof content === 'string' ? content.length : Array.isArray(content) ? content.length : 0
  return `${role} ${timestamp ?? ''} ${toolCallId ?? ''} ${size}`
}

function withText(raw: Message, text: string | undefined): Message {
  if (text === undefined) return raw
  const others = Array.isArray(raw.content) ? raw.content.filter((block) => block?.type !== 'text') : []
  return { ...raw, content: [{ type: 'text', text }, ...others] }
}

function withArguments(raw: Message, calls: readonly { position: number; args: object }[]): Message {
  if (calls.length === 0 || !Array.isArray(raw.content)) return raw
  const collapsed = new Map(calls.map((call) => [call.position, call.args]))
  let position = -1
  const content = raw.content.map((block) => {
    if (block?.type !== 'toolCall') return block
    position += 1
    const args = collapsed.get(position)
    return args === undefined ? block : { ...block, arguments: args }
  })
  return { ...raw, content }
}
