/**
 * Facts about models, by their names: what their providers do about edits of the past, how they cache, and what they cost.
 * The one table of the kind; everything that asks about a model asks here.
 *
 * The facts are of November 2026, from the providers' pages and Pi's model catalogues (0.87.1 and 1.5.2). Where no page says
 * it, `open` says so.
 */
import { readName } from './name.ts'
import type { Family, ModelName } from './name.ts'
import { pricesOf } from './prices.ts'
import type { CataloguePrices } from './prices.ts'

/**
 * The provider's handling of reasoning once something before it has changed: it does not check (`none`), the model still
 * reads it (`keeps`), it drops that reasoning and all later reasoning (`drops`), or it refuses the request (`refuses`).
 */
export type Binding = 'none' | 'keeps' | 'drops' | 'refuses'

/** All of them, the most lenient first. */
export const BINDINGS: readonly Binding[] = ['none', 'keeps', 'drops', 'refuses']

/**
 * The parts that must go back with an answer that is sent again:
 *
 * - `free`: nothing; reasoning may leave any time.
 * - `turn`: all reasoning of the turn under way, unchanged. That of earlier turns may leave, an answer's as a whole.
 * - `calls`: the reasoning of every answer with calls, however old, for as long as its calls are shown.
 * - `items`: an encrypted item of reasoning, as long as the call or text that it led to is shown.
 * - `signatures`: the signature of each call of the turn under way, which stands on the call itself.
 */
export type ReasoningRule = 'free' | 'turn' | 'calls' | 'items' | 'signatures'

/** How a provider finds a cached prefix. */
export type CacheKind =
  /** At a breakpoint that the request sets, or up to 20 positions before it (Anthropic). */
  | 'breakpoints'
  /** At the end of one of the last 20 messages of the user or groups of outputs (OpenAI from GPT-5.6 on). */
  | 'endings'
  /** Any common prefix. */
  | 'prefix'

/** How a provider caches. */
export interface ModelCache {
  kind: CacheKind
  /** How far it looks back: positions for `breakpoints`, endings for `endings`. */
  lookback: number | undefined
  /** The shortest prefix that is cached, in tokens. */
  minimumTokens: number
  /** How long a prefix is kept after its last use, in milliseconds, if the request asks for nothing longer. */
  lifetimeMs: number
  /** How long at most, and what a token costs to write then, in fresh input tokens. Undefined: there is no choice. */
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
  reasoning: ReasoningRule
  cache: ModelCache
  /** Undefined: unknown. */
  prices: CataloguePrices | undefined
  /** Questions that no page settles, one sentence each. */
  open: readonly string[]
}

/** How a request gets to the model. */
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
export function rulesOf(name: string, route: Route = {}): ModelRules {
  const read = readName(name)
  const known = read.family === undefined ? unknown(name, route) : ROWS.find(([isIt]) => isIt(read, route))?.[1]
  const rules = { ...DEFAULT, ...known, family: read.family, prices: pricesOf(read) }
  return { ...rules, askedBinding: rules.binding === 'refuses' ? 'drops' : rules.binding }
}

function unknown(name: string, route: Route): Partial<typeof DEFAULT> {
  if (mayBeClaude(name, route)) return UNKNOWN_CLAUDE
  return route.api?.endsWith('-responses') === true && route.provider !== 'xai' ? UNKNOWN_RESPONSES : UNKNOWN
}

const MINUTE_MS = 60_000

const ANTHROPIC_CACHE: ModelCache = {
  kind: 'breakpoints',
  lookback: 20,
  minimumTokens: 512,
  lifetimeMs: 5 * MINUTE_MS,
  long: { lifetimeMs: 60 * MINUTE_MS, write: 2 },
}
const PREFIX_CACHE: ModelCache = { kind: 'prefix', lookback: undefined, minimumTokens: 1024, lifetimeMs: 5 * MINUTE_MS, long: undefined }
const ENDINGS_CACHE: ModelCache = { kind: 'endings', lookback: 20, minimumTokens: 1024, lifetimeMs: 30 * MINUTE_MS, long: undefined }

const DEFAULT: Omit<ModelRules, 'family' | 'prices' | 'askedBinding'> = {
  binding: 'none',
  textIsReasoning: false,
  reasoning: 'free',
  cache: PREFIX_CACHE,
  open: [],
}

/** A row of the table: the models that it is about, and what differs from the default. */
type Row = readonly [(name: ModelName, route: Route) => boolean, Partial<typeof DEFAULT>]

const isChat = ({ api = '' }: Route): boolean => api === 'openai-completions'

