/** OpenCode's messages (1.18). An answer contains its calls together with their results. */
import type { Block, EngineMessage, Fields } from '../core/index.ts'
import { isFields, textOf } from '../core/index.ts'
import { argumentsBy, inOrderOf, reasoningApi, reasoningBlock, shortened } from '../projection/index.ts'
import type { PartEdit, Reading, Shape } from '../projection/index.ts'

/** The text that OpenCode sends instead of an output that it has cleared itself. */
const CLEARED = '[Old tool result content cleared]'

/** OpenCode's tools that show or write a file. */
export const READS: ReadonlySet<string> = new Set(['read'])
export const WRITES: ReadonlySet<string> = new Set(['write', 'edit'])

const FILE_TOOLS: ReadonlySet<string> = new Set([...READS, ...WRITES])

/** Arguments of OpenCode's file tools, and the engine's names for them. */
const ENGINE_WORDS = [
  ['filePath', 'path'],
  ['oldString', 'oldText'],
  ['newString', 'newText'],
] as const

/** The end of a line that OpenCode has truncated. */
const CUT_LINE = /\.\.\. \(line truncated to \d+ chars\)$/m

/** A message with its parts. */
export interface HostMessage {
  info: { id: string; role: 'user' | 'assistant'; sessionID: string; agent?: string; tools?: Fields; time?: { created?: number } }
  parts: Fields[]
}

/** The shape. `isAltered` returns whether a read has shown lines other than the file has them, character for character. */
export function opencodeShape(isAltered: (callId: string) => boolean): Shape {
  const lines = (part: Fields): string | undefined => {
    const text = shownFile(part)
    return text === undefined || CUT_LINE.test(text) || isAltered(textOf(part['callID'])) ? undefined : text
  }
  return { ...opencode, read: (messages, at) => reading(messages[at] as HostMessage, lines) }
}

/** The lines that a read has shown, without the numbers: OpenCode keeps both. */
export function shownFile({ tool, state }: Fields): string | undefined {
  const { metadata } = isFields(state) ? state : {}
  const display = isFields(metadata) ? metadata['display'] : undefined
  if (!READS.has(textOf(tool)) || !isFields(display) || display['type'] !== 'file') return undefined
  return textOf(display['text'])
}

const opencode: Omit<Shape, 'read'> = {
  name: 'opencode',

  judge(message) {
    const { info, parts } = message as Partial<HostMessage>
    return isFields(info) && Array.isArray(parts) ? 'own' : undefined
  },

  write([message], edits) {
    const { info, parts } = message as HostMessage
    const own = edits.get(0)
    if (own?.kind === 'gone') return []
    const args = argumentsBy(own)
    let [call, done] = [-1, 0]
    const shownParts = parts.map((part) => {
      if (part['type'] !== 'tool') return part
      call += 1
      const state = part['state'] as Fields
      const edit = isDone(part) ? edits.get((done += 1)) : undefined
      const collapsed = args.get(call)
      const input = collapsed === undefined ? undefined : inOrderOf(state['input'], hostArguments(part, collapsed))
      if (edit?.kind !== 'result' && input === undefined) return part
      return { ...part, state: { ...state, ...(input === undefined ? {} : { input }), ...shown(state, edit) } }
    })
    return [{ info, parts: shortened(shownParts, own) }]
  },

  notice(text, timestamp) {
    const id = `msg_context_${timestamp}`
    const info = { id, role: 'user', sessionID: '', time: { created: timestamp } }
    return { info, parts: [{ id: `prt_context_${timestamp}`, messageID: id, sessionID: '', type: 'text', text, synthetic: true }] }
  },

  content(message) {
    const { info, parts } = message as HostMessage
    return { id: info.id, role: info.role, parts: parts.map((part) => (part['type'] === 'tool' ? toolPart(part) : part)) }
  },
}

function reading({ info, parts }: HostMessage, lines: (part: Fields) => string | undefined): Reading {
  const timestamp = info.time?.created
  const time = timestamp === undefined ? {} : { timestamp }
  const content = parts.map((part) => blockOf(part, WRITES.has(textOf(part['tool'])) || lines(part) !== undefined))
  if (info.role === 'user') return { size: 1, parts: [{ role: 'user', content, ...time }] }
  const results = parts.filter(isDone).map((part) => {
    const shown = lines(part)
    return shown === undefined ? result(part) : { ...result(part), lines: shown }
  })
  return { size: 1, parts: [{ role: 'assistant', content, ...reasoningApi(parts, 'metadata'), ...time }, ...results] }
}

/** Arguments from the engine, under OpenCode's names. */
function hostArguments(part: Fields, args: object): object {
  if (!FILE_TOOLS.has(textOf(part['tool']))) return args
  const back = [...wordsOf((part['state'] as Fields)['input'])].map(([host, engine]) => [engine, host] as const)
  return renamed(args, new Map(back))
}

/** Those of a call's arguments that have another name in the engine. */
function wordsOf(input: unknown): Map<string, string> {
  const fields = isFields(input) ? input : {}
  return new Map(ENGINE_WORDS.filter(([host, engine]) => host in fields && !(engine in fields)))
}

/** Renames fields. */
function renamed(fields: object, names: ReadonlyMap<string, string>): Fields {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [names.get(name) ?? name, value]))
}

/** The parts of a call that the model sees. Its title and times change while it runs. */
function toolPart(part: Fields): Fields {
  const state = part['state'] as Fields
  return { type: 'tool', callID: part['callID'], tool: part['tool'], status: state['status'], input: state['input'], output: outputOf(state) }
}

function isDone(part: Fields): boolean {
  if (part['type'] !== 'tool') return false
  const { status } = part['state'] as Fields
  return status === 'completed' || status === 'error'
}

function outputOf(state: Fields): string {
  if (isFields(state['time']) && state['time']['compacted'] !== undefined) return CLEARED
  return textOf(state['status'] === 'error' ? state['error'] : state['output'])
}

/** `isFile`: the engine can follow what the call shows or writes of a file, so it gets the arguments under its own names. */
function blockOf(part: Fields, isFile: boolean): Block {
  switch (part['type']) {
    case 'text':
      return { type: 'text', text: part['ignored'] === true ? '' : textOf(part['text']) }
    case 'reasoning':
      return reasoningBlock(part, 'metadata')
    case 'file':
      return { type: 'image' }
    case 'tool': {
      const state = part['state'] as Fields
      const { metadata } = part
      const isSigned = isFields(metadata) && JSON.stringify(metadata).includes('thoughtSignature')
      const input = isFields(state['input']) ? state['input'] : {}
      const words = isFile ? { engineArguments: renamed(input, wordsOf(input)) } : {}
      const call = { type: 'toolCall' as const, id: textOf(part['callID']), name: textOf(part['tool']), arguments: input, ...words }
      return isSigned ? { ...call, thoughtSignature: 'signed' } : call
    }
    default:
      return { type: String(part['type']) }
  }
}

function result(part: Fields): EngineMessage {
  const state = part['state'] as Fields
  const files = Array.isArray(state['attachments']) ? state['attachments'] : []
  return {
    role: 'toolResult',
    toolCallId: textOf(part['callID']),
    toolName: textOf(part['tool']),
    content: [{ type: 'text', text: outputOf(state) }, ...files.map(() => ({ type: 'image' as const }))],
    isError: state['status'] === 'error',
  }
}

function shown(state: Fields, edit: PartEdit | undefined): Fields {
  if (edit?.kind !== 'result') return {}
  return state['status'] === 'error' ? { error: edit.text } : { output: edit.text }
}
