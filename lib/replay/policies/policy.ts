/** A context management policy: it takes a conversation and decides what is sent with each model call. */
import type { RollReceipt } from '../../../index.js'
import type { OpenOptions } from '../../session/index.ts'
import type { BranchStep, EditStep, FileEvent, Prices, RecordedEntry, ReplayBlock } from '../../recordings/index.ts'
import type { CacheRules } from '../cache.ts'
import type { Binding } from '../../models/index.ts'
import type { RecordedCall } from '../record.ts'

/** The policies, in the order of the report. */
export const POLICY_NAMES = ['recorded', 'append', 'pi', 'mask', 'clear', 'sections', 'pi-context-manager', 'chosen-lifetime', 'bound'] as const

/** A policy's name. */
export type PolicyName = (typeof POLICY_NAMES)[number]

/** The settings that are the same for a whole session. */
export interface Setting {
  /** The session's ID in its own store. */
  sessionId: string
  cwd: string
  unitsPerToken: number
  /** Tokens of the system prompt and the tool declarations. */
  systemTokens: number
  /** The model's context window in tokens. */
  window: number
  cache: CacheRules
  /** The rules of a cache that keeps everything that the record does not tell to be lost; `cache` counts only for the context manager then. */
  kept?: CacheRules
  /** Summaries to use when a policy compacts, in order. */
  summaries: readonly string[]
  /** The file for the context manager's store; in memory if undefined. */
  store?: string
  /** Options of the context manager. */
  manager: ManagerOptions
}

/** Options of the policy `pi-context-manager`. */
export interface ManagerOptions {
  perTurn: number
  turnsBack: number
  onlyAtUserTurn: boolean
  /** Tokens that the extension adds to the system part: its tools and its instructions to the model. */
  overheadTokens: number
  /** True if a model's provider takes new tools in mid-conversation, with the cached prompt still valid. Default: by its name. */
  appendsTools?: (model: string) => boolean
  /** The provider's handling of reasoning behind a change. Default: what it does with the model if asked for drops, as Pi asks. */
  binding?: Binding
  /** Further options of `ContextManager.open`, to measure values other than the defaults. */
  open?: Partial<OpenOptions>
}

/** A model call that is about to be made. */
export interface PolicyMoment {
  at: number
  model: string
  prices: Prices
  /** The call was counted with another session that also has it: it is made again, but costs nothing here. */
  isRepeated?: true
  /** For how long the request writes its conversation, in milliseconds, where that is chosen. */
  lifetimeMs?: number
  /** The provider's cache at this call when it was recorded; absent where the cache is simulated alone. */
  record?: RecordedCall
}

/** The request that is sent with a call. */
export interface Request {
  blocks: readonly ReplayBlock[]
  /** The number of blocks of the system part. */
  fixed: number
  /** A compaction that the host made before it. */
  compaction?: Compaction
  /** A roll that was executed since the last request. */
  rolls?: RollReceipt[]
}

/** The request of one policy for one call. */
export interface PolicyRequest {
  name: PolicyName
  blocks: readonly ReplayBlock[]
}

/** A summary by the model: a separate call, outside the cache. */
export interface Compaction {
  promptTokens: number
  outputTokens: number
}

/** One policy over one session. Methods are called one after the other. */
export interface Policy {
  readonly name: PolicyName
  /** Adds a message to the conversation. `file` is what a tool result says about a file. */
  add(entry: RecordedEntry, file: FileEvent | undefined): void | Promise<void>
  /** The conversation continues from an earlier point. `step` says how the recorded program did that. */
  branch(path: readonly RecordedEntry[], step?: BranchStep): void | Promise<void>
  /** The recorded program put a summary before a message, in place of all others before it; of everything if that is undefined. */
  compacted?(summary: string, firstKept: string | undefined): void
  /** The recorded program cleared old outputs until `tokens` tokens were left. */
  cleared?(tokens: number): void
  /** The recorded program shows a message in another form. */
  edited?(step: Pick<EditStep, 'key' | 'content'>): void
  /** Returns the request to send now. */
  request(moment: PolicyMoment): Request | Promise<Request>
  /** True if the texts of a request can't be assigned to files. */
  readonly untagged?: boolean
  /** Releases what the policy holds. */
  close?(): Promise<void>
}
