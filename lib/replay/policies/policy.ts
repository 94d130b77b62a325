/** What a policy of context management is: it takes in a conversation and says what each model call is sent. */
import type { RollReceipt } from '../../../index.js'
import type { OpenOptions } from '../../index.ts'
import type { Block } from '../blocks.ts'
import type { CacheRules } from '../cache.ts'
import type { FileEvent } from '../files.ts'
import type { Prices } from '../prices.ts'
import type { Entry } from '../recording.ts'

/** The policies, in the order of the report. */
export const POLICY_NAMES = ['append', 'pi', 'mask', 'clear', 'sections', 'anchored', 'bound'] as const

/** A policy's name. */
export type PolicyName = (typeof POLICY_NAMES)[number]

/** What is the same for a whole session. */
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
  /** Summaries to use where a policy compacts, in their order. */
  summaries: readonly string[]
  /** Keep the store of the context manager here; in memory where undefined. */
  store?: string
  /** Options of the context manager. */
  manager: ManagerOptions
}

/** Options of the policy `anchored`. */
export interface ManagerOptions {
  perTurn: number
  turnsBack: number
  onlyAtUserTurn: boolean
  /** Tokens that the extension adds to the system part: its tools and what it tells the model. */
  overheadTokens: number
  /** Further options of `ContextManager.open`, for measuring with others than the product's own. */
  open?: Partial<OpenOptions>
}

/** A model call that is about to be made. */
export interface Moment {
  at: number
  model: string
  prices: Prices
}

/** What a call is sent. */
export interface Request {
  blocks: readonly Block[]
  /** How many of the blocks are the system part. */
  fixed: number
  /** A compaction that the host made before it. */
  compaction?: Compaction
  /** A roll that was executed since the last request. */
  rolls?: RollReceipt[]
}

/** A summary by the model: its own call, outside of the cache. */
export interface Compaction {
  promptTokens: number
  outputTokens: number
}

/** One policy over one session. Methods are called one after the other. */
export interface Policy {
  readonly name: PolicyName
  /** The conversation grew by a message. `file` is what a tool result tells about a file. */
  add(entry: Entry, file: FileEvent | undefined): void | Promise<void>
  /** The conversation goes on from an earlier place. */
  branch(path: readonly Entry[]): void | Promise<void>
  /** What is sent now. */
  request(moment: Moment): Request | Promise<Request>
  /** Whether texts of the request are not told apart by file. */
  readonly untagged?: boolean
  /** Ends what the policy holds. */
  close?(): Promise<void>
}
