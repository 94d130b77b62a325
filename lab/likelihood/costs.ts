/** The costs of an arm's requests: the part that the one before it shares is read from the cache, the rest is written. */
import type { Captured } from './capture.ts'

/** UTF-16 units of all requests of a session. */
export interface Units {
  cached: number
  written: number
}

/** Prices relative to a fresh token. */
export interface Ratios {
  read: number
  write: number
}

/** Returns what a cache that holds any prefix reads and writes for the requests in turn. */
export function unitsOf(captured: readonly Captured[]): Units {
  const units = { cached: 0, written: 0 }
  let last = ''
  for (const { request } of captured) {
    const common = commonPrefix(last, request)
    units.cached += common
    units.written += request.length - common
    last = request
  }
  return units
}

/** The cost of these units in fresh units. */
export function costOf({ cached, written }: Units, { read, write }: Ratios): number {
  return cached * read + written * write
}

function commonPrefix(left: string, right: string): number {
  const most = Math.min(left.length, right.length)
  let length = 0
  while (length < most && left.charCodeAt(length) === right.charCodeAt(length)) length += 1
  return length
}
