/** What is passed to the engine. */
import type { IncomingMessage } from '../../index.js'
import type { Block, EngineMessage, ToolCallBlock } from './message.ts'
import { recordable } from './message.ts'
import type { Part } from './unit.ts'

/** The fields of a message that the engine gets: all of an answer, because its usage is recorded; the content of others. */
export function handed(message: EngineMessage): EngineMessage {
  const { role, content, timestamp, toolCallId, toolName, isError, summary, command, output, lines } = message
  if (role === 'assistant') return typeof content === 'string' || !content.some(isTranslated) ? message : { ...message, content: content.map(call) }
  return defined({ role, content: lines ?? content, timestamp, toolCallId, toolName, isError, summary, command, output }) as EngineMessage
}

/** Returns whether a block is a call whose arguments the engine knows under other names. */
export function isTranslated(block: Block): block is ToolCallBlock & { engineArguments: object } {
  return block.type === 'toolCall' && 'engineArguments' in block
}

function call(block: Block): Block {
  if (!isTranslated(block)) return block
  const { engineArguments, ...rest } = block
  return { ...rest, arguments: engineArguments }
}

function defined(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}

/** A part of a message in the form that the engine takes. */
export function incoming({ key, message }: Part): IncomingMessage {
  return { key, message: recordable(handed(message)) }
}
