/** A model as the projection takes it, from its name. */
import { factorsOf } from './prices.ts'
import type { CataloguePrices, PriceFactor } from './prices.ts'
import { rulesOf } from './rules.ts'
import type { Binding, Route } from './rules.ts'

/** The facts that the projection needs to know about a model, as far as its name says them. */
export interface NamedModel {
  name: string
  /** In tokens; 0 when unknown. */
  contextWindow: number
  /** Dollars per million tokens; 0 when unknown. */
  input: number
  cacheRead: number
  cacheWrite: number
  tiers?: PriceFactor[]
  /** The lifetime of a prefix at the provider, in milliseconds. */
  cacheTtlMs: number
  lookbackBlocks?: number
  lookbackEndings?: number
  binding: Binding
  textIsReasoning?: boolean
}

/** The facts about a model that its name does not say, and those that are known better. */
export interface NamedModelOptions extends Route {
  /** The context window in tokens. Default 0: unknown. */
  contextWindow?: number
  /**
   * The provider's handling of reasoning once something before it has changed. Set `drops` if your requests ask for it
   * (`thinking.block_binding` and its beta header), `keeps` if your account is an old one and they don't. Default: what the
   * provider does unasked, on a new account.
   */
  binding?: Binding
  /** `long`: your requests ask for the provider's longest cache, which is dearer to write. Default `short`. */
  retention?: 'short' | 'long'
}

/**
 * Everything known about the model with this name: prices, price steps, cache and binding. `claude-opus-5-5`,
 * `openai/gpt-6.1-sol` and `us.anthropic.claude-sonnet-5-5-v1:0` are names. An unknown one has prices of 0, which count as
 * unknown.
 */
export function modelNamed(name: string, options: NamedModelOptions = {}): NamedModel {
  return modelPriced(name, rulesOf(name).prices, options)
}

/** The same with other prices; undefined: they are not known. */
export function modelPriced(name: string, prices: CataloguePrices | undefined, options: NamedModelOptions = {}): NamedModel {
  const { contextWindow = 0, binding, retention = 'short', ...route } = options
  const rules = rulesOf(name, route)
  const { kind, lookback, lifetimeMs, long } = rules.cache
  const isLong = retention === 'long' && long !== undefined
  const { input = 0, cacheRead = 0, cacheWrite = 0 } = prices ?? {}
  const tiers = prices === undefined ? [] : factorsOf(prices)
  return {
    name,
    contextWindow,
    input,
    cacheRead,
    cacheWrite: isLong ? long.write * input : cacheWrite,
    ...(tiers.length === 0 ? {} : { tiers }),
    cacheTtlMs: isLong ? long.lifetimeMs : lifetimeMs,
    ...(kind === 'breakpoints' && lookback !== undefined ? { lookbackBlocks: lookback } : {}),
    ...(kind === 'endings' && lookback !== undefined ? { lookbackEndings: lookback } : {}),
    binding: binding ?? rules.binding,
    ...(rules.textIsReasoning ? { textIsReasoning: true } : {}),
  }
}
