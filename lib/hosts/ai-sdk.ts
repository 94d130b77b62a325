/**
 * Entry for the AI SDK (`ai` 7): `prepareStep` for `generateText`, `streamText` and agents, and its tool.
 *
 * @module
 */
import { jsonSchema, tool } from 'ai'
import type { LanguageModelMiddleware, ModelMessage, Tool, ToolSet } from 'ai'
import { RECALL_DESCRIPTION, RECALL_PARAMETERS } from '../projection/index.ts'
import type { RecallInput } from '../projection/index.ts'
import { commonContext, HostContext } from './context.ts'
import type { CommonContext, HostOptions } from './context.ts'
import { after, guarded } from './guard.ts'

export type { HostOptions } from './context.ts'

/** The context of one conversation or agent. */
export interface AiSdkContext extends CommonContext<AiSdkContext> {
  /** Pass this as the option `prepareStep`. The AI SDK carries its result forward to later steps. */
  prepareStep: (step: { messages: ModelMessage[] }) => Promise<{ messages: ModelMessage[] }>
  /**
   * For `wrapLanguageModel`, with models that bind their reasoning: sees whether requests ask for drops, and repeats one that was
   * refused because of its reasoning, once and without it. Where you don't use it, pass such an error to `context.refused`.
   */
  readonly middleware: LanguageModelMiddleware
  /** Spread this into the agent's tools. Nothing collapses until you have read this property. */
  readonly tools: { activate: Tool<RecallInput, string> }
  /**
   * Returns your tools with a guard before those that change files (`edit`, `write` and their like): a call that would
   * overwrite a change that the model has not seen fails once, with the difference. Pass these to the agent.
   */
  guard<T extends ToolSet>(tools: T): T
}

/** Creates a context, opened at the first step. It never fails: if something goes wrong, the agent continues without it. */
export function contextFor(options: HostOptions): AiSdkContext {
  const context = new HostContext(options, 'ai-sdk')
  let isGiven = false
  const activate = tool({
    description: RECALL_DESCRIPTION,
    inputSchema: jsonSchema<RecallInput>(RECALL_PARAMETERS),
    execute: (input) => context.activate(input),
  }) as Tool<RecallInput, string>
  return {
    ...commonContext(context, options, contextFor),
    middleware: {
      specificationVersion: 'v4',
      wrapGenerate: ({ doGenerate, model, params }) => again(context, params, doGenerate, () => model.doGenerate(unreasoned(params))),
      wrapStream: ({ doStream, model, params }) => again(context, params, doStream, () => model.doStream(unreasoned(params))),
    },
    prepareStep: async ({ messages }) => ({ messages: await context.transform(messages, isGiven) }),
    get tools() {
      isGiven = true
      return { activate }
    },
    guard: <T extends ToolSet>(tools: T) =>
      Object.fromEntries(Object.entries(tools).map(([name, one]) => [name, guardedTool(context, name, one as Tool)])) as T,
  }
}

/** Makes a call, and a second one if the first was refused because of its reasoning. */
async function again<T>(context: HostContext, params: CallOptions, first: () => PromiseLike<T>, second: () => PromiseLike<T>): Promise<T> {
  await context.asked(params.providerOptions)
  try {
    return await first()
  } catch (error) {
    if (await context.refused(error)) return second()
    throw error
  }
}

type CallOptions = Parameters<NonNullable<LanguageModelMiddleware['wrapStream']>>[0]['params']

/** A call's options without any reasoning in the prompt. */
function unreasoned(params: CallOptions): CallOptions {
  const prompt = params.prompt.flatMap((message): CallOptions['prompt'] => {
    if (message.role !== 'assistant') return [message]
    const content = message.content.filter(({ type }) => type !== 'reasoning')
    return content.length === 0 ? [] : [{ ...message, content }]
  })
  return { ...params, prompt }
}

/** A tool that asks before it changes a file. */
function guardedTool(context: HostContext, name: string, one: Tool): Tool {
  const { execute, toModelOutput: own } = one
  if (execute === undefined) return one
  /** Texts to add after results that are not text, once these are turned into what the model reads. */
  const differences = new Map<string, string>()
  const refuse = (refusal: string): never => {
    throw new Error(refusal)
  }
  const run: NonNullable<Tool['execute']> = (input, options) => {
    const add = (result: unknown, difference: string): unknown => {
      if (typeof result === 'string' && own === undefined) return after(result, difference)
      differences.set(options.toolCallId, difference)
      return result
    }
    return guarded<unknown>(context, { name, args: input, callId: options.toolCallId }, () => execute(input, options), refuse, add)
  }
  const toModelOutput: NonNullable<Tool['toModelOutput']> = async (given) => {
    const output = await (own?.(given) ?? modelOutput(given.output))
    const difference = differences.get(given.toolCallId)
    return difference === undefined ? output : withDifference(output, difference)
  }
  return { ...one, execute: run, toModelOutput } as Tool
}

type ModelOutput = Awaited<ReturnType<NonNullable<Tool['toModelOutput']>>>

/** Returns the form that the AI SDK gives a result by itself. */
function modelOutput(result: unknown): ModelOutput {
  if (typeof result === 'string') return { type: 'text', value: result }
  return { type: 'json', value: JSON.parse(JSON.stringify(result) ?? 'null') }
}

/** A result as the model reads it, with a text after it. */
function withDifference(output: ModelOutput, difference: string): ModelOutput {
  switch (output.type) {
    case 'text':
    case 'error-text':
      return { ...output, value: after(output.value, difference) }
    case 'json':
      return { ...output, type: 'text', value: after(JSON.stringify(output.value), difference) }
    case 'error-json':
      return { ...output, type: 'error-text', value: after(JSON.stringify(output.value), difference) }
    case 'content':
      return { ...output, value: [...output.value, { type: 'text', text: difference }] }
    default:
      return output
  }
}
