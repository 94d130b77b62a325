/** A shape whose calls the engine gets under its own names, whatever the host calls its tools and their arguments. */
import { engineCall, hostArguments } from '../host-tools.ts'
import type { EngineCall } from '../host-tools.ts'
import { isEqual } from './identity.ts'
import type { Block, EngineMessage, Fields, ToolCallBlock } from './message.ts'
import type { PartEdit, Shape } from './shape.ts'

/** What the engine knows of a call. `id` is the call's. */
type Translate = (name: string, args: Fields, id: string) => EngineCall

/** The shape with the engine's names. What is edited goes back under the host's. */
export function translated(base: Shape, translate: Translate = engineCall): Shape {
  return {
    ...base,
    read(messages, at) {
      const { size, parts } = base.read(messages, at)
      return { size, parts: parts.map((part) => underEngineNames(part, translate)) }
    },
    write(messages, edits) {
      const { parts } = base.read(messages, 0)
      return base.write(messages, new Map([...edits].map(([number, edit]) => [number, underHostNames(edit, parts[number], translate)])))
    },
  }
}

function underEngineNames(message: EngineMessage, translate: Translate): EngineMessage {
  const { role, content, toolName = '' } = message
  if (role === 'toolResult') return toolName === '' ? message : { ...message, toolName: engineCall(toolName, {}).tool }
  if (role !== 'assistant' || typeof content === 'string') return message
  return { ...message, content: content.map((block) => (isCall(block) ? translatedBlock(block, translate) : block)) }
}

function translatedBlock(block: ToolCallBlock, translate: Translate): Block {
  const { tool, args } = translate(block.name, block.arguments as Fields, block.id)
  return tool === block.name && isEqual(args, block.arguments) ? block : { ...block, name: tool, engineArguments: args }
}

/** Translates the arguments of an edit's calls back. `part` is what the base shape reads, with the host's names. */
function underHostNames(edit: PartEdit, part: EngineMessage | undefined, translate: Translate): PartEdit {
  if (edit.kind !== 'message' || edit.calls.length === 0 || part === undefined || typeof part.content === 'string') return edit
  const calls = part.content.filter(isCall)
  return {
    ...edit,
    calls: edit.calls.map((one) => {
      const own = calls[one.position]
      return own === undefined || translatedBlock(own, translate) === own ? one : { ...one, args: hostArguments(own.name, own.arguments as Fields, one.args as Fields) }
    }),
  }
}

function isCall(block: Block): block is ToolCallBlock {
  return block.type === 'toolCall' && 'name' in block
}
