/**
 * The truths about each request, whatever the host did: it has the host's words in their order and no others, the IDs that it names
 * restore its omitted text exactly, and it continues the previous request unless something was rolled or changed.
 */
import type { Call, Step } from '../hosts/conversation.ts'
import { tokensIn } from './host.ts'

/** The text that an ID in a request restores. */
export interface Recalled {
  content: string | null
  args?: unknown
}

/** Returns the text that an ID in a request restores; undefined if there is none. */
export type Recall = (id: string) => Promise<Recalled | undefined>

/** A request, and what a check of it needs. */
export interface Sent {
  /** The conversation as the host has it. */
  steps: readonly Step[]
  /** The host's messages. */
  messages: readonly object[]
  /** The messages sent instead of them. */
  sent: readonly object[]
  /** The messages sent before; undefined if the host or a roll has changed that. */
  before: readonly object[] | undefined
  /** Undefined: the check does not restore anything. */
  recall: Recall | undefined
  /**
   * The IDs of all requests before: some lines leave when they are old, and their IDs still restore their text. Gets those of this
   * one.
   */
  named: Set<string>
}

/** The IDs of references, headers, lines and marks. */
const NAMED = /(?:(?<![\w])id=|\[collapsed #)([0-9a-f]{8,})(?![\w])/g

/** Returns the fault of a request; undefined if there is none. */
export async function fault({ steps, messages, sent, before, recall, named }: Sent): Promise<string | undefined> {
  const texts = sent.map((message) => JSON.stringify(message))
  const [own, found] = [tokensIn(messages), tokensIn(sent)]
  const known = new Set(own)
  let next = 0
  for (const token of found) {
    if (!known.has(token)) return `it has ${token}, which the host does not have`
    next = own.indexOf(token, next) + 1
    if (next === 0) return `${token} is in the wrong place, or there more often than the host has it`
  }
  if (before !== undefined) {
    const at = before.findIndex((message, place) => JSON.stringify(message) !== texts[place])
    if (at >= 0) return `message ${at} of ${before.length} has changed without a roll or an edit`
  }
  const ids = namedIn(texts)
  const earlier = [...named].filter((id) => !ids.has(id))
  ids.forEach((id) => named.add(id))
  if (recall === undefined) return undefined
  const left = new Set(own)
  found.forEach((token) => left.delete(token))
  for (const id of ids) {
    const back = await recall(id)
    if (back === undefined) return `${id} brings back nothing`
    if (!isOf(steps, back)) return `${id} brings back what the host does not have: ${JSON.stringify(back).slice(0, 200)}`
    for (const token of tokensIn(back)) left.delete(token)
  }
  for (const id of left.size === 0 ? [] : earlier) {
    const back = await recall(id)
    // Text that the host has removed or changed can't be restored.
    if (back !== undefined) for (const token of tokensIn(back)) left.delete(token)
  }
  const [lost] = left
  return lost === undefined ? undefined : `${lost} is missing, and no ID brings it back`
}

/** The IDs that the texts of messages name. */
function namedIn(texts: readonly string[]): Set<string> {
  return new Set(texts.flatMap((text) => [...text.matchAll(NAMED)].map(([, id]) => id as string)))
}

/** True if the restored text is that of a step: the text of a user or the model, or a call with its result. */
function isOf(steps: readonly Step[], back: Recalled): boolean {
  if (back.args === undefined) return steps.some((step) => said(step).includes(back.content ?? ''))
  return steps.some((step) => !('user' in step) && step.calls.some((call) => isCall(call, back)))
}

/** The texts of a step. Each may be named by an ID. */
function said(step: Step): string[] {
  return 'user' in step ? [step.user] : [step.text ?? '', ...step.calls.map(({ output }) => output)]
}

function isCall({ args, output }: Call, back: Recalled): boolean {
  return back.content === output && sorted(args) === sorted(back.args)
}

function sorted(value: unknown): string {
  return JSON.stringify(Object.entries(value as object).sort(([one], [other]) => (one < other ? -1 : 1)))
}
