/**
 * The calls of one conversation: their IDs there and in the record, which of them the harness recorded itself, and their results on
 * the way into the record.
 */
import type { ContextManager, IncomingMessage, Toolcall } from '../../index.js'
import { callsIn, flattened, forgetBirth, incoming, isTranslated, resultText, wasBorn } from '../core/index.ts'
import { placeholderOf } from '../tools/index.ts'
import type { EngineMessage, ToolCallBlock } from '../core/index.ts'
import { isCopy } from './reasoning.ts'
import type { Match } from './table.ts'
import type { Part, Unit } from './unit.ts'

export class Results {
  readonly #manager: ContextManager
  /** The calls of the latest answers that have no result yet, by ID. Results take them in order. */
  readonly #waiting = new Map<string, ToolCallBlock[]>()
  /** The call that the latest result under an ID has taken. */
  readonly #answered = new Map<string, ToolCallBlock>()
  /** True after an answer: what comes next may be another part of it. */
  #isInAnswer = false
  /** The call of each result that was read. */
  readonly #callOf = new WeakMap<EngineMessage, ToolCallBlock>()
  /** Results that the harness truncated after recording them in full: call ID and text. */
  readonly #cut = new Set<string>()

  constructor(manager: ContextManager) {
    this.#manager = manager
  }

