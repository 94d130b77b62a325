/**
 * Plugin for OpenCode (1.18). Before each model call, OpenCode passes all messages of a session, and plugins change the
 * array in place. OpenCode loads every export of this module as a plugin, so there must be no others.
 *
 * @module
 */
import { resolve } from 'node:path'
import type { Fields } from '../core/index.ts'
import { isFields, textOf } from '../core/index.ts'
import { RECALL, RECALL_DESCRIPTION, RECALL_PARAMETERS } from '../projection/index.ts'
import type { ProjectedModel, RecallInput } from '../projection/index.ts'
import { cacheNamed, modelNamed } from '../models/index.ts'
import type { Binding } from '../models/index.ts'
import { HostContext } from './context.ts'
import type { HostOptions } from './context.ts'
import { after } from './guard.ts'
import { opencodeShape, shownFile, WRITES } from './opencode-shape.ts'
import type { HostMessage } from './opencode-shape.ts'

/** The input that OpenCode passes to a plugin, as far as this one uses it. */
interface Given {
  directory: string
  client?: { session: { get(request: { path: { id: string } }): Promise<{ data?: { parentID?: string } }> } }
}

/** The hooks that a plugin returns, as far as this one does. */
interface Hooks {
  dispose(): Promise<void>
  config(config: Fields): Promise<void>
  tool: Record<string, { description: string; args: Record<string, unknown>; execute(input: never, context: { sessionID: string }): Promise<string> }>
  'experimental.chat.messages.transform'(input: object, output: { messages: object[] }): Promise<void>
  'experimental.session.compacting'(input: { sessionID: string }): Promise<void>
  'chat.params'(input: { sessionID: string; agent?: string; model: Fields }, output?: { options?: Fields }): Promise<void>
  'tool.execute.before'(input: { tool: string; sessionID: string; callID: string }, output: { args: unknown }): Promise<void>
  'tool.execute.after'(
    input: { tool: string; sessionID: string; callID: string; args?: unknown },
    output?: { output?: unknown; metadata?: unknown },
  ): Promise<void>
}

/** The AI SDK's packages whose requests can ask for drops. */
const ASKING: ReadonlySet<string> = new Set(['@ai-sdk/anthropic', '@ai-sdk/google-vertex/anthropic', '@ai-sdk/amazon-bedrock'])

/** A byte order mark and `\r\n`: OpenCode shows neither. */
const NOT_SHOWN = /^\uFEFF|\r\n/

/**
 * The plugin. Its options in OpenCode's configuration are {@link HostOptions} without `sessionId` and `cwd`; of `model`, only
 * `binding` counts, because OpenCode says the rest.
 */
