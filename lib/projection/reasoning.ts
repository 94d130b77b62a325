/**
 * The reasoning of one conversation: what its provider does once something before it has changed, and what the provider has
 * refused.
 */
import { askedOf, isBindingRefusal, ObservedBinding, rulesOf, Withheld } from '../models/index.ts'
import type { Binding, BindingReport, Route } from '../models/index.ts'
import { isFields, textOf } from '../core/index.ts'
import { takeOrigin } from './origins.ts'

/** A model's name and binding, as its host states them. */
export interface KnownModel {
  name?: string
  binding?: Binding
}

/** Keeps track of one conversation's reasoning. Reads messages of every shape. */
export class Reasoning {
  readonly #observed = new ObservedBinding()
  readonly #withheld = new Withheld()
  /** Reasoning that the host has taken out of its messages. */
  #removed = new Withheld()
  /** The origin of the latest answer, by its own account. */
  #route: Route & { name?: string } = {}
  #model = ''
  #asksForDrops = false
  #refused = false
  /** The messages that were sent last. */
  #last: readonly object[] = []

  /** Takes in the messages from `from` on: where the answers among them came from, and what they report. */
  see(messages: readonly object[], from: number): void {
    for (const [place, message] of messages.slice(from).entries()) {
      this.#route = { ...this.#route, ...routeOf(message) }
      this.answered(message)
      if (!isBindingRefusal(failureOf(message))) continue
      this.#observed.refused(this.#model)
      this.#withheld.add(messages.slice(0, from + place))
    }
  }

  /**
   * The binding of the next call: what a refusal has shown, what the host says, what answers have reported, what the last
   * request asked for, or what the model's name and the format of its reasoning say.
   */
  binding({ name = this.#route.name ?? '', binding }: KnownModel): Binding {
    this.#model = name
    // Messages of a continued conversation that were seen before the first call have no name yet.
    const { binding: unasked, askedBinding } = rulesOf(name, this.#route)
    const table = this.#observed.binding('', this.#asksForDrops ? askedBinding : unasked)
    return this.#observed.binding(name, table, binding)
  }

  /** Takes in a request that may ask its provider to drop reasoning. */
  asked(request: unknown): void {
    this.#asksForDrops = askedOf(request) === 'drops'
  }

  /** Takes in what an answer, or an event of a stream, reports about reasoning. Returns it. */
  answered(answer: unknown): BindingReport | undefined {
    return this.#observed.answered(this.#model, answer)
  }

  /** Takes in a failure of the last request. True if it was a refusal of reasoning, so that the next one differs. */
  refused(error: unknown): boolean {
    if (!isBindingRefusal(error)) return false
    this.#observed.refused(this.#model)
    // The engine may leave it out by itself from now on, so it is counted here.
    this.#withheld.add(this.#last)
    this.#refused = true
    return true
  }

  /**
   * Takes in what the conversation was built from, and the host's messages of now: reasoning that the host no longer has is not
   * sent, although a message may otherwise be what was sent instead of it.
   */
  rebuilt(from: readonly object[], now: readonly object[]): void {
    this.#removed = Withheld.between(from, now)
  }

  /** The number of blocks of reasoning that are kept back because the provider has refused them. */
  get withheld(): number {
    return this.#withheld.size
  }

  /**
   * Returns what to send of a request: after a refusal, without all reasoning up to then. The given array stays as it
   * is.
   */
  sent<T extends object>(messages: T[]): T[] {
    if (this.#refused) this.#withheld.add(messages)
    this.#refused = false
    const own = this.#removed.size === 0 ? messages : this.#removed.without(messages, takeOrigin)
    this.#last = this.#withheld.size === 0 ? own : this.#withheld.without(own, takeOrigin)
    return this.#last as T[]
  }
}

/** True for a non-Anthropic model that answers in Anthropic's format. */
export function isCopy(name: string): boolean {
  const { family } = rulesOf(name)
  return family !== undefined && family !== 'claude'
}

/** Returns what an answer says about its model and its format. */
function routeOf(message: object): Route & { name?: string } {
  const {
    role,
    type,
    api,
    provider,
    model,
    content,
    parts,
    info,
    encrypted_content: encrypted,
    response_metadata: metadata,
  } = message as Record<string, unknown>
  if (type === 'reasoning' && typeof encrypted === 'string') return { api: 'openai-responses' }
  if (role === 'assistant' && typeof api === 'string') return { api, provider: textOf(provider), name: textOf(model) }
  const { modelID, providerID } = isFields(info) ? info : {}
  const { model_name: modelName = undefined, model: metadataModel = modelName } = isFields(metadata) ? metadata : {}
  const name = [modelID, metadataModel].find((one) => typeof one === 'string')
  const blocks = [content, parts].find(Array.isArray) ?? []
  const formats = blocks.flatMap((block: unknown) => formatOf(block) ?? [])
  return {
    ...(typeof name === 'string' ? { name } : {}),
    ...(typeof providerID === 'string' ? { provider: providerID } : {}),
    ...(formats[0] === undefined ? {} : { api: formats[0] }),
  }
}

/** The format that signs its reasoning as this block is signed. */
function formatOf(block: unknown): string | undefined {
  if (!isFields(block)) return undefined
  const { type, signature, providerOptions, providerMetadata, metadata } = block
  if (type === 'redacted_thinking' || (type === 'thinking' && typeof signature === 'string' && signature !== '')) return 'anthropic-messages'
  if (type !== 'reasoning') return undefined
  const options = [providerOptions, providerMetadata, metadata].find(isFields) ?? {}
  const { signature: anthropic, redactedData } = isFields(options['anthropic']) ? options['anthropic'] : {}
  if (typeof anthropic === 'string' || typeof redactedData === 'string') return 'anthropic-messages'
  const { reasoningEncryptedContent } = isFields(options['openai']) ? options['openai'] : {}
  return typeof reasoningEncryptedContent === 'string' ? 'openai-responses' : undefined
}

/** The failure with which an answer ended, as Pi and OpenCode store it. */
function failureOf(message: object): unknown {
  const { stopReason, errorMessage, info } = message as { stopReason?: unknown; errorMessage?: unknown; info?: unknown }
  if (stopReason === 'error') return errorMessage
  return isFields(info) ? info['error'] : undefined
}
