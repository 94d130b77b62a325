/** The bill of a host's own request. */
import type { Usage } from './answer.ts'

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
