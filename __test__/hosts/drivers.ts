/** Each host with its real package, driven alike: one tool, one conversation, a scripted model over HTTP. A package is loaded where its host is. */
import type { AgentTool } from '@earendil-works/pi-agent-core'
import type { AgentInputItem } from '@openai/agents'
import type { ModelMessage } from 'ai'
import { readFileSync } from 'node:fs'
import type { HostContext, HostOptions } from '../../lib/hosts/context.ts'

/** A running host. */
export interface Driver {
  /** One turn of the user, until the model calls nothing any more. */
  prompt(text: string): Promise<void>
  /** The host's own conversation, which may be changed. */
  history: any[]
  /** Whether a message is the user's. */
  isUser(message: any): boolean
  /** What the host's entry made; undefined where the host runs alone. */
  context: HostContext | undefined
  /** The context of the subagent that the tool `delegate` starts. */
  child?: HostContext | undefined
}

/** How a host is started. Without `context` it runs alone. */
export interface Start {
  /** The model server's address, with `/v1`. */
  url: string
  context?: HostOptions
  /**
   * The format, of a model that signs its reasoning. Default: chat completions, which carry none. Each host has the one that
   * its real package speaks here: Anthropic's for `ai-sdk` and `pi-agent-core`, OpenAI's responses for the others.
   */
  signs?: boolean
  /** The model has no tool to bring anything back. */
  withoutRecall?: boolean
  /** The tool `show`. */
  show: (name: string) => string | Promise<string>
  /** The tool is not `show` but a shell in which `cat NAME.txt` does the same, as in agents that have nothing else. */
  isShell?: boolean
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
    const { url, context: options, withoutRecall } = start
    const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible')
    const { isStepCount, jsonSchema, streamText, tool: aiTool } = await import('ai')
    const { contextFor: aiSdk } = await import('../../lib/hosts/ai-sdk.ts')
    const context = options === undefined ? undefined : aiSdk(options)
    const { createAnthropic } = await import('@ai-sdk/anthropic')
    const model =
      start.signs === true
        ? createAnthropic({ baseURL: url, apiKey: 'none' })('claude-opus-5-5')
        : createOpenAICompatible({ name: 'scripted', baseURL: url, apiKey: 'none', includeUsage: true })('scripted')
    const history: ModelMessage[] = []
    const { name, description, parameters, run } = shower(start)
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
    const { url, context: options, withoutRecall } = start
    const { Agent: PiAgent } = await import('@earendil-works/pi-agent-core')
    const signs = start.signs === true
    const { streamSimple } = signs
      ? await import('@earendil-works/pi-ai/api/anthropic-messages')
      : await import('@earendil-works/pi-ai/api/openai-completions')
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
    const model = {
      id: signs ? 'claude-opus-5-5' : 'scripted',
      name: 'scripted',
      api: signs ? ('anthropic-messages' as const) : ('openai-completions' as const),
      provider: 'scripted',
      // Anthropic's client adds `/v1` itself.
      baseUrl: signs ? url.replace(/\/v1$/, '') : url,
      reasoning: signs,
      input: ['text' as const],
      cost: { input: 1, output: 1, cacheRead: 0.1, cacheWrite: 1.25 },
      contextWindow: 200_000,
      maxTokens: 1000,
    }
    const child = start.childId === undefined ? undefined : context?.child({ sessionId: start.childId })
    const started = (entry: typeof context, tools: AgentTool[]) =>
      new PiAgent({
        initialState: { systemPrompt: SYSTEM, model: model as never, tools },
        getApiKey: () => 'none',
        streamFn: streamSimple as never,
        ...(entry === undefined ? {} : { transformContext: entry.transformContext }),
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
    const reader = agentsTool({ name: 'read', description: 'Reads a file', parameters: { ...PATH, additionalProperties: false as const }, strict: true, execute: (input: any) => read(input.path) })
    const client = new OpenAI({ baseURL: url, apiKey: 'none', maxRetries: 0 }) as never
    const model = start.signs === true ? new OpenAIResponsesModel(client, 'gpt-6.2-sol') : new OpenAIChatCompletionsModel(client, 'scripted')
    const child = start.childId === undefined ? undefined : context?.child({ sessionId: start.childId })
    const delegate = new Agent({ name: 'child', instructions: SYSTEM, model, tools: child?.tools ?? [] }).asTool({
      toolName: 'delegate',
      toolDescription: DELEGATES,
      runConfig: child === undefined ? {} : { callModelInputFilter: child.callModelInputFilter },
      runOptions: { maxTurns: STEPS },
      // With somebody who listens the SDK asks for a stream, and the scripted model gives nothing else.
      onStream: () => {},
    })
    const agent = new Agent({
      name: 'agent',
      instructions: SYSTEM,
      model,
      tools: [giver, reader, ...(child === undefined ? [] : [delegate]), ...(context === undefined || withoutRecall === true ? [] : context.tools)],
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
    const { url, context: options, withoutRecall } = start
    const { ChatOpenAICompletions, ChatOpenAIResponses } = await import('@langchain/openai')
    const { createAgent, tool: langTool } = await import('langchain')
    const { contextMiddleware } = await import('../../lib/hosts/langchain.ts')
    /** LangChain counts tokens of streams itself, with tables from the network: here nobody asks for them. */
    class LocalChat extends ChatOpenAICompletions {
      override async getNumTokens(): Promise<number> {
        return 0
      }
    }
    const middleware = options === undefined ? undefined : contextMiddleware(options)
    const { name, description, parameters, run } = shower(start)
    const giver = langTool(run, { name, description, schema: parameters })
    const reader = langTool(({ path }: any) => read(path), { name: 'read', description: 'Reads a file', schema: PATH })
    if (withoutRecall === true && middleware !== undefined) (middleware as { tools?: unknown }).tools = []
    const plain = { apiKey: 'none', configuration: { baseURL: url }, streaming: true, maxRetries: 0 }
    const model = start.signs === true ? new ChatOpenAIResponses({ model: 'gpt-6.2-sol', zdrEnabled: true, ...plain }) : new LocalChat({ model: 'scripted', ...plain })
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
      tools: [giver, reader, ...(child === undefined ? [] : [delegate])],
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
export async function openaiAgentsSdk(): Promise<typeof import('@openai/agents')> {
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

/** Where each turn of the user begins. */
export function turns(driver: Driver): number[] {
  return driver.history.flatMap((message, index) => (driver.isUser(message) ? [index] : []))
}
