/** What crosses to the engine. */
import type { IncomingMessage } from '../../index.js'
import type { EngineMessage } from './message.ts'
import { recordable } from './message.ts'
import type { Part } from './table.ts'

/** What of a message crosses to the engine: an answer as a whole, because its usage is recorded; of others their content. */
export function handed(message: EngineMessage): EngineMessage {
  const { role, content, timestamp, toolCallId, toolName, isError, summary, command, output } = message
  if (role === 'assistant') return message
  return defined({ role, content, timestamp, toolCallId, toolName, isError, summary, command, output }) as EngineMessage
}

function defined(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}

/** A part of a message as the engine takes it. */
export function incoming({ key, message }: Part): IncomingMessage {
  return { key, message: recordable(handed(message)) }
}
