/**
 * Which calls a harness has recorded by itself before it handed their results over. Such a result may be shorter in the
 * conversation than the output that was recorded: the harness has cut it, and the record has all of it.
 */
const born = new WeakMap<object, Set<string>>()

/** Notes that `receive` or `recordToolcall` was called for a call. */
export function noteBirth(manager: object, callId: unknown): void {
  if (typeof callId !== 'string') return
  const calls = born.get(manager)
  if (calls === undefined) born.set(manager, new Set([callId]))
  else calls.add(callId)
}

/** Whether the harness has recorded a call by itself. */
export function wasBorn(manager: object, callId: string): boolean {
  return born.get(manager)?.has(callId) ?? false
}

/** From here on the conversation says what the call's result is. */
export function forgetBirth(manager: object, callId: string): void {
  born.get(manager)?.delete(callId)
}
