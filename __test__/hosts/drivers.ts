/** Each host with its real package, driven alike: one tool, one conversation, a scripted model over HTTP. A package is loaded where its host is. */
import type { AgentTool } from '@earendil-works/pi-agent-core'
import type { AgentInputItem } from '@openai/agents'
import type { ModelMessage } from 'ai'
import { readFileSync, writeFileSync } from 'node:fs'
import type { HostContext, HostOptions } from '../../lib/hosts/context.ts'
import { PIXEL } from './conversation.ts'
import { aiSdkModel, ASKING, BOUND, langchainModel, piModel } from './models.ts'
import type { SignedFormat } from './models.ts'

/** A running host. */
export interface Driver {
  /** One turn of the user, until the model calls nothing any more. */
  prompt(text: string): Promise<void>
  /** The host's own conversation, which may be changed. */
  history: any[]
  /** True if a message is the user's. */
  isUser(message: any): boolean
  /** The context that the host's entry made; undefined where the host runs alone. */
  context: HostContext | undefined
  /** The context of the subagent that the tool `delegate` starts. */
  child?: HostContext | undefined
}

/** The options with which a host is started. Without `context` it runs alone. */
export interface Start {
  /** The model server's address, with `/v1`. */
  url: string
  context?: HostOptions
  /** The format, of a model that signs its reasoning. Default: chat completions, which carry none. */
  format?: SignedFormat
  /** Its requests ask the provider to drop reasoning that no longer fits. */
  asks?: boolean
  /** The model has no tool to bring anything back. */
  withoutRecall?: boolean
  /** The tool `show`. */
  show: (name: string) => string | Promise<string>
  /** The tool is not `show` but a shell whose `cat NAME.txt` does the same, as in agents that have nothing else. */
  isShell?: boolean
  /** There is a tool `edit`, under the guard of the host's entry. Its result is a text, or one with an image, or no text. */
  edits?: true | 'parts' | 'image' | 'schema'
  /** There is a tool `delegate`, which has a subagent with this session do what its `input` says. */
  childId?: string
}

/** The tool that gives texts by their names: `show`, or a shell. */
function shower({ show, isShell = false }: Start) {
  return {
    name: isShell ? 'bash' : 'show',
    description: isShell ? 'Runs a command' : 'Shows a text',
    parameters: isShell ? COMMAND : PARAMETERS,
    run: (input: unknown) => {
      const { name, command } = input as { name: string; command?: string }
      return show(command === undefined ? name : command.replace(/^cat (.*)\.txt$/, '$1'))
    },
  }
}

const read = (path: string) => readFileSync(path, 'utf8')
/** The tool `edit`: replaces a text that a file has once. */
function edit(input: unknown): string {
  const { path, oldText, newText } = input as Record<'path' | 'oldText' | 'newText', string>
  const parts = read(path).split(oldText)
  if (parts.length !== 2) throw new Error('the text must occur exactly once')
  writeFileSync(path, parts.join(newText))
  return 'edited'
}
/** The same, with the result that is asked for; `image`: with the host's words for one. */
const editIn =
  ({ edits }: Start, image?: object) =>
  (input: unknown) => {
    const text = edit(input)
    if (edits === 'parts') return [{ type: 'text', text }]
    if (edits === 'image' && image !== undefined) return [{ type: 'text', text }, image]
    return edits === 'schema' ? { done: text } : text
  }
const imageUrl = `data:image/png;base64,${PIXEL}`
const EDIT_RESULT = { type: 'object' as const, properties: { done: { type: 'string' as const } }, required: ['done'], additionalProperties: false as const }
const EDITS = 'Replaces a text in a file'
const EDIT = {
  type: 'object' as const,
  properties: { path: { type: 'string' as const }, oldText: { type: 'string' as const }, newText: { type: 'string' as const } },
  required: ['path', 'oldText', 'newText'],
  additionalProperties: false,
}
const PATH = { type: 'object' as const, properties: { path: { type: 'string' as const } }, required: ['path'], additionalProperties: false }
const SYSTEM = 'You help.'
const PARAMETERS = { type: 'object' as const, properties: { name: { type: 'string' as const } }, required: ['name'], additionalProperties: false }
const COMMAND = {
  type: 'object' as const,
  properties: { command: { type: 'string' as const }, description: { type: 'string' as const } },
  required: ['command', 'description'],
  additionalProperties: false,
}
const INPUT = { type: 'object' as const, properties: { input: { type: 'string' as const } }, required: ['input'], additionalProperties: false }
const DELEGATES = 'Starts a subagent'
const STEPS = 200

