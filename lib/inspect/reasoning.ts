/**
 * The model's reasoning that was lost up to a call: what had left the request, and what the provider says it dropped from it.
 * Works on the branch of a session of Pi.
 */
import { isBindingRefusal, readReport, Withheld } from '../models/index.ts'
import type { Message } from '../recordings/index.ts'

/** The reasoning of a request, in blocks: one for each step in which the model thought. */
export interface ShownReasoning {
  /** Blocks in the request. */
  shown: number
  /** Blocks of the conversation that were no longer in the request. */
  left: number
  /** Estimated tokens of these. */
  leftTokens: number
  /** Those of them that the provider had refused, so that they stay out of every later request. */
  refused: number
  /** Blocks of the request that the provider says it dropped, because what stood before them had changed. */
  dropped: number
}

/** The reasoning that refusals on a branch keep out of its later requests. */
export function withheldOn(branch: readonly Message[]): Withheld {
  const withheld = new Withheld()
  for (const [index, message] of branch.entries()) if (isRefusal(message)) withheld.add(branch.slice(0, index).filter(({ role }) => role === 'assistant'))
  return withheld
}

/** Compares the reasoning of a conversation with that of a request for it, and with the report of the request's answer. */
export function reasoningOf(whole: readonly Message[], sent: readonly Message[], withheld: Withheld, answer: Message): ShownReasoning {
  const shown = sent.flatMap(thoughts).length
  const all = whole.flatMap(thoughts)
  const kept = new Set(sent.flatMap(thoughts).map(keyOf))
  const left = all.filter((block) => !kept.has(keyOf(block)))
  return {
    shown,
    left: left.length,
    leftTokens: Math.ceil(left.reduce((sum, { thinking = '' }) => sum + thinking.length, 0) / 4),
    refused: withheld.size,
    dropped: readReport(answer)?.dropped ?? 0,
  }
}

type Block = Exclude<NonNullable<Message['content']>, string>[number]

function thoughts({ role, content }: Message): Block[] {
  return role === 'assistant' && Array.isArray(content) ? content.filter(({ type }) => type === 'thinking') : []
}

function keyOf({ thinking = '', ...rest }: Block): string {
  const { thinkingSignature } = rest as { thinkingSignature?: string }
  return thinkingSignature ?? thinking
}

function isRefusal(message: Message): boolean {
  return message.role === 'assistant' && message.stopReason === 'error' && isBindingRefusal(message['errorMessage'])
}
