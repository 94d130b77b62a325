/**
 * Tool results on their way into the transcript: first the whole output is recorded, then the result gets its header. Calls made
 * by the model's programs (Pi's codemode, scripts of MCP servers) are recorded under the call that made them: their values go to
 * the program, so they must not change by a byte, and Pi keeps none of them.
 */
import { readFile, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, isAbsolute, relative, resolve, sep } from 'node:path'
import type { ToolCallEvent, ToolResultEvent } from '@earendil-works/pi-coding-agent'
import picomatch from 'picomatch'
import type { ContextManager, Toolcall } from '../index.js'
import { flattened, isFields } from '../lib/core/index.ts'
import type { NeverCollapse } from './settings.ts'
import { toolOf } from './tools.ts'

/** The largest output that is recorded whole: 16 MiB, as for files. Larger ones are recorded as Pi shows them. */
export const MAX_OUTPUT_BYTES = 16 * 1024 * 1024

/** The content blocks of a tool result. */
export type ResultContent = ToolResultEvent['content']

/** A tool result as the engine records it, with the complete output before Pi's own cut. */
export async function toolcallOf(event: ToolResultEvent): Promise<Toolcall> {
  const shown = textOf(event.content)
  const cut = cutOutput(event, shown)
  return {
    id: event.toolCallId,
    // Recorded under the name that the engine knows, whatever it is called here.
    tool: toolOf(event.toolName) ?? event.toolName,
    args: flattened(event.input),
    content: (cut && (await wholeOutput(cut))) ?? shown,
    status: event.isError ? 'fail' : 'ok',
  }
}

/** True if a tool has given what Pi expects. Of anything else, such as one text, Pi makes a failed result, which comes with the messages. */
export function isContent(content: unknown): content is ResultContent {
  return Array.isArray(content) && content.every(isFields)
}

/** The text blocks of a result as one text. */
export function textOf(content: ResultContent): string {
  return content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n')
}

/** A result with a line before its text; unchanged if it has no text. */
export function withHeader(content: ResultContent, header: string): ResultContent {
  const first = content.findIndex((block) => block.type === 'text')
  return content.map((block, index) => (index === first && block.type === 'text' ? { ...block, text: `${header}\n${block.text}` } : block))
}

/** Tells whether an output never collapses. */
export type Exempt = (tool: string, args: Record<string, unknown>) => boolean

/**
 * Makes the rule for sessions in `cwd`. A glob without a slash means a file of that name in any folder, as in `.gitignore`;
 * any other one is relative to `cwd`, unless it is absolute.
 */
export function exemptions({ tools = [], files = [] }: NeverCollapse, cwd: string): Exempt {
  const names = new Set(tools)
  const matchers = files.map((glob) => picomatch(glob, { dot: true, basename: !glob.includes('/') }))
  return (tool, args) => {
    if (names.has(tool)) return true
    const path = args['path'] ?? args['file_path']
    if (matchers.length === 0 || typeof path !== 'string' || path === '') return false
    const absolute = resolve(cwd, path)
    const inside = relative(cwd, absolute)
    const ways = inside !== '' && !inside.startsWith('..') && !isAbsolute(inside) ? [inside, absolute] : [absolute]
    return ways.some((way) => matchers.some((matches) => matches(way.split(sep).join('/'))))
  }
}

/** An output that Pi has cut: where the whole output is, and what Pi said after it. */
interface CutOutput {
  path: string
  /** The end of the command, if it failed. */
  status: string | undefined
}

/** Pi's last lines under an output that it has cut. Only these lines name the file of a failed command. */
const CUT_MARK = /\n\n\[Showing (?:last|lines) [^\n]* Full output: ([^\n]+)\](?:\n\n(Command [^\n]*))?$/

/** The names of Pi's own files for complete outputs. */
const OUTPUT_FILE = /^pi-(?:bash|powershell)-[0-9a-f]+\.log$/

function cutOutput(event: ToolResultEvent, shown: string): CutOutput | undefined {
  const told = (event.details as { fullOutputPath?: unknown } | undefined)?.fullOutputPath
  const mark = CUT_MARK.exec(shown)
  if (typeof told === 'string') return { path: told, status: mark?.[2] }
  if (event.toolName !== 'bash' && event.toolName !== 'powershell') return undefined
  const path = mark?.[1]
  // The mark is text, and a command can print anything, so only Pi's own files are opened.
  if (path === undefined || !OUTPUT_FILE.test(basename(path))) return undefined
  return resolve(dirname(path)) === resolve(tmpdir()) ? { path, status: mark?.[2] } : undefined
}

async function wholeOutput({ path, status }: CutOutput): Promise<string | undefined> {
  try {
    const found = await stat(path)
    if (!found.isFile() || found.size > MAX_OUTPUT_BYTES) return undefined
    const text = await readFile(path, 'utf8')
    return status === undefined ? text : `${text}\n\n${status}`
  } catch {
    // The file is temporary and not ours. If it is gone, all we have is what Pi shows.
    return undefined
  }
}

/** The fields that newer versions of Pi add to tool events. */
interface Nested {
  /** The call that made this one. */
  parentToolCallId?: string
  /** The value for programs, if the tool has one. */
  structuredContent?: unknown
}

/** The call that made this one; undefined if the model made it. */
export function parentOf(event: object): string | undefined {
  return (event as Nested).parentToolCallId
}

/** The nested calls in progress: a tool learns nothing but the id of its call. */
export class NestedCalls {
  readonly #ids = new Set<string>()

  /** Before a call. */
  begin(event: ToolCallEvent): void {
    if (parentOf(event) !== undefined) this.#ids.add(event.toolCallId)
  }

  /** After it. */
  end(callId: string): void {
    this.#ids.delete(callId)
  }

  /** True if a call is a nested one. */
  has(callId: string): boolean {
    return this.#ids.has(callId)
  }

  /** Records the result of a nested call, which never enters the window. */
  async record(manager: ContextManager, event: ToolResultEvent, parent: string): Promise<void> {
    const call = await toolcallOf(event)
    const { structuredContent } = event as Nested
    const hasText = call.content !== '' || structuredContent === undefined
    const content = hasText ? call.content : JSON.stringify(structuredContent)
    await manager.receive({ ...call, content, parent })
  }
}

/** The value for programs of a result, to be returned along with changed content: otherwise Pi drops it. */
export function structured(event: object): { structuredContent?: unknown } {
  const { structuredContent } = event as Nested
  return structuredContent === undefined ? {} : { structuredContent }
}
