/**
 * The last two requests to the provider, to find where the later one first differs from the earlier one. They are only
 * compared on request, so they cost nothing during a call.
 */

/** The first difference between two requests. */
export type Difference = { part: 'tools' | 'system prompt' } | { part: 'message'; /** From 0. */ index: number; role: string }

/** Keeps the payloads of the last two requests. */
export class LastRequests {
  #earlier: unknown
  #later: unknown
  #underWay: unknown

  /** A request is about to go out. */
  keep(payload: unknown): void {
    this.#underWay = payload
  }

  /** It was answered. A request that failed and is repeated counts once. */
  answered(): void {
    if (this.#underWay === undefined) return
    this.#earlier = this.#later
    this.#later = this.#underWay
    this.#underWay = undefined
  }

  /** The last request that went out, whether it has been answered or not. */
  get last(): unknown {
    return this.#underWay ?? this.#later
  }

  /** Forgets them, because another session's requests say nothing about this one. */
  clear(): void {
    this.#earlier = undefined
    this.#later = undefined
    this.#underWay = undefined
  }

  /**
   * Where the last request differs from the one before it; null if it only adds to the end, undefined if unknown.
   */
  difference(): Difference | null | undefined {
    return differenceOf(this.#earlier, this.#later)
  }
}

/** The first difference of a provider's payload from an earlier one; null if it only adds to the end. */
export function differenceOf(earlier: unknown, later: unknown): Difference | null | undefined {
  if (!isRecord(earlier) || !isRecord(later)) return undefined
  const messages = MESSAGES.find((name) => Array.isArray(earlier[name]) && Array.isArray(later[name]))
  if (messages === undefined) return undefined
  // Every provider's cache has the tools before the system prompt.
  if (!same(earlier['tools'], later['tools'])) return { part: 'tools' }
  if (SYSTEM.some((name) => !same(earlier[name], later[name]))) return { part: 'system prompt' }
  const [before, after] = [earlier[messages] as unknown[], later[messages] as unknown[]]
  for (const [index, message] of before.entries()) {
    if (index < after.length && same(message, after[index])) continue
    const role = isRecord(message) && typeof message['role'] === 'string' ? message['role'] : 'message'
    if (role === 'system' || role === 'developer') return { part: 'system prompt' }
    return { part: 'message', index, role }
  }
  return null
}

/**
 * For how many seconds a request asks its provider to keep the prompt: Anthropic's breakpoints of an hour, OpenAI's
 * retention of a day. `short` if it has breakpoints without a time; undefined if it says nothing.
 */
export function askedSeconds(payload: unknown): number | 'short' | undefined {
  if (!isRecord(payload)) return undefined
  if (payload['prompt_cache_retention'] === '24h') return 86_400
  const messages = MESSAGES.map((name) => payload[name]).find(Array.isArray) ?? []
  // The conversation may be kept for less than what stands before it.
  const places: unknown[] = [messages.at(-1)?.content, payload['system'], payload['tools'], messages[0]?.content]
  for (const place of places) {
    const mark: unknown = (Array.isArray(place) ? place : []).findLast((one) => isRecord(one) && isRecord(one['cache_control']))?.cache_control
    if (isRecord(mark)) return mark['ttl'] === '1h' ? 3600 : 'short'
  }
  return undefined
}

/** The fields of the providers' formats that contain the conversation and the system prompt. */
const MESSAGES = ['messages', 'input', 'contents']
const SYSTEM = ['system', 'instructions', 'systemInstruction']

/** True if two values are equal except for the provider's cache markers, which move with each call. */
function same(left: unknown, right: unknown): boolean {
  return JSON.stringify(left, unmarked) === JSON.stringify(right, unmarked)
}

function unmarked(key: string, value: unknown): unknown {
  if (key === 'cache_control') return undefined
  // A single text has to become a list before it can be marked.
  if (key !== 'content' || !Array.isArray(value) || value.length !== 1) return value
  const [block] = value as unknown[]
  return isRecord(block) && block['type'] === 'text' ? block['text'] : value
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
