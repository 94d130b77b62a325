/** The contents of a conversation's window: read from what the host wrote last, and from what went out for it. */
import { requestChanges, shortName, subject } from '../../ui/index.ts'
import type { EngineMessage } from '../../core/index.ts'
import { resultText } from '../../core/index.ts'
import { isReference } from '../../lines/index.ts'
import type { Held, RequestChanges } from '../../ui/index.ts'
import type { Conversation } from '../conversation.ts'
import { heldIn } from '../held.ts'
import { hostShape, newFacts } from '../shape.ts'
import type { CallFacts } from '../shape.ts'

/** A part of the window. Tokens are estimated: characters / 4. */
export interface PromptShare {
  name: string
  tokens: number
}

/** The part of an output that the model sees; `line`: its whole call is one line of a list, or was removed. */
export type ShownForm = 'full' | 'excerpt' | 'reference' | 'line'

/** A tool output of a conversation. */
export interface ShownOutput {
  /** The ID in the store. */
  object: string
  /** The short name that the model and all commands take. */
  id: string
  tool: string
  /** Its file, command or search, on one line. */
  name: string
  form: ShownForm
  /** Tokens in the window now, and of the whole output. */
  tokens: number
  whole: number
  isPinned: boolean
  /** True if it stays by itself for now. */
  isActive: boolean
  isFailed: boolean
}

/** The content that a conversation sends. */
export interface Look {
  shares: PromptShare[]
  /** The newest first. */
  outputs: ShownOutput[]
  contextTokens: number
  /** The model's window in tokens; 0 if unknown. */
  contextWindow: number
  /** The text that could leave and has not, with the reason; undefined if none could. */
  held: Held | undefined
  /** The last request beside the host's own messages. */
  changes: RequestChanges
}

/** Looks at a conversation as of its last request. */
export async function lookAt(conversation: Conversation): Promise<Look> {
  const { raw, sent } = conversation.last
  const facts = newFacts()
  const own = partsOf(conversation, raw, facts)
  const shown = partsOf(conversation, sent, newFacts())
  const sums = new Map<string, number>([['system prompt and tools', conversation.request?.systemTokens ?? 0]])
  for (const part of shown) for (const [name, tokens] of sizesOf(part)) sums.set(name, (sums.get(name) ?? 0) + tokens)
  const shares = [...sums].map(([name, tokens]) => ({ name, tokens: Math.round(tokens) })).filter(({ tokens }) => tokens > 0)
  const contextTokens = shares.reduce((sum, { tokens }) => sum + tokens, 0)
  const outputs = await outputsOf(conversation, own, shown, facts)
  const held = await heldIn(conversation)
  return {
    shares: shares.toSorted((one, other) => other.tokens - one.tokens),
    outputs,
    contextTokens,
    contextWindow: conversation.contextWindow,
    held,
    changes: requestChanges(own, shown),
  }
}

/** Returns what the model sees of an output now; undefined if it is not there. */
export function shownText(conversation: Conversation, object: string): string | undefined {
  const parts = partsOf(conversation, conversation.last.sent, newFacts())
  const part = parts.findLast((message) => isResult(message) && [message.toolCallId, `toolcall:${message.toolCallId}`].includes(object))
  return part === undefined ? undefined : resultText(part)
}

async function outputsOf(
  conversation: Conversation,
  own: readonly EngineMessage[],
  shown: readonly EngineMessage[],
  { calls }: CallFacts,
): Promise<ShownOutput[]> {
  if (own.length === 0 || !conversation.isOpen) return []
  const { manager } = await conversation.session()
  const { sessionIndex, activeSet, pinnedSet } = await manager.sessionSets()
  const [index, active, pinned] = [new Set(sessionIndex), new Set(activeSet), new Set(pinnedSet)]
  const now = new Map(shown.filter(isResult).map((message) => [message.toolCallId ?? '', resultText(message)]))
  const outputs: ShownOutput[] = []
  for (const message of own.filter(isResult)) {
    const { toolCallId = '' } = message
    const object = [toolCallId, `toolcall:${toolCallId}`].find((id) => index.has(id))
    const call = calls.get(toolCallId)
    if (object === undefined || call === undefined) continue
    const [text, whole] = [now.get(toolCallId), resultText(message)]
    const form = formOf(text, whole)
    const name = subject(call.args) || call.tool
    const state = { isPinned: pinned.has(object), isActive: active.has(object), isFailed: message.isError === true }
    outputs.push({
      object,
      id: shortName(object),
      tool: call.tool,
      name,
      form,
      tokens: Math.round((text ?? '').length / 4),
      whole: Math.round(whole.length / 4),
      ...state,
    })
  }
  return outputs.reverse()
}

function formOf(text: string | undefined, whole: string): ShownForm {
  if (text === undefined) return 'line'
  if (text === whole) return 'full'
  return isReference(text) ? 'reference' : 'excerpt'
}

function isResult({ role }: EngineMessage): boolean {
  return role === 'toolResult'
}

function sizesOf(message: EngineMessage): [name: string, tokens: number][] {
  const { role, content } = message
  if (isResult(message)) {
    const text = resultText(message)
    return [[isReference(text) ? 'references' : 'tool outputs', text.length / 4]]
  }
  if (typeof content === 'string') return [['messages', content.length / 4]]
  return content.map((block): [string, number] => {
    if ('thinking' in block) return ['reasoning', block.thinking.length / 4]
    if (block.type === 'toolCall' && 'arguments' in block) return ['tool calls', (block.name.length + JSON.stringify(block.arguments).length) / 4]
    return [role === 'assistant' ? 'answers' : 'messages', 'text' in block ? block.text.length / 4 : 0]
  })
}

function partsOf({ api }: Conversation, messages: readonly object[], facts: CallFacts): EngineMessage[] {
  const shape = hostShape(api, facts)
  const all: EngineMessage[] = []
  for (let at = 0; at < messages.length;) {
    const { size, parts } = shape.read(messages, at)
    at += size
    all.push(...parts)
  }
  return all
}
