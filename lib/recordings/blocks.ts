/**
 * Messages as the blocks that a provider receives. A prefix cache compares bytes, so each block has its exact bytes;
 * its size for the model is that of the text inside, without JSON escapes.
 */
import { withoutLineNumbers } from '../tools/index.ts'
import { callsOf } from './recording.ts'
import type { ContentBlock, RecordedEntry, Message } from './recording.ts'

/** One block of a request. */
export interface ReplayBlock {
  /** Role and block as JSON, as the provider gets them. */
  readonly bytes: string
  /** UTF-16 units of what the model reads. */
  readonly units: number
  /** Its label in the report: a tool's name, or the kind of text. */
  readonly label: string
  /** The texts inside as the model reads them, to be searched. */
  readonly texts: readonly string[]
  /** Set if the block is the model's thinking, which is not searched for an edit's text. */
  readonly thinking?: string
  /** The file that it shows, for the result of a read and for the arguments of a write or edit. */
  readonly path?: string
  /** The output of a read as the tool gave it. */
  readonly output?: string
  /** The message that it belongs to. */
  readonly key?: string
  /** The model wrote it. */
  readonly side?: 'answer'
  /** Set for calls and for results: in a row they are one position for Anthropic's cache. */
  readonly run?: 'calls' | 'results'
}

/** The size that Pi counts for an image, in UTF-16 units (1,200 tokens of 4). */
const IMAGE_UNITS = 4800

/** Pi's sentence before and after a summary. */
const SUMMARY = ['The conversation history before this point was compacted into the following summary:\n\n<summary>\n', '\n</summary>']
const BRANCH = ['The following is a summary of a branch that this conversation came back from:\n\n<summary>\n', '</summary>']

/** The system prompt and the tool declarations as one block of a known size. */
export function systemBlock(text: string, units: number): ReplayBlock {
  return { bytes: JSON.stringify(['system', text]), units, label: 'system', texts: [] }
}

/** A text of the user or, as a custom message, of an extension. */
export function textBlock(text: string, label: string, key?: string): ReplayBlock {
  const block: ReplayBlock = {
    bytes: JSON.stringify(['user', { type: 'text', text }]),
    units: text.length,
    label,
    texts: [text],
  }
  return key === undefined ? block : { ...block, key }
}

/** The calls of answers, by ID: what a result belongs to. */
export class Calls {
  readonly #calls = new Map<string, { name: string; path: string | undefined; args: Record<string, unknown> }>()

  /** Takes in an answer's calls. */
  add(message: Message): void {
    for (const call of callsOf(message)) {
      const args = call.arguments ?? {}
      const path = args['path']
      const name = call.name ?? ''
      this.#calls.set(call.id ?? '', {
        name,
        args,
        path: typeof path === 'string' ? path.replace(/^@/, '') : undefined,
      })
    }
  }

  /** The call that a result answers. */
  of(id: string | undefined): { name: string; path: string | undefined; args: Record<string, unknown> } | undefined {
    return this.#calls.get(id ?? '')
  }
}

/** The blocks of a message in a request; none if it is not sent. */
export function blocksOf({ key, message }: Pick<RecordedEntry, 'key' | 'message'>, calls: Calls): ReplayBlock[] {
  switch (message.role) {
    case 'user':
    case 'custom':
      return contentOf(message).map((block) => userBlock(block, message.role === 'user' ? 'user' : 'notice', key))
    case 'assistant':
      return contentOf(message).map((block) => answerBlock(block, key, calls))
    case 'toolResult':
      return [resultBlock(message, key, calls)]
    case 'bashExecution':
      return [textBlock(bashText(message), 'user bash', key)]
    case 'compactionSummary':
      return [textBlock(SUMMARY.join(message.summary ?? ''), 'summary', key)]
    case 'branchSummary':
      return [textBlock(BRANCH.join(message.summary ?? ''), 'summary', key)]
    default:
      return []
  }
}

/** UTF-16 units of several blocks. */
export function unitsOf(blocks: readonly ReplayBlock[]): number {
  return blocks.reduce((sum, block) => sum + block.units, 0)
}

function contentOf(message: Message): ContentBlock[] {
  const { content } = message
  return typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? [])
}

function userBlock(block: ContentBlock, label: string, key: string): ReplayBlock {
  if (block.type !== 'image') return textBlock(block.text ?? '', label, key)
  return { bytes: JSON.stringify(['user', block]), units: IMAGE_UNITS, label: 'image', texts: [], key }
}

function answerBlock(block: ContentBlock, key: string, calls: Calls): ReplayBlock {
  if (block.type === 'toolCall') {
    const { id, name = '', arguments: input = {} } = block
    const json = JSON.stringify(input)
    // The path that the agent used, even if collapsed arguments show another.
    const path = calls.of(id)?.path
    const shows = (name === 'write' || name === 'edit') && path !== undefined
    const own: ReplayBlock = {
      bytes: JSON.stringify(['assistant', { type: 'tool_use', id, name, input }]),
      units: name.length + json.length,
      label: `${name} arguments`,
      texts: stringsIn(input),
      key,
      side: 'answer',
      run: 'calls',
    }
    return shows ? { ...own, path } : own
  }
  const bytes = JSON.stringify(['assistant', block])
  if (block.type === 'thinking') {
    const { thinking = '' } = block
    return { bytes, units: thinking.length, label: 'thinking', texts: [], thinking, key, side: 'answer' }
  }
  const { text = '' } = block
  return { bytes, units: text.length, label: 'answer', texts: [text], key, side: 'answer' }
}

function resultBlock(message: Message, key: string, calls: Calls): ReplayBlock {
  const call = calls.of(message.toolCallId)
  const blocks = contentOf(message)
  const texts = blocks.flatMap((block) => (block.type === 'text' ? [block.text ?? ''] : []))
  const images = blocks.filter((block) => block.type === 'image').length
  const block: ReplayBlock = {
    bytes: JSON.stringify(['user', { type: 'tool_result', id: message.toolCallId, content: message.content, error: message.isError === true }]),
    units: texts.reduce((sum, text) => sum + text.length, 0) + images * IMAGE_UNITS,
    label: message.toolName ?? call?.name ?? 'unknown',
    texts: texts.map(withoutLineNumbers),
    key,
    run: 'results',
  }
  return call?.name === 'read' && call.path !== undefined ? { ...block, path: call.path, output: texts.join('\n') } : block
}

function stringsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object' || value === null) return []
  return Object.values(value).flatMap(stringsIn)
}

function bashText(message: Message): string {
  const { command = '', output = '' } = message
  const body = output === '' ? '(no output)' : `\`\`\`\n${output}\n\`\`\``
  const code = message['exitCode']
  const end = typeof code === 'number' && code !== 0 ? `\n\nCommand exited with code ${code}` : ''
  return `Ran \`${command}\`\n${body}${end}`
}
