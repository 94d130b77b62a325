/** Cache breaks: calls for which a provider processed again what the call before had sent. */

/** A call, as far as it can break the cache. */
export interface CachedCall {
  model: string
  /** Milliseconds since the epoch. */
  at: number
  /** Tokens of the prompt, and those of them that came from the cache. */
  prompt: number
  cached: number
}

/** Providers cache in blocks, so losing up to this many tokens, or this share of the prompt, does not count. */
const BLOCK_TOKENS = 1024
const BLOCK_SHARE = 0.02

/** The shortest usual time without a call after which a provider may have dropped a prompt, in milliseconds. */
const SHORTEST_LIFE_MS = 5 * 60_000

/** The number of tokens of the call before that were processed again; 0 if they are not a break. */
export function brokenTokens(before: Pick<CachedCall, 'prompt'>, now: Pick<CachedCall, 'prompt' | 'cached'>): number {
  const tokens = Math.min(before.prompt, now.prompt) - now.cached
  return tokens > Math.max(BLOCK_TOKENS, BLOCK_SHARE * before.prompt) ? tokens : 0
}

/** Says that the model has changed, if it has. */
export function modelCause(before: Pick<CachedCall, 'model'>, now: Pick<CachedCall, 'model'>): string[] {
  return before.model === now.model ? [] : [`The model changed from ${before.model} to ${now.model}.`]
}

/** A sentence if the level of thinking has changed, which stands before the messages in the cache. Levels that are not known don't count. */
export function effortCause(before: string | undefined, now: string | undefined): string[] {
  return before === undefined || now === undefined || before === now ? [] : [`The level of thinking changed from ${before} to ${now}.`]
}

/**
 * Says how long the pause was, if the prompt had expired by then. `lifetimeMs` is how long the provider was asked to keep it;
 * undefined: that is not known, and the shortest usual time counts.
 */
export function pauseCause(before: Pick<CachedCall, 'at'>, now: Pick<CachedCall, 'at'>, lifetimeMs?: number): string[] {
  const idle = now.at - before.at
  if (idle <= (lifetimeMs ?? SHORTEST_LIFE_MS)) return []
  const passed = `${Math.round(idle / 60_000)} minutes had passed`
  return [
    lifetimeMs === undefined
      ? `${passed}; providers drop a prompt after 5 to 60 minutes.`
      : `It had expired: ${passed}, and the provider keeps a prompt for ${lifetimeText(lifetimeMs)}.`,
  ]
}

/** A lifetime in words. */
function lifetimeText(ms: number): string {
  const minutes = Math.round(ms / 60_000)
  if (minutes < 60) return `${minutes} ${minutes === 1 ? 'minute' : 'minutes'}`
  const hours = Math.round(minutes / 60)
  return hours === 1 ? 'an hour' : `${hours} hours`
}

/** The number of calls since something happened, in words. */
export function callsBack(count: number): string {
  return `${count} ${count === 1 ? 'call' : 'calls'} ago`
}
