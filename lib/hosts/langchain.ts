/**
 * Entry for LangChain (`langchain` 1): a middleware for `createAgent` that declares its own tool.
 *
 * @module
 */
import { AIMessage, HumanMessage, ToolMessage } from '@langchain/core/messages'
import type { AIMessageFields, BaseMessage } from '@langchain/core/messages'
import { createMiddleware, tool } from 'langchain'
import type { Block, EngineMessage, Fields } from '../core/index.ts'
import { isFields, textOf } from '../core/index.ts'
import { argumentsBy, inOrderOf, messageEdit, RECALL, RECALL_DESCRIPTION, RECALL_PARAMETERS, shortened, shortenedText } from '../projection/index.ts'
import type { PartEdit, RecallInput, Shape } from '../projection/index.ts'
import { HostContext } from './context.ts'
import type { HostOptions } from './context.ts'
import { after, guarded } from './guard.ts'

export type { HostOptions } from './context.ts'

/** The middleware of one agent. */
export type ContextMiddleware = ReturnType<typeof createMiddleware> & {
  /** Creates the middleware of a subagent, whose model can bring back the outputs that its prompt names. */
  child(options: HostOptions): ContextMiddleware
  /** The part that all hosts share. */
  readonly context: HostContext
}

/** Creates a middleware whose context opens at the first call. It never fails: if something goes wrong, the agent continues without it. */
export function contextMiddleware(options: HostOptions): ContextMiddleware {
  const context = new HostContext(options, langchain)
  const activate = tool((input: unknown) => context.activate(input as RecallInput), {
    name: RECALL,
    description: RECALL_DESCRIPTION,
    schema: RECALL_PARAMETERS,
  })
  const middleware = createMiddleware({
    name: 'ContextManager',
    tools: [activate],
    wrapModelCall: async (request, handler) => {
      const canRecall = request.tools.some((one) => (one as { name?: unknown }).name === RECALL)
      const call = async () => handler({ ...request, messages: await context.transform(request.messages, canRecall) })
      const { thinking, invocationKwargs } = request.model as { thinking?: unknown; invocationKwargs?: object }
      await context.asked({ thinking, ...invocationKwargs, ...request.modelSettings })
      try {
        return await call()
      } catch (error) {
        if (await context.refused(error)) return call()
        throw error
      }
    },
    // Before a tool changes a file that has changed unseen by the model.
    wrapToolCall: ({ toolCall, ...request }, handler) => {
      const { id = '', name, args } = toolCall
      const refuse = (refusal: string) => new ToolMessage({ content: refusal, tool_call_id: id, name, status: 'error' })
      const call = { name, args, callId: toolCall.id }
      type Result = Awaited<ReturnType<typeof handler>>
      return guarded<Result>(context, call, () => handler({ ...request, toolCall }), refuse, withDifference)
    },
  })
  const child = (more: HostOptions): ContextMiddleware => contextMiddleware({ ...options, ...more, parent: context })
  return Object.assign(middleware, { child, context }) as ContextMiddleware
}

/** A tool's message with a text after its own content; a command for the graph stays as it is. */
function withDifference<T>(result: T, difference: string): T {
  if (!(result instanceof ToolMessage)) return result
  const content = typeof result.content === 'string' ? after(result.content, difference) : [...result.content, { type: 'text', text: difference }]
  return new ToolMessage({ ...fieldsOf(result), tool_call_id: result.tool_call_id, content: content as string }) as T
}

/** LangChain's messages: instances of classes, the same for all providers. */
export const langchain: Shape = {
  name: 'langchain',
  isAlone: true,

  judge(message) {
    return typeof (message as Partial<BaseMessage>).getType === 'function' ? 'own' : undefined
  },

  read(messages, at) {
    return { size: 1, parts: [partOf(messages[at] as BaseMessage)] }
  },

  write([message], edits) {
    const edit = edits.get(0)
    if (edit?.kind === 'gone') return []
    return [edit === undefined ? (message as object) : edited(message as BaseMessage, edit)]
  },

  notice(text) {
    return new HumanMessage(text)
  },

  content(message) {
    const { id, content, additional_kwargs, tool_calls, tool_call_id, status } = message as BaseMessage & Fields
    return { type: (message as BaseMessage).getType(), id, content, additional_kwargs, tool_calls, tool_call_id, status }
  },
}

function partOf(message: BaseMessage): EngineMessage {
  const blocks = blocksOf(message.content)
  const type = message.getType()
  if (type === 'tool') {
    const { tool_call_id, name, status } = message as ToolMessage
    return { role: 'toolResult', toolCallId: tool_call_id, toolName: name ?? '', content: blocks, isError: status === 'error' }
  }
  if (type !== 'ai') return { role: type === 'human' ? 'user' : type, content: blocks }
  const calls = (message as AIMessage).tool_calls ?? []
  const api = reasoningApi(message)
  const signatures = message.additional_kwargs['__gemini_function_call_thought_signatures__']
  return {
    role: 'assistant',
    content: [
      ...blocks,
      ...calls.map(({ id = '', name, args }) => ({
        type: 'toolCall' as const,
        id,
        name,
        arguments: isFields(args) ? args : {},
        ...(isFields(signatures) ? { thoughtSignature: 'signed' } : {}),
      })),
    ],
    ...(api === undefined ? {} : { api }),
  }
}

