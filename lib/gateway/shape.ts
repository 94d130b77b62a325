/**
 * The shapes of the formats, with the hosts' tools under the engine's names: a file that a tool shows or changes
 * becomes a file object, and lines are compared without the numbers that the host puts before them.
 */
import { isAbsolute, join } from 'node:path'
import { engineCalls, outputAlone, shownLines } from '../tools/index.ts'
import type { EngineCall } from '../tools/index.ts'
import type { EngineMessage } from '../core/index.ts'
import { resultText } from '../core/index.ts'
import { anthropic, chat, gemini, RECALL, responses, translated } from '../projection/index.ts'
import type { PlacedCall, Shape } from '../projection/index.ts'
import type { Api } from './request.ts'
import { isRecallCall } from './recall-tool.ts'

const SHAPES: Readonly<Record<Api, Shape>> = { messages: anthropic, responses, chat, gemini }

/** Facts about the calls of a conversation. */
export interface CallFacts {
  /** The calls by ID, under the engine's names. */
  readonly calls: Map<string, EngineCall>
  /** Reads whose lines differ from the file's, character for character; of the shell's, also those that show other lines. */
  readonly altered: Set<string>
  /** True if a tool that is called `activate` and nothing else is ours. */
  isPlainRecall: boolean
  /** Notices that were made since they were last taken. */
  readonly notices: object[]
  /** The messages whose files the open session has recorded. */
  met: WeakMap<object, MetMessage>
}

/** The calls in a message, as they were read. */
export interface MetMessage {
  calls: readonly (readonly [id: string, call: EngineCall])[]
  isPlainRecall: boolean
}

/** The facts of a conversation of which nothing has been read. */
export function newFacts(): CallFacts {
  return { calls: new Map(), altered: new Set(), isPlainRecall: false, notices: [], met: new WeakMap() }
}

/** The shape of a format, with the host's own names. */
export function shapeOf(api: Api): Shape {
  return SHAPES[api]
}

/** The shape of a format. Calls are added to `facts` as they are read. */
export function hostShape(api: Api, facts: CallFacts): Shape {
  const base = translated(shapeOf(api), (calls) => {
    const found = callsOf(calls, facts.isPlainRecall)
    for (const [at, { id }] of calls.entries()) facts.calls.set(id, found[at] as EngineCall)
    return found
  })
  return {
    ...base,
    // The endpoint says what the messages are, even if they hold blocks that were unknown when this was written.
    judge: () => 'own',
    read(messages, at) {
      const { size, parts } = base.read(messages, at)
      return { size, parts: parts.map((part) => understood(part, facts)) }
    },
    notice(text, timestamp) {
      const message = base.notice(text, timestamp)
      facts.notices.push(message)
      return message
    },
  }
}

/** The engine's calls for a host's. A command that only shows a file is a read of it, for agents that read through their shell. */
export function callsOf(calls: readonly PlacedCall[], isPlainRecall: boolean): EngineCall[] {
  const known = engineCalls(calls)
  return calls.map((call, at) => ownCall(call, isPlainRecall) ?? asRead(known[at] as EngineCall))
}

/** Our own tool has one name everywhere. Tools of others that are called as ours get a name that the engine does not know. */
function ownCall({ name, args, namespace }: PlacedCall, isPlainRecall: boolean): EngineCall | undefined {
  if (isRecallCall(name, namespace, isPlainRecall)) return { tool: RECALL, args }
  return CONTROLS.has(name) ? { tool: `${namespace === '' ? 'agent' : namespace}.${name}`, args } : undefined
}

/** Names that the engine has for tools of ours. */
const CONTROLS: ReadonlySet<string> = new Set([RECALL, 'deactivate', 'pin', 'unpin', 'search_context'])

function asRead(call: EngineCall): EngineCall {
  const { shows, args } = call
  if (shows === undefined) return call
  const { first, last } = shows
  const { workdir } = args
  const isRelative = !isAbsolute(shows.path) && !shows.path.startsWith('~')
  const path = typeof workdir === 'string' && isRelative ? join(workdir, shows.path) : shows.path
  const part = first === 1 && last === null ? {} : { offset: first, ...(last === null ? {} : { limit: last - first + 1 }) }
  return { tool: 'read', args: { path, ...part }, reads: path, shows }
}

function understood(message: EngineMessage, facts: CallFacts): EngineMessage {
  if (message.role !== 'toolResult') return message
  const call = facts.calls.get(message.toolCallId ?? '')
  return withFacts(CONTROLS.has(message.toolName ?? '') && call !== undefined ? { ...message, toolName: call.tool } : message, call, facts)
}

function withFacts(message: EngineMessage, call: EngineCall | undefined, facts: CallFacts): EngineMessage {
  const { toolCallId = '' } = message
  if (call?.shows === undefined || message.isError === true) return withLines(message, call, facts)
  const alone = { ...message, content: [{ type: 'text', text: outputAlone(resultText(message)) }] }
  // An output that is not the file's own lines is the command's.
  return facts.altered.has(toolCallId) ? { ...alone, toolName: 'bash' } : withLines(alone, call, facts)
}

function withLines(message: EngineMessage, call: EngineCall | undefined, facts: CallFacts): EngineMessage {
  const { toolCallId = '' } = message
  const lines = call === undefined || call.shows?.numbered === false ? undefined : linesOf(message, call, facts.altered.has(toolCallId))
  return lines === undefined ? message : { ...message, lines }
}

function linesOf(message: EngineMessage, call: EngineCall, isAltered: boolean): string | undefined {
  return call.reads === undefined || isAltered || message.isError === true ? undefined : shownLines(resultText(message))
}
