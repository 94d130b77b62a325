/**
 * The provider's token counts for one answer, as recorders note them. Files are edited, cut off and written by programs of
 * many versions, so a count may be missing, negative, no number, far too large, or contradict another one. Each is made a
 * count that can be added up, and the answer is marked, so that reports can say how many there were.
 */
import { isFields } from '../core/index.ts'
import type { RecordedUsage } from './recording.ts'

/** More tokens than any model takes or writes in one call: ten times the longest window that is known. */
const MOST_TOKENS = 100_000_000

/** More dollars than any call costs: at the dearest known price for the most tokens. */
const MOST_DOLLARS = 100_000

/** Counts as a recorder has them; undefined where it has none. */
export interface GivenCounts {
  /** Tokens that were neither read from the cache nor written to it; or all of them, see `isWhole`. */
  input: unknown
  output: unknown
  cacheRead: unknown
  cacheWrite: unknown
  /** Those of `cacheWrite` that were written for five minutes, and for an hour, where the provider tells them apart. */
  fiveMinutes?: unknown
  hour?: unknown
  /** True if `input` includes the tokens of the cache, as OpenAI counts. */
  isWhole?: boolean
}

/** Makes counts sound; undefined if there is none at all. */
export function soundUsage(given: GivenCounts): RecordedUsage | undefined {
  const { isWhole = false, ...counts } = given
  if (Object.values(counts).every((count) => count === undefined || count === null)) return undefined
  const doubts = new Doubts()
  const output = doubts.count(given.output)
  const hour = doubts.count(given.hour ?? 0)
  const split = hour + doubts.count(given.fiveMinutes ?? 0)
  let cacheWrite = doubts.count(given.cacheWrite ?? split)
  if (split > cacheWrite) doubts.found = true
  const all = doubts.count(given.input)
  let cacheRead = doubts.count(given.cacheRead ?? 0)
  let input = all
  if (isWhole) {
    if (cacheRead + cacheWrite > all) doubts.found = true
    cacheRead = Math.min(cacheRead, all)
    cacheWrite = Math.min(cacheWrite, all - cacheRead)
    input = all - cacheRead - cacheWrite
  }
  const cacheWriteHour = Math.min(hour, cacheWrite)
  return {
    ...{ input, output, cacheRead, cacheWrite },
    ...(cacheWriteHour > 0 && { cacheWriteHour }),
    ...(doubts.found && { isDoubtful: true as const }),
  }
}

/** Dollars as a recorder noted them; 0 for what no call can have cost. */
export function soundDollars(given: unknown): number {
  return typeof given === 'number' && given >= 0 && given <= MOST_DOLLARS ? given : 0
}

/** The usage of an answer of Anthropic's. */
export function anthropicUsage(recorded: unknown): RecordedUsage | undefined {
  if (!isFields(recorded)) return undefined
  const split = isFields(recorded['cache_creation']) ? recorded['cache_creation'] : {}
  return soundUsage({
    input: recorded['input_tokens'],
    output: recorded['output_tokens'],
    cacheRead: recorded['cache_read_input_tokens'],
    cacheWrite: recorded['cache_creation_input_tokens'],
    fiveMinutes: split['ephemeral_5m_input_tokens'],
    hour: split['ephemeral_1h_input_tokens'],
  })
}

/** The usage of a response as Codex notes it: the output includes the reasoning, the input what was read and written. */
export function codexUsage(recorded: unknown): RecordedUsage | undefined {
  if (!isFields(recorded)) return undefined
  return soundUsage({
    input: recorded['input_tokens'],
    output: recorded['output_tokens'],
    cacheRead: recorded['cached_input_tokens'],
    cacheWrite: recorded['cache_write_input_tokens'],
    isWhole: true,
  })
}

/** Takes counts, and keeps in mind whether one of them can't be true. */
class Doubts {
  found = false

  /** The count itself; 0 for anything that is none. */
  count(given: unknown): number {
    if (typeof given === 'number' && given >= 0 && given <= MOST_TOKENS) return given
    this.found = true
    return 0
  }
}