  /**
   * Adds the tool's name to a result, and the model's to an answer, if only the call or the host's options have it. Messages are
   * read in their order: providers repeat call IDs, also within an answer.
   */
  named(message: EngineMessage, model: string): EngineMessage {
    const { role, toolCallId = '', toolName = '' } = message
    // Calls of the last answer that are still without a result will never get one.
    if (role === 'assistant' && !this.#isInAnswer) this.#waiting.clear()
    this.#isInAnswer = role === 'assistant'
    if (role === 'assistant') this.#await(message)
    if (role === 'toolResult') {
      const call = this.#next(toolCallId)
      const result = call === undefined || toolName !== '' ? message : { ...message, toolName: call.name }
      if (call !== undefined) this.#callOf.set(result, call)
      return result
    }
    if (message.api === 'anthropic-messages' && message['model'] === undefined) {
      // Kimi and others in Anthropic's format want more back than Claude does.
      return isCopy(model) ? { ...message, model } : message
    }
    return message
  }

  /** The same for a message that was read before. False if its call now is of another tool, so that it has to be read again. */
  again(message: EngineMessage): boolean {
    const { role, toolCallId = '', toolName = '' } = message
    if (role === 'assistant' && !this.#isInAnswer) this.#waiting.clear()
    this.#isInAnswer = role === 'assistant'
    if (role === 'assistant') this.#await(message)
    if (role !== 'toolResult') return true
    const [before, call] = [this.#callOf.get(message), this.#next(toolCallId)]
    if (call === undefined) return before === undefined
    this.#callOf.set(message, call)
    return call.name === toolName || call.name === before?.name
  }

  /** The units read next follow these, which were read before. */
  goOnAfter(units: readonly Unit[]): void {
    const isAnswer = ({ parts }: Unit): boolean => parts.some(({ message }) => message.role === 'assistant')
    let from = units.findLastIndex(isAnswer)
    while (from > 0 && isAnswer(units[from - 1] as Unit)) from -= 1
    this.#waiting.clear()
    for (const { message } of units.slice(Math.max(from, 0)).flatMap(({ parts }) => parts)) {
      this.#isInAnswer = message.role === 'assistant'
      if (this.#isInAnswer) this.#await(message)
      else if (message.role === 'toolResult') this.#next(message.toolCallId ?? '')
    }
  }

  #await(answer: EngineMessage): void {
    for (const call of callsIn(answer)) this.#waiting.set(call.id, [...(this.#waiting.get(call.id) ?? []), call])
  }

  #next(callId: string): ToolCallBlock | undefined {
    const call = this.#waiting.get(callId)?.shift() ?? this.#answered.get(callId)
    if (call !== undefined) this.#answered.set(callId, call)
    return call
  }

  /** Returns the arguments of a result's call if it is one of these: the host may have changed them. */
  changed(calls: ReadonlySet<ToolCallBlock>): (message: EngineMessage) => object | undefined {
    return (message) => {
      const call = this.#callOf.get(message)
      return call !== undefined && calls.has(call) ? call.arguments : undefined
    }
  }

  /** The arguments that the calls of results have in the conversation; undefined for one whose call is not there. */
  argumentsOf(results: readonly EngineMessage[]): (object | undefined)[] {
    return results.map((message) => this.#callOf.get(message)?.arguments)
  }

  /** A result that was read before has been read again behind another call: the host has changed the answer. */
  takeOver(message: EngineMessage, again: EngineMessage): void {
    const call = this.#callOf.get(again)
    if (call !== undefined) this.#callOf.set(message, call)
  }

  /** A message in the form that the engine takes, with what it needs to find a result in the record. */
  incoming(part: Part, isUnsent: boolean): IncomingMessage {
    const { key, message } = incoming(part, isUnsent)
    const call = this.#callOf.get(part.message)
    if (call === undefined || !isTranslated(call)) return { key, message }
    return { key, message: { ...message, recordedArguments: flattened(call.arguments) } }
  }

  /** True if the engine gets a result, or the arguments of its call, in another form than the record. */
  isTranslated(message: EngineMessage): boolean {
    const { role, toolCallId = '', lines } = message
    if (role !== 'toolResult' || wasBorn(this.#manager, toolCallId)) return false
    // A host's text in place of an output is not recorded.
    if (placeholderOf(resultText(message)) !== undefined) return false
    const call = this.#callOf.get(message)
    return lines !== undefined || (call !== undefined && isTranslated(call))
  }

  /** Records a result that its host has not recorded. */
  async receive(message: EngineMessage): Promise<void> {
    await this.#manager.receive(this.#toolcall(message))
    forgetBirth(this.#manager, message.toolCallId ?? '')
  }

  /** Records a result that its host has reworded, as a separate object. */
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

  /** True if a text is what the harness has left of a call's result. */
  isCut(callId: string, text: string): boolean {
    return this.#cut.has(`${callId} ${text}`)
  }

  #toolcall(message: EngineMessage): Toolcall {
    const { toolCallId = '', toolName = '', isError } = message
    return {
      id: toolCallId,
      tool: toolName === '' ? 'unknown' : toolName,
      args: this.#callOf.get(message)?.arguments ?? {},
      content: resultText(message),
      status: isError === true ? 'fail' : 'ok',
    }
  }
}

/** True if parts have calls and results with the same IDs. Some shapes name what has no ID by what it says. */
export function hasSameCalls(one: readonly Part[], other: readonly { message: EngineMessage }[]): boolean {
  return one.length === other.length && one.every(({ message }, at) => namesIn(message).join(' ') === namesIn((other[at] as Part).message).join(' '))
}

/** A match without its last unit if that has other calls now: an answer may be named by the results behind it, which have changed. */
export function withSameCalls(match: Match, units: readonly Unit[], messages: readonly object[]): Match {
  const last = units[match.units - 1]
  const at = last === undefined || last.isOurs ? -1 : messages.lastIndexOf(last.raw[0] as object, match.next - 1)
  if (last === undefined || at < 0) return match
  const whole = last.shape.read(messages, at)
  // The messages after the unit may now be read as a part of it.
  const { parts } = whole.size === last.raw.length ? whole : last.shape.read(messages.slice(at, at + last.raw.length), 0)
  const now = parts.map((message) => ({ message }))
  return hasSameCalls(last.parts, now) ? match : { units: match.units - 1, next: at }
}

function namesIn(message: EngineMessage): string[] {
  return [message.toolCallId ?? '', ...callsIn(message).map(({ id }) => id)]
}

/** The suffix of an object whose call ID was already in use: a digest. */
export const MARK = /~[0-9a-f]{16}$/

/** The call IDs that an object's call may have in a conversation. */
export function callsOf(id: string): string[] {
  const plain = id.startsWith('toolcall:') ? [id, id.slice('toolcall:'.length)] : [id]
  return [...new Set(plain.flatMap((one) => [one, one.replace(MARK, '')]))]
}
