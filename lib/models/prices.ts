/** The prices of tokens, by the model's name: dollars per million, as the vendors and Pi's catalogues list them. */
import type { ModelName } from './name.ts'

/** Prices in dollars per million tokens. */
export interface CataloguePrices {
  input: number
  output: number
  cacheRead: number
  /** A token that is written to the cache; as `input` where writing costs nothing extra. */
  cacheWrite: number
  /** Sizes from which on the whole request costs more; absent: none. */
  tiers?: readonly CatalogueTier[]
}

/** A step in a model's price: above it, all tokens of the request cost this. */
export interface CatalogueTier {
  /** Input tokens, cached ones included, that a request may have at the lower price. */
  inputTokensAbove: number
  input: number
  output: number
  cacheRead: number
  cacheWrite: number
}

/** The tokens of a call, each kind counted once. */
export interface CallTokens {
  input: number
  cacheRead: number
  cacheWrite: number
  /** Those of `cacheWrite` that were written to be kept for an hour, where a provider tells them apart. */
  cacheWriteHour?: number
  output: number
}

/** The cost of a token that is written to be kept for an hour, in fresh input tokens: Anthropic's. */
export const HOUR_WRITE = 2

/** A step as the engine takes it: how many times as much the whole request costs. */
export interface PriceFactor {
  inputTokensAbove: number
  factor: number
}

/** The prices of a model; undefined if they are not known. */
export function pricesOf({ family, id, tier, version }: ModelName): CataloguePrices | undefined {
  const row = family === undefined ? undefined : PRICES.find(([of, words, since]) => of === family && words.test(id) && (version ?? Infinity) >= since)
  if (row === undefined) return undefined
  const [, , , [input, output, cacheRead, cacheWrite], step] = row
  const prices = { input, output, cacheRead, cacheWrite: cacheWrite ?? input }
  // OpenAI's small models have no step.
  if (step === undefined || (family === 'gpt' && (tier === 'mini' || tier === 'nano'))) return prices
  const [inputTokensAbove, factor, outputFactor] = step
  const above = { input: factor * input, output: outputFactor * output, cacheRead: factor * cacheRead, cacheWrite: factor * prices.cacheWrite }
  return { ...prices, tiers: [{ inputTokensAbove, ...above }] }
}

/**
 * A catalogue's steps for the engine: the price of input above each, as a multiple of the price below the first. Steps that
 * cost no more are left out, and so are all where input costs nothing.
 */
export function factorsOf(prices: { input: number; tiers?: readonly Pick<CatalogueTier, 'inputTokensAbove' | 'input'>[] }): PriceFactor[] {
  if (!(prices.input > 0)) return []
  return (prices.tiers ?? [])
    .map(({ inputTokensAbove, input }) => ({ inputTokensAbove, factor: input / prices.input }))
    .filter(({ inputTokensAbove, factor }) => inputTokensAbove > 0 && factor > 1)
}

/** How many times as much a prompt of this many tokens costs as one below the first step. */
export function factorAt(steps: readonly PriceFactor[] | undefined, tokens: number): number {
  return stepAt(steps, tokens)?.factor ?? 1
}

/** Dollars for one call of a model, with its output, at the step in the price that its prompt has passed. */
export function callCost(prices: CataloguePrices, tokens: CallTokens): number {
  const { input, cacheRead, cacheWrite, output } = tokens
  const rates = ratesAt(prices, input + cacheRead + cacheWrite)
  return (input * rates.input + cacheRead * rates.cacheRead + writeCost(rates, tokens) + output * rates.output) / 1_000_000
}

/** What written tokens cost, in the unit of the prices for a million: each by the lifetime that it was written with. */
export function writeCost(prices: { input: number; cacheWrite: number }, { cacheWrite, cacheWriteHour = 0 }: Pick<CallTokens, 'cacheWrite' | 'cacheWriteHour'>): number {
  const hour = Math.min(cacheWrite, cacheWriteHour)
  return (cacheWrite - hour) * prices.cacheWrite + hour * HOUR_WRITE * prices.input
}

/** Returns the prices for a call whose prompt has so many tokens. */
export function ratesAt(prices: CataloguePrices, promptTokens: number): Omit<CataloguePrices, 'tiers'> {
  return stepAt(prices.tiers, promptTokens) ?? prices
}

/** The highest step that a prompt of this many tokens has passed. */
function stepAt<T extends { inputTokensAbove: number }>(steps: readonly T[] = [], tokens: number): T | undefined {
  const passed = steps.filter(({ inputTokensAbove }) => tokens > inputTokensAbove)
  return passed.toSorted((one, other) => other.inputTokensAbove - one.inputTokensAbove)[0]
}

type Rates = readonly [input: number, output: number, cacheRead: number, cacheWrite?: number]
/** Where the price rises, how many times for input and cache, and for output. */
type Step = readonly [inputTokensAbove: number, factor: number, outputFactor: number]
type Row = readonly [ModelName['family'], RegExp, since: number, Rates, Step?]

const GPT_STEP: Step = [272_000, 2, 1.5]
const GEMINI_STEP: Step = [200_000, 2, 1.5]
const GROK_STEP: Step = [200_000, 2, 2]

