/** The calls that a harness recorded itself. */
import { shared } from './shared.ts'

/**
 * The calls that the harness recorded before passing on their results. Such a result may be shorter in the conversation than in
 * the record, because the harness truncated it after recording all of it.
 */
const born = shared('births', () => new WeakMap<object, Set<string>>())

/** Notes that the harness called `receive` or `recordToolcall` for a call. */
export function noteBirth(manager: object, callId: unknown): void {
  if (typeof callId !== 'string') return
  const calls = born.get(manager)
  if (calls === undefined) born.set(manager, new Set([callId]))
  else calls.add(callId)
}

/** True if the harness recorded a call itself. */
export function wasBorn(manager: object, callId: string): boolean {
  return born.get(manager)?.has(callId) ?? false
}

/** From now on, the conversation decides what the call's result is. */
export function forgetBirth(manager: object, callId: string): void {
  born.get(manager)?.delete(callId)
}
