/**
 * What must be true of each request, whatever the host did: it has the host's words in their order and no others, what stands
 * in place of a text brings back exactly that text, and it continues as the one before did unless something was rolled or changed.
 */
import type { Call, Step } from '../hosts/conversation.ts'
import { tokensIn } from './host.ts'

/** Faults that are known and not yet put right; each is removed here with its fault. */
const KNOWN: ReadonlySet<string> = new Set(['order'])

/** What an ID in a request brings back. */
export interface Recalled {
  content: string | null
  args?: unknown
}

/** A request, and what a check of it needs. */
export interface Sent {
  /** The conversation as the host has it. */
  steps: readonly Step[]
  /** The host's messages. */
  messages: readonly object[]
  /** What was sent instead of them. */
  sent: readonly object[]
  /** What was sent before; undefined if the host or a roll has changed that. */
  before: readonly object[] | undefined
  /** Returns what an ID in the request brings back, if that is asked for; undefined if nothing. */
  recall?(id: string): Promise<Recalled | undefined>
}

/** The IDs of references, headers, lines and marks. */
export const NAMED = /(?:(?<![\w])id=|\[collapsed #)([0-9a-f]{8,})(?![\w])/g

/** Returns what is wrong with a request; undefined if nothing is. */
export async function fault({ steps, messages, sent, before, recall }: Sent): Promise<string | undefined> {
  const [own, found] = [tokensIn(messages), tokensIn(sent)]
  const places = new Map(own.map((token, at) => [token, at]))
  let last = -1
  for (const token of found) {
    const at = places.get(token)
    if (at === undefined) return `it has ${token}, which the host does not have`
    if (at <= last && !KNOWN.has('order')) return `${token} is in the wrong place, or there twice`
    last = at
  }
  if (before !== undefined) {
    const at = before.findIndex((message, place) => JSON.stringify(message) !== JSON.stringify(sent[place]))
    if (at >= 0) return `message ${at} of ${before.length} has changed without a roll or an edit`
  }
  if (recall === undefined) return undefined
  const texts = new Set(steps.flatMap(said))
  const calls = steps.flatMap((step) => ('user' in step ? [] : step.calls))
  for (const [, id] of JSON.stringify(sent).matchAll(NAMED)) {
    const back = await recall(id as string)
    if (back === undefined) return `${id} brings back nothing`
    if (back.args === undefined ? texts.has(back.content ?? '') : calls.some((call) => isCall(call, back))) continue
    const alike = calls.find(({ output }) => output === back.content)
    return `${id} brings back what the host does not have: ${JSON.stringify(back).slice(0, 200)}; it has ${JSON.stringify(alike?.args).slice(0, 200)}`
  }
  return undefined
}

/** The texts of a step, each of which may be named by an ID. */
function said(step: Step): string[] {
  return 'user' in step ? [step.user] : [step.text ?? '', ...step.calls.map(({ output }) => output)]
}

function isCall({ args, output }: Call, back: Recalled): boolean {
  return back.content === output && sorted(args) === sorted(back.args)
}

function sorted(value: unknown): string {
  return JSON.stringify(Object.entries(value as object).sort(([one], [other]) => (one < other ? -1 : 1)))
}