/** The first row that fits; the newest version of each model first. */
const PRICES: readonly Row[] = [
  ['claude', /fable|mythos/, 5.2, [8, 40, 0.2, 10]],
  ['claude', /fable|mythos/, 5.1, [10, 50, 0.25, 12.5]],
  ['claude', /fable|mythos/, 0, [10, 50, 1, 12.5]],
  ['claude', /opus/, 5.5, [4, 20, 0.2, 5]],
  ['claude', /opus/, 4.5, [5, 25, 0.5, 6.25]],
  ['claude', /opus/, 0, [15, 75, 1.5, 18.75]],
  ['claude', /sonnet/, 5.5, [2, 10, 0.1, 2.5]],
  ['claude', /sonnet/, 5, [2, 10, 0.2, 2.5]],
  ['claude', /sonnet/, 0, [3, 15, 0.3, 3.75]],
  ['claude', /haiku/, 5.5, [0.1, 0.5, 0.01, 0.125], [100_000, 5, 5]],
  ['claude', /haiku/, 4, [1, 5, 0.1, 1.25]],
  ['gpt', /sol/, 6.1, [2, 10, 0.1, 2.5], GPT_STEP],
  ['gpt', /terra/, 6.1, [1, 5, 0.05, 1.25], GPT_STEP],
  ['gpt', /astra/, 6, [10, 50, 1, 12.5], GPT_STEP],
  ['gpt', /luna/, 6, [0.1, 0.5, 0.01, 0.125], GPT_STEP],
  ['gpt', /sol/, 6, [2, 10, 0.2, 2.5], GPT_STEP],
  ['gpt', /cyber/, 5.6, [12.5, 75, 1.25, 15.625]],
  ['gpt', /luna/, 5.6, [0.2, 1.2, 0.02, 0.25], GPT_STEP],
  ['gpt', /sol/, 5.6, [4, 20, 0.4, 5], GPT_STEP],
  ['gpt', /terra/, 5.6, [2, 12, 0.2, 2.5], GPT_STEP],
  ['gpt', /5\.4-mini/, 5.4, [0.75, 4.5, 0.075]],
  ['gpt', /5\.4-nano/, 5.4, [0.2, 1.25, 0.02]],
  ['gpt', /5\.[45]-pro/, 5.4, [30, 180, 30], GPT_STEP],
  ['gpt', /5\.5/, 5.5, [5, 30, 0.5], GPT_STEP],
  ['gpt', /5\.4/, 5.4, [2.5, 15, 0.25], GPT_STEP],
  ['gpt', /gpt-5(?!\.[4-9])/, 5, [1.25, 10, 0.125]],
  ['gemini', /argon/, 4, [2, 10, 0.1]],
  ['gemini', /3\.[5-9]-flash-lite/, 3.5, [0.3, 2.5, 0.03]],
  ['gemini', /3\.[678]-flash/, 3.6, [0.75, 3.75, 0.075]],
  ['gemini', /3\.5-flash/, 3.5, [1.5, 9, 0.15]],
  ['gemini', /3\.1-flash-lite/, 3.1, [0.25, 1.5, 0.025]],
  ['gemini', /pro/, 3, [2, 12, 0.2], GEMINI_STEP],
  ['gemini', /3-flash/, 3, [0.5, 3, 0.05]],
  ['gemini', /2\.5-pro/, 2.5, [1.25, 10, 0.125], GEMINI_STEP],
  ['grok', /4\.[6-9]/, 4.6, [2, 6, 0.5], GROK_STEP],
  ['grok', /4\.5/, 4.5, [2, 6, 0.3], GROK_STEP],
  ['grok', /4\.3/, 4.3, [1.25, 2.5, 0.2], GROK_STEP],
  ['deepseek', /flash/, 0, [0.3, 1.2, 0.006]],
  ['deepseek', /v4(?:\.\d)?-pro/, 4, [1.32, 3.96, 0.044]],
  ['kimi', /k3\.1-pro-highspeed/, 3.1, [4, 20, 0.2]],
  ['kimi', /k3\.1-pro/, 3.1, [2, 10, 0.2]],
  ['kimi', /k3$|k3-256k/, 3, [3, 15, 0.3]],
  ['kimi', /k2\.7-code-highspeed/, 2.7, [1.9, 8, 0.38]],
  ['kimi', /k2\.7|for-coding/, 2.7, [0.95, 4, 0.19]],
  ['kimi', /k2\.6/, 2.6, [0.95, 4, 0.16]],
  ['glm', /5\.3-flash/, 5.3, [0.15, 0.5, 0.03]],
  ['glm', /5-turbo/, 5, [1.2, 4, 0.24]],
  ['glm', /5\.[23]$/, 5.2, [1.4, 4.4, 0.26]],
  ['minimax', /m3\.1-flash/, 3.1, [0.15, 0.6, 0.015]],
  ['minimax', /m3$/, 3, [0.3, 1.2, 0.06], [512_000, 2, 2]],
  ['minimax', /m2\.7/, 2.7, [0.3, 1.2, 0.06, 0.375]],
]