/** The API that decides whether an answer's reasoning may leave; undefined if it has none. */
function reasoningApi({ content, additional_kwargs: { reasoning } }: BaseMessage): string | undefined {
  const blocks: Fields[] = Array.isArray(content) ? (content as Fields[]) : []
  if (blocks.some(({ type }) => type === 'thinking' || type === 'redacted_thinking')) return 'anthropic-messages'
  return isFields(reasoning) || blocks.some(({ type }) => type === 'reasoning') ? 'openai-responses' : undefined
}

function blocksOf(content: unknown): Block[] {
  if (!Array.isArray(content)) return content === '' ? [] : [{ type: 'text', text: textOf(content) }]
  return (content as Fields[])
    .filter((block) => !isCall(block))
    .map((block) => {
      const type = textOf(block['type'])
      if (type === 'thinking') return { type, thinking: textOf(block['thinking']), thinkingSignature: textOf(block['signature']) }
      if (type === 'redacted_thinking') return { type: 'thinking', thinking: '', thinkingSignature: textOf(block['data']) }
      // OpenAI's item of reasoning is not in the content, but this is what the content has of it.
      if (type === 'reasoning') return { type: 'thinking', thinking: textOf(block['reasoning']), thinkingSignature: 'signed' }
      return type === 'text' ? { type, text: textOf(block['text']) } : { type: /image|file|audio|video/.test(type) ? 'image' : type }
    })
}

/** True if a block is a call, or a piece of one that was streamed. `tool_calls` also has the calls. */
function isCall({ type }: Fields): boolean {
  return type === 'tool_use' || type === 'tool_call' || type === 'input_json_delta'
}

/** The same message, of the same class, with an edit applied. */
function edited(message: BaseMessage, edit: PartEdit): BaseMessage {
  if (edit.kind === 'result') {
    const { content } = message
    const others = Array.isArray(content) ? (content as Fields[]).filter((block) => block['type'] !== 'text') : []
    const blocks = Array.isArray(content) ? [{ type: 'text', text: edit.text }, ...others] : edit.text
    return new ToolMessage({ ...fieldsOf(message), tool_call_id: (message as ToolMessage).tool_call_id, content: blocks as string })
  }
  const words = withTexts(message.content, edit)
  if (message.getType() !== 'ai') return new HumanMessage({ ...fieldsOf(message), content: words as string })
  const answer = message as AIMessage
  const collapsed = argumentsBy(edit)
  const calls = (answer.tool_calls ?? []).map((call, position) => ({
    ...call,
    args: inOrderOf(call.args, (collapsed.get(position) ?? call.args) as typeof call.args),
  }))
  const byId = new Map(calls.map((call, position) => [call.id, collapsed.has(position) ? call.args : undefined]))
  // Anthropic's calls are also in the content, and OpenAI's raw ones in `additional_kwargs`.
  const content = Array.isArray(words)
    ? (words as Fields[]).map((block) => {
        const args = block['type'] === 'tool_use' ? byId.get(textOf(block['id'])) : undefined
        return args === undefined ? block : { ...block, input: args }
      })
    : words
  const { tool_calls: raw, ...kwargs } = answer.additional_kwargs as Fields
  const rawCalls = Array.isArray(raw)
    ? (raw as Fields[]).map((call) => {
        const args = byId.get(textOf(call['id']))
        return args === undefined || !isFields(call['function']) ? call : { ...call, function: { ...call['function'], arguments: JSON.stringify(args) } }
      })
    : undefined
  return new AIMessage({
    ...fieldsOf(answer),
    response_metadata: withOutput(answer, edit, byId),
    content: content as string,
    tool_calls: calls,
    additional_kwargs: rawCalls === undefined ? kwargs : { ...kwargs, tool_calls: rawCalls },
  } as unknown as AIMessageFields)
}

/**
 * Returns what an answer of OpenAI's Responses keeps beside its content: the items as they came, which LangChain sends
 * back instead.
 */
function withOutput({ content, response_metadata: metadata }: AIMessage, edit: PartEdit, args: ReadonlyMap<string | undefined, unknown>): Fields {
  const { output } = metadata as Fields
  if (!Array.isArray(output)) return metadata
  const blocks = blocksOf(content)
  const texts = new Map(messageEdit(edit)?.texts.map(({ block, text }) => [textOf((blocks[block] as Fields | undefined)?.['text']), text]))
  const shown = (output as Fields[]).flatMap((item): Fields[] => {
    const own = item['type'] === 'function_call' ? args.get(textOf(item['call_id'])) : undefined
    if (own !== undefined) return [{ ...item, arguments: JSON.stringify(own) }]
    if (item['type'] !== 'message' || !Array.isArray(item['content'])) return [item]
    const parts = (item['content'] as Fields[]).flatMap((part) => {
      if (!texts.has(textOf(part['text']))) return [part]
      const text = texts.get(textOf(part['text']))
      return text === undefined ? [] : [{ ...part, text }]
    })
    return parts.length === 0 ? [] : [{ ...item, content: parts }]
  })
  return { ...metadata, output: shown }
}

/** The fields of a message, without those that its class adds. */
function fieldsOf(message: BaseMessage): Fields {
  const { lc_kwargs: _k, lc_namespace: _n, lc_serializable: _s, type: _t, ...fields } = message as unknown as Fields
  return fields
}

/** Applies an edit's texts to a content. Calls don't count in the numbering of its blocks. */
function withTexts(content: unknown, edit: PartEdit): unknown {
  if ((messageEdit(edit)?.texts.length ?? 0) === 0) return content
  if (!Array.isArray(content)) return shortenedText(textOf(content), edit)
  const numbers = new Map((content as Fields[]).filter((block) => !isCall(block)).map((block, number) => [block, number]))
  return shortened(content as Fields[], edit, undefined, (block) => numbers.get(block))
}
