/**
 * pi-agent-core's `Agent`: `transformContext`, and the tool that goes with it.
 *
 * @module
 */
import type { AgentMessage, AgentTool } from '@earendil-works/pi-agent-core'
import { RECALL, RECALL_DESCRIPTION, RECALL_PARAMETERS } from '../harness/recall.ts'
import type { RecallInput } from '../harness/recall.ts'
import { HostContext } from './context.ts'
import type { HostOptions } from './context.ts'

export type { HostOptions } from './context.ts'

/** The context of one agent. */
export interface AgentContext extends AsyncDisposable {
  /** For the agent's option `transformContext`. */
  transformContext: (messages: AgentMessage[], signal?: AbortSignal) => Promise<AgentMessage[]>
  /** To be put among the agent's tools. As long as nobody has asked for it nothing collapses. */
  readonly tools: AgentTool[]
  /** The context of a subagent: its model can bring back what its prompt names. */
  child(options: HostOptions): AgentContext
  /** Closes the session. */
  close(): Promise<void>
  /** What the entries of all hosts share. */
  readonly context: HostContext
}

/** Opens a context at the first call. It never fails: if something goes wrong, the agent goes on without it. */
export function contextFor(options: HostOptions): AgentContext {
  const context = new HostContext(options, 'pi')
  let isGiven = false
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
    context,
    transformContext: (messages) => context.transform(messages, isGiven),
    get tools() {
      isGiven = true
      return [activate]
    },
    child: (more) => contextFor({ ...options, ...more, parent: context }),
    close: () => context.close(),
    [Symbol.asyncDispose]: () => context.close(),
  }
}
