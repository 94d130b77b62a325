/** The calls that a gateway has noted: the agents' own files tell of the same calls, and each counts once. */
import type { Charge } from './charges.ts'
import { gatewayCharges } from './gateway.ts'

/** The longest time between the two notes of one call, in milliseconds: one is of its beginning, the other of its end. */
const APART_MS = 3_600_000

/** Calls as they were noted. */
export class NotedCalls {
  /** Calls, by the tokens of their prompts. */
  readonly #calls = new Map<string, Charge[]>()
  /** The sessions' IDs at the gateway, by those that their agents give them. */
  readonly #sessions = new Map<string, string>()

  /** Notes a call of the gateway's. */
  add(call: Charge): void {
    const { session, tokens, isUnbilled } = call
    this.#sessions.set(session.slice(session.indexOf(':') + 1), session)
    if (isUnbilled === true) return
    const key = keyOf(tokens)
    const calls = this.#calls.get(key)
    if (calls === undefined) this.#calls.set(key, [call])
    else calls.push(call)
  }

  /** The gateway's note of a call in an agent's file; undefined if it did not go through. Each is found once. */
  take({ calls = 1, tokens, at }: Tell): Charge | undefined {
    const noted = calls === 0 ? undefined : this.#calls.get(keyOf(tokens))
    const index = noted?.findIndex((one) => at === 0 || Math.abs(one.at - at) <= APART_MS) ?? -1
    return index < 0 ? undefined : noted?.splice(index, 1)[0]
  }

  /** The ID of a session under which the gateway has noted it; its own if the gateway does not know it. */
  nameOf(session: string): string {
    return this.#sessions.get(session) ?? session
  }
}

/** The calls in a gateway's file; none without one. */
export async function notedCalls(path: string | undefined): Promise<NotedCalls> {
  const noted = new NotedCalls()
  if (path !== undefined) for await (const call of gatewayCharges(path)) noted.add(call)
  return noted
}

/** The marks that tell a call from the others: the tokens of its prompt, and its time. */
interface Tell {
  /** 0 for a saving that comes without a call. Default 1. */
  calls?: number
  tokens: Pick<Charge['tokens'], 'input' | 'cacheRead' | 'cacheWrite'>
  /** Milliseconds since the epoch; 0 if unknown. */
  at: number
}

/** One figure has all that was not read: an agent's file may not tell which of it was written to the cache. */
function keyOf({ input, cacheRead, cacheWrite }: Tell['tokens']): string {
  return `${input + cacheWrite} ${cacheRead}`
}
