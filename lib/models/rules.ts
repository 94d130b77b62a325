/**
 * Facts about models, by their names: what their providers do about edits of the past, how they cache, and what they cost.
 * They are in models.toml; everything that asks about a model asks here. Where no page says it, `open` says so.
 */
import { readName } from './name.ts'
import type { Family, ModelName } from './name.ts'
import { pricesOf } from './prices.ts'
import type { CataloguePrices } from './prices.ts'
import { remembered } from './remembered.ts'
import { TABLE } from './table.ts'
import type { Binding, CacheKind, ReasoningRule, RuleRow } from './table-types.ts'

export type { Binding, CacheKind, ReasoningRule } from './table-types.ts'

/** All of them, the most lenient first. */
export const BINDINGS: readonly Binding[] = ['none', 'keeps', 'drops', 'refuses']

/** A provider's rules of caching. */
export interface ModelCache {
  kind: CacheKind
  /** The distance of its look back: positions for `breakpoints`, endings for `endings`. */
  lookback: number | undefined
  /** The shortest prefix that is cached, in tokens. */
  minimumTokens: number
  /** The lifetime of a prefix after its last use, in milliseconds, if the request asks for nothing longer. */
  lifetimeMs: number
  /** The longest lifetime, with the price of a written token in fresh input tokens. Undefined: without a choice. */
  long: { lifetimeMs: number; write: number } | undefined
}

/** The facts that are known about a model. */
export interface ModelRules {
  /** Undefined: of no known family. */
  family: Family | undefined
  /** The provider's binding if the request does not say what it should do. */
  binding: Binding
  /** The provider's binding if the request asks for drops; as `binding` where it can't ask. */
  askedBinding: Binding
  /** True if text between the calls of an answer is part of the reasoning. */
  textIsReasoning: boolean
  /** True if results must be followed by an answer: a message of the user behind them is refused. */
  wantsAnswer: boolean
  reasoning: ReasoningRule
  cache: ModelCache
  /** Undefined: unknown. */
  prices: CataloguePrices | undefined
  /** Questions that no page settles, one sentence each. */
  open: readonly string[]
}

/** The way of a request to the model. */
export interface Route {
  /** The provider's name, such as `anthropic`, `amazon-bedrock`, `openrouter`. */
  provider?: string
  /** The format, in Pi's names, such as `anthropic-messages`, `openai-responses`, `openai-completions`. */
  api?: string
}

/**
 * Returns what is known about the model with a name, on a route. A model of a known family whose version can't be told
 * counts as the family's newest; one of no known family as its format's: signed reasoning in Anthropic's format is
 * taken for bound.
 */
export function rulesOf(name: string, route: Route = {}): Readonly<ModelRules> {
  return rulesOn(name, route)
}

const rulesOn = remembered(
  (name: string, { provider = '', api = '' }: Route) => `${name}\n${provider}\n${api}`,
  (name: string, route: Route): ModelRules => {
    const read = readName(name)
    const known = read.family === undefined ? unknown(name, route) : ruleFor(read, route)
    const rules = { ...DEFAULT, ...known, family: read.family, prices: pricesOf(read) }
    return { ...rules, askedBinding: rules.binding === 'refuses' ? 'drops' : rules.binding }
  },
)

function ruleFor(name: ModelName, route: Route): Partial<typeof DEFAULT> | undefined {
  const row = TABLE.rules.find((rule) => fits(rule, name, route))
  return row === undefined ? undefined : ruled(row)
}

function unknown(name: string, route: Route): Partial<typeof DEFAULT> {
  if (mayBeClaude(name, route)) return UNKNOWN_CLAUDE
  return route.api?.endsWith('-responses') === true && route.provider !== 'xai' ? UNKNOWN_RESPONSES : UNKNOWN
}

const MINUTE_MS = 60_000

/** The cache of a row of the table. Throws for a name that the table lacks, which scripts/models.mjs refuses. */
export function cacheNamed(name: string): ModelCache {
  const row = TABLE.caches[name]
  if (row === undefined) throw new Error(`models.toml has no cache "${name}"`)
  const { kind, lookback, minimum, minutes, long } = row
  return {
    kind,
    lookback,
    minimumTokens: minimum,
    lifetimeMs: minutes * MINUTE_MS,
    long: long === undefined ? undefined : { lifetimeMs: long.minutes * MINUTE_MS, write: long.write },
  }
}

const DEFAULT: Omit<ModelRules, 'family' | 'prices' | 'askedBinding'> = {
  binding: 'none',
  textIsReasoning: false,
  wantsAnswer: false,
  reasoning: 'free',
  cache: cacheNamed('prefix'),
  open: [],
}

const isChat = ({ api = '' }: Route): boolean => api === 'openai-completions'

function fits({ family, tiers, since = 0, chat, except }: RuleRow, name: ModelName, route: Route): boolean {
  return (
    family === name.family &&
    (tiers === undefined || tiers.includes(name.tier ?? '')) &&
    (name.version ?? Infinity) >= since &&
    (chat === undefined || chat === isChat(route)) &&
    (except === undefined || !name.id.includes(except))
  )
}

function ruled({ family: _family, tiers: _tiers, since: _since, chat: _chat, except: _except, cache, ...facts }: RuleRow): Partial<typeof DEFAULT> {
  return { ...facts, ...(cache === undefined ? {} : { cache: cacheNamed(cache) }) }
}

/**
 * True if a name of no known family may well be Claude's: on Claude's own route, or an alias that the cloud
 * resolves.
 */
function mayBeClaude(name: string, { provider, api }: Route): boolean {
  if (provider === 'amazon-bedrock') return name.toLowerCase().startsWith('arn:')
  return api === 'anthropic-messages' && (provider === undefined || CLAUDE_ROUTES.has(provider))
}

/** Providers whose only models in Anthropic's format are Anthropic's. */
const CLAUDE_ROUTES: ReadonlySet<string> = new Set(['', 'anthropic', 'google-vertex', 'azure-foundry'])

const UNKNOWN: Partial<typeof DEFAULT> = { open: ['which model this is'] }
const UNKNOWN_CLAUDE: Partial<typeof DEFAULT> = { ...UNKNOWN, binding: 'refuses', reasoning: 'turn', cache: cacheNamed('anthropic') }
const UNKNOWN_RESPONSES: Partial<typeof DEFAULT> = { ...UNKNOWN, binding: 'drops', reasoning: 'items' }

/**
 * By name, as in Pi's model catalogues of November 2026 (0.87.1): those with `supportsMidConvoSystemMessages` and a way to
 * add tools. Where Pi itself runs, its catalogue decides.
 */
const APPENDING = /(?:^|\/)(?:claude-(?:fable-5|opus-(?:4-[89]|[5-9]))|gpt-(?:5\.[4-9]|[6-9])|kimi-k3)/

/** True if a model takes new tools in mid-conversation. `model` is its name, with or without its provider. */
export function appendsTools(model: string): boolean {
  return APPENDING.test(model)
}
