/**
 * The AI SDK (`ai` 7): `prepareStep` for `generateText`, `streamText` and agents, and the tool that goes with it.
 *
 * @module
 */
import { jsonSchema, tool } from 'ai'
import type { ModelMessage, Tool } from 'ai'
import { RECALL_DESCRIPTION, RECALL_PARAMETERS } from '../harness/recall.ts'
import type { RecallInput } from '../harness/recall.ts'
import { HostContext } from './context.ts'
import type { HostOptions } from './context.ts'

export type { HostOptions } from './context.ts'

/** The context of one conversation, or of one agent. */
export interface AiSdkContext extends AsyncDisposable {
  /** For the option `prepareStep`. What it returns carries forward to later steps. */
  prepareStep: (step: { messages: ModelMessage[] }) => Promise<{ messages: ModelMessage[] }>
  /** To be spread into the agent's tools. As long as nobody has asked for it nothing collapses. */
  readonly tools: { activate: Tool<RecallInput, string> }
  /** The context of a subagent: its model can bring back what its prompt names. */
  child(options: HostOptions): AiSdkContext
  /** Closes the session. */
  close(): Promise<void>
  /** What the entries of all hosts share. */
  readonly context: HostContext
}

/** Opens a context at the first step. It never fails: if something goes wrong, the agent goes on without it. */
export function contextFor(options: HostOptions): AiSdkContext {
  const context = new HostContext(options, 'ai-sdk')
  let isGiven = false
  const activate = tool({
    description: RECALL_DESCRIPTION,
    inputSchema: jsonSchema<RecallInput>(RECALL_PARAMETERS),
    execute: (input) => context.activate(input),
  }) as Tool<RecallInput, string>
  return {
    context,
    prepareStep: async ({ messages }) => ({ messages: await context.transform(messages, isGiven) }),
    get tools() {
      isGiven = true
      return { activate }
    },
    child: (more) => contextFor({ ...options, ...more, parent: context }),
    close: () => context.close(),
    [Symbol.asyncDispose]: () => context.close(),
  }
}
