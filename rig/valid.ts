/**
 * The providers' rules: each is one for which a provider answers HTTP 400. A request of the rig is checked against all of them, and
 * against the scripted model's earlier answers: a provider signs its reasoning, and recognizes it.
 *
 * Sources: Anthropic's guides to tool use and extended thinking (platform.claude.com/docs/en/build-with-claude), OpenAI's
 * guide to reasoning models (platform.openai.com/docs/guides/reasoning) and to function calling, DeepSeek's guide to
 * thinking mode (api-docs.deepseek.com/guides/thinking_mode), and the sentences of the errors themselves.
 */
import type { ModelRequest, WirePart } from './exchange.ts'
import { misplacedSystem } from './strict.ts'
import { signatureOf } from './wire.ts'

/** Why a provider would refuse a request; empty if it would not. `said` are the model's answers so far. */
export function refusals(request: Pick<ModelRequest, 'api' | 'body'>, said: readonly (readonly WirePart[])[]): string[] {
  const memory = memoryOf(said)
  if (request.api === 'anthropic-messages') return anthropic(request.body, memory)
  if (request.api === 'openai-responses') return responses(request.body, memory)
  return completions(request.body, memory)
}

/** The model's earlier answers. */
interface Memory {
  /** The reasoning of the answer that made a call, by the call's ID; undefined if two answers used that ID. */
  thoughtOf: Map<string, string[] | undefined>
  /** All reasoning. */
  thoughts: Set<string>
  /** True if the model gave this signature to this reasoning. */
  isSigned(thought: string, signature: unknown): boolean
  /** All reasoning from the answer on that made a call. */
  since(id: string | undefined): string[]
}

function memoryOf(said: readonly (readonly WirePart[])[]): Memory {
  const thoughtsIn = (parts: readonly WirePart[]): string[] => parts.flatMap((part) => ('thinking' in part ? [part.thinking] : []))
  const since = (id: string | undefined): string[] => {
    const start = said.findIndex((parts) => parts.some((part) => 'call' in part && part.call.id === id))
    return start < 0 ? [] : said.slice(start).flatMap(thoughtsIn)
  }
  const signatures = new Set<string>()
  const isSigned = (thought: string, signature: unknown): boolean => signatures.has(`${String(signature)} ${thought}`)
  const memory: Memory = { thoughtOf: new Map(), thoughts: new Set(), isSigned, since }
  for (const parts of said) {
    const thoughts = thoughtsIn(parts)
    for (const thought of thoughts) memory.thoughts.add(thought)
    for (const part of parts) {
      if ('thinking' in part) signatures.add(`${part.signature ?? signatureOf(part.thinking)} ${part.thinking}`)
      if (!('call' in part)) continue
      const id = part.call.id ?? ''
      memory.thoughtOf.set(id, memory.thoughtOf.has(id) ? undefined : thoughts)
    }
  }
  return memory
}

