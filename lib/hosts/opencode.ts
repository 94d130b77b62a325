/**
 * OpenCode (1.18): a plugin. OpenCode hands over all messages of a session before each model call, and takes them back
 * changed in place.
 *
 * @module
 */
import type { EngineMessage, Fields } from '../harness/message.ts'
import { isFields, textOf } from '../harness/message.ts'
import { RECALL, RECALL_DESCRIPTION } from '../harness/recall.ts'
import type { RecallInput } from '../harness/recall.ts'
import { argumentsBy, shortened } from '../harness/shape.ts'
import type { PartEdit, Shape } from '../harness/shape.ts'
import { HostContext } from './context.ts'
import type { HostOptions } from './context.ts'

/** What OpenCode sends in place of an output that it has cleared by itself. */
const CLEARED = '[Old tool result content cleared]'

interface HostMessage {
  info: { id: string; role: 'user' | 'assistant'; sessionID: string; agent?: string; tools?: Fields; time?: { created?: number } }
  parts: Fields[]
}

/** What a plugin of OpenCode is given, as far as this one asks. */
interface Given {
  directory: string
  client?: { session: { get(request: { path: { id: string } }): Promise<{ data?: { parentID?: string } }> } }
}

/** What a plugin of OpenCode gives, as far as this one does. */
interface Hooks {
  dispose(): Promise<void>
  config(config: Fields): Promise<void>
  tool: Record<string, { description: string; args: Record<string, unknown>; execute(input: never, context: { sessionID: string }): Promise<string> }>
  'experimental.chat.messages.transform'(input: object, output: { messages: object[] }): Promise<void>
  'experimental.session.compacting'(input: { sessionID: string }): Promise<void>
  'chat.params'(input: { sessionID: string; model: Fields }): Promise<void>
}

/** The plugin. Options in OpenCode's configuration are those of {@link HostOptions} but `sessionId` and `cwd`. */
export async function ContextManagerPlugin({ directory, client }: Given, options: Fields = {}): Promise<Hooks> {
  const contexts = new Map<string, Promise<HostContext>>()
  const models = new Map<string, Fields>()
  /** Sessions whose next list is that of a compaction: what is summarized is not the conversation. */
  const compacting = new Set<string>()
  let settings: Fields = {}
  const contextOf = (sessionID: string): Promise<HostContext> => {
    let context = contexts.get(sessionID)
    if (context === undefined) contexts.set(sessionID, (context = opened(sessionID)))
    return context
  }
  const opened = async (sessionID: string): Promise<HostContext> => {
    const own: HostOptions = { ...options, sessionId: `opencode:${sessionID}`, cwd: directory, model: () => modelOf(models.get(sessionID)) }
    // A subagent is a session with a parent. Where OpenCode does not tell, it is one without.
    const told = await client?.session.get({ path: { id: sessionID } }).catch(() => undefined)
    const parentID = told?.data?.parentID
    return new HostContext(parentID === undefined ? own : { ...own, parent: await contextOf(parentID) }, opencode)
  }
  const { z } = await import('zod')
  return {
    async dispose() {
      for (const context of contexts.values()) await (await context).close()
    },
    async config(config) {
      settings = config
    },
    tool: {
      [RECALL]: {
        description: RECALL_DESCRIPTION,
        args: {
          id: z.string().describe('as first lines and toolcall_ref lines show it'),
          lines: z.string().optional().describe('e.g. "120-180"'),
          grep: z.string().optional().describe('regular expression'),
        },
        execute: async (given: RecallInput, { sessionID }) => (await contextOf(sessionID)).activate(given),
      },
    },
    async 'experimental.chat.messages.transform'(_, output) {
      const messages = output.messages as HostMessage[]
      const sessionID = messages.at(-1)?.info.sessionID
      if (sessionID === undefined || compacting.delete(sessionID)) return
      const asked = messages.findLast(({ info }) => info.role === 'user')?.info
      const sent = await (await contextOf(sessionID)).transform(messages, isAllowed(settings, asked))
      // OpenCode goes on with the array that it has given.
      if (sent !== messages) messages.splice(0, messages.length, ...sent)
    },
    async 'experimental.session.compacting'({ sessionID }) {
      compacting.add(sessionID)
    },
    async 'chat.params'({ sessionID, model }) {
      models.set(sessionID, model)
    },
  }
}

export default ContextManagerPlugin

/** Whether the model has the tool: nothing switches it off, neither for all agents nor for this one or this message. */
function isAllowed(settings: Fields, asked: HostMessage['info'] | undefined): boolean {
  const agents = isFields(settings['agent']) ? settings['agent'] : {}
  const agent = agents[asked?.agent ?? '']
  return [settings, isFields(agent) ? agent : {}, { tools: asked?.tools }].every(({ tools, permission }: Fields) => {
    const rule = isFields(permission) ? (permission[RECALL] ?? permission['*']) : permission
    return rule !== 'deny' && (!isFields(tools) || (tools[RECALL] ?? tools['*']) !== false)
  })
}

