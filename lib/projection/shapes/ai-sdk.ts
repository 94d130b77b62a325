/** The AI SDK's `ModelMessage`. Results are parts of a message with the role `tool`, several for parallel calls. */
import type { Block, EngineMessage, Fields } from '../../core/index.ts'
import { isFields, jsonText, textOf } from '../../core/index.ts'
import { argumentsBy, shortened, shortenedText } from '../shape.ts'
import { inOrderOf } from '../driver/edits.ts'
import type { PartEdit } from '../driver/edits.ts'
import type { Shape } from '../shape.ts'

const OWN: ReadonlySet<string> = new Set([
  ...['tool-call', 'tool-result', 'reasoning', 'reasoning-file', 'custom', 'tool-approval-request', 'tool-approval-response'],
])

/** Parts that a provider's package adds for its own use and does not send back. */
const NOT_SENT: ReadonlySet<string> = new Set(['anthropic.message_start'])

export const modelMessages: Shape = {
  name: 'ai-sdk',
  isAlone: true,

  judge(message) {
    const { role, content, type } = message as Fields
    if (type !== undefined || 'timestamp' in message || 'tool_calls' in message || 'tool_call_id' in message) return undefined
    if (role === 'tool') return Array.isArray(content) && content.every((part) => isFields(part) && OWN.has(String(part['type']))) ? 'own' : undefined
    if (role !== 'user' && role !== 'assistant' && role !== 'system') return undefined
    if (typeof content === 'string') return 'providerOptions' in message ? 'own' : 'shared'
    if (!Array.isArray(content) || !content.every(isPart)) return undefined
    return 'providerOptions' in message || content.some(isOwn) ? 'own' : 'shared'
  },

  read(messages, at) {
    const message = messages[at] as Fields
    const { role, content } = message
    if (!Array.isArray(content)) return { size: 1, parts: [{ role: String(role), content: textOf(content) }] }
    const list = content as Fields[]
    if (role !== 'tool') return { size: 1, parts: [{ role: String(role), content: list.map(blockOf), ...reasoningApi(list, 'providerOptions') }] }
    const parts = list.filter(isResult).map(result)
    // A message that contains only approvals is neither the user's nor the model's.
    return { size: 1, parts: parts.length > 0 ? parts : [{ role: 'approval', content: '' }] }
  },

  write([message], edits) {
    const { role, content } = message as Fields
    if (edits.size === 0) return [message as object]
    if (role !== 'tool' || !Array.isArray(content)) {
      const edit = edits.get(0)
      if (edit?.kind === 'gone') return []
      if (!Array.isArray(content)) return [{ ...message, content: shortenedText(textOf(content), edit) }]
      return [{ ...message, content: shortened(withArguments(content as Fields[], edit), edit) }]
    }
    let number = -1
    const left = (content as Fields[]).flatMap((part) => {
      if (!isResult(part)) return [part]
      number += 1
      const edit = edits.get(number)
      if (edit?.kind === 'gone') return []
      return edit?.kind === 'result' ? [{ ...part, output: withText(part['output'] as Fields, edit.text) }] : [part]
    })
    return left.length === 0 ? [] : [{ ...message, content: left }]
  },

  notice(text) {
    return { role: 'user', content: [{ type: 'text', text }] }
  },
}

/** The field with the provider's own data of a part: in the AI SDK's messages, and in OpenCode's. */
type ProviderField = 'providerOptions' | 'metadata'

/** Reads a part with reasoning. Any provider data beside the text counts as a signature. */
export function reasoningBlock(part: Fields, field: ProviderField): Block {
  return { type: 'thinking', thinking: textOf(part['text']), ...(isFields(part[field]) ? { thinkingSignature: 'signed' } : {}) }
}

