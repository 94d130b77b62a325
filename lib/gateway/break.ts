/** Why a provider had to read again what it had in its cache: found by comparing a request with the one before it. */
import { isEqual } from '../projection/index.ts'
import type { RollReceipt } from '../../index.js'
import { brokenTokens, modelCause, pauseCause } from '../models/index.ts'
import type { Usage } from './answer.ts'
import { commonLength } from './prefix.ts'
import type { ModelRequest } from './request.ts'

/** A request, as far as it can explain a break. */
export interface SentBefore {
  request: ModelRequest
  usage: Usage
  /** Milliseconds since the epoch. */
  at: number
  /** The receipt of the roll in it. */
  roll: RollReceipt | undefined
}

/** The tokens that were read again, with their cause. */
export interface GatewayBreak {
  tokens: number
  /** The cause: a roll of ours, the host, the time that has passed, or an unknown one. */
  by: 'roll' | 'host' | 'time' | 'unknown'
  /** Sentences for people. */
  causes: string[]
}

/** The break between two requests of a conversation; undefined if there was none. */
export function breakOf(before: SentBefore, now: SentBefore): GatewayBreak | undefined {
  const tokens = brokenTokens({ prompt: sizeOf(before.usage) }, { prompt: sizeOf(now.usage), cached: now.usage.cacheRead })
  const isCached = before.usage.cacheRead + before.usage.cacheWrite + now.usage.cacheRead > 0
  if (tokens === 0 || !isCached) return undefined
  const host = hostCauses(before.request, now.request)
  const late = pauseCause(before, now)
  const roll = now.roll === undefined ? [] : ['A roll of ours replaced old outputs by references.']
  const causes = [...host, ...roll, ...late]
  const by = host.length > 0 ? 'host' : roll.length > 0 ? 'roll' : late.length > 0 ? 'time' : 'unknown'
  return { tokens, by, causes: causes.length > 0 ? causes : ['Nothing in the request explains it: the provider has dropped its cache.'] }
}

function hostCauses(before: ModelRequest, now: ModelRequest): string[] {
  const common = commonLength(before.messages, now.messages)
  const changed = before.messages.length - common
  return [
    modelCause(before, now),
    isEqual(before.body['tools'], now.body['tools']) ? [] : ['The agent declared other tools.'],
    isEqual(systemOf(before), systemOf(now)) ? [] : ['The agent changed its system prompt.'],
    changed === 0 ? [] : [`The agent changed or removed the last ${changed} of its ${before.messages.length} messages.`],
  ].flat()
}

function systemOf({ body }: ModelRequest): unknown {
  return body['system'] ?? body['instructions']
}

function sizeOf({ input, cacheRead, cacheWrite }: Usage): number {
  return input + cacheRead + cacheWrite
}
