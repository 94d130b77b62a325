/**
 * When agents compact a conversation by themselves, what then stays of it, and what that costs: one table for the bill without
 * us (Pi, the gateway) and for replay. Sizes are in tokens unless a name says characters. Pi's rules are those of its source
 * (0.87.1 to 1.6.0); those of the others are fitted to recorded sessions, and the comment of each row says to what.
 */

/** The rule by which an agent compacts in a model's window. */
export interface CompactionRule {
  /** The model's window; 0 if it is not known, and then nothing compacts. */
  window: number
  /** The agent compacts once a prompt, its answer and what came since take more than this. */
  limit: number
  /** The text that counts: all of the next request, or only the last request with its answer. */
  counts: 'request' | 'answer'
  /** About so much of the newest messages stays as it is. */
  keep: number
  /** The messages that stay: the newest ones, or the newest ones of the user only. */
  stays: 'newest' | 'users'
  /**
   * The request for the summary: a separate one with a shortened text of the conversation, which no cache has, or
   * one more request of the conversation, which the cache has.
   */
  asks: 'apart' | 'within'
  /** The length of a summary of which nothing is known. */
  summary: number
}

/** Pi's own settings for it. */
export interface PiCompaction {
  enabled: boolean
  /** The tokens that Pi keeps free below the window. */
  reserveTokens: number
  /** The tokens of the newest messages that stay uncompacted. */
  keepRecentTokens: number
}

/** Pi's settings where a user has none. */
export const PI_COMPACTION: PiCompaction = { enabled: true, reserveTokens: 16_384, keepRecentTokens: 20_000 }

/** The most characters of a tool result that Pi puts into the text to summarize. */
export const SUMMARIZED_RESULT = 2_000

/** Characters of Pi's instructions for a summary, its system prompt and the marks around the text included. */
export const INSTRUCTIONS = { first: 1_230, update: 1_680, turn: 1_000 } as const

/** Pi's rule in a window. A user who has switched it off compacts by hand when the window is full. */
export function piCompaction(window: number, { enabled, reserveTokens, keepRecentTokens }: PiCompaction = PI_COMPACTION): CompactionRule {
  return {
    window,
    limit: Math.max(0, window - (enabled ? reserveTokens : 0)),
    counts: 'request',
    keep: keepRecentTokens,
    stays: 'newest',
    asks: 'apart',
    summary: SUMMARY_TOKENS,
  }
}

/** The rule of an agent behind the gateway, by its name in session IDs. One that is not known fills its window. */
export function compactionOf(agent: string, window: number): CompactionRule {
  const row = AGENTS[agent]
  const rule = piCompaction(window, { ...PI_COMPACTION, enabled: agent === 'pi' })
  return row === undefined ? rule : { ...rule, ...row(window) }
}

/**
 * The position of the first message that stays if about `keep` of the newest ones do; 0 if all of them do. It is never a tool
 * result: an answer and its results stay together. `sizeAt` is a message's size in the unit of `keep`.
 */
export function firstKept(count: number, keep: number, sizeAt: (at: number) => number, isResult: (at: number) => boolean): number {
  let size = 0
  for (let at = count - 1; at >= 0; at -= 1) {
    size += sizeAt(at)
    if (size < keep) continue
    for (let later = at; later < count; later += 1) if (!isResult(later)) return later
    // The results alone exceed the limit: the answer that asked for them also stays.
    let before = at
    while (before > 0 && isResult(before)) before -= 1
    return before
  }
  return 0
}

/** The two summaries by Pi among the recorded sessions have 3,649 and 4,291 characters. */
export const SUMMARY_TOKENS = 1_000

const AGENTS: Readonly<Record<string, (window: number) => Partial<CompactionRule>>> = {
  // Ten automatic compactions of Claude Code 2.1: at 167,038 to 171,435 of 200,000 tokens (20,000 for the answer and 13,000 to
  // spare), summaries of 8,021 to 19,486 characters. Nothing stays, but the files that were read last are read in again: the
  // first request after it had 16,000 to 54,000 tokens beside the cached beginning, 22,000 in the middle.
  'claude-code': (window) => ({ limit: window - 33_000, keep: 18_000, asks: 'within', summary: 3_400 }),
  // Codex compacts at nine tenths of the window and keeps 20,000 tokens of what users have said (its source).
  codex: (window) => ({ limit: Math.floor(0.9 * window), counts: 'answer', keep: 20_000, stays: 'users', asks: 'within', summary: 1_500 }),
  // OpenCode keeps 32,000 tokens free for the answer, and of the conversation the newest request.
  opencode: (window) => ({ limit: window - 32_000, keep: 2_000, asks: 'within', summary: 1_500 }),
  // Gemini CLI and Qwen Code, which comes from it, keep the newest three tenths (their source).
  'gemini-cli': (window) => ({ limit: Math.floor(0.5 * window), keep: Math.floor(0.15 * window), summary: 1_500 }),
  'qwen-code': (window) => ({ limit: Math.floor(0.7 * window), keep: Math.floor(0.21 * window), summary: 1_500 }),
}
