/**
 * OpenCode's exports (`opencode export SESSION > session.json`): one JSON document with the session and its messages,
 * each with its parts (sst/opencode, `packages/opencode/src/session/message-v2.ts`). They are read as Pi's
 * conversations: tools and arguments get Pi's names, and each step of a message is an answer.
 */
import { isFields, numberOf, textOf } from '../core/index.ts'
import { soundUsage } from '../models/index.ts'
import type { Fields } from '../core/index.ts'
import { piCall } from '../tools/index.ts'
import { jsonDocument } from './lines.ts'
import { placeInDatabase, sessionIn } from './opencode-store.ts'
import type { OpenCodeDocument } from './opencode-store.ts'
import { folderOf, NotReplayable, Recording, Skipped } from './recording.ts'
import type { ContentBlock, RecordedEntry, Message, Problem, RecordedUsage, SideCall, Step } from './recording.ts'

/** True if a JSON document that begins so is an export. */
export function isOpenCodeExport(beginning: string): boolean {
  return /^\uFEFF?\s*\{\s*"info"\s*:\s*\{/.test(beginning)
}

/** Reads an export, or a session in OpenCode's database. Throws {@link NotReplayable} for any other document. */
export async function openOpenCode(file: string): Promise<Recording> {
  const { info } = await documentOf(file)
  const id = textOf(info['id']) || 'unknown'
  const { parentID: parent } = info
  const who = typeof parent === 'string' ? { id: parent, agent: id } : { id }
  return new OpenCodeRecording(file, { format: 'opencode', version: 0, ...who, cwd: folderOf(info['directory']) })
}

/** A recording by OpenCode. */
class OpenCodeRecording extends Recording {
  override readonly skipped = new Skipped()

  override async *steps(_report: (problem: Problem) => void): AsyncGenerator<Step> {
    this.skipped.clear()
    const { messages } = await documentOf(this.file)
    for (const message of messages) yield* this.#message(message)
  }

  *#message({ info, parts }: { info: Fields; parts: Fields[] }): Generator<Step> {
    const time = isFields(info['time']) ? info['time'] : {}
    const at = numberOf(time['created'])
    if (info['role'] === 'user') {
      const content = parts.flatMap((part) => this.#userBlock(part))
      // The request for a compaction is not a message to the model.
      if (content.length > 0) yield { kind: 'message', entry: { key: textOf(info['id']), message: { role: 'user', content }, at } }
      return
    }
    if (info['summary'] === true) {
      const summary = parts.flatMap((part) => (part['type'] === 'text' ? [textOf(part['text'])] : [])).join('\n')
      yield* sideCalls(info, usageOf(info['tokens']), at)
      yield { kind: 'compaction', summary, firstKept: undefined, at }
      return
    }
    const steps = stepsOf(parts)
    for (const [index, step] of steps.entries()) yield* this.#answer(info, step, index, at, steps.length)
  }

  *#answer(info: Fields, parts: Fields[], index: number, at: number, steps: number): Generator<Step> {
    const id = `${textOf(info['id'])}-${index}`
    const content: ContentBlock[] = []
    const results: RecordedEntry[] = []
    let usage = steps === 1 ? usageOf(info['tokens']) : undefined
    for (const part of parts) {
      const type = part['type']
      if (type === 'text') content.push({ type: 'text', text: textOf(part['text']) })
      else if (type === 'reasoning') content.push({ type: 'thinking', thinking: textOf(part['text']) })
      else if (type === 'tool') this.#tool(part, content, results, at)
      else if (type === 'step-finish') usage = usageOf(part['tokens']) ?? usage
      else if (type !== 'step-start') this.#skip(type)
    }
    if (content.length === 0) {
      yield* sideCalls({ ...info, id }, usage, at)
      return
    }
    const answer: Message = {
      role: 'assistant',
      content,
      provider: textOf(info['providerID']) || 'unknown',
      model: textOf(info['modelID']) || 'unknown',
      stopReason: results.length > 0 ? 'toolUse' : 'stop',
      ...(usage !== undefined && { usage }),
    }
    for (const entry of [{ key: id, message: answer, at, names: [id] }, ...results]) yield { kind: 'message', entry }
  }

  #tool(part: Fields, content: ContentBlock[], results: RecordedEntry[], at: number): void {
    const state = isFields(part['state']) ? part['state'] : {}
    const id = textOf(part['callID'])
    const [name, args] = piCall(textOf(part['tool']), isFields(state['input']) ? state['input'] : {})
    content.push({ type: 'toolCall', id, name, arguments: args })
    const failed = state['status'] !== 'completed'
    const output = failed ? textOf(state['error']) || 'the call was aborted' : textOf(state['output'])
    const end = isFields(state['time']) ? numberOf(state['time']['end']) : 0
    const result: Message = {
      role: 'toolResult',
      toolCallId: id,
      toolName: name,
      content: [{ type: 'text', text: output }],
      isError: failed,
    }
    results.push({ key: `${id}-result`, message: result, at: Math.max(at, end) })
  }

  #userBlock(part: Fields): ContentBlock[] {
    if (part['type'] === 'text' && part['ignored'] !== true) return [{ type: 'text', text: textOf(part['text']) }]
    if (part['type'] === 'file' && textOf(part['mime']).startsWith('image/')) {
      return [{ type: 'image', data: textOf(part['url']), mimeType: textOf(part['mime']) }]
    }
    if (part['type'] !== 'text') this.#skip(part['type'])
    return []
  }

  #skip(type: unknown): void {
    this.skipped.note(textOf(type) || 'parts without a type')
  }
}

async function documentOf(file: string): Promise<OpenCodeDocument> {
  const place = placeInDatabase(file)
  if (place !== undefined) return sessionIn(place)
  const found = await jsonDocument(file)
  const { info, messages } = isFields(found) ? found : {}
  if (!isFields(info) || !Array.isArray(messages)) throw new NotReplayable('no export of an OpenCode session')
  return {
    info,
    messages: messages.filter(isFields).map((one) => ({
      info: isFields(one['info']) ? one['info'] : {},
      parts: Array.isArray(one['parts']) ? one['parts'].filter(isFields) : [],
    })),
  }
}

/** The parts of each model call: older versions put several calls into one message. */
function stepsOf(parts: readonly Fields[]): Fields[][] {
  const steps: Fields[][] = [[]]
  for (const part of parts) {
    if (part['type'] === 'step-start' && (steps.at(-1) as Fields[]).length > 0) steps.push([])
    ;(steps.at(-1) as Fields[]).push(part)
  }
  return steps
}

function usageOf(tokens: unknown): RecordedUsage | undefined {
  if (!isFields(tokens)) return undefined
  const cache = isFields(tokens['cache']) ? tokens['cache'] : {}
  const output = numberOf(tokens['output']) + numberOf(tokens['reasoning'])
  return soundUsage({
    input: tokens['input'],
    output: tokens['output'] === undefined ? undefined : output,
    cacheRead: cache['read'],
    cacheWrite: cache['write'],
  })
}

/** A call without a message in the conversation, if its tokens were counted. */
function sideCalls(info: Fields, usage: RecordedUsage | undefined, at: number): SideCall[] {
  if (usage === undefined || usage.input + usage.output + usage.cacheRead + usage.cacheWrite === 0) return []
  const model = `${textOf(info['providerID']) || 'unknown'}/${textOf(info['modelID']) || 'unknown'}`
  return [{ kind: 'side', names: [textOf(info['id'])], model, usage, at }]
}
