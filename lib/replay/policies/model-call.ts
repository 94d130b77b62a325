/** The circumstances of a model call in a replay, as the engine takes them. */
import type { ModelCall } from '../../../index.js'
import type { Moment as CallMoment } from '../../projection/index.ts'
import { rulesOf } from '../../models/index.ts'
import type { Binding } from '../../models/index.ts'
import type { PolicyMoment, Setting } from './policy.ts'

/** The circumstances of a call that the replay knows, besides its model. */
interface Circumstances extends CallMoment {
  /** When it is made, in milliseconds since the epoch. */
  at: number
  /** UTF-16 units of the system prompt and the tool declarations. */
  systemUnits: number
  /** The probability that the provider still has the last request, from 0 to 1. */
  cacheKept: number
}

/**
 * Returns what the provider of a call does with reasoning behind a change: what was said, or what it does with the
 * model in Pi.
 */
export function bindingOf({ manager }: Setting, moment: PolicyMoment | undefined): Binding {
  return manager.binding ?? rulesOf(moment?.model ?? '').askedBinding
}

/** The call that is made next; `moment` is that of the latest one. */
export function modelCall(setting: Setting, moment: PolicyMoment | undefined, { at, systemUnits, cacheKept, atUserTurn, rolls }: Circumstances): ModelCall {
  const { cache, manager, window } = setting
  const { kind, lookback } = cache
  const { model = '', prices } = moment ?? {}
  const { input = 0, cacheRead = 0, cacheWrite = 0, steps } = prices ?? {}
  return {
    model,
    prices: { input, cacheRead, cacheWrite, ...(steps === undefined ? {} : { tiers: [...steps] }) },
    binding: bindingOf(setting, moment),
    ...(rulesOf(model).textIsReasoning ? { textIsReasoning: true } : {}),
    ...(kind === 'breakpoints' && lookback !== undefined ? { lookbackBlocks: lookback } : {}),
    ...(kind === 'endings' && lookback !== undefined ? { lookbackEndings: lookback } : {}),
    contextWindow: window,
    cacheTtlMs: moment?.lifetimeMs ?? cache.lifetimeMs,
    cacheKept,
    nowMs: at,
    systemTokens: Math.ceil(systemUnits / 4),
    onlyAtUserTurn: manager.onlyAtUserTurn,
    atUserTurn,
    rolls,
    shortens: true,
  }
}
