/** The calls that a gateway has noted: the agents' own files tell of the same calls, and each counts once. */
import type { Charge } from './charges.ts'

/** The longest time between the two notes of one call, in milliseconds: one is of its beginning, the other of its end. */
const APART_MS = 3_600_000

/** Calls as they were noted. */
export class NotedCalls {
  /** When calls came, by the tokens of their prompts. */
  readonly #times = new Map<string, number[]>()
  /** The sessions' IDs at the gateway, by those that their agents give them. */
  readonly #sessions = new Map<string, string>()

  /** Notes a call of the gateway's. */
  add({ session, tokens, at, isUnbilled }: Charge): void {
    this.#sessions.set(session.slice(session.indexOf(':') + 1), session)
    if (isUnbilled === true) return
    const key = keyOf(tokens)
    const times = this.#times.get(key)
    if (times === undefined) this.#times.set(key, [at])
    else times.push(at)
  }

  /** True if a call of an agent's file is one of them. Each is found once. */
  take({ calls, tokens, at }: Charge): boolean {
    const times = calls === 0 ? undefined : this.#times.get(keyOf(tokens))
    const index = times?.findIndex((one) => at === 0 || Math.abs(one - at) <= APART_MS) ?? -1
    if (index < 0) return false
    times?.splice(index, 1)
    return true
  }

  /** The ID of a session under which the gateway has noted it; its own if the gateway does not know it. */
  nameOf(session: string): string {
    return this.#sessions.get(session) ?? session
  }
}

function keyOf({ input, cacheRead, cacheWrite }: Charge['tokens']): string {
  return `${input} ${cacheRead} ${cacheWrite}`
}
