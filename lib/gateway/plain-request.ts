/** A request as the account of a host's own requests takes it, and what it keeps of the last one. */
import type { ApartLives } from '../models/index.ts'
import { headChanges } from './changes.ts'
import type { CacheReach } from './plain-cache.ts'
import type { ModelRequest } from './request.ts'

/** A request that was answered. */
export interface PlainRequest {
  messages: readonly object[]
  /** Tokens of the system prompt and the tools, four characters each. */
  systemTokens: number
  model: string
  /** Bytes of the host's body, and of what went out instead. */
  plainBytes: number
  sentBytes: number
  isEdited: boolean
  /** We have rolled in this request. */
  hasRolled: boolean
  /** The share of what is newly written that the host asks to keep for an hour, 0 to 1. */
  ofHour: number
  /** When it was answered, in milliseconds since the epoch. */
  at: number
  /** The lifetime of the host's own prompt in the provider's cache, in milliseconds. */
  lifetimeMs: number
  /** The lifetimes that the host asks for and those that were asked for instead; absent where they are the same. */
  chosen?: ApartLives
  /** The way in which the provider finds earlier prompts in its cache. */
  reach: CacheReach
  /** The host asks to cache the whole request, without markers in the messages. */
  isMarked: boolean
  /** The request itself, to be compared with the next one; absent: they have the same tools, system prompt and settings. */
  head?: ModelRequest
  /** The last request of a process before this one: the number of its messages, which this one begins with, and when it went out. */
  earlier?: { messages: number; at: number }
}

/** The last request of a conversation. */
export interface Last {
  messages: readonly object[]
  count: number
  model: string
  systemTokens: number
  head: PlainRequest['head']
  at: number
  chosen: PlainRequest['chosen']
  /** Tokens of the prompt as sent and without us, and of the answer. */
  own: number
  plain: number
  /** Bytes of which the tokens of the prompt without us are estimated. */
  off: number
  output: number
  /** Bytes of both. */
  sentBytes: number
  plainBytes: number
}

/** The last request of a conversation where this account does not have its messages: another gateway has sent it, or the account has rested. */
export function earlierOf({ earlier }: PlainRequest, last: Last | undefined): PlainRequest['earlier'] {
  if (last === undefined || (earlier !== undefined && earlier.at > last.at)) return earlier
  return last.messages.length === 0 && last.count > 0 ? { messages: last.count, at: last.at } : undefined
}

/** True if a request has other tools, another system prompt or other settings than the last one: then the provider finds nothing behind these. */
export function hasOtherHead({ head }: PlainRequest, last: Last): boolean {
  return head !== undefined && last.head !== undefined && headChanges(last.head, head).length > 0
}
