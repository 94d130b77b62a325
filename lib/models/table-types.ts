/** The types of the table of models (models.toml). */
import type { Family } from './name.ts'

/**
 * The provider's handling of reasoning once something before it has changed: it does not check (`none`), the model still
 * reads it (`keeps`), it drops that reasoning and all later reasoning (`drops`), or it refuses the request (`refuses`).
 */
export type Binding = 'none' | 'keeps' | 'drops' | 'refuses'

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

/** The way in which a provider finds a cached prefix. */
export type CacheKind =
  /** At a breakpoint that the request sets, or up to 20 positions before it (Anthropic). */
  | 'breakpoints'
  /** At the end of one of the last 20 messages of the user or groups of outputs (OpenAI from GPT-5.6 on). */
  | 'endings'
  /** Any common prefix. */
  | 'prefix'

/** A row of `[caches]`. Lengths in tokens, times in minutes, costs in fresh input tokens. */
export interface CacheRow {
  readonly kind: CacheKind
  readonly lookback?: number
  readonly minimum: number
  readonly minutes: number
  readonly long?: { readonly minutes: number; readonly write: number }
}

/** A row of `[[rules]]`. */
export interface RuleRow {
  readonly family: Family
  readonly tiers?: readonly string[]
  readonly since?: number
  readonly chat?: boolean
  readonly except?: string
  readonly binding?: Binding
  readonly textIsReasoning?: boolean
  readonly wantsAnswer?: boolean
  readonly reasoning?: ReasoningRule
  readonly cache?: string
  readonly open?: readonly string[]
}

/** A row of the catalogue. Prices in dollars per million tokens: input, output, cached, written. */
export interface ModelRow {
  readonly family: Family
  readonly name: string
  readonly since: number
  readonly prices?: readonly number[]
  readonly step?: string
  readonly window?: number
}

/** The table of models. */
export interface ModelTable {
  readonly unknown: { readonly read: number; readonly write: number }
  readonly windows: { readonly usual: number; readonly long: number }
  readonly caches: Readonly<Record<string, CacheRow>>
  readonly steps: Readonly<Record<string, readonly number[]>>
  readonly families: Readonly<Partial<Record<Family, number>>>
  readonly rules: readonly RuleRow[]
  readonly models: readonly ModelRow[]
}
