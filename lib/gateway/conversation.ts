/**
 * One conversation of a host. Each request goes through the projection; if that fails or takes too long, what went out last
 * goes out again, with the new messages after it.
 */
import { resolve } from 'node:path'
import type { EngineMessage } from '../harness/message.ts'
import { isEqual } from '../harness/identity.ts'
import { adopt, namesIn } from '../harness/handover.ts'
import { Projection } from '../harness/projection.ts'
import type { ProjectedModel } from '../harness/projection.ts'
import { recallTexts } from '../harness/recall.ts'
import type { RecallInput } from '../harness/recall.ts'
import type { OpenOptions, RollReceipt } from '../index.ts'
import { ContextManager } from '../index.ts'
import { chainOf, commonLength, withNotices, withOldForm } from './prefix.ts'
import type { PlacedNotice, Sent } from './prefix.ts'
import type { Api, ModelRequest } from './request.ts'
import { hostShape, shapeOf } from './shape.ts'
import type { CallFacts } from './shape.ts'

/** How long a request waits for the projection, in milliseconds. */
export const LIMIT_MS = 2_000

/** How long a request waits for the file trackers, in milliseconds. */
const FLUSH_MS = 100

/** How many notices are remembered for a later process. */
const MOST_NOTICES = 100

/** What a conversation needs from its gateway. */
export interface ConversationOptions {
  /** How sessions are opened: store, stay, redact and the like. */
  open: Omit<OpenOptions, 'sessionId' | 'cwd' | 'layout' | 'model' | 'shape'>
  /** The model of a request. */
  modelOf: (request: ModelRequest) => ProjectedModel
  /** Called once for each kind of trouble, with a sentence for the user. */
  onTrouble: (kind: string, sentence: string) => void
  /** Called after each roll. */
  onRoll: (sessionId: string, receipt: RollReceipt) => void
  /** For tests: the limit of a request in milliseconds. Default {@link LIMIT_MS}. */
  limitMs?: number
  now?: () => number
}

/** What goes out for a request. */
export interface Form {
  messages: readonly object[]
  /** `projected`: by the projection. `old`: the last form with the new messages. `own`: the host's messages, unchanged. */
  kind: 'projected' | 'old' | 'own'
}

interface Opened {
  manager: ContextManager
  projection: Projection
}

/** The ID of a shortened text of the user or the model. */
const SAID = /^[0-9a-f]{11}$/

/** A file with one of these looks different in an output, even without the numbers before its lines. */
const NOT_SHOWN = /^\uFEFF|\r|[^\n]{2000}/

/** One conversation. Requests are taken one after the other. */
export class Conversation {
  readonly id: string
  readonly api: Api
  readonly cwd: string
  /** The session that this one goes on from: the parent agent's, or the one that the host has compacted. */
  readonly before: Conversation | undefined
  /** True if everything of `before` may be brought back, and not only what a prompt names. */
  readonly continues: boolean
  readonly #options: ConversationOptions
  readonly #facts: CallFacts = { calls: new Map(), altered: new Set(), notices: [] }
  readonly #adopted = new Set<string>()
  #opened: Promise<Opened> | undefined
  #request: ModelRequest | undefined
  #last: Sent = { raw: [], sent: [] }
  #chain: string[] = ['']
  #queue: Promise<unknown> = Promise.resolve()
  #met = 0
  /** What the projection does not know of: notices of an earlier process, and what a person has brought back. */
  #old: readonly PlacedNotice[]
  #new: PlacedNotice[] = []
  /** What the next request takes along. */
  readonly #waiting: object[] = []

  constructor(
    identity: { id: string; api: Api; cwd: string; before?: Conversation | undefined; continues?: boolean; notices?: readonly PlacedNotice[] },
    options: ConversationOptions,
  ) {
    this.id = identity.id
    this.api = identity.api
    this.cwd = identity.cwd
    this.before = identity.before
    this.continues = identity.continues ?? false
    this.#old = identity.notices ?? []
    this.#options = options
  }

