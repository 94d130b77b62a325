/**
 * The providers' rules for content that is neither a text nor a call of the client: tools that are loaded later, calls that the
 * provider runs itself, documents and citations. Each is one for which a provider answers HTTP 400.
 *
 * Sources: Anthropic's pages "Tool search tool", "Handling stop reasons" (mixed calls of server and client), "Web search tool" and
 * "Citations"; OpenAI's guide to reasoning models, and the sentences of the errors themselves. That a provider's own blocks must come
 * back as it gave them is documented for `encrypted_content` and `encrypted_index`; here it holds for the whole block.
 */
import type { ModelRequest, WirePart } from './exchange.ts'

/** Why a provider would refuse a request because of its blocks; empty if it would not. `said` are the model's answers so far. */
export function blockRefusals({ api, body }: Pick<ModelRequest, 'api' | 'body'>, said: readonly (readonly WirePart[])[]): string[] {
  const own = said.flat().flatMap((part) => ('raw' in part ? [part.raw] : []))
  if (api === 'anthropic-messages') return [...anthropicTools(body), ...anthropicDocuments(body), ...anthropicServerCalls(body), ...anthropicOwn(body, own)]
  if (api === 'openai-responses') return responses(body, own, said)
  return api === 'google-generative-ai' ? gemini(body, own) : []
}

/** The content types of a result of Anthropic's. */
const IN_RESULT: ReadonlySet<string> = new Set(['text', 'image', 'document', 'search_result', 'tool_reference'])

/** Rules for tools that the model loads later. */
function anthropicTools(body: any): string[] {
  const tools: any[] = body.tools ?? []
  const found: string[] = []
  if (tools.length > 0 && tools.every((tool) => tool.defer_loading === true))
    found.push('All tools have defer_loading set. At least one tool must be non-deferred.')
  const names = new Set(tools.map(({ name }) => name))
  for (const { block, where } of blocksOf(body)) {
    if (block.type === 'tool_result') {
      for (const one of listOf(block.content))
        if (!IN_RESULT.has(one.type))
          found.push(`${where}.tool_result.content: Input tag '${one.type}' found using 'type' does not match any of the expected tags`)
    }
    const searched =
      block.type === 'tool_search_tool_result' ? listOf(block.content?.tool_references) : block.type === 'tool_result' ? listOf(block.content) : []
    for (const { type, tool_name: name } of searched)
      if (type === 'tool_reference' && !names.has(name)) found.push(`${where}: Tool reference '${name}' has no corresponding tool definition`)
  }
  return found
}

/** Rules for documents and search results: all of them are cited, or none; and a citation names one that is there. */
function anthropicDocuments(body: any): string[] {
  const found: string[] = []
  const sources: any[] = []
  for (const { block, where } of blocksOf(body)) {
    for (const one of [block, ...listOf(block.type === 'tool_result' ? block.content : undefined)])
      if (one.type === 'document' || one.type === 'search_result') sources.push(one)
    for (const { document_index: at } of listOf(block.type === 'text' ? block.citations : undefined)) {
      if (at !== undefined && sources.filter(({ type }) => type === 'document')[at] === undefined)
        found.push(`${where}.citations: document_index ${at} is out of range`)
    }
  }
  for (const kind of ['document', 'search_result']) {
    const cited = sources.filter(({ type }) => type === kind).map(({ citations }) => citations?.enabled === true)
    if (new Set(cited).size > 1) found.push(`citations must be enabled on all or none of the ${kind} blocks`)
  }
  return found
}

/**
 * Rules for calls that the provider runs: each has its result in the same answer, or at the start of the next one if only results
 * of the client stand between the two. At the end of a request it may still be open.
 */
function anthropicServerCalls(body: any): string[] {
  const found: string[] = []
  const names = new Set(listOf(body.tools).map(({ name }) => name))
  let open = new Map<string, string>()
  for (const [index, message] of (body.messages as any[]).entries()) {
    const blocks = listOf(message.content)
    const isContinued = message.role === 'assistant' || (message.role === 'user' && blocks.length > 0 && blocks.every(({ type }) => type === 'tool_result'))
    if (!isContinued && message.role !== 'system') {
      for (const [id, name] of open) found.push(unresolved(index - 1, id, name))
      open = new Map()
    }
    if (message.role !== 'assistant') continue
    const results = new Set(blocks.filter(({ type }) => isServerResult(type)).map(({ tool_use_id: id }) => id))
    const uses = new Map<string, string>(blocks.filter(({ type }) => SERVER_CALLS.has(type)).map(({ id, name }) => [id, name]))
    for (const id of results)
      if (!uses.has(id) && !open.has(id)) found.push(`messages.${index}: unexpected \`tool_use_id\` found in server tool result blocks: ${id}`)
    for (const [id, name] of open) if (!results.has(id)) found.push(unresolved(index - 1, id, name))
    open = new Map([...uses].filter(([id]) => !results.has(id)))
  }
  for (const [id, name] of open)
    if (!names.has(name) && body.mcp_servers === undefined)
      found.push(`\`${name}\` tool use with id \`${id}\` is waiting, but no \`${name}\` tool was provided`)
  return found
}

