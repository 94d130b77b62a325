/** The costs of an arm's requests: the part that the one before it shares is read from the cache, the rest is written. */
import type { Captured, MissedIn } from './capture.ts'

/** UTF-16 units of all requests of a session. */
export interface Units {
  cached: number
  written: number
}

/** The number of answers in a session, and of those before which an arm had hidden something. */
export interface Answers {
  answers: number
  changed: number
  /** Strong missed uses as replay counts them, and those that probably harm, by the number of the answer; absent: none known. */
  missed?: Record<string, MissedIn>
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

/** Returns the index of the first request that is shorter than the full one, or -1: from this roll on an arm is measured. */
export function firstShorter(captured: readonly Captured[], full: readonly Captured[]): number {
  return captured.findIndex(({ request }, index) => request.length < (full[index]?.request.length ?? 0))
}

/** Counts the answers from an arm's first roll on. */
export function answersOf(captured: readonly Captured[], full: readonly Captured[]): Answers {
  const first = firstShorter(captured, full)
  const missed = Object.fromEntries(captured.flatMap((one, index) => (one.missed === undefined ? [] : [[index, one.missed]])))
  return { answers: captured.length, changed: first < 0 ? 0 : captured.length - first, ...(Object.keys(missed).length > 0 && { missed }) }
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
