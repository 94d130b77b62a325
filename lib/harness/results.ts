/**
 * The calls of one conversation: their IDs there and in the record, which of them the harness recorded itself, and their results on
 * the way into the record.
 */
import type { ContextManager, Toolcall } from '../../index.js'
import { isTranslated, resultText } from './message.ts'
import type { EngineMessage, ToolCallBlock } from './message.ts'
import { isCopy } from './reasoning.ts'

export class Results {
  readonly #manager: ContextManager
  /** The latest call by ID. */
  readonly #calls = new Map<string, ToolCallBlock>()
  /** Results that the harness truncated after recording them in full: call ID and text. */
  readonly #cut = new Set<string>()

  constructor(manager: ContextManager) {
    this.#manager = manager
  }

  /** Adds the tool's name to a result, and the model's to an answer, if only the call or the host's options have it. */
  named(message: EngineMessage, model: string): EngineMessage {
    const { role, content, toolCallId = '', toolName = '' } = message
    if (role === 'assistant' && typeof content !== 'string') {
      for (const block of content ?? []) if (block.type === 'toolCall' && 'id' in block) this.#calls.set(block.id, block as ToolCallBlock)
    }
    if (message.api === 'anthropic-messages' && message['model'] === undefined) {
      // Kimi and others in Anthropic's format want more back than Claude does.
      return isCopy(model) ? { ...message, model } : message
    }
    const name = role === 'toolResult' && toolName === '' ? this.#calls.get(toolCallId)?.name : undefined
    return name === undefined ? message : { ...message, toolName: name }
  }

  /** Returns whether the engine gets a result, or the arguments of its call, in another form than the record. */
  isTranslated({ role, toolCallId = '', lines }: EngineMessage): boolean {
    if (role !== 'toolResult' || wasBorn(this.#manager, toolCallId)) return false
    const call = this.#calls.get(toolCallId)
    return lines !== undefined || (call !== undefined && isTranslated(call))
  }

  /** Records a result that its host has not recorded. */
  async receive(message: EngineMessage): Promise<void> {
    await this.#manager.receive(this.#toolcall(message))
    forgetBirth(this.#manager, message.toolCallId ?? '')
  }

  /** Records a result that its host has reworded, as an object of its own. */
  async record(message: EngineMessage): Promise<void> {
    await this.#manager.recordToolcall(this.#toolcall(message))
    forgetBirth(this.#manager, message.toolCallId ?? '')
  }

  /** Notes what is left of a result that the harness recorded itself: it may be shorter in the conversation than in the record. */
  noteCut(message: EngineMessage): void {
    const { role, toolCallId = '' } = message
    if (role !== 'toolResult' || !wasBorn(this.#manager, toolCallId)) return
    this.#cut.add(`${toolCallId} ${resultText(message)}`)
    forgetBirth(this.#manager, toolCallId)
  }

  /** Returns whether a text is what the harness has left of a call's result. */
  isCut(callId: string, text: string): boolean {
    return this.#cut.has(`${callId} ${text}`)
  }

  #toolcall(message: EngineMessage): Toolcall {
    const { toolCallId = '', toolName = '', isError } = message
    return {
      id: toolCallId,
      tool: toolName === '' ? 'unknown' : toolName,
      args: this.#calls.get(toolCallId)?.arguments ?? {},
      content: resultText(message),
      status: isError === true ? 'fail' : 'ok',
    }
  }
}

/**
 * The calls that the harness recorded before passing on their results. Such a result may be shorter in the conversation than in
 * the record, because the harness truncated it after recording all of it.
 */
const born = new WeakMap<object, Set<string>>()

/** Notes that the harness called `receive` or `recordToolcall` for a call. */
export function noteBirth(manager: object, callId: unknown): void {
  if (typeof callId !== 'string') return
  const calls = born.get(manager)
  if (calls === undefined) born.set(manager, new Set([callId]))
  else calls.add(callId)
}

/** Returns whether the harness recorded a call itself. */
export function wasBorn(manager: object, callId: string): boolean {
  return born.get(manager)?.has(callId) ?? false
}

/** From now on, the conversation decides what the call's result is. */
export function forgetBirth(manager: object, callId: string): void {
  born.get(manager)?.delete(callId)
}

/** The suffix of an object whose call ID was already in use: a digest. */
export const MARK = /~[0-9a-f]{16}$/

/** The call IDs that an object's call may have in a conversation. */
export function callsOf(id: string): string[] {
  const plain = id.startsWith('toolcall:') ? [id, id.slice('toolcall:'.length)] : [id]
  return [...new Set(plain.flatMap((one) => [one, one.replace(MARK, '')]))]
}
