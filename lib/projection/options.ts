/** The options of a projection. */
import type { ContextManager, ModelPrices, RollReceipt } from '../../index.js'
import { invalid, known, shown } from '../core/index.ts'
import type { Names } from '../core/index.ts'
import type { Shape } from './shape.ts'
import type { ShapeName } from './shapes.ts'

/** The model that the messages are sent to. */
export interface ProjectedModel extends ModelPrices {
  /** The context window in tokens; 0 when unknown. */
  contextWindow: number
  /** The lifetime of a prompt prefix at the provider, in milliseconds; `Infinity` for one that never expires. Default 300,000. */
  cacheTtlMs?: number
  /** The model's name, as `provider/model` if the messages name both. After a change, the cache is cold. */
  name?: string
  /** The number of content blocks that the provider looks back for a cached prefix: 20 for Anthropic's API. */
  lookbackBlocks?: number
  /** The number of earlier endings of a user's message or a group of outputs that it looks back: 20 for OpenAI's from GPT-5.6 on. */
  lookbackEndings?: number
  /**
   * The provider's handling of the model's reasoning once something before it has changed: it does not check (`none`), the
   * model still reads it (`keeps`), it drops that reasoning and all later reasoning (`drops`), or it refuses the request
   * (`refuses`). Default: by the model's name, or by how its reasoning is signed (docs/reasoning.md).
   */
  binding?: 'none' | 'keeps' | 'drops' | 'refuses'
  /** True if text between the calls of an answer is part of the model's reasoning. Default false. */
  textIsReasoning?: boolean
}

/** A model of which nothing is known. */
export const UNKNOWN_MODEL: ProjectedModel = { contextWindow: 0, input: 0, cacheRead: 0, cacheWrite: 0 }

/** Options of a projection. */
export interface ProjectionOptions {
  /**
   * `references` (default): outputs stay where they appeared until a roll pays off. `sections`: the canonical four sections,
   * rendered anew at each call; only for pi-ai's messages.
   */
  layout?: 'references' | 'sections'
  /** The model in use; a function if it may change. Without it, prices of 0.1 (read) and 1 (write) are assumed. */
  model?: ProjectedModel | (() => ProjectedModel)
  /** Estimated tokens of system prompt and tool declarations. Default 0. */
  systemTokens?: number
  /** The shape of the messages. Default: detected. A host can supply its own shape. */
  shape?: ShapeName | Shape
  /**
   * True if the model can bring back collapsed outputs; a function if that may change. While it can't, nothing
   * collapses. Default true: the harness gives the model `activate` as a tool.
   */
  canRecall?: boolean | (() => boolean)
  /**
   * True if more than outputs and arguments may shrink: old reasoning may be dropped, prose and long user texts
   * shortened, and old calls reduced to one line. Don't set it in a harness that stores the projection instead of its
   * own messages and loads it in a later process, because shortened text would then count as what was said. Default
   * false.
   */
  shortens?: boolean
  /** The time limit of a call in milliseconds; after it, `lastForm` goes out. `Infinity`: none. Default 30,000. */
  limitMs?: number
  /** The messages that go out if a call fails or takes too long. Default: `lastForm`. */
  fallback?: (messages: readonly object[]) => object[]
  /**
   * When an earlier process sent this conversation last, in milliseconds since the epoch, if it sent it in the form that the
   * record gives it now: the provider may still have that cached. Default: when the record was last written, if the
   * conversation is as recorded.
   */
  sentMs?: number
  /**
   * The number of the conversation's first messages that the request of {@link sentMs} had as they are now. If the record has messages
   * behind them, the host has changed something since, and the provider has nothing of those cached; with 0, everything that is
   * stale leaves. Default: all that are recorded.
   */
  sentMessages?: number
  /**
   * True if the host keeps the notices that it was sent, or puts those of an earlier process back itself. Default false: they
   * are put back where they came.
   */
  keepsNotices?: boolean
  /**
   * How likely the provider still has the last request in its cache, from 0 to 1, as far as its lifetime does not tell: 0 if it is
   * known to be gone, such as after a change of the tools or the system prompt, so that everything stale leaves. Called before each
   * request. Default: always 1.
   */
  cacheKept?: (next: { isPrompt: boolean }) => number
  /**
   * The last look at the disk, if the host has begun one for this request itself: files that have changed before it are told in it. Default:
   * each call looks on its own.
   */
  looked?: () => Promise<unknown> | undefined
  /** Called once for each kind of failure, with a sentence. Default: emits a process warning. */
  onWarning?: (sentence: string) => void
  /** Called after each roll. */
  onRoll?: (receipt: RollReceipt) => void
  /** Milliseconds since the epoch; for tests and replays. Default `Date.now`. */
  now?: () => number
}

/** The session, if it is one. `pi-context-manager/storage` has a class of the same name, which keeps files and has no session. */
export function checkedSession(manager: ContextManager): ContextManager {
  const { advance, resync } = (manager ?? {}) as Partial<Record<'advance' | 'resync', unknown>>
  if (typeof advance === 'function' && typeof resync === 'function') return manager
  throw invalid(
    `a projection needs a session that ContextManager.open of pi-context-manager has opened, not ${shown(manager)}; the class of pi-context-manager/storage is another one`,
  )
}

const OPTIONS: Names<ProjectionOptions> = {
  layout: true,
  model: true,
  systemTokens: true,
  shape: true,
  canRecall: true,
  shortens: true,
  limitMs: true,
  fallback: true,
  sentMs: true,
  sentMessages: true,
  keepsNotices: true,
  cacheKept: true,
  looked: true,
  onWarning: true,
  onRoll: true,
  now: true,
}

/** The options of a projection, if they are right. Throws `INVALID_ARGUMENT`. */
export function checkedOptions(options: ProjectionOptions): ProjectionOptions {
  known('the options object of a projection', options, OPTIONS)
  const { model, canRecall, limitMs, systemTokens, sentMs, sentMessages } = options
  if (model !== undefined && typeof model !== 'function') checkModel(model)
  if (!['undefined', 'boolean', 'function'].includes(typeof canRecall)) throw invalid(`canRecall is true, false or a function, not ${shown(canRecall)}`)
  if (limitMs !== undefined && !(isAmount(limitMs) && limitMs > 0)) throw invalid(`limitMs is a number above 0, not ${shown(limitMs)}`)
  for (const [name, value] of Object.entries({ systemTokens, sentMs, sentMessages })) {
    if (value !== undefined && !isAmount(value)) throw invalid(`${name} is a number of 0 or more, not ${shown(value)}`)
  }
  return options
}

/** Checks the amounts of a model's description, which may have more fields, such as a host's own. Throws `INVALID_ARGUMENT`. */
export function checkModel(model: ProjectedModel): void {
  for (const name of ['contextWindow', 'input', 'cacheRead', 'cacheWrite', 'cacheTtlMs'] as const) {
    const value: unknown = model[name]
    if (!isAmount(value) && !(name === 'cacheTtlMs' && value === undefined)) {
      throw invalid(`model.${name} is a number of 0 or more, not ${shown(value)}`)
    }
  }
}

function isAmount(value: unknown): value is number {
  return typeof value === 'number' && value >= 0
}