function anthropic(body: any, memory: Memory): string[] {
  const found: string[] = [misplacedSystem({ api: 'anthropic-messages', body })].filter((one) => one !== undefined)
  // System messages between the others say which tools come and go; they are not part of a turn.
  const messages = (body.messages as any[]).filter((message) => message.role !== 'system')
  const blocksOf = (message: any): any[] => (typeof message.content === 'string' ? [{ type: 'text', text: message.content }] : (message.content ?? []))
  const thinks = body.thinking !== undefined && body.thinking.type !== 'disabled'
  const lastSaid = messages.findLastIndex((message) => message.role === 'user' && blocksOf(message).some((block) => block.type !== 'tool_result'))
  const isClaude = String(body.model).includes('claude')
  const inTurn: string[] = []
  const ids = new Set<string>()
  if (messages[0]?.role !== 'user') found.push('messages: the first message must use the user role')
  if (messages.at(-1)?.role !== 'user') found.push('messages: the last message must use the user role')
  let open: string[] = []
  for (const [index, message] of messages.entries()) {
    const where = `messages.${index}`
    const blocks = blocksOf(message)
    if (blocks.length === 0) found.push(`${where}: content is empty`)
    for (const block of blocks) {
      if (block.type === 'text' && block.text.trim() === '') found.push(`${where}: text content blocks must be non-empty`)
      if (block.type === 'tool_result' && isBlank(block.content)) found.push(`${where}: a tool_result is empty`)
    }
    const results = blocks.filter((block) => block.type === 'tool_result').map((block) => block.tool_use_id)
    if (open.length > 0) {
      const missing = open.filter((id) => !results.includes(id))
      if (missing.length > 0) found.push(`${where}: tool_use ids were found without tool_result blocks immediately after: ${missing.join(', ')}`)
      const first = blocks.slice(0, results.length)
      if (first.some((block) => block.type !== 'tool_result')) found.push(`${where}: tool_result blocks must come first`)
    }
    if (results.length !== new Set(results).size) found.push(`${where}: each tool_use must have a single result`)
    for (const id of results) {
      if (!open.includes(id)) found.push(`${where}: unexpected tool_use_id found in tool_result blocks: ${id}`)
    }
    open = []
    if (message.role !== 'assistant') continue
    const uses = blocks.filter((block) => block.type === 'tool_use')
    for (const { id, input } of uses) {
      if (!/^[a-zA-Z0-9_-]+$/.test(id)) found.push(`${where}: tool_use.id ${JSON.stringify(id)} does not match its pattern`)
      if (ids.has(id)) found.push(`${where}: tool_use ids must be unique: ${id}`)
      if (!isRecord(input)) found.push(`${where}: tool_use.input must be an object`)
      ids.add(id)
      open.push(id)
    }
    const thoughts = blocks.filter((block) => block.type === 'thinking')
    for (const { thinking, signature } of thoughts) {
      if (!memory.isSigned(thinking, signature)) found.push(`${where}: invalid signature in thinking block`)
    }
    if (index > lastSaid) inTurn.push(...thoughts.map(({ thinking }) => thinking))
    const wanted = uses.map(({ id }) => memory.thoughtOf.get(id)).find((one) => one !== undefined) ?? []
    // Kimi and DeepSeek, for each answer with calls, however old.
    const isWanted = thinks && (index > lastSaid || !isClaude) && wanted.length > 0
    if (isWanted && JSON.stringify(thoughts.map(({ thinking }) => thinking)) !== JSON.stringify(wanted)) {
      found.push(`${where}: expected thinking, but found ${blocks[0]?.type}`)
    }
  }
  const first = messages
    .slice(lastSaid + 1)
    .flatMap(blocksOf)
    .find((block) => block.type === 'tool_use')
  if (thinks && isClaude && JSON.stringify(inTurn) !== JSON.stringify(memory.since(first?.id))) {
    found.push('messages: thinking blocks of the turn under way must be passed back')
  }
  if (open.length > 0) found.push(`messages: tool_use ids were found without tool_result blocks: ${open.join(', ')}`)
  return found
}

