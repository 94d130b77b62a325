/**
 * Reasoning that is bound to the messages before it: the rule that a request asks for once those have changed, the actions that
 * answers and refusals report, and the blocks that have to stay out of later requests. Observations correct the table for the
 * rest of a session: a model's name does not tell how a provider treats an account, or requests through a gateway.
 */
import type { Binding } from './rules.ts'

/** True for a binding with which reasoning is lost if something before it has changed. */
export function binds(binding: Binding | undefined): boolean {
  return binding === 'drops' || binding === 'refuses'
}

/** The field of `thinking` that asks a provider to drop reasoning instead of refusing it. */
export const BINDING_FIELD = 'block_binding'

const CONTROLS = 'thinking-binding-controls'

/** The beta header without which Anthropic refuses the field. */
export const BINDING_BETA = `${CONTROLS}-2026-08-01`

/**
 * Returns what a body asks for: `drops`, `refuses`, or undefined if it does not say. Reads Anthropic's Messages, Bedrock's
 * Converse, and the options by which the AI SDK makes them (`providerOptions`).
 */
export function askedOf(body: unknown): Binding | undefined {
  const { thinking, additionalModelRequestFields, anthropic, bedrock } = fieldsOf(body)
  const { [BINDING_FIELD]: binding } = fieldsOf(thinking ?? fieldsOf(additionalModelRequestFields)['thinking'])
  const { blockBinding } = fieldsOf(fieldsOf(anthropic)['thinking'] ?? fieldsOf(bedrock)['reasoningConfig'])
  const asked = fieldsOf(binding)['prefix_mismatch_behavior'] ?? fieldsOf(blockBinding)['prefixMismatchBehavior']
  return asked === 'drop_block' ? 'drops' : asked === 'error' ? 'refuses' : undefined
}

/** The same body with the field that asks for drops. Where thinking is off the provider does not take it; then undefined. */
export function askingForDrops(body: object): object | undefined {
  const thinking = fieldsOf((body as { thinking?: unknown }).thinking)
  if (thinking['type'] === 'disabled') return undefined
  const type = thinking['type'] ?? 'adaptive'
  return { ...body, thinking: { ...thinking, type, [BINDING_FIELD]: { prefix_mismatch_behavior: 'drop_block' } } }
}

/** A value of the header `anthropic-beta` with the one that the field needs. */
export function withBindingBeta(betas: string | undefined): string {
  const list = (betas ?? '')
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '')
  return [...new Set([...list, BINDING_BETA])].join(',')
}

/** The report of one answer about the reasoning that it was sent. */
export interface BindingReport {
  /** Blocks that the provider dropped because what stood before them has changed. */
  dropped: number
  /** Blocks that it would have dropped on another account. */
  allowed: number
}

/** True for an entry by which a provider says that it has dropped reasoning: Anthropic's type, or OpenAI's with its action (Pi 1.6.0). */
function isDrop({ type, action }: { type?: unknown; action?: unknown }): boolean {
  return type === 'thinking_dropped' || (type === 'reasoning' && action === 'removed')
}

/** Pi's names for these reports in a message's diagnostics. */
const REPORTS: ReadonlySet<unknown> = new Set(['anthropic_input_transformations', 'openai_input_transformations'])

/**
 * Returns what an answer reports. Takes anything that may hold it: an answer in Anthropic's or OpenAI's format, an
 * event of a stream, a message of Pi with diagnostics, or the list of transformations itself. Undefined if it says
 * nothing.
 */
export function readReport(answer: unknown): BindingReport | undefined {
  const entries = transformationsIn(answer)
  if (entries === undefined) return undefined
  const report = { dropped: 0, allowed: 0 }
  for (const entry of entries) {
    const { type, action, reason } = fieldsOf(entry)
    // A change of the model, of the account or of the user also drops reasoning, and so does the end of a turn at OpenAI.
    if (typeof reason === 'string' && !reason.startsWith('prefix')) continue
    if (isDrop({ type, action })) report.dropped += 1
    else if (type === 'thinking_mismatch_allowed') report.allowed += 1
  }
  return report
}

function transformationsIn(answer: unknown): unknown[] | undefined {
  if (Array.isArray(answer)) return answer
  const { input_transformations: own, message, response, diagnostics, response_metadata: metadata } = fieldsOf(answer)
  if (Array.isArray(own)) return own
  if (Array.isArray(diagnostics)) {
    const found = diagnostics.map(fieldsOf).find(({ type }) => REPORTS.has(type))
    const { transformations } = fieldsOf(found?.['details'])
    return Array.isArray(transformations) ? transformations : undefined
  }
  for (const inner of [message, response, metadata]) {
    const { input_transformations: list } = fieldsOf(inner)
    if (Array.isArray(list)) return list
  }
  return undefined
}

/**
 * True if an error is a provider's refusal of reasoning that is bound to another conversation. Takes an error,
 * a message that ends with one, or its sentence.
 */
export function isBindingRefusal(error: unknown): boolean {
  if (typeof error === 'string') return /bound to a different conversation/i.test(error)
  const { message, errorMessage, error: inner, cause, responseBody, lc_error_code: _code } = fieldsOf(error)
  return [message, errorMessage, inner, cause, responseBody].some((one) => one !== error && one !== undefined && isBindingRefusal(one))
}

