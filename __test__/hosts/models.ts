/**
 * The models of the hosts' real packages, in the format that a test asks for: chat completions, which carry no signed
 * reasoning, or a format that does. A package is loaded where its host is.
 */
import { withBindingBeta } from '../../lib/models/binding.ts'

/** A format that carries signed reasoning. */
export type SignedFormat = 'anthropic-messages' | 'openai-responses'

/** The options of a host's model. */
interface ModelStart {
  /** The model server's address, with `/v1`. */
  url: string
  /** Default: chat completions. */
  format?: SignedFormat | undefined
  /** Its requests ask the provider to drop reasoning that no longer fits. Only Anthropic's format has the field. */
  asks?: boolean | undefined
}

/** The names of models that bind their reasoning, by their format. */
export const BOUND: Record<SignedFormat, string> = { 'anthropic-messages': 'claude-opus-5-5', 'openai-responses': 'gpt-6.2-sol' }

const DROPS = { thinking: { type: 'adaptive', block_binding: { prefix_mismatch_behavior: 'drop_block' } } }
const BETA = { 'anthropic-beta': withBindingBeta(undefined) }

/** In the AI SDK, a call's options ask for drops. */
export const ASKING = { anthropic: { thinking: { type: 'adaptive', blockBinding: { prefixMismatchBehavior: 'drop_block' } } } } as const

export async function aiSdkModel({ url: baseURL, format }: ModelStart): Promise<any> {
  if (format === undefined) {
    const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible')
    return createOpenAICompatible({ name: 'scripted', baseURL, apiKey: 'none', includeUsage: true })('scripted')
  }
  if (format === 'openai-responses') {
    const { createOpenAI } = await named('@ai-sdk/openai')
    const { defaultSettingsMiddleware, wrapLanguageModel } = await import('ai')
    // With `store` the reasoning stays at the provider, and nothing shows what became of it.
    const middleware = defaultSettingsMiddleware({ settings: { providerOptions: { openai: { store: false } } } })
    return wrapLanguageModel({ model: createOpenAI({ baseURL, apiKey: 'none' }).responses(BOUND[format]), middleware })
  }
  const { createAnthropic } = await import('@ai-sdk/anthropic')
  return createAnthropic({ baseURL, apiKey: 'none' })(BOUND[format])
}

/** pi-ai's model, and the function that streams its answers. */
export async function piModel({ url, format, asks = false }: ModelStart): Promise<{ model: any; streamFn: any }> {
  const { streamSimple } =
    format === undefined
      ? await import('@earendil-works/pi-ai/api/openai-completions')
      : format === 'anthropic-messages'
        ? await import('@earendil-works/pi-ai/api/anthropic-messages')
        : await import('@earendil-works/pi-ai/api/openai-responses')
  const model = {
    id: format === undefined ? 'scripted' : BOUND[format],
    name: 'scripted',
    api: format ?? 'openai-completions',
    provider: 'scripted',
    // Anthropic's client adds `/v1` itself.
    baseUrl: format === 'anthropic-messages' ? url.replace(/\/v1$/, '') : url,
    reasoning: format !== undefined,
    input: ['text' as const, 'image' as const],
    cost: { input: 1, output: 1, cacheRead: 0.1, cacheWrite: 1.25 },
    contextWindow: 200_000,
    maxTokens: 1000,
    ...(asks ? { compat: { supportsMidConvoEffort: true, supportsMidConvoSystemMessages: true } } : {}),
  }
  return { model, streamFn: streamSimple }
}

export async function langchainModel({ url, format, asks = false }: ModelStart): Promise<any> {
  if (format === 'anthropic-messages') {
    const { ChatAnthropic } = await named('@langchain/anthropic')
    return new ChatAnthropic({
      model: BOUND[format],
      apiKey: 'none',
      anthropicApiUrl: url.replace(/\/v1$/, ''),
      streaming: true,
      maxRetries: 0,
      ...(asks ? { invocationKwargs: DROPS, clientOptions: { defaultHeaders: BETA } } : {}),
    })
  }
  const { ChatOpenAICompletions, ChatOpenAIResponses } = await import('@langchain/openai')
  /** LangChain counts tokens of streams itself, with tables from the network: no test here asks for them. */
  class LocalChat extends ChatOpenAICompletions {
    override async getNumTokens(): Promise<number> {
      return 0
    }
  }
  const plain = { apiKey: 'none', configuration: { baseURL: url }, streaming: true, maxRetries: 0 }
  return format === undefined ? new LocalChat({ model: 'scripted', ...plain }) : new ChatOpenAIResponses({ model: BOUND[format], ...plain })
}

/** A package whose types nothing here needs. */
function named(name: string): Promise<any> {
  return import(name)
}
