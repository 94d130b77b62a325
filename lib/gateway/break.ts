/** Why a provider had to read again what it had in its cache: found by comparing a request with the one before it. */
import type { RollReceipt } from '../../index.js'
import { isFields, textOf } from '../core/index.ts'
import { brokenTokens, modelCause, pauseCause } from '../models/index.ts'
import type { Usage } from './answer.ts'
import { headChanges, messageChanges } from './changes.ts'
import type { ModelRequest } from './request.ts'

/** A request, as far as it can explain a break. */
export interface SentBefore {
  request: ModelRequest
  usage: Usage
  /** Milliseconds since the epoch. */
  at: number
  /** The cache lifetime asked of the provider, in milliseconds. */
  lifetimeMs: number
  /** The receipt of the roll in it. */
  roll: RollReceipt | undefined
}

/** The tokens that were read again, with their cause. */
export interface GatewayBreak {
  tokens: number
  /** The cause: a roll of ours, something that the host has changed, another model, its lifetime, or an unknown one. */
  by: 'roll' | 'host' | 'model' | 'time' | 'unknown'
  /** Sentences for people. */
  causes: string[]
}

/** The break between two requests of a conversation; undefined if there was none. */
export function breakOf(before: SentBefore, now: SentBefore): GatewayBreak | undefined {
  const tokens = brokenTokens({ prompt: sizeOf(before.usage) }, { prompt: sizeOf(now.usage), cached: now.usage.cacheRead })
  const isCached = before.usage.cacheRead + before.usage.cacheWrite + now.usage.cacheRead > 0
  if (tokens === 0 || !isCached) return undefined
  const model = modelCause(before.request, now.request)
  const host = [...headChanges(before.request, now.request), ...messageChanges(before.request, now.request)]
  const late = pauseCause(before, now, before.lifetimeMs)
  const roll = now.roll === undefined ? [] : ['A roll of ours replaced old outputs by references.']
  const known = [...model, ...host, ...roll, ...late]
  const cleared = known.length === 0 && clearsOutputs(now.request) ? [CLEARED] : []
  const causes = [...known, ...cleared]
  // Another model, and what has expired, have nothing whatever a request says.
  const by = model.length > 0 ? 'model' : late.length > 0 ? 'time' : host.length + cleared.length > 0 ? 'host' : roll.length > 0 ? 'roll' : 'unknown'
  return { tokens, by, causes: causes.length > 0 ? causes : ['Nothing in the request explains it: the provider has dropped its cache.'] }
}

const CLEARED = 'The agent lets its provider clear old outputs (context_management), and what is cached ends where it has done so.'

/** True if a request in Anthropic's format asks the provider to clear outputs once there are many. */
function clearsOutputs({ body }: ModelRequest): boolean {
  const asked = body['context_management']
  const edits = isFields(asked) && Array.isArray(asked['edits']) ? asked['edits'] : []
  return edits.some((edit) => isFields(edit) && textOf(edit['type']).startsWith('clear_tool_uses'))
}

function sizeOf({ input, cacheRead, cacheWrite }: Usage): number {
  return input + cacheRead + cacheWrite
}