  /** Our notices, for a later process. */
  get notices(): readonly PlacedNotice[] {
    return [...this.#old, ...this.#new].slice(-MOST_NOTICES)
  }

  /** The host's messages in the last request, and what went out for them. */
  get last(): Sent {
    return this.#last
  }

  /** Estimated tokens of the last request's system prompt and tools. */
  get systemTokens(): number {
    return this.#request?.systemTokens ?? 0
  }

  /** The window of the last request's model in tokens; 0 if that is not known. */
  get contextWindow(): number {
    return this.#request === undefined ? 0 : this.#options.modelOf(this.#request).contextWindow
  }

  /** How many messages there were in the last request, and the hash that stands for them. */
  get tip(): { count: number; hash: string } {
    this.#chain = chainOf(this.#last.raw, this.#chain)
    return { count: this.#chain.length - 1, hash: this.#chain.at(-1) as string }
  }

  /** The form in which a request goes out. Never rejects. */
  async form(request: ModelRequest): Promise<Form> {
    const { raw, sent } = this.#last
    const { messages } = request
    const common = commonLength(raw, messages)
    // A retry gets the same bytes; only its cache markers are its own.
    if (common === raw.length && common === messages.length && sent.length === raw.length && !isEdited(this.#last)) return { messages, kind: 'own' }
    if (common === raw.length && common === messages.length && common > 0) return { messages: sent, kind: 'projected' }
    const work = this.#queue.then(() => this.#project(request, common))
    this.#queue = work.catch(() => {})
    try {
      const projected = await bounded(work, this.#options.limitMs ?? LIMIT_MS)
      this.#note(messages, projected, common)
      return { messages: projected, kind: 'projected' }
    } catch (error) {
      this.#options.onTrouble('projection', `a request went out without new edits: ${sentenceOf(error)}`)
      const form = withOldForm(this.#last, messages, common)
      this.#note(messages, form, common)
      return { messages: form, kind: 'old' }
    }
  }

  /** The form of a request that leaves the conversation as it is: a question on the side, or a branch of one request. */
  aside(messages: readonly object[]): readonly object[] {
    return withOldForm(this.#last, messages, commonLength(this.#last.raw, messages))
  }

  /** Answers a call of our tool. Undefined if this conversation has no such object. */
  async recall(input: RecallInput): Promise<string[] | undefined> {
    const { manager, projection } = await bounded(this.#open(), this.#options.limitMs ?? LIMIT_MS)
    const name = String(input.id).replace(/@\d+$/, '')
    const document = await manager.get(name)
    if (document === null) return SAID.test(name) && (await projection.permits(name)) ? recallTexts(manager, input) : undefined
    const id = document['xt/id']
    if (document.type === 'toolcall' && !(await manager.sessionSets()).sessionIndex.includes(id)) return undefined
    // Of an earlier process only the record is left.
    if (this.#last.raw.length === 0) projection.allow(id)
    return recallTexts(manager, input)
  }

  /**
   * Adds a text to the next request of the model, at its end, and leaves it there: what a person brings back. Returns false
   * if it already goes there.
   */
  tell(text: string): boolean {
    const message = shapeOf(this.api).notice(text, (this.#options.now ?? Date.now)())
    if (this.#waiting.some((one) => isEqual(one, message)) || this.#last.sent.some((one) => isEqual(one, message))) return false
    this.#waiting.push(message)
    return true
  }

  /** The session, if it is open or can be opened. */
  async session(): Promise<{ manager: ContextManager; projection: Projection }> {
    return this.#open()
  }

  /** Returns whether a session has been opened. */
  get isOpen(): boolean {
    return this.#opened !== undefined
  }

  async close(): Promise<void> {
    await this.#queue
    const opened = await this.#opened?.catch(() => undefined)
    await opened?.manager.close()
  }

  async #project(request: ModelRequest, common: number): Promise<object[]> {
    this.#request = request
    const { manager, projection } = await this.#open()
    // What changed on disk before this request is told in it.
    await bounded(manager.flush(), FLUSH_MS).catch(() => undefined)
    await this.#meet(request.messages, Math.min(common, this.#met))
    const sent = await projection.transform(request.messages)
    const { length } = request.messages
    this.#met = length
    if (common < this.#last.raw.length) {
      this.#old = this.#old.filter(({ at }) => at <= common)
      this.#new = this.#new.filter(({ at }) => at <= common)
    }
    this.#new.push(...this.#facts.notices.splice(0).map((message) => ({ at: length, message })))
    this.#old = [...this.#old, ...this.#waiting.splice(0).map((message) => ({ at: length, message }))]
    await this.#adopt(request.messages.slice(common))
    return withNotices(sent, request.messages, this.#old)
  }

  #note(messages: readonly object[], sent: readonly object[], common: number): void {
    this.#last = { raw: messages, sent }
    this.#chain.length = Math.min(this.#chain.length, common + 1)
  }

  #open(): Promise<Opened> {
    if (this.#opened === undefined) {
      const opening = this.#start()
      this.#opened = opening
      // A failure may pass: the next request tries again.
      opening.catch(() => {
        if (this.#opened === opening) this.#opened = undefined
      })
    }
    return this.#opened
  }

  async #start(): Promise<Opened> {
    const { open, modelOf, onRoll, now } = this.#options
    const manager = await ContextManager.open({ ...open, sessionId: this.id, cwd: this.cwd })
    const projection = new Projection(manager, {
      shape: hostShape(this.api, this.#facts),
      canRecall: () => this.#request?.canRecall ?? false,
      shortens: true,
      limitMs: 0.9 * (this.#options.limitMs ?? LIMIT_MS),
      onWarning: (sentence) => this.#options.onTrouble('projection', sentence.replace(/^pi-context-manager: /, '')),
      model: () => modelOf(this.#request as ModelRequest),
      onRoll: (receipt) => onRoll(this.id, receipt),
      ...(this.#request === undefined ? {} : { systemTokens: this.#request.systemTokens }),
      ...(now === undefined ? {} : { now }),
    })
    return { manager, projection }
  }

  /** Records the files that new results show or that their calls have changed, before the results themselves. */
  async #meet(messages: readonly object[], from: number): Promise<void> {
    const { manager } = await this.#open()
    const shape = hostShape(this.api, this.#facts)
    for (let at = from; at < messages.length; ) {
      const { size, parts } = shape.read(messages, at)
      at += size
      for (const part of parts) if (part.role === 'toolResult') await this.#meetResult(manager, part)
    }
  }

  async #meetResult(manager: ContextManager, { toolCallId = '', isError }: EngineMessage): Promise<void> {
    const call = this.#facts.calls.get(toolCallId)
    if (call === undefined || isError === true) return
    for (const path of call.writes ?? []) await manager.indexWritten(this.#path(path), null, toolCallId).catch(() => undefined)
    if (call.reads === undefined) return
    const found = await manager.indexFile(this.#path(call.reads), null, toolCallId).catch(() => undefined)
    const text = found === undefined ? undefined : (await manager.get(found.id))?.content
    if (typeof text !== 'string' || NOT_SHOWN.test(text)) this.#facts.altered.add(toolCallId)
  }

  #path(path: string): string {
    return path.startsWith('~') ? path : resolve(this.cwd, path)
  }

  /** Takes over from the session before this one what its prompts and its summary name. */
  async #adopt(messages: readonly object[]): Promise<void> {
    const { before } = this
    if (before === undefined) return
    for (const message of messages as { role?: unknown }[]) {
      if (message.role !== 'user') continue
      for (const name of namesIn(JSON.stringify(message))) {
        if (this.#adopted.has(name)) continue
        this.#adopted.add(name)
        const [own, other] = [await this.#open(), await before.session()]
        const id = await adopt(own.manager, other.manager, other.projection, name)
        if (id !== undefined) own.projection.allow(id)
      }
    }
  }
}

function isEdited({ raw, sent }: Sent): boolean {
  return raw.some((message, at) => sent[at] !== message)
}

/** An error as one sentence, with its code. */
export function sentenceOf(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown }
  const message = error instanceof Error ? error.message : String(error)
  return typeof code === 'string' ? `${message} (${code})` : message
}

async function bounded<T>(work: Promise<T>, limitMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it took longer than ${limitMs / 1000} s`)), limitMs)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
