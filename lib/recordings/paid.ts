/** The model calls in a recording that were paid for, each under the names by which copies of the session are recognized. */
import { callCost } from '../models/index.ts'
import { cataloguePrices } from './prices.ts'
import type { PricesByModel } from './prices.ts'
import { isCall, modelOf } from './recording.ts'
import type { Saved, SideCall, Step } from './recording.ts'

/** Names of what was charged already: forks, resumed sessions and copies repeat the calls of the session they come from. */
export type Charged = Set<string>

/** True if nothing was charged under any of these names; from now on all of them are. */
export function isFirst(charged: Charged, names: readonly string[]): boolean {
  const isKnown = names.some((name) => charged.has(name))
  for (const name of names) charged.add(name)
  return !isKnown
}

/** A model call that was made. */
export type PaidCall = Omit<SideCall, 'kind'>

/** The model call that a step is; undefined if it is none. */
export function callIn(step: Step, file: string): PaidCall | undefined {
  if (step.kind === 'side') return step
  if (step.kind !== 'message' || !isCall(step.entry.message)) return undefined
  const { message, key, at, names } = step.entry
  // Entries of Pi have short names of their own; with their times they are unique.
  return { names: names ?? [at > 0 ? `${key} ${at}` : `${file} ${key}`], model: modelOf(message), usage: message.usage, at }
}

/** The context manager's own account of its savings, step by step: on each branch it counts from where that one begins. */
export class SavedSteps {
  #here: Saved = { tokens: 0, dollars: 0 }

  /** Returns what a step adds to the savings; undefined if it tells of none, or if a copy of the session has told of it. */
  take(step: Step, charged: Charged): Saved | undefined {
    if (step.kind === 'branch') this.#here = step.saved ?? { tokens: 0, dollars: 0 }
    if (step.kind !== 'managed' && step.kind !== 'off') return undefined
    const [before, now] = [this.#here, step.saved]
    this.#here = now
    if (!isFirst(charged, [`saved ${step.at} ${now.tokens}`])) return undefined
    const [sent, without] = [(now.plan?.sent ?? 0) - (before.plan?.sent ?? 0), (now.plan?.without ?? 0) - (before.plan?.without ?? 0)]
    return { tokens: now.tokens - before.tokens, dollars: now.dollars - before.dollars, ...(sent > 0 && { plan: { sent, without } }) }
  }
}

/** Dollars for a call: the recorder's own figure if it has one, else by the prices that the user gave, or the model's known ones. */
export function costOf({ usage, model }: Pick<PaidCall, 'usage' | 'model'>, given?: PricesByModel): number | undefined {
  if (usage === undefined) return undefined
  const { input = 0, output = 0, cacheRead = 0, cacheWrite = 0 } = usage.cost ?? {}
  const noted = input + output + cacheRead + cacheWrite
  if (noted > 0) return noted
  const prices = cataloguePrices(model, given)
  return prices === undefined ? undefined : callCost(prices, usage)
}
