/** The breaks in the cached part of recorded sessions' prompts: their causes, what followed from them, and what they cost. */
import { dollars, tokens as tokensText } from '../ui/index.ts'
import { brokenTokens, effortCause, factorAt, lossAt, modelCause, originsOf, pauseCause, replacedSentences } from '../models/index.ts'
import type { CachedCall, ReplacedMessage } from '../models/index.ts'
import { isCall, knownPrices, mended, modelOf } from '../recordings/index.ts'
import type { Message, Prices, PricesByModel, Recording, Step } from '../recordings/index.ts'

/** A call for which tokens were processed again that the call before had sent. */
export interface CacheBreak {
  /** The number of the session's calls after it. */
  callsAgo: number
  /** Milliseconds since the epoch. */
  at: number
  /** Tokens that were processed again. */
  tokens: number
  /** Dollars more than reading them from the cache; undefined for a model without known prices. */
  cost: number | undefined
  /** The cause: another model, what the agent has changed, a roll of ours, its lifetime, or an unknown one. */
  by: BreakCause
  /** Sentences for people. */
  causes: string[]
}

/** Everything that makes a provider process tokens again. */
export const BREAK_CAUSES = ['time', 'host', 'model', 'roll', 'unknown'] as const

/** One of them. */
export type BreakCause = (typeof BREAK_CAUSES)[number]

/** The number of breaks by cause, in words, and their cost: `2 expired, 1 by a roll of ours, $0.30 in all`. */
export function causesText(breaks: readonly Pick<CacheBreak, 'by' | 'cost'>[]): string {
  const words = { time: 'expired', host: 'changed by the agent', model: 'with another model', roll: 'by a roll of ours', unknown: 'for no known reason' }
  const counts = BREAK_CAUSES.flatMap((cause) => {
    const count = breaks.filter(({ by }) => by === cause).length
    return count === 0 ? [] : [`${count} ${words[cause]}`]
  })
  const costs = breaks.flatMap(({ cost }) => cost ?? [])
  return costs.length === breaks.length ? `${counts.join(', ')}; ${dollars(costs.reduce((sum, one) => sum + one, 0))} in all` : counts.join(', ')
}

/** The breaks of a session. */
export interface CacheHistory {
  calls: number
  /** False if the provider reported no use of a cache, so that nothing is known. */
  isKnown: boolean
  /** The newest first. */
  breaks: CacheBreak[]
}

/** Follows a recording, with the user's own prices where some are given. */
export async function cacheHistory(recording: Recording, given?: PricesByModel): Promise<CacheHistory> {
  const found: (Omit<CacheBreak, 'callsAgo'> & { call: number })[] = []
  const contents = new Contents()
  let between = new Between()
  let before: Call | undefined
  let [calls, isKnown] = [0, false]
  for await (const step of recording.steps(() => {})) {
    contents.take(step)
    if (step.kind !== 'message' || !isCall(step.entry.message)) {
      between.take(step)
      continue
    }
    const call = { ...callOf(step.entry.message, step.entry.at, given), effort: step.entry.effort }
    calls += 1
    isKnown ||= call.cached > 0
    const tokens = before === undefined ? 0 : brokenTokens(before, call)
    const replaced = between.replaced(contents)
    if (before !== undefined && tokens > 0) {
      found.push({ call: calls, at: call.at, tokens, cost: priceOf(call, tokens), ...between.causes(before, call, replaced) })
    }
    before = call
    between = new Between()
    // No call has had this answer yet.
    between.take(step)
  }
  const breaks = isKnown ? found.reverse().map(({ call, ...one }) => ({ callsAgo: calls - call, ...one })) : []
  return { calls, isKnown, breaks }
}

interface Call extends CachedCall {
  prices: Prices | undefined
  written: { cacheWrite: number; cacheWriteHour: number }
  /** The lifetime that the provider was asked for, in milliseconds; undefined where it says nothing of that. */
  lifetimeMs: number | undefined
  /** The level of thinking, in the agent's words; undefined where it is not known. */
  effort?: string | undefined
}

const HOUR_MS = 60 * 60_000

