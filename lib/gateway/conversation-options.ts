/** The options that a conversation gets from its gateway, and the limits of a request's waits. */
import type { EditedItem, ProjectedModel, Projection } from '../projection/index.ts'
import type { ContextManager, OpenOptions } from '../session/index.ts'
import type { RollReceipt } from '../../index.js'
import type { LastChoice } from '../models/index.ts'
import type { ModelRequest } from './request.ts'

/** The longest wait of a request for the projection, in milliseconds. */
export const LIMIT_MS = 2_000

/** The facts about a request that are known beforehand. */
export interface KnownRequest {
  /** The hashes of its messages. */
  chain?: readonly string[]
  /** The number of them that the last request had as well. */
  common?: number
  /** The length of the question on the side that it continues: what that had behind the form of the conversation went out as it was. */
  asBranch?: number | undefined
  /** The promise that the conversation's `look` has returned since it came. */
  looked?: Promise<unknown> | undefined
}

/** A pass of the projection for a request. */
export interface ProjectedPass extends Pick<KnownRequest, 'asBranch' | 'looked'> {
  /** The request has gone out without it. */
  isGivenUp: boolean
}

/** A conversation, as far as the choice of its cache's lifetime needs it. */
export interface LifetimeOwner {
  readonly id: string
  readonly raw: readonly object[]
  /** The last request of a process before this one: the number of its messages, and when it was sent, in milliseconds since the epoch. */
  readonly earlier: { messages: number; at: number } | undefined
  /** The lifetimes that its last request asked for; undefined: the client's own. */
  lifetimes: LastChoice | undefined
}

/** The settings and callbacks that a conversation needs from its gateway. */
export interface ConversationOptions {
  /** The options of its sessions: store, stay, redact and the like. */
  open: Omit<OpenOptions, 'sessionId' | 'isNew' | 'cwd' | 'layout' | 'model' | 'shape'>
  /** The model of a request. */
  modelOf: (request: ModelRequest) => ProjectedModel
  /** Called once for each kind of trouble, with a sentence for the user. */
  onTrouble: (kind: string, sentence: string) => void
  /** Called before a request is projected: what is chosen for it may depend on its conversation. */
  onNext?: (conversation: LifetimeOwner, request: ModelRequest) => void
  /**
   * Returns how likely the provider still has the last request of a conversation, from 0 to 1. `common`: how many of its messages
   * the request begins with.
   */
  keptOf?: (id: string, request: ModelRequest, next: { isPrompt: boolean; common: number }) => number
  /** Called after each roll. */
  onRoll: (sessionId: string, receipt: RollReceipt) => void
  /** For tests: the limit of a request in milliseconds. Default {@link LIMIT_MS}. */
  limitMs?: number
  now?: () => number
}

/** The last request: the host's messages, and what went out instead of them. */
export interface LastSent {
  raw: readonly object[]
  items: readonly EditedItem[]
}

/** An open session. */
export interface OpenSession {
  manager: ContextManager
  projection: Projection
}
