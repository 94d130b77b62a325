/** When a host compacts its conversation, and what it keeps of it. */
import type { CompactionRule } from '../models/index.ts'
import { isUsers } from './request.ts'

/** The text that replaces the first messages. */
export interface HostSummary {
  /** The number of messages that it replaces. */
  from: number
  /** By how many bytes it is shorter than those. */
  less: number
}

/** Nothing is replaced. */
export const WHOLE: HostSummary = { from: 0, less: 0 }

/** True if the host compacts before a request of `tokens` tokens. */
export function isDue({ window, limit, counts }: CompactionRule, tokens: number, last: { plain: number; output: number } | undefined): boolean {
  if (tokens > window) return true
  return counts === 'answer' ? last !== undefined && last.plain + last.output > limit : tokens > limit
}

/** The sum of sizes. */
export function sum(sizes: readonly number[]): number {
  return sizes.reduce((all, one) => all + one, 0)
}

/** Bytes of the newest messages of the user, at most `most`. */
export function newest(messages: readonly object[], sizes: readonly number[], most: number): number {
  let size = 0
  for (let at = messages.length - 1; at >= 0 && size < most; at -= 1) if (isUsers(messages[at])) size = Math.min(most, size + (sizes[at] as number))
  return size
}
