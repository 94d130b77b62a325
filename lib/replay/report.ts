/** The options of a replay, and its report on a session. */
import type { CacheRules, NamedRules } from './cache.ts'
import type { OwnPhrases } from './missed/phrases.ts'
import type { Lifetime } from './policies/managed.ts'
import type { ManagerOptions, PolicyName, PolicyRequest } from './policies/policy.ts'
import type { Format, Message, Prices, PricesByModel } from '../recordings/index.ts'
import type { AboveBound, Crossing } from './prefixes.ts'
import type { PlanCalls } from './plan-calls.ts'
import type { Loss, RecordUse } from './record.ts'
import type { ByLabel, RollRecord, Series, TallyFigures } from './tally.ts'

/** The options of a replay. */
export interface ReplayOptions {
  policies: readonly PolicyName[]
  cache: CacheRules
  /** The parts of its rules that the user names, which also replace those of the record. */
  namedRules?: NamedRules
  /** The same prices for every model; if undefined, each model's own. */
  prices?: Prices
  /** The price that no option names: each model has its own, and the record tells that of a written token. */
  openPrice?: 'read' | 'write'
  /** The user's own prices of models, in place of the known ones. */
  models?: PricesByModel
  /** The context window in tokens. */
  window: number
  manager: ManagerOptions
  /** Keep the context manager's store in this file. */
  store?: string
  /** Phrases that models write on their own, learned from the sessions of one run. */
  phrases?: OwnPhrases
  /** The parts of the record that count; if undefined, every session is replayed with the other options alone. */
  record?: RecordUse
  /** Do not count missed uses, for runs that only need costs. */
  onlyCosts?: boolean
  /** Called with each recorded answer and the request that each policy would have sent for it. */
  onCall?: (answer: Message, requests: readonly PolicyRequest[]) => void
  /**
   * Called with each strong missed use of tool text, once later messages have decided its class: the policy that hides the text,
   * the answer that uses it, and whether it probably harms. Not with {@link onlyCosts}.
   */
  onMissed?: (policy: PolicyName, answer: Message, harms: boolean) => void
}

/** One session, replayed. */
export interface SessionReport {
  file: string
  /** The recorded session's own ID. */
  id: string
  /** The agent's working directory. */
  cwd: string
  /** When the first and last messages came, in milliseconds since the epoch; absent if not recorded. */
  from?: number
  to?: number
  format: Format
  /** Lines of the file that are not part of the conversation, by kind, including calls of subagents. */
  skipped: Record<string, number>
  /** Model calls of the recording, without those that another session of the run also has. */
  calls: number
  /** Those calls: they are made, as the others are, and count nowhere. Dollars are those that were paid, answers included. */
  repeated?: { calls: number; cost: number }
  /** Calls that are no part of the conversation, such as those of subagents, and dollars that were paid for them, answers included. */
  side?: { calls: number; cost: number }
  /** Calls with a token count that was missing, could not be true, or contradicted another one; absent for none. */
  doubtful?: number
  models: string[]
  /** UTF-16 units per token in this session. */
  charsPerToken: number
  systemTokens: number
  /** The unit of `cost`. */
  unit: 'USD' | 'input tokens'
  /** Prompt tokens that the provider counted when the session was recorded. */
  recordedTokens: number
  /** The cost of the prompts when the session was recorded, in `unit`; absent unless the provider counted every call. */
  recordedCost?: number
  /** The cache and the window that it was replayed with, and what the record tells of them. */
  regime: RegimeReport
  /**
   * The paid cost of the prompts and of the answers, in `unit`, and the number of answers without a count, which both leave out;
   * absent where nothing is known.
   */
  paid?: { cost: number; answers: number; uncounted: number }
  /** The context manager ran when the session was recorded, in Pi or in the gateway. */
  isManaged: boolean
  /** Its savings then by its own account, in `unit`; only if it ran. */
  recordedSaved?: number
  /**
   * Calls that a plan at a flat rate paid for, with the tokens of their prompts, as sent and without us; absent for none. Where these
   * are all calls, what `cost` says are list prices, which were not paid.
   */
  plan?: PlanCalls
  policies: Partial<Record<PolicyName, TallyFigures>>
  /** The size from which on the session costs more than with rolls; absent if it never does for good. */
  crossing?: Crossing
  /** Beginnings of the session that cost more than the bound on rolls allows. */
  bound?: AboveBound
  /** The lifetimes of the cache that `chosen-lifetime` asked for and why, with the number of calls; absent where none can be chosen. */
  chosen?: { why: string; calls: number }[]
  /** For the picture. */
  details: Details
}

/** The details that the picture shows besides the figures. */
export interface Details {
  series: Partial<Record<PolicyName, Series>>
  rolls: RollRecord[]
  byLabel: Partial<Record<PolicyName, ByLabel>>
  lifetimes: Lifetime[]
}

/** The cache and the window of a session's replay. */
export interface RegimeReport {
  /** `record`: as when the session was recorded; `options`: what the options say, which for a session without counts is assumed. */
  from: 'record' | 'options'
  /** The name of the cache's rules. */
  cache: string
  /** For how long the provider was asked to keep what was written; absent where the record does not tell. */
  lifetime?: 'hour' | 'five minutes' | 'mixed'
  lifetimeMs: number
  window: number
  /** The calls at which the provider no longer had a prompt that it had before; empty where nothing is known. */
  losses: Loss[]
}
