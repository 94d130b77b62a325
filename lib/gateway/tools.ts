/** The tools of the MCP server: they find the conversation that a call comes from, and ask its session. */
import { recallTexts } from '../projection/index.ts'
import type { RecallInput } from '../projection/index.ts'
import type { Conversation } from './conversation.ts'
import type { Conversations } from './conversations.ts'
import type { ToolCall, Tools } from './mcp.ts'

/** The number of remembered calls. */
const MOST_CALLS = 1_000

/** The most hits of a search. */
const MOST_HITS = 20

/** Our tools, for all conversations of a gateway. */
export class GatewayTools implements Tools {
  readonly #conversations: Conversations
  /** The conversation that made a call, by the ID of the call. Answers name the ID while they stream by. */
  readonly #callers = new Map<string, Conversation>()
  #isConnected = false

  constructor(conversations: Conversations) {
    this.#conversations = conversations
  }

  /** True once a host has asked for our tools, or called one. */
  get isConnected(): boolean {
    return this.#isConnected
  }

  listed(): void {
    this.#isConnected = true
  }

  /** An answer to a conversation calls one of our tools. */
  note(callId: string, conversation: Conversation): void {
    this.#callers.set(callId, conversation)
    if (this.#callers.size > MOST_CALLS) this.#callers.delete(this.#callers.keys().next().value as string)
  }

  async recall(input: RecallInput, call: ToolCall): Promise<string[]> {
    this.#isConnected = true
    if (typeof input.id !== 'string' || input.id === '') return ['pass the id of an output, as shown in its toolcall_ref line']
    const asked = this.#askers(call)
    for (const [one, first] of asked) {
      const text = await one.recall(input, one === first ? undefined : first)
      if (text !== undefined) return text
    }
    const [first] = asked.keys()
    if (first === undefined) return ['no conversation has gone through the gateway yet']
    for (const one of this.#conversations.othersLike(first)) {
      const text = await one.recall(input)
      if (text !== undefined) return text
      await one.close()
    }
    const { manager } = await first.session()
    return recallTexts(manager, input)
  }

  async search(query: string, call: ToolCall): Promise<string> {
    this.#isConnected = true
    if (query.trim() === '') return 'pass the words to look for'
    const found: string[] = []
    for (const one of this.#askers(call).keys()) {
      const { manager, projection } = await one.session()
      for (const hit of await manager.search(query, { limit: MOST_HITS, sessionId: manager.sessionId })) {
        if (await projection.permits(hit.id)) found.push(hit.shown)
      }
      if (found.length > 0) break
    }
    return found.length === 0 ? 'no match' : found.slice(0, MOST_HITS).join('\n')
  }

  /**
   * The conversations that may answer, the most likely one first: the caller and those that it continues. If the host
   * does not say who is calling, all of them in this way, the latest used first. Each has the first of those that continue it.
   */
  #askers({ callId, session }: ToolCall): Map<Conversation, Conversation> {
    const { asked: all } = this.#conversations
    const caller =
      (callId === undefined ? undefined : this.#callers.get(callId)) ?? (session === undefined ? undefined : all.findLast(({ id }) => named(id, session)))
    const line = new Map<Conversation, Conversation>()
    for (const first of caller === undefined ? all.toReversed() : [caller]) {
      for (let one: Conversation | undefined = first; one !== undefined && !line.has(one); one = one.continues ? one.before : undefined) line.set(one, first)
    }
    return line
  }
}

/** True if a session's ID is that of a host's session, or of a later conversation in it. */
function named(id: string, session: string): boolean {
  const own = id.slice(id.indexOf(':') + 1)
  return own === session || own.startsWith(`${session}~`)
}
