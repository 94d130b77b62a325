/** The calls of one conversation, and their results on the way into the record. */
import type { ContextManager, Toolcall } from '../../index.js'
import { forgetBirth, wasBorn } from './calls.ts'
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
