/**
 * Rebuilds the request of a model call from Pi's own session file: the branch up to the call, from its newest
 * compaction on, with the replacements in force. Pi builds requests the same way, and the extension's rolls are such
 * replacements, so the result has exactly the bytes that were sent.
 */
import { isCall, isSent, jsonLines } from '../recordings/index.ts'
import type { Message } from '../recordings/index.ts'
import { reasoningOf, withheldOn } from './reasoning.ts'
import type { ShownReasoning } from './reasoning.ts'

/** A request and its place. */
interface Rebuilt {
  /** Counted from 0 over all branches, in order of time. */
  call: number
  model: string
  /** The messages as Pi turned them into the provider's format; system messages first, as they were stored. */
  messages: Message[]
  /** The lost part of the model's reasoning. */
  reasoning: ShownReasoning
}

/** A request beside the messages as they were written. */
export interface RebuiltCall {
  /** The calls of the file. */
  calls: number
  /** Undefined if the file has no such call. */
  request: Rebuilt | undefined
  /** The messages of the branch without any replacement. */
  written: Message[]
}

type Line = Record<string, unknown>

/** The call with a given number, counted from 0; a negative one counts from the end, so that -1 is the last. */
export async function rebuild(file: string, number: number): Promise<RebuiltCall> {
  const lines: Line[] = []
  for await (const { value } of jsonLines(file)) lines.push(value)
  const entries = new Map<string, Line>()
  let previous: string | null = null
  const answers: Line[] = []
  for (const [index, line] of lines.entries()) {
    if (line['type'] === 'session') continue
    const id = typeof line['id'] === 'string' ? line['id'] : `line-${index}`
    const parent = line['parentId'] === undefined ? previous : line['parentId']
    const entry: Line = { ...line, id, parentId: parent }
    entries.set(id, entry)
    previous = id
    const message = line['message'] as Message | undefined
    if (line['type'] === 'message' && message !== undefined && isCall(message)) answers.push(entry)
  }
  const call = number < 0 ? answers.length + number : number
  const answer = answers[call]
  if (answer === undefined) return { calls: answers.length, request: undefined, written: [] }
  const message = answer['message'] as Message
  const branch = branchTo(entries, answer['parentId'] as string | null)
  const recorded = branch.flatMap((entry) => (entry['type'] === 'message' ? [entry['message'] as Message] : []))
  const withheld = withheldOn(recorded)
  // Reasoning that the provider has refused is removed when the request is sent, and not by a replacement.
  const messages = withheld.without(project(branch))
  const whole = project(branch.filter(({ type }) => type !== 'context_edit'))
  return {
    calls: answers.length,
    written: whole,
    request: {
      call,
      model: `${message.provider ?? ''}/${message.model ?? ''}`,
      messages,
      reasoning: reasoningOf(whole, messages, withheld, message),
    },
  }
}

function branchTo(entries: ReadonlyMap<string, Line>, leaf: string | null): Line[] {
  const branch: Line[] = []
  const seen = new Set<string>()
  for (let id = leaf; id !== null && !seen.has(id);) {
    seen.add(id)
    const entry = entries.get(id)
    if (entry === undefined) break
    branch.push(entry)
    id = (entry['parentId'] as string | null | undefined) ?? null
  }
  return branch.reverse()
}

function project(branch: readonly Line[]): Message[] {
  const edits = new Map<string, { content: Message['content'] } | null>()
  for (const entry of branch) {
    if (entry['type'] === 'context_edit') edits.set(String(entry['targetId']), (entry['replacement'] ?? null) as { content: Message['content'] } | null)
  }
  const at = branch.findLastIndex((entry) => entry['type'] === 'compaction')
  const compaction = at < 0 ? undefined : branch[at]
  const messages: Message[] = []
  let visible: readonly Line[] = branch
  if (compaction !== undefined) {
    const from = branch.findIndex((entry) => entry['id'] === compaction['firstKeptEntryId'])
    const kept = from < 0 ? [] : branch.slice(from, at).filter((entry) => !isSystem(entry))
    visible = [...kept, ...branch.slice(at + 1)]
    const system = compaction['systemMessage'] as Message | undefined
    if (system !== undefined) messages.push(system)
    messages.push({ role: 'compactionSummary', summary: String(compaction['summary'] ?? '') })
  }
  for (const entry of visible) {
    const edit = edits.get(String(entry['id']))
    const message = messageOf(entry)
    if (message === undefined || edit === null) continue
    messages.push(edit === undefined ? message : { ...message, content: blocks(message, edit.content) })
  }
  return messages
}

/** A text in place of an answer's or a result's blocks is one block. */
function blocks(message: Message, content: Message['content']): NonNullable<Message['content']> {
  const list = message.role === 'assistant' || message.role === 'toolResult'
  return list && typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? [])
}

function messageOf(entry: Line): Message | undefined {
  switch (entry['type']) {
    case 'message': {
      const message = entry['message'] as Message
      return message.role === 'system' || isSent(message) ? message : undefined
    }
    case 'custom_message':
      return { role: 'custom', content: (entry['content'] ?? '') as NonNullable<Message['content']> }
    case 'branch_summary':
      return { role: 'branchSummary', summary: String(entry['summary'] ?? '') }
    default:
      return undefined
  }
}

function isSystem(entry: Line): boolean {
  return (entry['message'] as Message | undefined)?.role === 'system'
}