/** OpenCode's model, as the projection takes it. */
function modelOf(model: Fields | undefined): { name: string; contextWindow: number; input: number; cacheRead: number; cacheWrite: number; lookbackBlocks?: number } {
  const cost = isFields(model?.['cost']) ? model['cost'] : {}
  const cache = isFields(cost['cache']) ? cost['cache'] : {}
  const limit = isFields(model?.['limit']) ? model['limit'] : {}
  const number = (value: unknown): number => (typeof value === 'number' ? value : 0)
  const api = isFields(model?.['api']) ? textOf(model['api']['npm']) : ''
  return {
    name: `${textOf(model?.['providerID'])}/${textOf(model?.['id'])}`,
    contextWindow: number(limit['context']),
    input: number(cost['input']),
    cacheRead: number(cache['read']),
    cacheWrite: number(cache['write']),
    ...(api === '@ai-sdk/anthropic' ? { lookbackBlocks: 20 } : {}),
  }
}

/** A message with its parts; an answer holds its calls together with their results. */
export const opencode: Shape = {
  name: 'opencode',

  judge(message) {
    const { info, parts } = message as Partial<HostMessage>
    return isFields(info) && Array.isArray(parts) ? 'own' : undefined
  },

  read(messages, at) {
    const { info, parts } = messages[at] as HostMessage
    const timestamp = info.time?.created
    const time = timestamp === undefined ? {} : { timestamp }
    if (info.role === 'user') return { size: 1, parts: [{ role: 'user', content: parts.map(blockOf), ...time }] }
    const answer: EngineMessage = { role: 'assistant', content: parts.map(blockOf), ...apiOf(parts), ...time }
    return { size: 1, parts: [answer, ...parts.filter(isDone).map(result)] }
  },

  write([message], edits) {
    const { info, parts } = message as HostMessage
    const own = edits.get(0)
    if (own?.kind === 'gone') return []
    const args = argumentsBy(own)
    let [call, done] = [-1, 0]
    const shownParts = parts.map((part) => {
      if (part['type'] !== 'tool') return part
      call += 1
      const state = part['state'] as Fields
      const edit = isDone(part) ? edits.get((done += 1)) : undefined
      const input = args.get(call)
      if (edit?.kind !== 'result' && input === undefined) return part
      return { ...part, state: { ...state, ...(input === undefined ? {} : { input }), ...shown(state, edit) } }
    })
    return [{ info, parts: shortened(shownParts, own) }]
  },

  notice(text, timestamp) {
    const id = `msg_context_${timestamp}`
    const info = { id, role: 'user', sessionID: '', time: { created: timestamp } }
    return { info, parts: [{ id: `prt_context_${timestamp}`, messageID: id, sessionID: '', type: 'text', text, synthetic: true }] }
  },

  content(message) {
    const { info, parts } = message as HostMessage
    return { id: info.id, role: info.role, parts: parts.map((part) => (part['type'] === 'tool' ? said(part) : part)) }
  },
}

/** What of a call the model sees; its title and its times change while it runs. */
function said(part: Fields): Fields {
  const state = part['state'] as Fields
  return { type: 'tool', callID: part['callID'], tool: part['tool'], status: state['status'], input: state['input'], output: outputOf(state) }
}

function isDone(part: Fields): boolean {
  if (part['type'] !== 'tool') return false
  const { status } = part['state'] as Fields
  return status === 'completed' || status === 'error'
}

function outputOf(state: Fields): string {
  if (isFields(state['time']) && state['time']['compacted'] !== undefined) return CLEARED
  return textOf(state['status'] === 'error' ? state['error'] : state['output'])
}

function blockOf(part: Fields): { type: string; [field: string]: unknown } {
  switch (part['type']) {
    case 'text':
      return { type: 'text', text: part['ignored'] === true ? '' : textOf(part['text']) }
    case 'reasoning':
      return { type: 'thinking', thinking: textOf(part['text']), ...(isFields(part['metadata']) ? { thinkingSignature: 'signed' } : {}) }
    case 'file':
      return { type: 'image' }
    case 'tool': {
      const state = part['state'] as Fields
      const { metadata } = part
      const isSigned = isFields(metadata) && JSON.stringify(metadata).includes('thoughtSignature')
      const call = { type: 'toolCall', id: textOf(part['callID']), name: textOf(part['tool']), arguments: isFields(state['input']) ? state['input'] : {} }
      return isSigned ? { ...call, thoughtSignature: 'signed' } : call
    }
    default:
      return { type: String(part['type']) }
  }
}

/** The interface by which an answer's reasoning may leave or not; that of unsigned reasoning is the most careful one. */
function apiOf(parts: readonly Fields[]): { api?: string } {
  const reasoning = parts.filter(({ type }) => type === 'reasoning')
  if (reasoning.length === 0) return {}
  const signed = reasoning.flatMap(({ metadata }) => (isFields(metadata) ? [metadata] : []))
  if (signed.length === 0) return { api: 'openai-completions' }
  return { api: signed.every((one) => isFields(one['anthropic'])) ? 'anthropic-messages' : 'openai-responses' }
}

function result(part: Fields): EngineMessage {
  const state = part['state'] as Fields
  const files = Array.isArray(state['attachments']) ? state['attachments'] : []
  return {
    role: 'toolResult',
    toolCallId: textOf(part['callID']),
    toolName: textOf(part['tool']),
    content: [{ type: 'text', text: outputOf(state) }, ...files.map(() => ({ type: 'image' as const }))],
    isError: state['status'] === 'error',
  }
}

function shown(state: Fields, edit: PartEdit | undefined): Fields {
  if (edit?.kind !== 'result') return {}
  return state['status'] === 'error' ? { error: edit.text } : { output: edit.text }
}
