/**
 * What answers and refusals say about a model's binding. It corrects the table for the rest of a session: what a provider
 * does with an account, or through a gateway, no name tells.
 */
import type { Binding } from './rules.ts'

/** What one answer reports about the reasoning that it was sent. */
export interface BindingReport {
  /** Blocks that the provider dropped because what stood before them has changed. */
  dropped: number
  /** Blocks that it would have dropped on another account. */
  allowed: number
}

/** Entries in which providers say that they have dropped reasoning. The second is assumed: no page names OpenAI's. */
const DROPPED: ReadonlySet<unknown> = new Set(['thinking_dropped', 'reasoning_dropped'])

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
    const { type, reason } = fieldsOf(entry)
    // A change of the model, of the account or of the user drops reasoning, too: no edit of ours did that.
    if (typeof reason === 'string' && !reason.startsWith('prefix')) continue
    if (DROPPED.has(type)) report.dropped += 1
    else if (type === 'thinking_mismatch_allowed') report.allowed += 1
  }
  return report
}

function transformationsIn(answer: unknown): unknown[] | undefined {
  if (Array.isArray(answer)) return answer
  const { input_transformations: own, message, response, diagnostics, response_metadata: metadata } = fieldsOf(answer)
  if (Array.isArray(own)) return own
  if (Array.isArray(diagnostics)) {
    const found = diagnostics.map(fieldsOf).find(({ type }) => type === 'anthropic_input_transformations')
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
 * Returns whether an error is a provider's refusal of reasoning that is bound to another conversation. Takes an error,
 * a message that ends with one, or its sentence.
 */
export function isBindingRefusal(error: unknown): boolean {
  if (typeof error === 'string') return /bound to a different conversation/i.test(error)
  const { message, errorMessage, error: inner, cause, responseBody, lc_error_code: _code } = fieldsOf(error)
  return [message, errorMessage, inner, cause, responseBody].some((one) => one !== error && one !== undefined && isBindingRefusal(one))
}

/** What a session has seen of its models. */
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

function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}
