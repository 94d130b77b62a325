/**
 * Entry for pi-agent-core's `Agent`: `transformContext` and its tool.
 *
 * @module
 */
import type {
  AfterToolCallContext,
  AfterToolCallResult,
  AgentMessage,
  AgentTool,
  BeforeToolCallContext,
  BeforeToolCallResult,
} from '@earendil-works/pi-agent-core'
import { RECALL, RECALL_DESCRIPTION, RECALL_PARAMETERS } from '../projection/index.ts'
import type { RecallInput } from '../projection/index.ts'
import { commonContext, HostContext } from './context.ts'
import type { CommonContext, HostOptions } from './context.ts'

export type { HostOptions } from './context.ts'

/** The context of one agent. */
export interface AgentContext extends CommonContext<AgentContext> {
  /** Pass this as the agent's option `transformContext`. */
  transformContext: (messages: AgentMessage[], signal?: AbortSignal) => Promise<AgentMessage[]>
  /**
   * Pass this as the agent's option `beforeToolCall`, and the next one as `afterToolCall`: a call of `edit`, `write` or their
   * like that would overwrite a change that the model has not seen is refused once, with the difference.
   */
  beforeToolCall: (call: BeforeToolCallContext) => Promise<BeforeToolCallResult | undefined>
  /** See `beforeToolCall`. */
  afterToolCall: (call: AfterToolCallContext) => Promise<AfterToolCallResult | undefined>
  /** Add these to the agent's tools. Nothing collapses until you have read this property. */
  readonly tools: AgentTool[]
}

/** Creates a context, opened at the first call. It never fails: if something goes wrong, the agent continues without it. */
export function contextFor(options: HostOptions): AgentContext {
  const context = new HostContext(options, 'pi')
  let isGiven = false
  /** Texts to put after the results of calls that are under way. */
  const differences = new Map<string, string>()
  const activate = {
    name: RECALL,
    label: RECALL,
    description: RECALL_DESCRIPTION,
    parameters: RECALL_PARAMETERS,
    execute: async (_id: string, input: unknown) => {
      const text = await context.activate(input as RecallInput)
      return { content: [{ type: 'text' as const, text }], details: undefined }
    },
  } as unknown as AgentTool
  return {
    ...commonContext(context, options, contextFor),
    transformContext: (messages) => context.transform(messages, isGiven),
    async beforeToolCall({ toolCall: { id, name }, args }) {
      const { refusal, difference } = await context.guard({ name, args, callId: id })
      if (refusal !== undefined) return { block: true, reason: refusal }
      if (difference !== undefined) differences.set(id, difference)
      return undefined
    },
    async afterToolCall({ toolCall: { id, name }, args, result, isError }) {
      const difference = differences.get(id)
      differences.delete(id)
      if (isError) return undefined
      await context.changed({ name, args, callId: id })
      return difference === undefined ? undefined : { content: [...result.content, { type: 'text', text: difference }] }
    },
    get tools() {
      isGiven = true
      return [activate]
    },
  }
}