export const drivers: Record<string, (start: Start) => Promise<Driver>> = {
  async 'ai-sdk'(start) {
    const { context: options, withoutRecall } = start
    const { isStepCount, jsonSchema, streamText, tool: aiTool, wrapLanguageModel } = await import('ai')
    const { contextFor: aiSdk } = await import('../../lib/hosts/ai-sdk.ts')
    const context = options === undefined ? undefined : aiSdk(options)
    const plain = await aiSdkModel(start)
    const model = context === undefined ? plain : wrapLanguageModel({ model: plain, middleware: context.middleware })
    const history: ModelMessage[] = []
    const { name, description, parameters, run } = shower(start)
    const withImage = ({ output }: { output: string }) => ({
      type: 'content',
      value: [
        { type: 'text', text: output },
        { type: 'image-data', data: PIXEL, mediaType: 'image/png' },
      ],
    })
    const child = start.childId === undefined ? undefined : context?.child({ sessionId: start.childId })
    const delegate = aiTool({
      description: DELEGATES,
      inputSchema: jsonSchema<{ input: string }>(INPUT),
      execute: async ({ input }) => {
        const messages: ModelMessage[] = [{ role: 'user', content: input }]
        await streamText({ model, messages, tools: child!.tools, prepareStep: child!.prepareStep, stopWhen: isStepCount(STEPS), maxRetries: 0 }).consumeStream()
        return 'it is done'
      },
    })
    const tools = {
      ...(child === undefined ? {} : { delegate }),
      [name]: aiTool({ description, inputSchema: jsonSchema<object>(parameters), execute: run }),
      read: aiTool({ description: 'Reads a file', inputSchema: jsonSchema<{ path: string }>(PATH), execute: ({ path }) => read(path) }),
      ...(start.edits !== undefined
        ? context!.guard({
            edit: aiTool({
              description: EDITS,
              inputSchema: jsonSchema<object>(EDIT),
              execute: editIn(start),
              ...(start.edits === 'image' ? { toModelOutput: withImage } : {}),
            } as any),
          })
        : {}),
      ...(context === undefined || withoutRecall === true ? {} : context.tools),
    }
    return {
      history,
      context: context?.context,
      child: child?.context,
      isUser: (message) => message.role === 'user',
      async prompt(text) {
        history.push({ role: 'user', content: text })
        let failure: unknown
        const result = streamText({
          model,
          instructions: SYSTEM,
          messages: history,
          tools,
          stopWhen: isStepCount(STEPS),
          maxRetries: 0,
          ...(start.asks === true ? { providerOptions: ASKING } : {}),
          onError: ({ error }) => void (failure = error),
          ...(context === undefined ? {} : { prepareStep: context.prepareStep }),
        })
        await result.consumeStream()
        if (failure !== undefined) throw failure
        history.push(...(await result.responseMessages))
      },
    }
  },

  async 'pi-agent-core'(start) {
    const { context: options, withoutRecall } = start
    const { Agent: PiAgent } = await import('@earendil-works/pi-agent-core')
    const { model, streamFn } = await piModel(start)
    const { contextFor: piAgent } = await import('../../lib/hosts/pi-agent-core.ts')
    const context = options === undefined ? undefined : piAgent(options)
    const { name, description, parameters, run } = shower(start)
    const giver: AgentTool = {
      name,
      label: name,
      description,
      parameters: parameters as never,
      execute: async (_id, input) => ({ content: [{ type: 'text', text: await run(input) }], details: undefined }),
    }
    const reader: AgentTool = {
      ...giver,
      name: 'read',
      label: 'read',
      description: 'Reads a file',
      parameters: PATH as never,
      execute: async (_id, input) => ({ content: [{ type: 'text', text: read((input as { path: string }).path) }], details: undefined }),
    }
    const child = start.childId === undefined ? undefined : context?.child({ sessionId: start.childId })
    const started = (entry: typeof context, tools: AgentTool[]) =>
      new PiAgent({
        initialState: { systemPrompt: SYSTEM, model, tools, thinkingLevel: start.format === undefined ? 'off' : 'high' },
        getApiKey: () => 'none',
        streamFn,
        ...(entry === undefined ? {} : { transformContext: entry.transformContext, beforeToolCall: entry.beforeToolCall, afterToolCall: entry.afterToolCall }),
      })
    const delegate: AgentTool = {
      name: 'delegate',
      label: 'delegate',
      description: DELEGATES,
      parameters: INPUT as never,
      execute: async (_id, { input }: any) => {
        await started(child, child!.tools).prompt(input)
        return { content: [{ type: 'text', text: 'it is done' }], details: undefined }
      },
    }
    const agent = started(context, [
      ...[giver, reader],
      ...(start.edits !== undefined
        ? [
            {
              ...reader,
              name: 'edit',
              label: 'edit',
              description: EDITS,
              parameters: EDIT as never,
              execute: async (_id: string, input: unknown) => ({
                content: [
                  { type: 'text' as const, text: edit(input) },
                  ...(start.edits === 'image' ? [{ type: 'image' as const, data: PIXEL, mimeType: 'image/png' }] : []),
                ],
                details: undefined,
              }),
            },
          ]
        : []),
      ...(child === undefined ? [] : [delegate]),
      ...(context === undefined || withoutRecall === true ? [] : context.tools),
    ])
    return {
      child: child?.context,
      get history() {
        return agent.state.messages
      },
      context: context?.context,
      isUser: (message) => message.role === 'user',
      async prompt(text) {
        await agent.prompt(text)
        if (agent.state.errorMessage !== undefined) throw new Error(agent.state.errorMessage)
      },
    }
  },

  async 'openai-agents'(start) {
    const { url, context: options, withoutRecall } = start
    const { Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, run, setTracingDisabled, tool: agentsTool } = await openaiAgentsSdk()
    const { OpenAI } = await import('openai')
    const { contextFor: openaiAgents } = await import('../../lib/hosts/openai-agents.ts')
    setTracingDisabled(true)
    const context = options === undefined ? undefined : openaiAgents(options)
    const { name, description, parameters, run: give } = shower(start)
    const giver = agentsTool({ name, description, parameters: { ...parameters, additionalProperties: false as const } as any, strict: true, execute: give })
    const reader = agentsTool({
      name: 'read',
      description: 'Reads a file',
      parameters: { ...PATH, additionalProperties: false as const },
      strict: true,
      execute: (input: any) => read(input.path),
    })
    const editor = agentsTool({
      name: 'edit',
      description: EDITS,
      parameters: { ...EDIT, additionalProperties: false as const },
      strict: true,
      execute: editIn(start, { type: 'image', image: imageUrl }),
      ...(start.edits === 'schema' ? { outputSchema: EDIT_RESULT } : {}),
    } as any)
    const client = new OpenAI({ baseURL: url, apiKey: 'none', maxRetries: 0 }) as never
    const model = start.format === undefined ? new OpenAIChatCompletionsModel(client, 'scripted') : new OpenAIResponsesModel(client, BOUND['openai-responses'])
    const child = start.childId === undefined ? undefined : context?.child({ sessionId: start.childId })
    const delegate = new Agent({ name: 'child', instructions: SYSTEM, model, tools: child?.tools ?? [] }).asTool({
      toolName: 'delegate',
      toolDescription: DELEGATES,
      runConfig: child === undefined ? {} : { callModelInputFilter: child.callModelInputFilter },
      runOptions: { maxTurns: STEPS },
      // With a listener the SDK asks for a stream, and the scripted model gives nothing else.
      onStream: () => {},
    })
    const agent = new Agent({
      name: 'agent',
      instructions: SYSTEM,
      model,
      tools: [
        giver,
        reader,
        ...(start.edits !== undefined ? context!.guard([editor]) : []),
        ...(child === undefined ? [] : [delegate]),
        ...(context === undefined || withoutRecall === true ? [] : context.tools),
      ],
    })
    const history: AgentInputItem[] = []
    return {
      history,
      context: context?.context,
      child: child?.context,
      isUser: (item) => item.role === 'user',
      async prompt(text) {
        history.push({ role: 'user', content: text })
        const result = await run(agent, [...history], {
          stream: true,
          maxTurns: STEPS,
          ...(context === undefined ? {} : { callModelInputFilter: context.callModelInputFilter }),
        })
        await result.completed
        history.splice(0, history.length, ...result.history)
      },
    }
  },

  async langchain(start) {
    const { context: options, withoutRecall } = start
    const { createAgent, tool: langTool, ToolMessage } = await import('langchain')
    const { contextMiddleware } = await import('../../lib/hosts/langchain.ts')
    const middleware = options === undefined ? undefined : contextMiddleware(options)
    const { name, description, parameters, run } = shower(start)
    const giver = langTool(run, { name, description, schema: parameters })
    const reader = langTool(({ path }: any) => read(path), { name: 'read', description: 'Reads a file', schema: PATH })
    const edits = editIn(start, { type: 'image_url', image_url: { url: imageUrl } })
    const edited = (input: unknown, { toolCall }: any) =>
      start.edits === 'image' ? new ToolMessage({ content: edits(input) as never, tool_call_id: toolCall.id, name: 'edit' }) : edits(input)
    const editor = langTool(edited as never, { name: 'edit', description: EDITS, schema: EDIT })
    if (withoutRecall === true && middleware !== undefined) (middleware as { tools?: unknown }).tools = []
    const model = await langchainModel(start)
    const child = start.childId === undefined ? undefined : middleware?.child({ sessionId: start.childId })
    const delegate = langTool(
      async ({ input }: any) => {
        const subagent = createAgent({ model, systemPrompt: SYSTEM, tools: [], middleware: [child!] })
        await subagent.invoke({ messages: [{ role: 'user', content: input }] }, { recursionLimit: 2 * STEPS })
        return 'it is done'
      },
      { name: 'delegate', description: DELEGATES, schema: INPUT },
    )
    const agent = createAgent({
      model,
      systemPrompt: SYSTEM,
      tools: [giver, reader, ...(start.edits !== undefined ? [editor] : []), ...(child === undefined ? [] : [delegate])],
      ...(middleware === undefined ? {} : { middleware: [middleware] }),
    })
    const history: any[] = []
    return {
      history,
      context: middleware?.context,
      child: child?.context,
      isUser: (message) => message.role === 'user' || message.getType?.() === 'human',
      async prompt(text) {
        const result = await agent.invoke({ messages: [...history, { role: 'user', content: text }] }, { recursionLimit: 2 * STEPS })
        history.splice(0, history.length, ...(result as { messages: any[] }).messages)
      },
    }
  },
}