function completions(body: any, memory: Memory): string[] {
  const found: string[] = []
  let open: string[] = []
  // Mistral: results are followed by an answer.
  const wantsAnswer = /stral/.test(String(body.model))
  for (const [index, message] of (body.messages as any[]).entries()) {
    const where = `messages.${index}`
    if (message.role === 'tool') {
      if (!open.includes(message.tool_call_id)) found.push(`${where}: a tool message must follow a message with tool_calls`)
      open = open.filter((id) => id !== message.tool_call_id)
      if (isBlank(message.content)) found.push(`${where}: a tool message is empty`)
      continue
    }
    if (open.length > 0) found.push(`${where}: tool_call_ids did not have response messages: ${open.join(', ')}`)
    open = []
    if (message.role !== 'assistant') {
      if (wantsAnswer && body.messages[index - 1]?.role === 'tool') found.push(`${where}: Unexpected role '${message.role}' after role 'tool'`)
      if (isBlank(message.content) && message.tools === undefined) found.push(`${where}: content is empty`)
      continue
    }
    const calls: any[] = message.tool_calls ?? []
    if (isBlank(message.content) && calls.length === 0) found.push(`${where}: content or tool_calls must be set`)
    if (message.tool_calls !== undefined && calls.length === 0) found.push(`${where}: tool_calls is an empty array`)
    for (const call of calls) {
      if (!isJsonObject(call.function?.arguments)) found.push(`${where}: the arguments of ${call.id} are not a JSON object`)
      open.push(call.id)
    }
    const thought = message.reasoning_content
    const wanted = calls.map((call) => memory.thoughtOf.get(call.id)).find((one) => one !== undefined) ?? []
    // DeepSeek and Kimi, for each answer with calls, however old.
    if (wanted.length > 0 && thought !== wanted.join('\n')) {
      found.push(`${where}: the reasoning_content in the thinking mode must be passed back`)
    }
    if (thought !== undefined && thought !== '' && wanted.length === 0 && !memory.thoughts.has(thought)) {
      found.push(`${where}: reasoning_content is not what the model said`)
    }
  }
  if (open.length > 0) found.push(`messages: tool_call_ids did not have response messages: ${open.join(', ')}`)
  return found
}

function responses(body: any, memory: Memory): string[] {
  const found: string[] = []
  const items = body.input as any[]
  const called = new Map<string, number>()
  const ids = new Set<string>()
  const isOutput = (item: any): boolean => item?.type === 'function_call' || (item?.type === 'message' && item.role === 'assistant')
  for (const [index, item] of items.entries()) {
    const where = `input[${index}]`
    if (typeof item.id === 'string') {
      if (ids.has(item.id)) found.push(`${where}: duplicate item found with id ${item.id}`)
      ids.add(item.id)
    }
    if (item.type === 'function_call') {
      if (!isJsonObject(item.arguments)) found.push(`${where}: the arguments of ${item.call_id} are not a JSON object`)
      called.set(item.call_id, (called.get(item.call_id) ?? 0) + 1)
      const wanted = memory.thoughtOf.get(item.call_id) ?? []
      const start = items.slice(0, index).findLastIndex((before) => !isOutput(before) && before.type !== 'reasoning')
      const before = items
        .slice(start + 1, index)
        .filter(({ type }) => type === 'reasoning')
        .map(thoughtIn)
      if (wanted.some((thought) => !before.includes(thought))) {
        found.push(`${where}: function_call was provided without its required reasoning item`)
      }
    } else if (item.type === 'function_call_output') {
      const count = called.get(item.call_id) ?? 0
      if (count === 0) found.push(`${where}: no tool call found for function call output with call_id ${item.call_id}`)
      called.set(item.call_id, count - 1)
      if (isBlank(item.output)) found.push(`${where}: output is empty`)
    } else if (item.type === 'reasoning') {
      const thought = thoughtIn(item)
      if (!memory.isSigned(thought, item.encrypted_content)) {
        found.push(`${where}: the encrypted content could not be verified`)
      }
      const next = items.slice(index + 1).find(({ type }) => type !== 'reasoning')
      if (!isOutput(next)) found.push(`${where}: reasoning was provided without its required following item`)
    } else if (isBlank(item.content)) {
      if (item.type === undefined || item.type === 'message') found.push(`${where}: content is empty`)
    }
  }
  const unanswered = [...called].filter(([, count]) => count > 0).map(([id]) => id)
  if (unanswered.length > 0) found.push(`input: no tool output found for function call ${unanswered.join(', ')}`)
  return found
}

function thoughtIn(item: any): string {
  return ((item.summary ?? []) as any[]).map(({ text }) => text).join('\n\n')
}

/** True if content has neither a text nor anything else in it. */
function isBlank(content: unknown): boolean {
  if (typeof content === 'string') return content.trim() === ''
  if (!Array.isArray(content)) return true
  return content.every((block) => typeof block?.text === 'string' && block.text.trim() === '')
}

function isJsonObject(text: unknown): boolean {
  try {
    return typeof text === 'string' && isRecord(JSON.parse(text))
  } catch {
    return false
  }
}

function isRecord(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
