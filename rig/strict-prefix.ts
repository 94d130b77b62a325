/**
 * A request as a provider that binds reasoning sees it: its content in order, and the place of each block of reasoning. Two
 * requests with the same steps before a block are the same conversation for it, however their JSON is written.
 *
 * Sources: Anthropic's "Prefix checks on thinking blocks" and "Change tools or instructions without failing the prefix
 * check", OpenAI's guide "Preserved reasoning".
 */
import { inMessages } from './bedrock.ts'
import type { ModelRequest, WirePart } from './exchange.ts'

/** One step through a request. */
export type Step =
  /** Content that every later block is bound to. */
  | { bound: string }
  /** From here on the model has this tool. The set counts, not its order. */
  | { tool: string }
  /** A block of reasoning. `path` names it as the provider does; `isRunning`: it belongs to the turn under way. */
  | { thought: string; signature: string; path: string; isRunning: boolean }

/** The steps of a request. Throws on a format that carries no signed reasoning. */
export function stepsOf({ api, body }: Pick<ModelRequest, 'api' | 'body'>): Step[] {
  if (api === 'anthropic-messages') return anthropic(body)
  if (api === 'openai-responses') return responses(body)
  if (api === 'bedrock-converse-stream') return anthropic(inMessages(body))
  throw new Error('chat completions carry no signed reasoning')
}

/** The step that a part of an answer becomes when it is sent back; undefined for reasoning. */
export function stepOfPart(api: ModelRequest['api'], part: WirePart): Step | undefined {
  if ('thinking' in part) return undefined
  if ('raw' in part) return api !== 'openai-responses' ? blockStep('assistant', part.raw) : itemStep(part.raw)
  if ('text' in part) return api !== 'openai-responses' ? blockStep('assistant', { type: 'text', text: part.text }) : said('assistant', part.text)
  const { id, name, args } = part.call
  const input: unknown = typeof args === 'string' ? parsed(args) : args
  if (api !== 'openai-responses') return blockStep('assistant', { type: 'tool_use', id, name, input })
  return itemStep({ type: 'function_call', call_id: id, name, arguments: JSON.stringify(input) })
}

function anthropic(body: any): Step[] {
  const steps: Step[] = [{ bound: `system ${canonical(asBlocks(body.system))}` }]
  const deferred = new Map<string, unknown>()
  for (const { defer_loading: isDeferred, ...tool } of body.tools ?? []) {
    if (isDeferred === true) deferred.set(tool.name, tool)
    else steps.push({ tool: canonical(tool) })
  }
  const lastPrompt = (body.messages as any[]).findLastIndex(
    ({ role, content }) => role === 'user' && asBlocks(content).some(({ type }) => type !== 'tool_result'),
  )
  for (const [index, { role, content, ...rest }] of body.messages.entries()) {
    if (Object.keys(rest).length > 0) steps.push({ bound: `${role} ${canonical(rest)}` })
    for (const [place, block] of asBlocks(content).entries()) {
      const path = `messages.${index}.content.${place}`
      const isRunning = index > lastPrompt
      if (block.type === 'thinking') steps.push({ thought: block.thinking, signature: block.signature, path, isRunning })
      else if (block.type === 'redacted_thinking') steps.push({ thought: '', signature: block.data, path, isRunning })
      else steps.push(blockStep(role, block))
      const added = block.type === 'tool_addition' ? deferred.get(block.tool.name) : undefined
      if (added !== undefined) steps.push({ tool: canonical(added) })
    }
  }
  return steps
}

function blockStep(role: string, block: any): Step {
  const { is_error: isError, ...rest } = block
  if (block.type !== 'tool_result') return { bound: `${role} ${canonical(block)}` }
  // A result may be written as a text or as a list of one text.
  return { bound: `${role} ${canonical({ ...rest, content: asBlocks(block.content), ...(isError === true ? { isError } : {}) })}` }
}

function responses(body: any): Step[] {
  const steps: Step[] = [{ bound: `instructions ${canonical(body.instructions ?? null)}` }]
  for (const tool of body.tools ?? []) steps.push({ tool: canonical(tool) })
  const items = body.input as any[]
  const lastPrompt = items.findLastIndex(({ role }) => role === 'user')
  for (const [index, item] of items.entries()) {
    if (item.type !== 'reasoning') steps.push(itemStep(item))
    else {
      const thought = ((item.summary ?? []) as any[]).map(({ text }) => text).join('\n\n')
      steps.push({ thought, signature: item.encrypted_content ?? '', path: `input.${index}`, isRunning: index > lastPrompt })
    }
  }
  return steps
}

/** Clients differ in what they write beside an item's content. */
function itemStep(item: any): Step {
  if (item.type === 'function_call') return { bound: `call ${canonical([item.call_id, item.name, parsed(item.arguments)])}` }
  if (item.type === 'function_call_output') return { bound: `output ${canonical([item.call_id, texts(item.output)])}` }
  if (item.role !== undefined) return said(item.role, ...texts(item.content))
  const { id: _id, status: _status, ...rest } = item
  return { bound: `item ${canonical(rest)}` }
}

function said(role: string, ...content: unknown[]): Step {
  return { bound: `${role} ${canonical(content)}` }
}

function asBlocks(content: any): any[] {
  if (content === undefined || content === null) return []
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content
}

/** Texts as strings, everything else as it is. */
function texts(content: any): unknown[] {
  return asBlocks(content).map((one) => (typeof one.text === 'string' ? one.text : one))
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** JSON with sorted keys and without cache markers, which are not part of the prompt. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (key, entry) => {
    if (key === 'cache_control') return undefined
    if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) return entry
    return Object.fromEntries(Object.entries(entry).sort(([left], [right]) => (left < right ? -1 : 1)))
  })
}