const SERVER_CALLS: ReadonlySet<string> = new Set(['server_tool_use', 'mcp_tool_use'])

function isServerResult(type: string): boolean {
  return type !== 'tool_result' && type.endsWith('tool_result')
}

function unresolved(index: number, id: string, name: string): string {
  return `messages.${index}: \`${name}\` tool use with id \`${id}\` was found without a corresponding \`${name}_tool_result\` block`
}

/** The provider's own blocks come back as it gave them, all in their order. */
function anthropicOwn(body: any, own: readonly any[]): string[] {
  const given = new Map(own.map((block) => [nameOf(block), JSON.stringify(block)]))
  return blocksOf(body).flatMap(({ block, where }) => {
    const one = given.get(nameOf(block))
    const { cache_control: _, ...rest } = block
    return one === undefined || one === JSON.stringify(rest) ? [] : [`${where}: Invalid \`${block.type}\` block: it is not as it was given`]
  })
}

function nameOf(block: any): string {
  return block.type === 'text' ? `text ${JSON.stringify(block.citations)}` : `${block.type} ${block.id ?? block.tool_use_id ?? block.file_id}`
}

/** Rules for OpenAI's items: calls that the client answers in another form than a function's, and items that OpenAI ran itself. */
function responses(body: any, own: readonly any[], said: readonly (readonly WirePart[])[]): string[] {
  const found: string[] = []
  const items: any[] = body.input
  const given = new Map(own.map((item) => [item.id, item]))
  for (const [index, item] of items.entries()) {
    const one = given.get(item.id)
    if (one !== undefined && JSON.stringify(one) !== JSON.stringify(item))
      found.push(`input[${index}]: the item ${item.id} of type '${item.type}' is not as it was given`)
    if (/^(?!function_|custom_tool_).*_call$/.test(item.type ?? '') && item.call_id !== undefined && item.execution !== 'server') {
      const outputs = items.filter(({ type, call_id: id }) => id === item.call_id && OUTPUT.test(type ?? ''))
      if (outputs.length === 0) found.push(`No tool output found for ${item.type} ${item.call_id}.`)
    }
    if (
      OUTPUT.test(item.type ?? '') &&
      !/^(?:function|custom)_/.test(item.type) &&
      item.execution !== 'server' &&
      !items.slice(0, index).some(({ call_id: id }) => id === item.call_id)
    )
      found.push(`No tool call found for ${item.type} with call_id ${item.call_id}.`)
    if (one !== undefined && isBehindReasoning(one, said) && items[index - 1]?.type !== 'reasoning')
      found.push(`Item '${item.id}' of type '${item.type}' was provided without its required 'reasoning' item.`)
  }
  return found
}

const OUTPUT = /_output$/

/** True if the model thought right before it gave an item. */
function isBehindReasoning(item: unknown, said: readonly (readonly WirePart[])[]): boolean {
  return said.some((parts) => parts.some((part, at) => 'raw' in part && part.raw === item && 'thinking' in (parts[at - 1] ?? {})))
}

/** Rules for Gemini's parts: code and tools that Google runs stand beside their results, as they were given. */
function gemini(body: any, own: readonly any[]): string[] {
  const found: string[] = []
  const given = new Set(own.map((part) => JSON.stringify(part)))
  for (const [index, { parts = [] }] of (body.contents as any[]).entries()) {
    for (const [place, part] of (parts as any[]).entries()) {
      if (!GOOGLES.some((name) => name in part)) continue
      const where = `contents[${index}].parts[${place}]`
      if (!given.has(JSON.stringify(part))) found.push(`${where}: not as it was given`)
      if ('executableCode' in part && !('codeExecutionResult' in (parts[place + 1] ?? {})))
        found.push(`${where}: executable code is not followed by its result`)
      if ('toolCall' in part && !(parts as any[]).some(({ toolResponse }) => toolResponse?.id === part.toolCall.id))
        found.push(`${where}: tool call ${part.toolCall.id} has no tool response`)
    }
  }
  return found
}

const GOOGLES = ['executableCode', 'codeExecutionResult', 'toolCall', 'toolResponse'] as const

function blocksOf(body: any): { block: any; where: string }[] {
  return (body.messages as any[]).flatMap(({ content }, index) =>
    listOf(content).map((block, place) => ({ block, where: `messages.${index}.content.${place}` })),
  )
}

function listOf(value: any): any[] {
  return Array.isArray(value) ? value : []
}
