/**
 * A request of a session whose host keeps its messages elsewhere, as behind the gateway: rebuilt from the session's record, which
 * has the messages, the outputs, and all that had left them by then.
 */
import type { ContextManager } from '../session/index.ts'
import type { Edit, IncomingMessage, ModelCall, ObjectDocument, Version } from '../../index.js'
import { callsOf, editedContent } from '../projection/index.ts'
import type { ComparedMessage } from '../ui/index.ts'

/** The messages as the host wrote them, and as the model got them. */
export interface RebuiltRequest {
  written: ComparedMessage[]
  sent: ComparedMessage[]
}

/** A turn of the record, as far as it is read here. */
interface Turn {
  user?: unknown
  assistant?: { content?: unknown }[]
  toolcall_ids?: string[]
  rolls?: { said?: { lines?: unknown } }[]
}

/** The circumstances under which nothing leaves that has not left before. */
const NO_ROLL: ModelCall = {
  ...{ model: '', prices: { input: 0, cacheRead: 0, cacheWrite: 0 }, contextWindow: 0, cacheTtlMs: 300_000, nowMs: 0, systemTokens: 0 },
  ...{ onlyAtUserTurn: false, atUserTurn: true, rolls: false, repeats: true, shortens: true },
}

/** The request of a call, and its number. */
export interface NumberedRequest {
  /** The calls of the session. */
  calls: number
  /** Its number, counted from 0. */
  call: number
  /** Undefined for a number that the session does not have. */
  request: RebuiltRequest | undefined
}

/**
 * Rebuilds the request of a call, counted from 0; a negative number counts from the end. A request that was repeated before its answer
 * came is one call, in its last form. The session is changed by that: give a copy of it.
 */
export async function recordedRequest(manager: ContextManager, number: number): Promise<NumberedRequest> {
  const chats = requestsIn(await manager.history(`chat:${manager.sessionId}`))
  const call = number < 0 ? chats.length + number : number
  const chat = chats[call]
  if (chat === undefined) return { calls: chats.length, call, request: undefined }
  if (call < chats.length - 1) await goBack(manager, chat)
  return { calls: chats.length, call, request: await rebuilt(manager, turnsOf(chat)) }
}

/** The chat as each request left it: a request comes with the answer to the one before, and writes what it says in several versions. */
function requestsIn(versions: readonly Version[]): Version[] {
  const answers = (version: Version): number => turnsOf(version).reduce((sum, { assistant = [] }) => sum + assistant.length, 0)
  const said = versions.filter((version) => turnsOf(version).length > 0).map((version) => ({ version, count: answers(version) }))
  return said.filter(({ count }, at) => said[at + 1]?.count !== count).map(({ version }) => version)
}

function turnsOf({ document }: Version): Turn[] {
  return (document['turns'] ?? []) as Turn[]
}

/** Later than every transaction of a store, so that the times decide: a copy has written its objects one after the other. */
const ANY_TRANSACTION = Number.MAX_SAFE_INTEGER

async function goBack(manager: ContextManager, chat: Version): Promise<void> {
  const sessions = await manager.history(`session:${manager.sessionId}`)
  const session = sessions.findLast(({ validTime }) => validTime <= chat.validTime) ?? sessions[0]
  await manager.restore(manager.sessionId, ANY_TRANSACTION, [session?.validTime ?? chat.validTime, chat.validTime])
}

async function rebuilt(manager: ContextManager, turns: readonly Turn[]): Promise<RebuiltRequest> {
  const outputs = await outputsOf(manager, turns)
  const messages: IncomingMessage[] = []
  const notices = new Map<number, string>()
  const add = (message: ComparedMessage): void => void messages.push({ key: `${messages.length}`, message })
  for (const { user, assistant = [], rolls = [] } of turns) {
    if (user !== null && user !== undefined) add({ role: 'user', content: user as string })
    for (const { content } of assistant) {
      add({ role: 'assistant', content: (content ?? '') as string })
      for (const output of callIds(content).flatMap((id) => outputs.get(id) ?? [])) add(output)
    }
    const lines = rolls.flatMap(({ said }) => (Array.isArray(said?.lines) ? said.lines.map(String) : []))
    if (lines.length > 0) notices.set(messages.length, lines.join('\n'))
  }
  await manager.resync(messages, messages.length, NO_ROLL)
  const { edits } = await manager.advance([], NO_ROLL)
  const written = messages.map(({ message }) => message as ComparedMessage)
  return { written, sent: sentFor(written, edits, notices) }
}

/** The outputs by the IDs of their calls, as messages. */
async function outputsOf(manager: ContextManager, turns: readonly Turn[]): Promise<Map<string, ComparedMessage>> {
  const outputs = new Map<string, ComparedMessage>()
  for (const id of turns.flatMap((turn) => turn.toolcall_ids ?? [])) {
    const document: ObjectDocument | null = await manager.get(id)
    if (document === null) continue
    const text = typeof document.content === 'string' ? document.content : ''
    for (const toolCallId of callsOf(id)) {
      const message = {
        role: 'toolResult',
        toolCallId,
        toolName: String(document['tool'] ?? ''),
        content: [{ type: 'text', text }],
        isError: document['status'] === 'fail',
      }
      outputs.set(toolCallId, message)
    }
  }
  return outputs
}

function callIds(content: unknown): string[] {
  if (!Array.isArray(content)) return []
  return (content as { type?: unknown; id?: unknown }[]).flatMap(({ type, id }) => (type === 'toolCall' && typeof id === 'string' ? [id] : []))
}

/** The messages with the edits. `notices`: what the model was told before the message at a place, by that place. */
function sentFor(written: readonly ComparedMessage[], edits: readonly Edit[], notices: ReadonlyMap<number, string>): ComparedMessage[] {
  const now = new Map<string, ComparedMessage | null>()
  for (const edit of edits) {
    const message = now.get(edit.key) ?? written[Number(edit.key)]
    const content = message === undefined ? undefined : editedContent(edit, message)
    if (message !== undefined && content !== undefined) now.set(edit.key, content === null ? null : { ...message, content: content as string })
  }
  const sent: ComparedMessage[] = []
  for (const [at, message] of [...written, undefined].entries()) {
    const notice = notices.get(at)
    if (notice !== undefined) sent.push({ role: 'user', content: notice })
    const edited = now.get(`${at}`)
    const shown = edited === undefined ? message : edited
    if (shown !== undefined && shown !== null) sent.push(shown)
  }
  return sent
}
