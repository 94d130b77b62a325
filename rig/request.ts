/** A recorded model request, read into one shape for the three provider formats. */
import { bedrockModel, inMessages } from './bedrock.ts'
import { geminiMessages, geminiModel, geminiTools, isCodeAssist } from './gemini.ts'
import type { Api, ModelRequest, SentMessage } from './exchange.ts'

/** The provider format that a path belongs to, or undefined. */
export function apiOf(path: string): Api | undefined {
  const route = path.split('?')[0] ?? ''
  if (route.endsWith('/chat/completions')) return 'openai-completions'
  if (route.endsWith('/messages')) return 'anthropic-messages'
  if (route.endsWith('/responses')) return 'openai-responses'
  if (geminiModel(route) !== undefined || isCodeAssist(route)) return 'google-generative-ai'
  return bedrockModel(route) === undefined ? undefined : 'bedrock-converse-stream'
}

/** Reads a body into messages, tools and the prompt text. Throws on a body that is not a request of `api`. */
export function readRequest(api: Api, body: any): Pick<ModelRequest, 'messages' | 'tools' | 'kind' | 'prompt' | 'ends'> {
  if (api === 'bedrock-converse-stream') return readRequest('anthropic-messages', inMessages(body))
  const messages =
    api === 'google-generative-ai'
      ? geminiMessages(body)
      : api === 'openai-completions'
        ? completionMessages(body)
        : api === 'anthropic-messages'
          ? anthropicMessages(body)
          : responseMessages(body)
  const all: any[] = api === 'google-generative-ai' ? geminiTools(body) : (body.tools ?? [])
  const declared = all.filter((tool) => tool.defer_loading !== true)
  const tools = toolsAfter(declared.map(nameOf), body.messages ?? body.input ?? [])
  const system = messages.find((message) => message.role === 'system')?.text ?? ''
  const kind = tools.length === 0 && /summarization assistant/i.test(system) ? 'summary' : 'agent'
  const lines = [serialize(declared), ...messages.map((message) => message.json)]
  const ends: number[] = []
  let length = 0
  for (const line of lines) {
    length += line.length + 1
    ends.push(length)
  }
  return { messages, tools, kind, prompt: `${lines.join('\n')}\n`, ends }
}

/** The text of every tool result in a request, by tool-call id; a later one with the same id wins. */
export function resultsById(request: Pick<ModelRequest, 'messages'>): Map<string, string> {
  const found = new Map<string, string>()
  for (const message of request.messages) for (const result of message.results) found.set(result.id, result.text)
  return found
}

/** The last message of a role, or undefined. */
export function lastOf(request: Pick<ModelRequest, 'messages'>, role: SentMessage['role']): SentMessage | undefined {
  return request.messages.findLast((message) => message.role === role)
}

/** The tools at the end of a conversation that may add and remove some. */
function toolsAfter(first: string[], sent: any[]): string[] {
  const tools = new Set(first)
  for (const entry of sent) {
    const added = entry.role === 'system' || ADDING.has(entry.type) ? (entry.tools ?? []) : []
    for (const tool of added) tools.add(nameOf(tool))
    for (const block of Array.isArray(entry.content) ? entry.content : []) {
      // Newer versions of Pi declare a tool where it is added, older ones beforehand.
      if (block.type === 'tool_addition') tools.add(nameOf(block.tool.definition ?? block.tool))
      if (block.type === 'tool_removal') tools.delete(block.tool.name)
    }
  }
  return [...tools]
}

function nameOf(tool: any): string {
  return tool.function?.name ?? tool.name ?? tool.type
}

/** Items of the responses format that add tools. */
const ADDING = new Set(['additional_tools', 'tool_search_output'])

/** JSON without the cache markers that providers accept anywhere and do not count as prompt. */
function serialize(value: unknown): string {
  return JSON.stringify(value, (key, entry) => (key === 'cache_control' ? undefined : entry))
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content
    .map((block) => (typeof block === 'string' ? block : typeof block?.text === 'string' ? block.text : ''))
    .filter((text) => text !== '')
    .join('\n')
}

function message(role: SentMessage['role'], text: string, source: unknown): SentMessage {
  return { role, text, calls: [], results: [], json: serialize(source) }
}

function completionMessages(body: any): SentMessage[] {
  return (body.messages as any[]).map((sent) => {
    const role = sent.role === 'developer' ? 'system' : sent.role
    const read = message(role, textOf(sent.content), sent)
    for (const entry of sent.tool_calls ?? []) {
      read.calls.push({ id: entry.id, name: entry.function?.name ?? '', args: entry.function?.arguments ?? '' })
    }
    if (role === 'tool') read.results.push({ id: sent.tool_call_id, text: read.text })
    return read
  })
}

function anthropicMessages(body: any): SentMessage[] {
  const system = body.system === undefined ? [] : [message('system', textOf(body.system), body.system)]
  const rest = (body.messages as any[]).map((sent) => {
    const blocks: any[] = Array.isArray(sent.content) ? sent.content : []
    const results = blocks.filter((block) => block.type === 'tool_result')
    const read = message(results.length > 0 ? 'tool' : sent.role, textOf(sent.content), sent)
    for (const block of blocks.filter((entry) => entry.type === 'tool_use')) {
      read.calls.push({ id: block.id, name: block.name, args: JSON.stringify(block.input) })
    }
    read.results = results.map((block) => ({ id: block.tool_use_id, text: textOf(block.content) }))
    if (results.length > 0) read.text = read.results.map((result) => result.text).join('\n')
    return read
  })
  return [...system, ...rest]
}

/** Reasoning, texts and calls of one answer are separate items in this format; here they are one message again. */
function responseMessages(body: any): SentMessage[] {
  const list: SentMessage[] = []
  if (typeof body.instructions === 'string') list.push(message('system', body.instructions, body.instructions))
  for (const item of body.input as any[]) {
    if (item.type === 'function_call_output') {
      const read = message('tool', textOf(item.output), item)
      read.results.push({ id: item.call_id, text: read.text })
      list.push(read)
      continue
    }
    const answered = item.type === 'function_call' || item.type === 'reasoning' || item.role === 'assistant'
    if (!answered) {
      const role = item.role === 'developer' || item.role === undefined ? 'system' : item.role
      list.push(message(role, textOf(item.content), item))
      continue
    }
    const open = list.at(-1)
    const read = open?.role === 'assistant' ? open : message('assistant', '', '')
    if (read !== open) {
      read.json = ''
      list.push(read)
    }
    read.json += serialize(item)
    const text = textOf(item.content)
    if (text !== '') read.text = read.text === '' ? text : `${read.text}\n${text}`
    if (item.type === 'function_call') read.calls.push({ id: item.call_id, name: item.name, args: item.arguments })
  }
  return list
}
