/** The prices of tokens, by the model's name: dollars per million, as the vendors and Pi's catalogues list them. */
import { readName } from './name.ts'
import type { ModelName } from './name.ts'
import { remembered } from './remembered.ts'
import { TABLE } from './table.ts'
import type { ModelRow } from './table-types.ts'

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
export const HOUR_WRITE = TABLE.caches['anthropic']?.long?.write ?? 1

/** The names of the prices. */
export const PRICE_NAMES = ['input', 'output', 'cacheRead', 'cacheWrite'] as const

type PriceName = (typeof PRICE_NAMES)[number]

/** The price of an answer's token where it is not known, in fresh input tokens. */
export const USUAL_OUTPUT = 5

/** The prices of a model that no row knows, in fresh input tokens. */
export const UNKNOWN_PRICES = { input: 1, cacheRead: TABLE.unknown.read, cacheWrite: TABLE.unknown.write } as const

/** The windows that agents of unknown models are taken to have, in tokens. */
export const { usual: USUAL_WINDOW, long: LONG_WINDOW } = TABLE.windows

/** A step as the engine takes it: how many times as much the whole request costs. */
export interface PriceFactor {
  inputTokensAbove: number
  factor: number
}

/** The prices of a model; undefined if they are not known. */
export function pricesOf(name: ModelName): CataloguePrices | undefined {
  const row = rowsOf(name).find(({ prices }) => prices !== undefined)
  if (row === undefined) return undefined
  const [input = 0, output = 0, cacheRead = 0, cacheWrite = input] = row.prices ?? []
  const prices = { input, output, cacheRead, cacheWrite }
  // OpenAI's small models have no step.
  const isSmall = name.family === 'gpt' && (name.tier === 'mini' || name.tier === 'nano')
  if (row.step === undefined || isSmall) return prices
  const [inputTokensAbove = 0, factor = 1, outputFactor = 1] = TABLE.steps[row.step] ?? []
  const above = { input: factor * input, output: outputFactor * output, cacheRead: factor * cacheRead, cacheWrite: factor * cacheWrite }
  return { ...prices, tiers: [{ inputTokensAbove, ...above }] }
}

/** The prices of a model as its user gives them, in dollars per million tokens; 0 counts as not given. */
export interface GivenPrices {
  input?: number
  output?: number
  cacheRead?: number
  cacheWrite?: number
  tiers?: readonly PriceFactor[]
}

/** More than any price, window or factor: sums of larger numbers lose their meaning. */
const MOST = 1e12

/** True for a number of 0 or more that can be counted with. */
export function isAmount(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= MOST
}

/** True for prices that can be counted with: amounts of 0 or more, and steps. */
export function isGivenPrices(value: unknown): value is GivenPrices {
  if (typeof value !== 'object' || value === null) return false
  const { tiers = [], ...prices } = value as Record<string, unknown>
  const isStep = (step: Record<string, unknown> | null): boolean => isAmount(step?.['inputTokensAbove']) && isAmount(step?.['factor'])
  return PRICE_NAMES.every((name) => prices[name] === undefined || isAmount(prices[name])) && Array.isArray(tiers) && tiers.every(isStep)
}

/**
 * The prices of a model by name, with those that its user gave in place of the known ones; undefined if neither says what input
 * costs. For a model that no row knows, the others follow from that of input, by the usual ratios.
 */
export function pricesWith(model: string, given: GivenPrices = {}): CataloguePrices | undefined {
  const known = pricesOf(readName(model))
  if (!PRICE_NAMES.some((name) => given[name] !== undefined) && given.tiers === undefined) return known
  const input = given.input ?? known?.input ?? 0
  if (!(input > 0)) return undefined
  const price = (name: PriceName, usual: number): number => given[name] || known?.[name] || usual * input
  const prices = {
    input,
    output: price('output', USUAL_OUTPUT),
    cacheRead: price('cacheRead', UNKNOWN_PRICES.cacheRead),
    cacheWrite: given.cacheWrite === 0 ? input : price('cacheWrite', UNKNOWN_PRICES.cacheWrite),
  }
  const ratesBy = (factor: (name: PriceName) => number): Omit<CataloguePrices, 'tiers'> => ({
    input: prices.input * factor('input'),
    output: prices.output * factor('output'),
    cacheRead: prices.cacheRead * factor('cacheRead'),
    cacheWrite: prices.cacheWrite * factor('cacheWrite'),
  })
  const own = given.tiers?.map(({ inputTokensAbove, factor }) => ({ inputTokensAbove, ...ratesBy(() => factor) }))
  const steps = known?.tiers?.map((tier) => ({
    inputTokensAbove: tier.inputTokensAbove,
    ...ratesBy((name) => (known[name] > 0 ? tier[name] / known[name] : 1)),
  }))
  const tiers = own ?? steps ?? []
  return { ...prices, ...(tiers.length > 0 && { tiers }) }
}

