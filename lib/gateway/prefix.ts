/** The part of a conversation that is the beginning of another one. */
import { createHash } from 'node:crypto'
import { oncePer } from '../core/index.ts'
import { fingerprint, isEqual } from '../projection/index.ts'

/** The number of messages that two conversations have in common from the start, or of elements of two lists; cache markers don't count. */
export function commonLength(one: readonly unknown[], other: readonly unknown[]): number {
  const most = Math.min(one.length, other.length)
  let at = 0
  while (at < most && isEqual(one[at], other[at])) at += 1
  return at
}

/** True if most messages of a conversation are those of an earlier one, of which `common` are the same from the start: a host may have changed one. */
export function hasMost(before: readonly object[], now: readonly object[], common: number): boolean {
  if (common * 2 > now.length) return true
  const same = now.filter((message, at) => at > common && before[at] !== undefined && isEqual(before[at], message))
  return (common + same.length) * 2 > now.length
}

/** Hashes of the beginnings of a conversation: entry n is that of its first n messages. */
export function chainOf(messages: readonly object[], from: readonly string[] = ['']): string[] {
  const chain = [...from]
  for (const message of messages.slice(chain.length - 1)) {
    chain.push(
      createHash('sha256')
        .update(`${chain.at(-1)} ${fingerprintOf(message)}`)
        .digest('base64url'),
    )
  }
  return chain
}

/** The fingerprint of a message. Messages of requests never change, and those of a changed conversation are mostly the same objects. */
export const fingerprintOf = oncePer<object, string>(fingerprint)

/** The part of a hash that may be on disk: it tells beginnings apart, and nothing can be read with it. */
export function linkOf(hash: string): string {
  return hash.slice(0, 22)
}
