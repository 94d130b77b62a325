/**
 * Entry for the OpenAI Agents SDK (`@openai/agents`): `callModelInputFilter` for `run` and `Runner`, and its tool.
 *
 * @module
 */
import { tool } from '@openai/agents'
import type { AgentInputItem, CallModelInputFilter, FunctionTool, Tool } from '@openai/agents'
import { isFields } from '../core/index.ts'
import { RECALL, RECALL_DESCRIPTION, RECALL_PARAMETERS } from '../projection/index.ts'
import type { RecallInput } from '../projection/index.ts'
import { commonContext, HostContext } from './context.ts'
import type { CommonContext, HostOptions } from './context.ts'
import { after, guarded } from './guard.ts'

export type { HostOptions } from './context.ts'

/** The context of one conversation. */
export interface AgentsContext extends CommonContext<AgentsContext> {
  /** Pass this as the option `callModelInputFilter`. */
  callModelInputFilter: CallModelInputFilter
  /** Add these to the tools of every agent. While the current agent lacks them, nothing collapses. */
  readonly tools: FunctionTool<any, any, any>[]
  /**
   * Returns your tools with a guard before those that change files (`edit`, `write` and their like): a call that would
   * overwrite a change that the model has not seen is refused once, with the difference. Give these to the agent.
   */
  guard<T extends Tool<any>>(tools: readonly T[]): T[]
}

/** Creates a context, opened at the first call. It never fails: if something goes wrong, the agent continues without it. */
export function contextFor(options: HostOptions): AgentsContext {
  // The SDK's sessions store what was sent, so shortened text would later count as what was said.
  const context = new HostContext(options, 'openai-responses', false)
  const activate = tool({
    name: RECALL,
    description: RECALL_DESCRIPTION,
    parameters: { ...RECALL_PARAMETERS, additionalProperties: true as const },
    strict: false,
    execute: (input: unknown) => context.activate(input as RecallInput),
  })
  return {
    ...commonContext(context, options, contextFor),
    callModelInputFilter: async ({ modelData, agent }) => {
      const canRecall = agent.tools.some((one) => one.type === 'function' && one.name === RECALL)
      return { ...modelData, input: await context.transform<AgentInputItem>(modelData.input, canRecall) }
    },
    tools: [activate],
    guard: <T extends Tool<any>>(tools: readonly T[]) => tools.map((one) => (one.type === 'function' ? (guardedTool(context, one) as unknown as T) : one)),
  }
}

/** A tool that asks before it changes a file. One whose results have a schema stays as it is: nothing of ours would fit it. */
function guardedTool(context: HostContext, one: FunctionTool<any, any, any>): FunctionTool<any, any, any> {
  if (one.outputSchema !== undefined) return one
  const invoke: typeof one.invoke = (run, input, details) =>
    guarded<unknown>(
      context,
      { name: one.name, args: parsed(input), callId: details?.toolCall?.callId },
      () => one.invoke(run, input, details),
      (refusal) => refusal,
      withDifference,
    )
  return { ...one, invoke }
}

/** A result with a text after it: parts get one more, anything else is shown as the SDK shows it. */
function withDifference(result: unknown, difference: string): unknown {
  const parts = [result].flat()
  if (parts.length > 0 && parts.every(isPart)) return [...parts, { type: 'text', text: difference }]
  const shown = typeof result === 'object' && result !== null ? JSON.stringify(result) : String(result)
  return after(shown, difference)
}

function isPart(value: unknown): boolean {
  return isFields(value) && ['text', 'image', 'file'].includes(String(value['type']))
}

function parsed(input: string): unknown {
  try {
    return JSON.parse(input)
  } catch {
    // The tool itself says what is wrong with its arguments.
    return undefined
  }
}
