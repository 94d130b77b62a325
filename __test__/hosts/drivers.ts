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
}

/** How a host is started. Without `context` it runs alone. */
export interface Start {
  /** The model server's address, with `/v1`. */
  url: string
  context?: HostOptions
  /** The model has no tool to bring anything back. */
  withoutRecall?: boolean
  /** The tool `show`. */
  show: (name: string) => string | Promise<string>
}

const read = (path: string) => readFileSync(path, 'utf8')
const PATH = { type: 'object' as const, properties: { path: { type: 'string' as const } }, required: ['path'], additionalProperties: false }
const SYSTEM = 'You help.'
const PARAMETERS = { type: 'object' as const, properties: { name: { type: 'string' as const } }, required: ['name'], additionalProperties: false }
const STEPS = 200

export const drivers: Record<string, (start: Start) => Promise<Driver>> = {
  async 'ai-sdk'({ url, context: options, withoutRecall, show }) {
    const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible')
    const { isStepCount, jsonSchema, streamText, tool: aiTool } = await import('ai')
    const { contextFor: aiSdk } = await import('../../lib/hosts/ai-sdk.ts')
    const context = options === undefined ? undefined : aiSdk(options)
    const model = createOpenAICompatible({ name: 'scripted', baseURL: url, apiKey: 'none', includeUsage: true })('scripted')
    const history: ModelMessage[] = []
    const tools = {
      show: aiTool({ description: 'Shows a text', inputSchema: jsonSchema<{ name: string }>(PARAMETERS), execute: ({ name }) => show(name) }),
      read: aiTool({ description: 'Reads a file', inputSchema: jsonSchema<{ path: string }>(PATH), execute: ({ path }) => read(path) }),
      ...(context === undefined || withoutRecall === true ? {} : context.tools),
    }
    return {
      history,
      context: context?.context,
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

  async 'pi-agent-core'({ url, context: options, withoutRecall, show }) {
    const { Agent: PiAgent } = await import('@earendil-works/pi-agent-core')
    const { streamSimple } = await import('@earendil-works/pi-ai/api/openai-completions')
    const { contextFor: piAgent } = await import('../../lib/hosts/pi-agent-core.ts')
    const context = options === undefined ? undefined : piAgent(options)
    const shower: AgentTool = {
      name: 'show',
      label: 'show',
      description: 'Shows a text',
      parameters: PARAMETERS as never,
      execute: async (_id, input) => ({ content: [{ type: 'text', text: await show((input as { name: string }).name) }], details: undefined }),
    }
    const reader: AgentTool = {
      ...shower,
      name: 'read',
      label: 'read',
      description: 'Reads a file',
      parameters: PATH as never,
      execute: async (_id, input) => ({ content: [{ type: 'text', text: read((input as { path: string }).path) }], details: undefined }),
    }
    const model = {
      id: 'scripted',
      name: 'scripted',
      api: 'openai-completions' as const,
      provider: 'scripted',
      baseUrl: url,
      reasoning: false,
      input: ['text' as const],
      cost: { input: 1, output: 1, cacheRead: 0.1, cacheWrite: 1.25 },
      contextWindow: 200_000,
      maxTokens: 1000,
    }
    const agent = new PiAgent({
      initialState: {
        systemPrompt: SYSTEM,
        model: model as never,
        tools: [shower, reader, ...(context === undefined || withoutRecall === true ? [] : context.tools)],
      },
      getApiKey: () => 'none',
      streamFn: streamSimple as never,
      ...(context === undefined ? {} : { transformContext: context.transformContext }),
    })
    return {
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

  async 'openai-agents'({ url, context: options, withoutRecall, show }) {
    const { Agent, OpenAIChatCompletionsModel, run, setTracingDisabled, tool: agentsTool } = await import('@openai/agents')
    const { OpenAI } = await import('openai')
    const { contextFor: openaiAgents } = await import('../../lib/hosts/openai-agents.ts')
    setTracingDisabled(true)
    const context = options === undefined ? undefined : openaiAgents(options)
    const shower = agentsTool({ name: 'show', description: 'Shows a text', parameters: { ...PARAMETERS, additionalProperties: false as const }, strict: true, execute: (input: any) => show(input.name) })
    const reader = agentsTool({ name: 'read', description: 'Reads a file', parameters: { ...PATH, additionalProperties: false as const }, strict: true, execute: (input: any) => read(input.path) })
    const agent = new Agent({
      name: 'agent',
      instructions: SYSTEM,
      model: new OpenAIChatCompletionsModel(new OpenAI({ baseURL: url, apiKey: 'none', maxRetries: 0 }) as never, 'scripted'),
      tools: [shower, reader, ...(context === undefined || withoutRecall === true ? [] : context.tools)],
    })
    const history: AgentInputItem[] = []
    return {
      history,
      context: context?.context,
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

  async langchain({ url, context: options, withoutRecall, show }) {
    const { ChatOpenAICompletions } = await import('@langchain/openai')
    const { createAgent, tool: langTool } = await import('langchain')
    const { contextMiddleware } = await import('../../lib/hosts/langchain.ts')
    /** LangChain counts tokens of streams itself, with tables from the network: here nobody asks for them. */
    class LocalChat extends ChatOpenAICompletions {
      override async getNumTokens(): Promise<number> {
        return 0
      }
    }
    const middleware = options === undefined ? undefined : contextMiddleware(options)
    const shower = langTool(({ name }: any) => show(name), { name: 'show', description: 'Shows a text', schema: PARAMETERS })
    const reader = langTool(({ path }: any) => read(path), { name: 'read', description: 'Reads a file', schema: PATH })
    if (withoutRecall === true && middleware !== undefined) (middleware as { tools?: unknown }).tools = []
    const agent = createAgent({
      model: new LocalChat({ model: 'scripted', apiKey: 'none', configuration: { baseURL: url }, streaming: true, maxRetries: 0 }),
      systemPrompt: SYSTEM,
      tools: [shower, reader],
      ...(middleware === undefined ? {} : { middleware: [middleware] }),
    })
    const history: any[] = []
    return {
      history,
      context: middleware?.context,
      isUser: (message) => message.role === 'user' || message.getType?.() === 'human',
      async prompt(text) {
        const result = await agent.invoke({ messages: [...history, { role: 'user', content: text }] }, { recursionLimit: 2 * STEPS })
        history.splice(0, history.length, ...(result as { messages: any[] }).messages)
      },
    }
  },
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
