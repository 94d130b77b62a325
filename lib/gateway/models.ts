/** The model that a request is for, as the projection takes it, and what its provider does with reasoning. */
import { isFields } from '../core/index.ts'
import type { Fields } from '../core/index.ts'
import { lifetimeOf } from '../projection/index.ts'
import type { ProjectedModel } from '../projection/index.ts'
import {
  askedOf,
  askingForDrops,
  cacheNamed,
  modelNamed,
  modelPriced,
  PRICE_NAMES,
  pricesWith,
  readName,
  rulesOf,
  windowOf,
  withBindingBeta,
} from '../models/index.ts'
import type { GivenPrices, ObservedBinding } from '../models/index.ts'
import { withValue } from './headers.ts'
import type { CacheReach } from './plain-cache.ts'
import type { ModelRequest } from './request.ts'

/** Overrides of the known facts about models, by name. Prices in dollars per million tokens. */
export type ModelOverrides = Readonly<Record<string, Partial<ProjectedModel> & GivenPrices>>

/** Pi's names for the formats, by which unknown models are judged. */
const APIS = { messages: 'anthropic-messages', responses: 'openai-responses', chat: 'openai-completions', gemini: 'google-generative-ai' } as const

/** The facts about a model that the user gave; undefined if they gave none. */
function toldOf(model: string, overrides: ModelOverrides): ModelOverrides[string] | undefined {
  return Object.hasOwn(overrides, model) ? overrides[model] : undefined
}

/** The prices that the user gave for a model; undefined if they gave none. */
export function givenPrices(model: string, overrides: ModelOverrides = {}): GivenPrices | undefined {
  const told: GivenPrices = toldOf(model, overrides) ?? {}
  const prices = PRICE_NAMES.filter((name) => told[name] !== undefined).map((name) => [name, told[name]])
  if (prices.length === 0 && told.tiers === undefined) return undefined
  return { ...(Object.fromEntries(prices) as GivenPrices), ...(told.tiers !== undefined && { tiers: told.tiers }) }
}

/** Returns what is known about the model of a request. `seen` corrects what a provider does with reasoning. */
export function modelOf(request: ModelRequest, overrides: ModelOverrides = {}, seen?: ObservedBinding): ProjectedModel {
  const retention = (request.lifetime ?? (asksForHour(request) ? '1h' : '5m')) === '1h' ? 'long' : 'short'
  const prices = pricesWith(request.model, givenPrices(request.model, overrides))
  const named = modelPriced(request.model, prices, { contextWindow: windowOf(readName(request.model)), retention, api: APIS[request.api] })
  const asked = askedOf(request.body) ?? (named.binding === 'refuses' && mayAsk(request) ? 'drops' : named.binding)
  // A gateway may serve other models in Anthropic's format; their cache is taken for Anthropic's.
  const lookback = request.api === 'messages' && named.lookbackBlocks === undefined ? { lookbackBlocks: cacheNamed('anthropic').lookback ?? 0 } : {}
  const told = toldOf(request.model, overrides)
  const { input: _input, output: _output, cacheRead: _read, cacheWrite: _write, tiers: _tiers, ...facts } = told ?? {}
  // A provider that has refused knows best.
  const binding = seen?.binding(request.model, asked, told?.binding) ?? told?.binding ?? asked
  return { ...named, ...lookback, ...facts, binding }
}

/** The way in which a model's provider finds earlier prompts in its cache. */
export function reachOf({ name = '', lookbackBlocks, lookbackEndings }: ProjectedModel): CacheReach {
  const minimum = rulesOf(name).cache.minimumTokens
  if (lookbackEndings !== undefined) return { kind: 'endings', lookback: lookbackEndings, minimum }
  return lookbackBlocks === undefined ? { kind: 'prefix', lookback: 0, minimum } : { kind: 'breakpoints', lookback: lookbackBlocks, minimum }
}

/**
 * A request that was edited, with the field and the header that keep its provider from refusing it because of reasoning
 * before which something has changed. Unchanged if the client has chosen, or if the provider does not refuse anything.
 */
export function withBinding(request: ModelRequest, body: Fields, headers: string[], overrides: ModelOverrides = {}): { body: Fields; headers: string[] } {
  const binding = toldOf(request.model, overrides)?.binding ?? modelNamed(request.model, { api: APIS[request.api] }).binding
  if (askedOf(request.body) !== undefined || binding !== 'refuses' || !mayAsk(request)) return { body, headers }
  const asking = askingForDrops(body) as Fields | undefined
  return asking === undefined ? { body, headers } : { body: asking, headers: withValue(headers, 'anthropic-beta', withBindingBeta) }
}

/** True if the field may be added to a request: it is one in Anthropic's format with thinking. */
function mayAsk({ api, body, cannotAsk }: ModelRequest): boolean {
  return cannotAsk !== true && api === 'messages' && isFields(body['thinking']) && body['thinking']['type'] !== 'disabled'
}

/** True if a cache marker asks for the longer life. */
function asksForHour({ body, messages }: ModelRequest): boolean {
  const blocks = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])
  const last = (messages.at(-1) as { content?: unknown } | undefined)?.content
  return [...blocks(body['system']), ...blocks(last)].some((block) => isFields(block) && lifetimeOf(block['cache_control']) === '1h')
}
