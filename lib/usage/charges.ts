/** The charges for the model calls of recorded sessions, and the context manager's savings by its own account. */
import { readName } from '../models/name.ts'
import { callCost, pricesOf } from '../models/prices.ts'
import { isCall } from '../replay/recording.ts'
import type { Message, Recording, RecordedUsage, Saved } from '../replay/recording.ts'
import { modelOf } from '../replay/survey.ts'

/** A model call, or what was saved after it. */
export interface Charge {
  /** Milliseconds since the epoch. */
  at: number
  /** The recorded session's ID. */
  session: string
  /** The folder that the agent worked in. */
  folder: string
  /** `provider/model`. */
  model: string
  /** 1 for a model call, 0 for a saving. */
  calls: number
  /** Tokens as the provider counted them. */
  tokens: { input: number; cacheRead: number; cacheWrite: number; output: number }
  /** Dollars; undefined for a model without known prices. */
  cost: number | undefined
  /** True for a call whose answer did not tell what it was billed. */
  isUnbilled?: true
  /** Dollars saved against plain Pi since the charge before; below zero if a roll has not paid for itself yet. */
  saved: number
  /** The same in fresh input tokens. */
  savedTokens: number
  /** The context manager ran in this session, as far as it was read. */
  isManaged: boolean
  /** The session was left plain to compare with, as far as it was read. */
  isHeldOut: boolean
}

/** Which calls were charged already: forks and resumed sessions repeat the calls of the session they come from. */
export type Charged = Set<string>

/** The charges of one session, in their order. */
export async function* chargesOf(recording: Recording, charged: Charged): AsyncGenerator<Charge> {
  const { id: session, cwd: folder } = recording.origin
  const place = { session, folder }
  let model = 'unknown/unknown'
  let saved: Saved = { tokens: 0, dollars: 0 }
  let [isManaged, isHeldOut] = [false, false]
  for await (const step of recording.steps(() => {})) {
    if (step.kind === 'heldOut') isHeldOut = true
    else if (step.kind === 'branch') saved = step.saved ?? { tokens: 0, dollars: 0 }
    else if (step.kind === 'managed') {
      const gained = { saved: step.saved.dollars - saved.dollars, savedTokens: step.saved.tokens - saved.tokens }
      ;[saved, isManaged] = [step.saved, true]
      if (!isFirst(charged, `saved ${step.at} ${saved.tokens}`)) continue
      yield { ...place, at: step.at, model, calls: 0, tokens: NO_TOKENS, cost: 0, ...gained, isManaged, isHeldOut }
    } else if (step.kind === 'message' && isCall(step.entry.message)) {
      const { message, key, at } = step.entry
      model = modelOf(message)
      if (!isFirst(charged, `${key} ${at}`)) continue
      const { usage } = message
      yield { ...place, at, model, calls: 1, tokens: tokensOf(usage), cost: costOf(message), saved: 0, savedTokens: 0, isManaged, isHeldOut }
    }
  }
}

function isFirst(charged: Charged, name: string): boolean {
  const before = charged.size
  return charged.add(name).size > before
}

const NO_TOKENS = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0 } as const

function tokensOf(usage: RecordedUsage | undefined): Charge['tokens'] {
  if (usage === undefined) return NO_TOKENS
  const { input, cacheRead, cacheWrite, output } = usage
  return { input, cacheRead, cacheWrite, output }
}

/** The recorder's own figure if it has one, else by the model's known prices. */
function costOf(message: Message): number | undefined {
  const { usage } = message
  if (usage === undefined) return undefined
  const { input = 0, output = 0, cacheRead = 0, cacheWrite = 0 } = usage.cost ?? {}
  const noted = input + output + cacheRead + cacheWrite
  if (noted > 0) return noted
  const prices = pricesOf(readName(modelOf(message)))
  return prices === undefined ? undefined : callCost(prices, tokensOf(usage))
}
