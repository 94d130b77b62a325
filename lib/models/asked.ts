/** What a request asks its provider to do with reasoning that no longer fits. */
import type { Binding } from './rules.ts'

/** The beta header without which Anthropic refuses the field. */
export const BINDING_BETA = 'thinking-binding-controls-2026-08-01'

/**
 * Returns what a body asks for: `drops`, `refuses`, or undefined if it does not say. Reads Anthropic's Messages, Bedrock's
 * Converse, and the options by which the AI SDK makes them (`providerOptions`).
 */
export function askedOf(body: unknown): Binding | undefined {
  const { thinking, additionalModelRequestFields, anthropic, bedrock } = fieldsOf(body)
  const { block_binding: binding } = fieldsOf(thinking ?? fieldsOf(additionalModelRequestFields)['thinking'])
  const { blockBinding } = fieldsOf(fieldsOf(anthropic)['thinking'] ?? fieldsOf(bedrock)['reasoningConfig'])
  const asked = fieldsOf(binding)['prefix_mismatch_behavior'] ?? fieldsOf(blockBinding)['prefixMismatchBehavior']
  return asked === 'drop_block' ? 'drops' : asked === 'error' ? 'refuses' : undefined
}

/** The same body with the field that asks for drops. Where thinking is off the provider does not take it; then undefined. */
export function askingForDrops(body: object): object | undefined {
  const thinking = fieldsOf((body as { thinking?: unknown }).thinking)
  if (thinking['type'] === 'disabled') return undefined
  const type = thinking['type'] ?? 'adaptive'
  return { ...body, thinking: { ...thinking, type, block_binding: { prefix_mismatch_behavior: 'drop_block' } } }
}

/** A value of the header `anthropic-beta` with the one that the field needs. */
export function withBindingBeta(betas: string | undefined): string {
  const list = (betas ?? '').split(',').map((one) => one.trim()).filter((one) => one !== '')
  return [...new Set([...list, BINDING_BETA])].join(',')
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}