/**
 * The Agents SDK without the listeners that it adds to the process. They end the process at a signal; the test runner
 * forbids that, and the SDK would report the runner's refusal as an unhandled rejection.
 */
async function openaiAgentsSdk(): Promise<typeof import('@openai/agents')> {
  const events = ['SIGINT', 'SIGTERM', 'beforeExit', 'unhandledRejection'] as const
  const before = new Map(events.map((event) => [event, process.rawListeners(event)]))
  const sdk = await import('@openai/agents')
  sdk.getGlobalTraceProvider()
  for (const event of events) {
    for (const listener of process.rawListeners(event)) {
      if (before.get(event)?.includes(listener) === false) process.off(event, listener as () => void)
    }
  }
  return sdk
}

/** Replaces a text wherever it stands in a conversation, in place. */
export function redact(history: any[], from: string, to: string): void {
  const walk = (value: any): any => {
    if (typeof value === 'string') return value.replaceAll(from, to)
    if (typeof value !== 'object' || value === null) return value
    for (const name of Object.keys(value)) {
      const changed = walk(value[name])
      if (changed !== value[name]) value[name] = changed
    }
    return value
  }
  for (const message of history) walk(message)
}

/** The places where each turn of the user begins. */
export function turns(driver: Driver): number[] {
  return driver.history.flatMap((message, index) => (driver.isUser(message) ? [index] : []))
}