/** The context window of a model in tokens; 0 if it is not known. */
export function windowOf(name: ModelName): number {
  const known = rowsOf(name).find(({ prices, window }) => prices !== undefined || window !== undefined)
  return known?.window ?? (name.family === undefined ? 0 : (TABLE.families[name.family] ?? 0))
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

/** The price of a prompt of this many tokens, as a multiple of the price below the first step. */
export function factorAt(steps: readonly PriceFactor[] | undefined, tokens: number): number {
  return stepAt(steps, tokens)?.factor ?? 1
}

/** Dollars for one call of a model, with its output, at the step in the price that its prompt has passed. */
export function callCost(prices: CataloguePrices, tokens: CallTokens): number {
  const { input, cacheRead, cacheWrite, output } = tokens
  const rates = ratesAt(prices, input + cacheRead + cacheWrite)
  return (input * rates.input + cacheRead * rates.cacheRead + writeCost(rates, tokens) + output * rates.output) / 1_000_000
}

/** The cost of written tokens, in the unit of the prices for a million: each by the lifetime that it was written with. */
export function writeCost(
  prices: { input: number; cacheWrite: number },
  { cacheWrite, cacheWriteHour = 0 }: Pick<CallTokens, 'cacheWrite' | 'cacheWriteHour'>,
): number {
  const hour = Math.min(cacheWrite, cacheWriteHour)
  return (cacheWrite - hour) * prices.cacheWrite + hour * HOUR_WRITE * prices.input
}

/** Dollars for tokens that a call had to process again, above reading them from the cache: at its own lifetimes, if it has written any. */
export function lossCost(prices: CataloguePrices, tokens: number, billed: Omit<CallTokens, 'output'>): number {
  const { input, cacheRead, cacheWrite } = billed
  return lossAt(ratesAt(prices, input + cacheRead + cacheWrite), tokens, billed)
}

/** The same at the prices of the step that the call's prompt has passed. */
export function lossAt(
  rates: Pick<CataloguePrices, 'input' | 'cacheRead' | 'cacheWrite'>,
  tokens: number,
  { cacheWrite, cacheWriteHour = 0 }: Pick<CallTokens, 'cacheWrite' | 'cacheWriteHour'>,
): number {
  const again = cacheWrite > 0 ? writeCost(rates, { cacheWrite: tokens, cacheWriteHour: tokens * (cacheWriteHour / cacheWrite) }) : tokens * rates.input
  return (again - tokens * rates.cacheRead) / 1_000_000
}

/** Returns the prices for a call whose prompt has `promptTokens` tokens. */
export function ratesAt(prices: CataloguePrices, promptTokens: number): Omit<CataloguePrices, 'tiers'> {
  return stepAt(prices.tiers, promptTokens) ?? prices
}

/** The highest step that a prompt of this many tokens has passed. */
function stepAt<T extends { inputTokensAbove: number }>(steps: readonly T[] = [], tokens: number): T | undefined {
  const passed = steps.filter(({ inputTokensAbove }) => tokens > inputTokensAbove)
  return passed.toSorted((one, other) => other.inputTokensAbove - one.inputTokensAbove)[0]
}

/** The rows of the catalogue, each with its name as an expression. */
const ROWS: readonly Row[] = TABLE.models.map((row) => ({ ...row, words: new RegExp(row.name) }))

type Row = ModelRow & { readonly words: RegExp }

const rowsOf: (name: ModelName) => readonly Row[] = remembered(
  ({ family, id, version }: ModelName) => `${family} ${version} ${id}`,
  ({ family, id, version }: ModelName): readonly Row[] =>
    ROWS.filter((row) => row.family === family && row.words.test(id) && (version ?? Infinity) >= row.since),
)