/** True if a 400 names the field that asks for drops, or its beta header, as routers and other providers in Anthropic's format refuse them. */
export function isFieldRefusal(text: string): boolean {
  return text.includes(BINDING_FIELD) || text.includes(CONTROLS)
}

/** Bindings that a session has observed of its models. */
export class ObservedBinding {
  readonly #seen = new Map<string, Binding>()

  /** Takes in what an answer of a model reports. Returns it. */
  answered(model: string, answer: unknown): BindingReport | undefined {
    const report = readReport(answer)
    if (report !== undefined && report.dropped > 0) this.#seen.set(model, 'drops')
    else if (report !== undefined && report.allowed > 0) this.#seen.set(model, 'keeps')
    return report
  }

  /** The provider has refused a request to a model because of its reasoning. */
  refused(model: string): void {
    this.#seen.set(model, 'refuses')
  }

  /**
   * The binding of a model: `refuses` if the provider has refused, whatever else is known; then what the user or the host
   * says; then what else was seen; and if nothing is known so, what the table says.
   */
  binding(model: string, table: Binding, told?: Binding): Binding {
    const seen = this.#seen.get(model)
    return seen === 'refuses' ? seen : (told ?? seen ?? table)
  }
}

/** A block's or item's identity: its signature, or all of it if it has none. Undefined for other blocks. */
function reasoningKey(block: unknown): string | undefined {
  if (typeof block !== 'object' || block === null) return undefined
  const { type, signature, thinkingSignature, data, encrypted_content: encrypted, reasoningContent } = block as Record<string, unknown>
  // Bedrock's Converse.
  if (typeof reasoningContent === 'object' && reasoningContent !== null) {
    const { reasoningText } = reasoningContent as { reasoningText?: { signature?: unknown } }
    return typeof reasoningText?.signature === 'string' ? reasoningText.signature : JSON.stringify(reasoningContent)
  }
  if (type !== 'thinking' && type !== 'redacted_thinking' && type !== 'reasoning') return undefined
  const signed = [signature, thinkingSignature, data, encrypted].find((one) => typeof one === 'string' && one !== '')
  return typeof signed === 'string' ? signed : JSON.stringify(block)
}

/** Messages without any reasoning, for requests in which everything before it changes each time. */
export function withoutReasoning<T extends object>(messages: readonly T[]): T[] {
  const all = new Withheld()
  all.add(messages)
  return all.without(messages)
}

/** The reasoning that one conversation withholds. Reads messages of every shape that the product knows. */
export class Withheld {
  readonly #keys = new Set<string>()

  /** Withholds what messages have and later ones no longer do. */
  static between(before: readonly object[], now: readonly object[]): Withheld {
    const [withheld, left] = [new Withheld(), new Withheld()]
    withheld.add(before)
    left.add(now)
    for (const key of left.#keys) withheld.#keys.delete(key)
    return withheld
  }

  /** The number of withheld blocks. */
  get size(): number {
    return this.#keys.size
  }

  /** Withholds all reasoning of a conversation from now on. Returns how many blocks are new. */
  add(messages: readonly object[]): number {
    const before = this.#keys.size
    for (const message of messages) {
      for (const block of [message, ...blocksOf(message)]) {
        const key = reasoningKey(block)
        if (key !== undefined) this.#keys.add(key)
      }
    }
    return this.#keys.size - before
  }

  /**
   * The messages without what is withheld; those that nothing is left of are left out. Behind a message of the system, which has to
   * stand before an answer, a short text takes the place of one. The given messages stay as they are. `changed` gets each message
   * that goes out instead of another one.
   */
  without<T extends object>(messages: readonly T[], changed: (now: T, before: T) => void = () => {}): T[] {
    if (this.#keys.size === 0) return [...messages]
    const kept: T[] = []
    for (const message of messages) {
      if (this.#holds(message)) continue
      const name = LISTS.find((list) => Array.isArray((message as Record<string, unknown>)[list]))
      const blocks = blocksOf(message)
      const left = blocks.filter((block) => !this.#holds(block))
      if (name === undefined || left.length === blocks.length) {
        kept.push(message)
        continue
      }
      if (left.length === 0) {
        if (fieldsOf(kept.at(-1))['role'] !== 'system') continue
        left.push({ type: 'text', text: STAND_IN })
      }
      // Some hosts' messages are instances of classes.
      const now = Object.assign(Object.create(Object.getPrototypeOf(message)), message, { [name]: left }) as T
      changed(now, message)
      kept.push(now)
    }
    return kept
  }

  #holds(block: unknown): boolean {
    const key = reasoningKey(block)
    return key !== undefined && this.#keys.has(key)
  }
}

/** The text that replaces an answer of reasoning alone. */
const STAND_IN = '[...]'

/** The fields in which messages have their blocks. */
const LISTS = ['content', 'parts'] as const

function blocksOf(message: object): unknown[] {
  const fields = message as Record<string, unknown>
  return LISTS.map((name) => fields[name]).find(Array.isArray) ?? []
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}
