/**
 * The host's messages that sent messages replace. The sent messages themselves do not say it: hosts use call IDs again, and some
 * messages have no ID.
 */
import { shared } from '../core/index.ts'

/** A message in a list whose elements the host may exchange for equal ones. */
interface Origin {
  list: readonly object[]
  at: number
}

const origins = shared('origins', () => new WeakMap<object, Origin>())

/** The host's message instead of which another one is sent; undefined if that was never noted. */
export function originOf(sent: object): object | undefined {
  const origin = origins.get(sent)
  return origin?.list[origin.at]
}

/** Notes that a message is sent instead of the one at an index of a list. */
export function noteOrigin(sent: object, list: readonly object[], at: number): void {
  if (sent !== list[at]) origins.set(sent, { list, at })
}

/** Notes that a message is sent instead of another one that would have been sent. */
export function takeOrigin(sent: object, before: object): void {
  origins.set(sent, origins.get(before) ?? { list: [before], at: 0 })
}
