/** The part of a host's own request that the provider still has in its cache, where another lifetime was chosen than it asks for. */
import { LIFETIME_MS } from './lifetime.ts'
import type { Asked, Choice } from './lifetime.ts'

/** For how long the provider keeps the parts of a request, in milliseconds. */
export interface Lives {
  /** System prompt and tools. */
  head: number
  messages: number
}

/** The lifetimes that a host asks for, and those that were asked for instead. */
export interface ApartLives {
  own: Lives
  sent: Lives
}

/** The part of a request that a provider still has. */
export type Left = 'all' | 'head' | 'nothing'

/** Returns what is left of the host's own request after a pause; undefined if as much is left of the one that was sent, whose bill tells the rest. */
export function leftApart({ own, sent }: ApartLives, pauseMs: number): Left | undefined {
  const left = ({ head, messages }: Lives): Left => (pauseMs < messages ? 'all' : pauseMs < head ? 'head' : 'nothing')
  return left(own) === left(sent) ? undefined : left(own)
}

/** The tokens of the part that a provider still has. `head` is the number of those of system prompt and tools, `all` that of all. */
export function tokensLeft(left: Left, head: number, all: () => number): number {
  return left === 'all' ? all() : left === 'head' ? head : 0
}

/** The lifetimes of a request that asks for these. A part without a marker lives as long as the other one. */
export function livesOf({ head, conversation }: Asked | Pick<Choice, 'head' | 'conversation'>): Lives {
  return { head: LIFETIME_MS[head ?? conversation ?? '5m'], messages: LIFETIME_MS[conversation ?? head ?? '5m'] }
}
