/**
 * How likely a provider still has the last request of a session in its cache. Caches are lost before their lifetime is over,
 * mostly with prompts: new processes of the agent write their requests otherwise, and providers drop what they have. So the
 * calls of a session that found its cache and those that did not are counted, by what they came with and the pause before
 * them, and start from what recorded sessions had (docs/economics.md).
 */
import { readName } from './name.ts'

/** Pauses before a call, in minutes. */
export const PAUSES = ['under 5', '5 to 60', 'over 60'] as const

/** One of them. */
export type Pause = (typeof PAUSES)[number]

/** The kinds of calls by what they come with: a prompt of the user, or results of tools. */
export const CALL_KINDS = ['prompt', 'results'] as const

/** One of them. */
export type CallKind = (typeof CALL_KINDS)[number]

/** Calls that found what the call before them had sent, and calls that did not. */
export interface KeptLost {
  kept: number
  lost: number
}

/** These counts by what calls came with and the pause before them. */
export type CacheCounts = Readonly<Record<CallKind, Readonly<Record<Pause, Readonly<KeptLost>>>>>

/** A call that is about to be made. */
export interface NextCall {
  /** Milliseconds since the epoch. */
  at: number
  isPrompt: boolean
  model: string
  /** The host has changed something before the messages since the last request, or nearly all of them. */
  isElsewhere?: boolean
}

/** A call that was answered, with its tokens. */
export interface AnsweredCall extends NextCall {
  /** All of the prompt, the part that the cache had, and the part that was written to it. */
  prompt: number
  cached: number
  written: number
  /** Estimate of those of the system prompt and the tools. */
  systemTokens: number
  /** Something before the end of the last request has changed, so that not all of it can be found. */
  isChanged: boolean
  /** The lifetime of the last request in the cache, in milliseconds. */
  lifetimeMs: number
}

/** The smallest loss, in tokens that had been sent and were not read; providers cache in blocks and by breakpoints. */
export const LEAST_LOSS = 5000

/** The smallest number of messages' tokens whose find in the cache is evidence. */
const LEAST_FOUND = 1024

/** The factor by which an estimate by characters may be too low. */
const UNSURE = 1.5

const MINUTE_MS = 60_000

/** The number of calls that the recorded sessions count for. Sessions differ in what they lose with prompts far more than with results. */
const WEIGHT: Readonly<Record<CallKind, number>> = { prompt: 10, results: 100 }

/** The share of calls that lost the conversation in recorded sessions, by a pause of under five minutes and of five to 60. */
type Prior = Readonly<Record<CallKind, readonly [short: number, long: number]>>

/** Claude Code in July and August 2026, 39 sessions on an hour; Opus 5 lost more with prompts. */
const CLAUDE: Prior = { prompt: [0.086, 0.248], results: [0.006, 0.017] }
const OPUS_5: Prior = { prompt: [0.286, 0.455], results: [0.001, 0.017] }

/** Codex on gpt-5.5, 8 sessions: a tenth of all calls, not told apart. */
const GPT: Prior = { prompt: [0.1, 0.1], results: [0.1, 0.1] }

/** The kind of a pause. */
export function pauseOf(ms: number): Pause {
  if (ms < 5 * MINUTE_MS) return 'under 5'
  return ms <= 60 * MINUTE_MS ? '5 to 60' : 'over 60'
}

/** Counts of no calls. */
export function noCounts(): CacheCounts {
  const none = (): Record<Pause, KeptLost> => ({ 'under 5': { kept: 0, lost: 0 }, '5 to 60': { kept: 0, lost: 0 }, 'over 60': { kept: 0, lost: 0 } })
  return { prompt: none(), results: none() }
}

/** Follows the calls of one session. */
export class CacheOdds {
  readonly #counts = noCounts() as Record<CallKind, Record<Pause, KeptLost>>
  #before: AnsweredCall | undefined
  /** The provider has shown that it uses a cache. */
  #isCached = false
  /** The provider has found the messages although the host had changed something before them. */
  #ignoresHead = false

  /** The calls so far that could tell, without those that the likelihood starts from. */
  get counts(): CacheCounts {
    return this.#counts
  }

  /**
   * The likelihood that the provider still has the last request, from 0 to 1, if its lifetime is not over; 0 if it is known to be gone.
   * 1 before the first answer.
   */
  kept({ at, isPrompt, model, isElsewhere = false }: NextCall): number {
    const before = this.#before
    if (before === undefined) return 1
    if (isElsewhere && !this.#ignoresHead) return 0
    const kind = isPrompt ? 'prompt' : 'results'
    const pause = pauseOf(at - before.at)
    const { kept, lost } = this.#counts[kind][pause]
    const weight = WEIGHT[kind]
    // A cache that is kept for longer than an hour was not among those recorded.
    const prior = priorOf(model)[kind][pause === 'under 5' ? 0 : 1]
    return 1 - (lost + prior * weight) / (kept + lost + weight)
  }

  /** Takes an answer. Calls that say nothing of the provider are not counted: after a change, or once the lifetime was over. */
  answered(call: AnsweredCall): void {
    const before = this.#before
    this.#before = call
    this.#isCached ||= call.cached > 0 || call.written > 0
    if (before === undefined || !this.#isCached || before.model !== call.model || call.at - before.at > call.lifetimeMs) return
    // The part behind the last breakpoint was not written, and can't be found.
    const unwritten = before.written > 0 ? Math.max(0, before.prompt - before.cached - before.written) : 0
    const sent = Math.min(call.prompt, before.prompt - unwritten)
    const head = UNSURE * call.systemTokens
    // A part of the system prompt and the tools may be found whatever has changed there.
    if (call.isElsewhere === true && sent - head >= LEAST_FOUND && 2 * (call.cached - head) > sent - head) this.#ignoresHead = true
    if (sent < LEAST_LOSS) return
    const isLost = sent - call.cached >= LEAST_LOSS
    if (call.isChanged || (call.isElsewhere === true && !this.#ignoresHead)) return
    this.#counts[call.isPrompt ? 'prompt' : 'results'][pauseOf(call.at - before.at)][isLost ? 'lost' : 'kept'] += 1
  }
}

function priorOf(model: string): Prior {
  const { family, tier, version } = readName(model)
  if (family === 'gpt') return GPT
  return family === 'claude' && tier === 'opus' && version === 5 ? OPUS_5 : CLAUDE
}
