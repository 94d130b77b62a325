/**
 * Applies the engine's edits to messages of pi-ai's form: Pi's own, those of hosts that use it, and recorded ones. Other
 * shapes write an edit into their own form.
 */
import type { CollapsedCall, Edit, TextEdit } from '../../../index.js'

/** A replacement of a message, or of a part of one: an edit of a plan without its address. */
export type PartEdit =
  /** Another text for a result. */
  | { kind: 'result'; text: string }
  /** Other arguments for an answer's calls; texts of an answer or a user's message, shortened or left out. */
  | { kind: 'message'; calls: readonly CollapsedCall[]; texts: readonly TextEdit[] }
  /** The part is left out. A result has the reference that would have stood in its place. */
  | { kind: 'gone'; reference?: string }

/** A message, as far as edits concern it. */
interface Editable {
  role: string
  content?: unknown
}

/**
 * The content that an edit gives a message as it was handed over: null if the message is left out, undefined if the edit
 * does not fit it. A result without another text is as it was; it keeps its images, an answer everything except the named
 * calls and texts.
 */
export function editedContent(edit: Edit | PartEdit, { role, content }: Editable): unknown {
  const blocks = Array.isArray(content) ? (content as object[]) : []
  if (edit.kind === 'gone') return role === 'assistant' || role === 'toolResult' ? null : undefined
  if (edit.kind === 'result') {
    if (role !== 'toolResult') return undefined
    if (edit.text === undefined) return content
    return [{ type: 'text', text: edit.text }, ...blocks.filter((block) => typeOf(block) !== 'text')]
  }
  if (role !== 'assistant' && role !== 'user') return undefined
  if (typeof content === 'string') return withText(content, edit.texts)
  return withTexts(role === 'assistant' ? withArguments(blocks, edit.calls) : blocks, edit.texts)
}

/**
 * A value with its fields in the order that another one has them in, also in what it consists of; fields that only it has come
 * last. The record keeps no order, and a model repeats the form in which its own calls are shown to it.
 */
export function inOrderOf<T>(own: unknown, value: T): T {
  if (typeof own !== 'object' || own === null || typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return (Array.isArray(own) ? value.map((one, at) => inOrderOf(own[at], one)) : value) as T
  const left = new Map<string, unknown>(Object.entries(value))
  const first = Object.entries(own).flatMap(([name, one]): [string, unknown][] => {
    if (!left.has(name)) return []
    const now = inOrderOf(one, left.get(name))
    left.delete(name)
    return [[name, now]]
  })
  return Object.fromEntries([...first, ...left]) as T
}

/** A content that is one text, edited. */
export function withText(text: string, edits: readonly TextEdit[]): string {
  const found = edits.find(({ block }) => block === 0)
  return found === undefined ? text : (found.text ?? '')
}

/** Blocks of reasoning, by their names in the formats. A text in place of one is a text of the answer. */
const REASONING: ReadonlySet<unknown> = new Set(['thinking', 'redacted_thinking', 'reasoning'])

/** A block with another text. */
function textBlock<T extends object>(block: T, text: string): T {
  return (REASONING.has(typeOf(block)) ? { type: 'text', text } : { ...block, text }) as T
}

/** Blocks with edited texts. `numberOf` gives a block's number in the message as it was handed over, if it has one. */
export function withTexts<T extends object>(
  blocks: readonly T[],
  edits: readonly TextEdit[],
  edited: (block: T, text: string) => T = textBlock,
  numberOf: (block: T, place: number) => number | undefined = (_, place) => place,
): T[] {
  const texts = new Map(edits.map((one) => [one.block, one]))
  if (texts.size === 0) return [...blocks]
  return blocks.flatMap((block, place) => {
    const number = numberOf(block, place)
    const found = number === undefined ? undefined : texts.get(number)
    if (found === undefined) return [block]
    return found.text === undefined ? [] : [edited(block, found.text)]
  })
}

function withArguments(blocks: readonly object[], calls: readonly CollapsedCall[]): object[] {
  let position = -1
  return blocks.map((block) => {
    if (typeOf(block) !== 'toolCall') return block
    position += 1
    const { id } = block as { id?: unknown }
    const call = calls.find((one) => one.position === position && one.callId === id)
    return call === undefined ? block : { ...block, arguments: inOrderOf((block as { arguments?: unknown }).arguments, call.args) }
  })
}

function typeOf(block: object | null): unknown {
  return (block as { type?: unknown } | null)?.type
}