function callOf(message: Message, at: number, given: PricesByModel | undefined): Call {
  const { input = 0, cacheRead = 0, cacheWrite = 0, cacheWriteHour = 0, cost } = message.usage ?? {}
  const model = modelOf(message)
  const noted = cost?.input !== undefined && cost.input > 0 && input > 0 ? (cost.input / input) * 1_000_000 : undefined
  const prices = knownPrices(model, given) ?? (noted === undefined ? undefined : mended({ input: noted, output: 0, cacheRead: 0, cacheWrite: 0 }))
  return {
    at,
    model,
    prompt: input + cacheRead + cacheWrite,
    cached: cacheRead,
    prices,
    written: { cacheWrite, cacheWriteHour },
    lifetimeMs: 2 * cacheWriteHour > cacheWrite ? HOUR_MS : undefined,
  }
}

/** Dollars for processing tokens again instead of reading them. */
function priceOf({ prices, prompt, written }: Call, tokens: number): number | undefined {
  return prices === undefined ? undefined : factorAt(prices.steps, prompt) * lossAt(prices, tokens, written)
}

/** A prompt that is smaller by this number of tokens lacks text that the one before it had. */
const CLEARED = 5_000

/** The messages of a session by their keys, as they were written and as the last call had them. */
class Contents {
  readonly #original = new Map<string, unknown>()
  readonly #sent = new Map<string, unknown>()

  take(step: Step): void {
    if (step.kind === 'message') this.#original.set(step.entry.key, step.entry.message.content)
  }

  /** A call was made with these edits. Returns what they have replaced. */
  replacedBy(edits: ReadonlyMap<string, unknown>, unsent: ReadonlySet<string>): ReplacedMessage[] {
    const all = [...edits].map(([key, now]) => {
      const original = this.#original.get(key)
      const before = this.#sent.has(key) ? this.#sent.get(key) : original
      this.#sent.set(key, now)
      return { key, original, before, now }
    })
    return all.filter(({ key }) => !unsent.has(key))
  }
}

/** The events between two calls. */
class Between {
  /** The last edit of each message, and the messages that no call has had yet. */
  readonly #edits = new Map<string, unknown>()
  readonly #unsent = new Set<string>()
  #wentBack = false
  #compacted = false

  take(step: Step): void {
    if (step.kind === 'edit') this.#edits.set(step.key, step.content)
    else if (step.kind === 'message') this.#unsent.add(step.entry.key)
    else if (step.kind === 'branch') this.#wentBack = true
    else if (step.kind === 'compaction') this.#compacted = true
  }

  causes(before: Call, call: Call, replaced: readonly ReplacedMessage[]): Pick<CacheBreak, 'by' | 'causes'> {
    const origins = originsOf(replaced)
    const found: [BreakCause, string[]][] = [
      ['model', modelCause(before, call)],
      ['host', this.#compacted ? ['A summary replaced earlier messages (a compaction).'] : []],
      ['host', this.#wentBack ? ['The conversation went back to an earlier message.'] : []],
      ['host', effortCause(before.effort, call.effort)],
      [origins.some((origin) => origin === 'roll' || origin === 'undo') ? 'roll' : origins.includes('other') ? 'host' : 'unknown', replacedSentences(origins)],
      ['time', pauseCause(before, call, before.lifetimeMs)],
    ]
    const known = found.filter(([, causes]) => causes.length > 0)
    const [first] = known
    if (first === undefined && before.prompt - call.prompt >= CLEARED)
      return {
        by: 'host',
        causes: [`The agent sent ${tokensText(before.prompt - call.prompt)} tokens less than before: it has cleared or removed earlier text.`],
      }
    if (first === undefined)
      return { by: 'unknown', causes: ['Nothing in the session explains it: the system prompt or the tools changed, or the provider dropped its cache.'] }
    return { by: first[0], causes: known.flatMap(([, causes]) => causes) }
  }

  /** The messages that its edits have replaced. */
  replaced(contents: Contents): ReplacedMessage[] {
    return contents.replacedBy(this.#edits, this.#unsent)
  }
}
