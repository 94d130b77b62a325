/** The model that a request is for, as the projection takes it. */
import { isFields } from '../harness/message.ts'
import type { ProjectedModel } from '../harness/projection.ts'
import { knownPrices } from '../replay/prices.ts'
import type { ModelRequest } from './request.ts'

/** Prices and limits that the user names for a model, by the model's name. Dollars per million tokens. */
export type ModelOverrides = Readonly<Record<string, Partial<ProjectedModel>>>

/** What is assumed about the model of a request. */
export function modelOf(request: ModelRequest, overrides: ModelOverrides = {}): ProjectedModel {
  const { input = 0, cacheRead = 0, cacheWrite = 0 } = knownPrices(request.model) ?? {}
  const isAnthropic = request.api === 'messages'
  return {
    name: request.model,
    contextWindow: windowOf(request),
    input,
    cacheRead,
    cacheWrite,
    cacheTtlMs: asksForHour(request) ? 3_600_000 : 300_000,
    ...(isAnthropic ? { lookbackBlocks: 20 } : {}),
    ...overrides[request.model],
  }
}

/** In tokens. A host may use less; the conversation rolls for its price long before. */
function windowOf({ model }: ModelRequest): number {
  if (/claude/.test(model)) return /haiku-4|-3-|opus-4-[0-5]\b|sonnet-4-[05]?\b/.test(model) ? 200_000 : 1_000_000
  return /gpt-|codex/.test(model) ? 272_000 : 128_000
}

/** Whether a cache marker asks for the longer life. */
function asksForHour({ body, messages }: ModelRequest): boolean {
  const blocks = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])
  const last = (messages.at(-1) as { content?: unknown } | undefined)?.content
  return [...blocks(body['system']), ...blocks(last)].some((block) => {
    const marker = isFields(block) ? block['cache_control'] : undefined
    return isFields(marker) && marker['ttl'] === '1h'
  })
}
