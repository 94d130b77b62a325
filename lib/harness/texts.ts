/** What the texts and blocks of a message are to the engine. */
import { createHash } from 'node:crypto'
import type { EngineMessage } from './message.ts'

/** Returns whether a message may be dropped: it has only what the engine can judge. */
export function mayLeave({ role, content }: EngineMessage): boolean {
  if (typeof content === 'string') return true
  return content.every(({ type }) => (role === 'assistant' ? LEAVING.has(type) : type === 'text'))
}

/** The texts of a prompt or an answer. */
export function textsOf({ role, content }: EngineMessage): string[] {
  if (role !== 'assistant' && role !== 'user') return []
  if (typeof content === 'string') return [content]
  return (content ?? []).flatMap((block) => ('text' in block ? [block.text] : 'thinking' in block ? [block.thinking] : []))
}

/** The engine's ID of a text: the beginning of its hash. */
export function saidId(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex').slice(0, SAID_DIGITS)
}

/** Blocks that may be dropped together with their answer; the provider does not need them for the rest. */
const LEAVING: ReadonlySet<string> = new Set(['text', 'thinking', 'toolCall', 'redacted_thinking', 'reasoning', 'step-start', 'step-finish', 'snapshot', 'patch'])

/** Hexadecimal digits of such an ID. */
const SAID_DIGITS = 11
