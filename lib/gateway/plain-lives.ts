/** What is left of the host's own request in the provider's cache, where its lifetime was chosen, and the bill that follows. */
import type { Usage } from './answer.ts'

/** For how long the provider keeps the parts of a request, in milliseconds. */
export interface Lives {
  /** System prompt and tools. */
  head: number
  messages: number
}

/** The part of a request that a provider still has. */
export type Left = 'all' | 'head' | 'nothing'

/** Returns what is left of the host's own request after a pause; undefined if as much is left of the one that was sent, whose bill tells the rest. */
export function leftApart({ own, sent }: { own: Lives; sent: Lives }, pauseMs: number): Left | undefined {
  const left = ({ head, messages }: Lives): Left => (pauseMs < messages ? 'all' : pauseMs < head ? 'head' : 'nothing')
  return left(own) === left(sent) ? undefined : left(own)
}

/** The tokens of a prompt. */
export function promptOf({ input, cacheRead, cacheWrite }: Usage): number {
  return input + cacheRead + cacheWrite
}

/** The bill of the host's own request. The provider would have had `cached` of its tokens; the rest is written as that of ours was. */
export function billed({ ofHour }: { ofHour: number }, usage: Usage, tokens: number, cached: number): Usage {
  const cacheRead = Math.round(Math.min(tokens, cached))
  const fresh = Math.round(tokens) - cacheRead
  const input = usage.cacheWrite > 0 ? Math.min(usage.input, fresh) : fresh
  const cacheWrite = fresh - input
  const hour = Math.round(cacheWrite * ofHour)
  return { input, cacheRead, cacheWrite, ...(hour > 0 && { cacheWriteHour: hour }), output: usage.output }
}
