/** The counts and dollars of one answer, as recorders note them, made sound. */
import { isFields } from '../core/index.ts'
import { soundUsage } from '../models/index.ts'
import type { RecordedUsage } from './recording.ts'

/** More dollars than any call costs: at the dearest known price for the most tokens. */
const MOST_DOLLARS = 100_000

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