export async function ContextManagerPlugin({ directory, client }: Given, options: Fields = {}): Promise<Hooks> {
  const contexts = new Map<string, Promise<HostContext>>()
  const models = new Map<string, Fields>()
  /** Sessions whose next list of messages is for a compaction, not for the conversation. */
  const compacting = new Set<string>()
  /** Reads whose lines differ from the file's, character for character. */
  const altered = new Set<string>()
  /** Texts to put after the results of edits that are under way. */
  const differences = new Map<string, string>()
  let settings: Fields = {}
  const { binding } = isFields(options['model']) ? (options['model'] as { binding?: Binding }) : {}
  const contextOf = (sessionID: string): Promise<HostContext> => {
    let context = contexts.get(sessionID)
    if (context === undefined) contexts.set(sessionID, (context = opened(sessionID)))
    return context
  }
  const opened = async (sessionID: string): Promise<HostContext> => {
    const own: HostOptions = { ...options, sessionId: `opencode:${sessionID}`, cwd: directory, model: () => modelOf(models.get(sessionID), binding) }
    // A subagent is a session with a parent. If OpenCode does not answer, treat it as one without.
    const told = await client?.session.get({ path: { id: sessionID } }).catch(() => undefined)
    const parentID = told?.data?.parentID
    return new HostContext(
      parentID === undefined ? own : { ...own, parent: await contextOf(parentID) },
      opencodeShape((callId) => altered.has(callId)),
    )
  }
  const { z } = await import('zod')
  return {
    async dispose() {
      for (const context of contexts.values()) await (await context).close()
    },
    async config(config) {
      settings = config
    },
    tool: {
      [RECALL]: {
        description: RECALL_DESCRIPTION,
        args: {
          id: z.string().describe(RECALL_PARAMETERS.properties.id.description),
          lines: z.string().optional().describe(RECALL_PARAMETERS.properties.lines.description),
          grep: z.string().optional().describe(RECALL_PARAMETERS.properties.grep.description),
        },
        execute: async (given: RecallInput, { sessionID }) => (await contextOf(sessionID)).activate(given),
      },
    },
    async 'experimental.chat.messages.transform'(_, output) {
      const messages = output.messages as HostMessage[]
      const sessionID = messages.at(-1)?.info.sessionID
      if (sessionID === undefined || compacting.delete(sessionID)) return
      const asked = messages.findLast(({ info }) => info.role === 'user')?.info
      const sent = await (await contextOf(sessionID)).transform(messages, isAllowed(settings, asked))
      // OpenCode continues with its own array.
      if (sent !== messages) messages.splice(0, messages.length, ...sent)
    },
    async 'experimental.session.compacting'({ sessionID }) {
      compacting.add(sessionID)
    },
    async 'chat.params'({ sessionID, agent, model }, { options: sent = {} } = {}) {
      // The title of a session is asked of another model, beside its first call.
      if (agent === 'title') return
      models.set(sessionID, model)
      await (await contextOf(sessionID)).asked(asking(model, sent))
    },
    async 'tool.execute.before'({ tool, sessionID, callID }, { args }) {
      if (!WRITES.has(tool)) return
      const { refusal, difference } = await (await contextOf(sessionID)).guard({ name: tool, args, callId: callID })
      if (refusal !== undefined) throw new Error(refusal)
      if (difference !== undefined) differences.set(callID, difference)
    },
    async 'tool.execute.after'({ tool, sessionID, callID, args }, output) {
      const path = isFields(args) ? textOf(args['filePath']) : ''
      const isRead = shownFile({ tool, state: output }) !== undefined
      if (path === '' || !(isRead || WRITES.has(tool))) return
      const difference = differences.get(callID)
      differences.delete(callID)
      if (difference !== undefined && typeof output?.output === 'string') output.output = after(output.output, difference)
      const context = await contextOf(sessionID)
      const text = await context.met(resolve(directory, path), !isRead, callID)
      if (isRead && (text === undefined || NOT_SHOWN.test(text))) altered.add(callID)
    },
  }
}

export default ContextManagerPlugin

/** True if the model has the tool: it is not disabled for all agents, this agent or this message. */
function isAllowed(settings: Fields, asked: HostMessage['info'] | undefined): boolean {
  const agents = isFields(settings['agent']) ? settings['agent'] : {}
  const agent = agents[asked?.agent ?? '']
  return [settings, isFields(agent) ? agent : {}, { tools: asked?.tools }].every(({ tools, permission }: Fields) => {
    const rule = isFields(permission) ? (permission[RECALL] ?? permission['*']) : permission
    return rule !== 'deny' && (!isFields(tools) || (tools[RECALL] ?? tools['*']) !== false)
  })
}

/**
 * A call's options as the provider's package gets them: after the plugins, OpenCode asks for drops by itself where the options
 * don't say otherwise and thinking is not off.
 */
function asking(model: Fields, options: Fields): object {
  const npm = isFields(model['api']) ? textOf(model['api']['npm']) : ''
  const [provider, field] = npm === '@ai-sdk/amazon-bedrock' ? ['bedrock', 'reasoningConfig'] : ['anthropic', 'thinking']
  const { type = 'adaptive', blockBinding = { prefixMismatchBehavior: 'drop_block' } } = isFields(options[field]) ? options[field] : {}
  const asks = ASKING.has(npm) && (type === 'adaptive' || type === 'enabled')
  return asks ? { [provider]: { [field]: { blockBinding } } } : {}
}

/** OpenCode's model in the form that the projection takes: its prices and limits, and what else its name says. */
function modelOf(model: Fields | undefined, told: Binding | undefined): ProjectedModel {
  const cost = isFields(model?.['cost']) ? model['cost'] : {}
  const cache = isFields(cost['cache']) ? cost['cache'] : {}
  const limit = isFields(model?.['limit']) ? model['limit'] : {}
  const number = (value: unknown): number => (typeof value === 'number' ? value : 0)
  const api = isFields(model?.['api']) ? textOf(model['api']['npm']) : ''
  const name = `${textOf(model?.['providerID'])}/${textOf(model?.['id'])}`
  // The provider's default is not stated here, because answers may report something else.
  const { binding: _, cacheWrite: _w, ...known } = modelNamed(name)
  return {
    ...known,
    contextWindow: number(limit['context']),
    input: number(cost['input']),
    cacheRead: number(cache['read']),
    cacheWrite: number(cache['write']),
    ...(api === '@ai-sdk/anthropic' ? { lookbackBlocks: cacheNamed('anthropic').lookback ?? 0 } : {}),
    ...(told === undefined ? {} : { binding: told }),
  }
}
