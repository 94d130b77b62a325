/**
 * The OpenAI Agents SDK (`@openai/agents`): `callModelInputFilter` for `run` and `Runner`, and the tool that goes with it.
 *
 * @module
 */
import { tool } from '@openai/agents'
import type { AgentInputItem, CallModelInputFilter, FunctionTool } from '@openai/agents'
import { RECALL, RECALL_DESCRIPTION, RECALL_PARAMETERS } from '../harness/recall.ts'
import type { RecallInput } from '../harness/recall.ts'
import { HostContext } from './context.ts'
import type { HostOptions } from './context.ts'

export type { HostOptions } from './context.ts'

/** The context of one conversation. */
export interface AgentsContext extends AsyncDisposable {
  /** For the option `callModelInputFilter`. */
  callModelInputFilter: CallModelInputFilter
  /** To be put among the tools of each agent. Where the agent that is called has it not nothing collapses. */
  readonly tools: FunctionTool<any, any, any>[]
  /** The context of a subagent: its model can bring back what its prompt names. */
  child(options: HostOptions): AgentsContext
  /** Closes the session. */
  close(): Promise<void>
  /** What the entries of all hosts share. */
  readonly context: HostContext
}

/** Opens a context at the first call. It never fails: if something goes wrong, the agent goes on without it. */
export function contextFor(options: HostOptions): AgentsContext {
  // Its sessions store what it is sent: words that were shortened there would be taken for what was said.
  const context = new HostContext(options, 'openai-responses', false)
  const activate = tool({
    name: RECALL,
    description: RECALL_DESCRIPTION,
    parameters: { ...RECALL_PARAMETERS, additionalProperties: true as const },
    strict: false,
    execute: (input: unknown) => context.activate(input as RecallInput),
  })
  return {
    context,
    callModelInputFilter: async ({ modelData, agent }) => {
      const canRecall = agent.tools.some((one) => one.type === 'function' && one.name === RECALL)
      return { ...modelData, input: await context.transform<AgentInputItem>(modelData.input, canRecall) }
    },
    tools: [activate],
    child: (more) => contextFor({ ...options, ...more, parent: context }),
    close: () => context.close(),
    [Symbol.asyncDispose]: () => context.close(),
  }
}
