/** OpenCode's messages (1.18): an answer holds its calls together with their results. */
import type { EngineMessage, Fields } from '../harness/message.ts'
import { isFields, textOf } from '../harness/message.ts'
import { argumentsBy, shortened } from '../harness/shape.ts'
import type { PartEdit, Shape } from '../harness/shape.ts'

/** What OpenCode sends in place of an output that it has cleared by itself. */
const CLEARED = '[Old tool result content cleared]'

/** A message with its parts. */
export interface HostMessage {
  info: { id: string; role: 'user' | 'assistant'; sessionID: string; agent?: string; tools?: Fields; time?: { created?: number } }
  parts: Fields[]
}

/** The shape. */
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