/** The API that decides whether an answer's reasoning may be dropped; the strictest one for unsigned reasoning. */
export function reasoningApi(parts: readonly Fields[], field: ProviderField): { api?: string } {
  const reasoning = parts.filter(({ type }) => type === 'reasoning')
  if (reasoning.length === 0) return {}
  const signed = reasoning.map((part) => part[field]).filter(isFields)
  if (signed.length === 0) return { api: 'openai-completions' }
  return { api: signed.every((one) => isFields(one['anthropic'])) ? 'anthropic-messages' : 'openai-responses' }
}

function isPart(part: unknown): part is Fields {
  if (!isFields(part)) return false
  const type = part['type']
  if (type === 'text') return typeof part['text'] === 'string'
  if (type === 'image') return 'image' in part
  if (type === 'file') return 'mediaType' in part
  return OWN.has(String(type))
}

function isOwn(part: Fields): boolean {
  return OWN.has(String(part['type'])) || part['type'] === 'image' || part['type'] === 'file' || 'providerOptions' in part
}

function isResult(part: Fields): boolean {
  return part['type'] === 'tool-result'
}

function blockOf(part: Fields): Block {
  switch (part['type']) {
    case 'text':
      return { type: 'text', text: textOf(part['text']) }
    case 'reasoning':
      return reasoningBlock(part, 'providerOptions')
    case 'image':
    case 'file':
      return { type: 'image' }
    case 'tool-call': {
      const args = isFields(part['input']) ? part['input'] : {}
      const signature = isSigned(part) ? { thoughtSignature: 'signed' } : {}
      return { type: 'toolCall', id: textOf(part['toolCallId']), name: textOf(part['toolName']), arguments: args, ...signature }
    }
    case 'custom':
      return { type: NOT_SENT.has(textOf(part['kind'])) ? 'step-start' : 'custom' }
    default:
      return { type: String(part['type']) }
  }
}

/** True if the provider signed the call, as Gemini does, or executed it itself. */
function isSigned({ providerOptions, providerExecuted }: Fields): boolean {
  if (providerExecuted === true) return true
  if (!isFields(providerOptions)) return false
  return Object.values(providerOptions).some((one) => isFields(one) && typeof one['thoughtSignature'] === 'string')
}

function result(part: Fields): EngineMessage {
  const output = isFields(part['output']) ? part['output'] : {}
  const type = textOf(output['type'])
  return {
    role: 'toolResult',
    toolCallId: textOf(part['toolCallId']),
    toolName: textOf(part['toolName']),
    content: outputOf(type, output),
    isError: type.startsWith('error') || type === 'execution-denied',
  }
}

function outputOf(type: string, { value, reason }: Fields): string | readonly Block[] {
  if (type === 'text' || type === 'error-text') return textOf(value)
  if (type === 'json' || type === 'error-json') return jsonText(value) ?? ''
  if (type === 'execution-denied') return textOf(reason)
  if (type !== 'content' || !Array.isArray(value)) return [{ type: 'image' }]
  return (value as Fields[]).map((one): Block => (one['type'] === 'text' ? { type: 'text', text: textOf(one['text']) } : { type: 'image' }))
}

/** Replaces an output by a text. An error stays an error, and a cache marker stays. */
function withText(output: Fields, text: string): Fields {
  const { providerOptions } = output
  const options = providerOptions === undefined ? {} : { providerOptions }
  if (output['type'] === 'content') {
    const last = (output['value'] as Fields[]).findLast((one) => one['type'] === 'text')
    return { ...output, value: [{ ...last, type: 'text', text }] }
  }
  return { type: textOf(output['type']).startsWith('error') ? 'error-text' : 'text', value: text, ...options }
}

function withArguments(parts: readonly Fields[], edit: PartEdit | undefined): Fields[] {
  const collapsed = argumentsBy(edit)
  let position = -1
  return parts.map((part) => {
    if (part['type'] !== 'tool-call') return part
    position += 1
    const args = collapsed.get(position)
    return args === undefined ? part : { ...part, input: inOrderOf(part['input'], args) }
  })
}
