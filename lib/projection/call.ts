/** The circumstances of a model call, for the engine, as far as a host that is not Pi knows them. */
import type { ModelCall } from '../../index.js'
import type { Moment } from './driver/port.ts'
import type { Binding } from '../models/index.ts'
import type { ProjectedModel } from './options.ts'

/** The facts beside the model. */
interface Facts {
  moment: Moment
  /** The provider's treatment of reasoning after a change. */
  binding: Binding
  /** The host's clock, in milliseconds since the epoch. */
  nowMs: number
  /** Estimated tokens of the system prompt and the tools. */
  systemTokens: number | undefined
  /** The host can shorten texts and leave out messages. */
  shortens: boolean | undefined
  /** When everything recorded was last sent in the recorded form. */
  sentMs: number | undefined
  /** The number of visible messages that were sent then as they are now; undefined: all of them. */
  sentMessages: number | undefined
  /** Text that has left before may stay out now. */
  repeats: boolean
  /** The name of the conversation's end. */
  place: string | undefined
  /** Nothing may be added there now. */
  closed: boolean
  /** The probability that the provider still has the last request in its cache; undefined: as good as certain. */
  cacheKept?: number | undefined
}

/** The next call of a model. */
export function callOf(
  model: ProjectedModel,
  { moment, binding, nowMs, systemTokens = 0, shortens, sentMs, sentMessages, repeats, place, closed, cacheKept }: Facts,
): ModelCall {
  const { input, cacheRead, cacheWrite, caches, tiers } = model
  return {
    model: model.name ?? '',
    prices: { input, cacheRead, cacheWrite, ...(caches === undefined ? {} : { caches }), ...(tiers === undefined ? {} : { tiers }) },
    ...(model.lookbackBlocks === undefined ? {} : { lookbackBlocks: model.lookbackBlocks }),
    ...(model.lookbackEndings === undefined ? {} : { lookbackEndings: model.lookbackEndings }),
    binding,
    ...(model.textIsReasoning === undefined ? {} : { textIsReasoning: model.textIsReasoning }),
    contextWindow: model.contextWindow,
    cacheTtlMs: model.cacheTtlMs ?? 300_000,
    nowMs,
    ...(place === undefined ? {} : { place }),
    ...(closed ? { closed } : {}),
    systemTokens,
    onlyAtUserTurn: false,
    atUserTurn: moment.atUserTurn,
    rolls: moment.rolls,
    repeats,
    // A host's result may be anything but a number.
    ...(Number.isFinite(cacheKept) ? { cacheKept: Math.min(1, Math.max(0, cacheKept as number)) } : {}),
    ...(shortens === true ? { shortens: true } : {}),
    ...(sentMs === undefined ? {} : { sentMs }),
    ...(sentMessages === undefined ? {} : { sentMessages }),
  }
}
