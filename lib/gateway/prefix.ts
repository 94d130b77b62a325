/** The part of a conversation that is the beginning of another one. */
import { createHash } from 'node:crypto'
import { fingerprint, isEqual, nextsOf } from '../projection/index.ts'
import type { EditedItem } from '../projection/index.ts'

/** The number of messages that two conversations have in common from the start, or of elements of two lists; cache markers don't count. */
export function commonLength(one: readonly unknown[], other: readonly unknown[]): number {
  const most = Math.min(one.length, other.length)
  let at = 0
  while (at < most && isEqual(one[at], other[at])) at += 1
  return at
}

/** Hashes of the beginnings of a conversation: entry n is that of its first n messages. */
export function chainOf(messages: readonly object[], from: readonly string[] = ['']): string[] {
  const chain = [...from]
  for (const message of messages.slice(chain.length - 1)) {
    chain.push(
      createHash('sha256')
        .update(`${chain.at(-1)} ${fingerprint(message)}`)
        .digest('base64url'),
    )
  }
  return chain
}

/** The part of a hash that may be on disk: it tells beginnings apart, and nothing can be read with it. */
export function linkOf(hash: string): string {
  return hash.slice(0, 22)
}

/** A notice of ours, and how many of the host's messages came before it. */
export interface PlacedNotice {
  at: number
  message: object
}

/**
 * The messages that go out, with notices of an earlier process in their old places. One whose neighbours have both been
 * edited is left out: what it stood between has changed anyway.
 */
export function withNotices(sent: readonly object[], raw: readonly object[], notices: readonly PlacedNotice[]): object[] {
  if (notices.length === 0) return [...sent]
  const places = new Map(sent.map((message, place) => [message, place]))
  const added = new Map<number, object[]>()
  for (const { at, message } of notices) {
    const after = places.get(raw[at - 1] as object)
    const place = after === undefined ? places.get(raw[at] as object) : after + 1
    if (place !== undefined) added.set(place, [...(added.get(place) ?? []), message])
  }
  return [...sent.flatMap((message, place) => [...(added.get(place) ?? []), message]), ...(added.get(sent.length) ?? [])]
}

/**
 * How many messages there are without those of the system at the end, which have to stand there or before an answer: nothing may
 * be added behind them.
 */
export function lengthWithoutSystem(messages: readonly object[]): number {
  const last = messages.findLastIndex((message) => (message as { role?: unknown }).role !== 'system')
  return last < 0 ? messages.length : last + 1
}

/** The notices in a form of `count` messages, in their places. */
export function noticesIn(items: readonly EditedItem[], count: number): PlacedNotice[] {
  const nexts = nextsOf(items, count)
  return items.flatMap((item, n) =>
    typeof item === 'object' && 'add' in item && item.isNotice === true ? [{ at: nexts[n] as number, message: item.add as object }] : [],
  )
}