/** Claude from 5.1 (Fable, Mythos) or 5.5 (Opus, Sonnet, Haiku) on binds; what can't be told is taken for the newest. */
function isBoundClaude({ family, id, tier, version }: ModelName): boolean {
  if (family !== 'claude' || tier === 'instant' || id.includes('mythos-preview')) return false
  if (version === undefined) return true
  return tier === 'fable' || tier === 'mythos' ? version >= 5.1 : version >= 5.5
}

/** The first row that fits. */
const ROWS: readonly Row[] = [
  [
    (name) => isBoundClaude(name) && name.tier === 'haiku',
    { binding: 'refuses', reasoning: 'turn', cache: ANTHROPIC_CACHE },
  ],
  [
    (name) => isBoundClaude(name) && (name.tier === 'opus' || name.tier === 'sonnet' || name.tier === undefined),
    { binding: 'refuses', textIsReasoning: true, reasoning: 'turn', cache: ANTHROPIC_CACHE, open: ['whose account counts behind a gateway'] },
  ],
  [isBoundClaude, { binding: 'refuses', reasoning: 'turn', cache: ANTHROPIC_CACHE }],
  [({ family }) => family === 'claude', { reasoning: 'turn', cache: { ...ANTHROPIC_CACHE, minimumTokens: 1024 } }],
  [
    ({ family, version }, route) => family === 'gpt' && !isChat(route) && (version === undefined || version >= 5.6),
    {
      binding: 'drops',
      reasoning: 'items',
      cache: ENDINGS_CACHE,
      open: ['whether models before GPT-6.2 check', 'whether a declaration of tools that changes counts', 'how the answer names what was dropped'],
    },
  ],
  [({ family, version }) => family === 'gpt' && (version === undefined || version >= 5.6), { cache: ENDINGS_CACHE }],
  [({ family }, route) => family === 'gpt' && !isChat(route), { reasoning: 'items' }],
  [({ family }) => family === 'gpt', {}],
  [
    ({ family }) => family === 'gemini',
    {
      reasoning: 'signatures',
      cache: { ...PREFIX_CACHE, minimumTokens: 4096 },
      open: ['whether signatures are bound to what stands before them', 'whether those of earlier turns are checked'],
    },
  ],
  [({ family }, route) => family === 'grok' && !isChat(route), { reasoning: 'items', open: ['whether its items are bound to what stands before them'] }],
  [
    ({ family }) => family === 'deepseek',
    { reasoning: 'calls', cache: { ...PREFIX_CACHE, lifetimeMs: 60 * MINUTE_MS }, open: ['whether an empty reasoning_content is enough'] },
  ],
  [({ family }) => family === 'kimi' || family === 'glm' || family === 'qwen', { reasoning: 'calls' }],
  [
    ({ family }) => family === 'minimax',
    { reasoning: 'calls', open: ['whether its signatures are bound to what stands before them'] },
  ],
  [({ family }) => family === 'mistral', { cache: { ...PREFIX_CACHE, minimumTokens: 64 }, open: ['what must go back with an answer'] }],
]

/**
 * Returns whether a name of no known family may well be Claude's: on a route of its own, or an alias that the cloud
 * resolves.
 */
function mayBeClaude(name: string, { provider, api }: Route): boolean {
  if (provider === 'amazon-bedrock') return name.toLowerCase().startsWith('arn:')
  return api === 'anthropic-messages' && (provider === undefined || CLAUDE_ROUTES.has(provider))
}

/** Providers that have nobody else's models in Anthropic's format. */
const CLAUDE_ROUTES: ReadonlySet<string> = new Set(['', 'anthropic', 'google-vertex', 'azure-foundry'])

const UNKNOWN: Partial<typeof DEFAULT> = { open: ['which model this is'] }
const UNKNOWN_CLAUDE: Partial<typeof DEFAULT> = { ...UNKNOWN, binding: 'refuses', reasoning: 'turn', cache: ANTHROPIC_CACHE }
const UNKNOWN_RESPONSES: Partial<typeof DEFAULT> = { ...UNKNOWN, binding: 'drops', reasoning: 'items' }

/**
 * By name, as in Pi's model catalogues of November 2026 (0.87.1): those with `supportsMidConvoSystemMessages` and a way to
 * add tools. Where Pi itself runs, its catalogue decides.
 */
const APPENDING = /(?:^|\/)(?:claude-(?:fable-5|opus-(?:4-[89]|[5-9]))|gpt-(?:5\.[4-9]|[6-9])|kimi-k3)/

/** Returns whether a model takes new tools in mid-conversation. `model` is its name, with or without its provider. */
export function appendsTools(model: string): boolean {
  return APPENDING.test(model)
}
