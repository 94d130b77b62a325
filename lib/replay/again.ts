/**
 * Files that an agent would have had to read again: an edit must contain the text that it replaces, so that text must
 * be in sight. If the plain conversation shows it and a policy no longer does, the agent reads the file once more.
 */
import { withoutLineNumbers } from '../tools/index.ts'
import type { FileEvent, Files, Message, RecordedEntry, ReplayBlock } from '../recordings/index.ts'
import { callsOf, replacementsOf } from '../recordings/index.ts'

/** Tokens of an answer that only asks for a file. */
export const ASKING_TOKENS = 60

/** The most characters and lines of a file that Pi shows at once. */
const MAX_READ_UNITS = 50 * 1024
const MAX_READ_LINES = 2000

/**
 * From this many UTF-16 units on, an agent reads only part of a file seen before: in the recorded sessions
 * that the rules are based on, 80 of 84 such reads asked for a part.
 */
const LARGE_UNITS = 10_000

/** Lines before and after the text: a part is then as long as the recorded ones, 40 to 90 lines. */
const LINES_AROUND = 30

/** The texts of one file that an answer's edits replace. */
export interface Need {
  path: string
  texts: string[]
}

/** Returns what an answer's edits need to see. */
export function needsOf(message: Message): Need[] {
  const needs = new Map<string, string[]>()
  for (const call of callsOf(message)) {
    const path = call.arguments?.['path']
    if (call.name !== 'edit' || typeof path !== 'string') continue
    const texts = replacementsOf(call.arguments ?? {}).flatMap(({ oldText }) => (oldText === '' ? [] : [oldText]))
    needs.set(path, [...(needs.get(path) ?? []), ...texts])
  }
  return [...needs].map(([path, texts]) => ({ path, texts }))
}

/** The texts that a request shows: in blocks about that file, or in any block if `anywhere` is set. */
export function seen(blocks: readonly ReplayBlock[], { path, texts }: Need, anywhere: boolean): Set<string> {
  const about = anywhere ? blocks : blocks.filter((block) => block.path === path)
  return new Set(texts.filter((text) => about.some((block) => block.texts.some((one) => one.includes(text)))))
}

/** The way in which an agent that no longer sees some texts of a file gets them back. */
interface Again {
  /** The output of the read. */
  text: string
  /** The read as an event of the file; undefined if its whole text is unknown. */
  file?: FileEvent
  /** The line where the first text begins, counted from 1; set if the agent searches for it before reading a part. */
  found?: { line: number; text: string }
}

/**
 * How a file is read again. The read returns the newest output of the plain conversation that shows the texts, whether
 * the whole file or the part that the agent requested; if there is none, the file as far as it is known. For a large
 * file, it returns only the lines around the texts, which the agent finds by a search.
 */
export function lookAgain(plain: readonly ReplayBlock[], need: Need, files: Files): Again | undefined {
  const { path } = need
  const text = textToRead(plain, need, files)
  if (text === undefined) return undefined
  const content = files.content(path)
  const whole = content !== undefined && withoutLineNumbers(text).trimEnd() === content.trimEnd()
  const file: FileEvent | undefined = whole ? { kind: 'read', path, content } : undefined
  const part = text.length < LARGE_UNITS ? undefined : partOf(text, need.texts)
  if (part === undefined) return { text, ...(file && { file }) }
  const { first, last, place } = part
  const lines = text.split('\n')
  const shown = lines.slice(first, last)
  return {
    text: shown.join('\n'),
    found: { line: place + 1, text: lines[place] ?? '' },
    ...(file && { file: { ...file, offset: first + 1, limit: shown.length } }),
  }
}

/** The range of lines around the given texts, counted from 0, end excluded; undefined if one of them is missing. */
function partOf(text: string, wanted: readonly string[]): { first: number; last: number; place: number } | undefined {
  const plain = withoutLineNumbers(text)
  const places = wanted.map((one) => plain.indexOf(one))
  if (places.includes(-1)) return undefined
  const line = (at: number): number => plain.slice(0, at).split('\n').length - 1
  const place = line(Math.min(...places))
  const end = Math.max(...places.map((at, n) => line(at + (wanted[n] as string).length)))
  return { first: Math.max(0, place - LINES_AROUND), last: end + 1 + LINES_AROUND, place }
}

function textToRead(plain: readonly ReplayBlock[], { path, texts }: Need, files: Files): string | undefined {
  const shows = (block: ReplayBlock): boolean => texts.some((text) => block.texts.some((one) => one.includes(text)))
  const output = plain.findLast((block) => block.path === path && block.output !== undefined && shows(block))
  if (output?.output !== undefined) return output.output
  const whole = files.content(path)
  if (whole !== undefined) {
    const lines = whole.split('\n', MAX_READ_LINES + 1)
    return lines.slice(0, MAX_READ_LINES).join('\n').slice(0, MAX_READ_UNITS)
  }
  return plain.findLast(shows)?.texts.find((one) => texts.some((text) => one.includes(text)))
}

/** Call and result of a search that is not in the recording. */
export function searchAgain(path: string, found: { line: number; text: string }, number: number, at: number): Pair {
  return called('grep', { path, pattern: found.text.trim() }, `${found.line}: ${found.text}`, `search_${number}`, at)
}

/** Call and result of a read that is not in the recording. */
export function readAgain(path: string, { text, file }: Again, number: number, at: number): Pair {
  const part = file?.offset === undefined ? {} : { offset: file.offset, limit: file.limit }
  return called('read', { path, ...part }, text, `again_${number}`, at)
}

/** An answer that calls a tool, and the tool's result. */
type Pair = [answer: RecordedEntry, result: RecordedEntry]

function called(name: string, args: Record<string, unknown>, text: string, id: string, at: number): Pair {
  const call = { type: 'toolCall', id, name, arguments: args }
  const result: Message = {
    role: 'toolResult',
    toolCallId: id,
    toolName: name,
    content: [{ type: 'text', text }],
    isError: false,
  }
  return [
    { key: `${id}_call`, at, message: { role: 'assistant', content: [call], stopReason: 'toolUse', timestamp: at } },
    { key: `${id}_result`, at, message: result },
  ]
}
