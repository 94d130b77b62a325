/**
 * Tells a conversation in which its host has changed something early (a date, a reminder, outputs that it has cleared) from another
 * one that begins like it: what the model has answered since the change is still there.
 */
import { tracesOf } from './traces.ts'
import type { Traces } from './traces.ts'

/**
 * True if a request is a conversation with a change before its last answer. `common` messages are the same from
 * the start. Where most answers behind that are missing, the host has compacted the conversation, or it is another one. Where only the
 * last ones are, its user has gone back.
 */
export function isEditOf(before: Traces, now: Traces, common: number): boolean {
  if ((now.length - 1) * 2 < before.length - 1) return false
  const [known, own] = [answersIn(before, common), answersIn(now, common)]
  const last = known.at(-1)
  if (last === undefined) return isSamePrompt(before, now) && own.length > 0
  const left = new Map<string, number>()
  for (const answer of own) left.set(answer, (left.get(answer) ?? 0) + 1)
  let found = 0
  for (const answer of known) {
    const count = left.get(answer) ?? 0
    if (count === 0) continue
    left.set(answer, count - 1)
    found += 1
  }
  return found * 2 >= known.length && (own.includes(last) || known.findIndex((answer, at) => answer !== own[at]) * 2 >= known.length)
}

/**
 * True if a request is a conversation whose host has changed only the messages after its last answer, as with a reminder that the next
 * request does not have there, and whose model has answered since. A question on the side has no further answer, and a request that
 * continues one is known by that question. `hasPrompt`: the `common` messages include a user's, so that no answer need be among them.
 */
export function isGoneOn(before: Traces, now: Traces, common: number, hasPrompt: boolean): boolean {
  const isSame = hasPrompt || tracesOf('a', before.slice(0, common + 1)).length > 0
  return isSame && answersIn(before, common).length === 0 && answersIn(now, common).length > 0
}

function answersIn(traces: Traces, from: number): string[] {
  return tracesOf('a', traces.slice(from + 1))
}

/** True if what users have said in the first request is in a later one, but for single lines: the time, a folder, a reminder. */
function isSamePrompt(before: Traces, now: Traces): boolean {
  const [lines, left] = [tracesOf('l', before), new Set(tracesOf('l', now))]
  return lines.length > 1 && 2 * lines.filter((line) => !left.has(line)).length < lines.length
}
