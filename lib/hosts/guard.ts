/** The guard of files for the hosts' own tools: an edit that would overwrite what the model has not seen is refused once. */
import type { EditGuard } from '../../index.js'

/** A call of one of the host's tools. */
export interface GuardedCall {
  /** The tool's name. */
  name: string
  /** The call's arguments. */
  args: unknown
  /** The host's ID of the call. */
  callId?: string | undefined
}

/** The host's context, which knows what the model has seen. */
export interface FileGuard {
  /** Asked before a call: what the model gets instead, or what it is told after the result. */
  guard(call: GuardedCall): Promise<EditGuard>
  /** Told after a call that was made. */
  changed(call: GuardedCall): Promise<void>
}

/** Runs a tool under the guard. `refuse` gives what the model gets in place of a result, and `add` puts a text after a result. */
export async function guarded<T>(
  context: FileGuard,
  call: GuardedCall,
  run: () => T | PromiseLike<T>,
  refuse: (refusal: string) => T,
  add: (result: T, difference: string) => T,
): Promise<T> {
  const { refusal, difference } = await context.guard(call)
  if (refusal !== undefined) return refuse(refusal)
  const result = await run()
  await context.changed(call)
  return difference === undefined ? result : add(result, difference)
}

/** A text with another one after it. */
export function after(text: string, difference: string): string {
  return `${text}\n\n${difference}`
}
