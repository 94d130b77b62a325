/** What crosses to the engine. */
import type { IncomingMessage } from '../../index.js'
import type { Block, EngineMessage, ToolCallBlock } from './message.ts'
import { recordable } from './message.ts'
import type { Part } from './table.ts'

/** What of a message crosses to the engine: an answer as a whole, because its usage is recorded; of others their content. */
export function handed(message: EngineMessage): EngineMessage {
  const { role, content, timestamp, toolCallId, toolName, isError, summary, command, output, lines } = message
  if (role === 'assistant') return typeof content === 'string' || !content.some(isTranslated) ? message : { ...message, content: content.map(call) }
  return defined({ role, content: lines ?? content, timestamp, toolCallId, toolName, isError, summary, command, output }) as EngineMessage
}

/** Whether a block is a call in other words than the engine's. */
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

/** A part of a message as the engine takes it. */
export function incoming({ key, message }: Part): IncomingMessage {
  return { key, message: recordable(handed(message)) }
}
