/** The last request compared with the agent's own messages, part by part: the text that the model got instead of the agent's. */
import { isReference } from '../lines/index.ts'
import { middleCut, wrapped } from './columns.ts'
import { subject } from './names.ts'
import { plain } from './terminal.ts'
import { tokens as short } from './tokens.ts'

/** A message in pi-ai's shape, as far as it is compared. */
export interface ComparedMessage {
  role: string
  content?: string | readonly object[]
  toolCallId?: string
  toolName?: string
  summary?: string
}

/** The kinds of changes. */
export type ChangeKind = 'replaced' | 'shortened' | 'removed' | 'added'

/** A part of the request that differs from what the agent wrote. */
export interface PartChange {
  kind: ChangeKind
  /** The name of the part: `output of bash npm test`. */
  name: string
  /** Tokens before and now, estimated: characters / 4. */
  before: number
  after: number
  /** The reason for the change, and the way to bring the part back. */
  reason: string
  /** The text that the model gets; empty if it gets none. */
  text: string
}

/** All changes, in the order of the request, and the sizes of both. */
export interface RequestChanges {
  changes: PartChange[]
  /** Parts that are as the agent wrote them. */
  unchanged: number
  /** Tokens of the agent's own messages and of the request, estimated. */
  own: number
  sent: number
}

type PartKind = 'output' | 'call' | 'reasoning' | 'answer' | 'prompt' | 'message'

interface Part {
  kind: PartKind
  /** Results and calls have one. */
  id: string | undefined
  name: string
  text: string
}

/** Compares two lists of messages. Results and calls are told apart by their IDs, everything else by its text. */
export function requestChanges(own: readonly ComparedMessage[], sent: readonly ComparedMessage[]): RequestChanges {
  const [before, after] = [partsOf(own), partsOf(sent)]
  const found = paired(before, after)
  const partners = new Map([...found].map(([from, to]) => [to, from]))
  const changes: [at: number, change: PartChange][] = []
  const leftWith = withTheirCalls(before, found)
  const isWithCall = (at: number): boolean => leftWith.outputs.has(at)
  const outputOf = (at: number): Part | undefined => before[leftWith.calls.get(at) ?? -1]
  let unchanged = 0
  for (const [at, part] of before.entries()) {
    const to = found.get(at)
    const now = to === undefined ? undefined : after[to]
    if (now?.text === part.text) unchanged += 1
    else if (!isWithCall(at)) changes.push([at, changeOf(part, now, now === undefined ? outputOf(at) : undefined)])
  }
  // Added parts precede the next part that both have.
  let next = before.length
  for (let at = after.length - 1; at >= 0; at -= 1) {
    const partner = partners.get(at)
    if (partner !== undefined) next = partner
    else changes.push([next - 0.5, addedPart(after[at] as Part)])
  }
  changes.sort(([left], [right]) => left - right)
  return { changes: changes.map(([, change]) => change), unchanged, own: sizeOf(before), sent: sizeOf(after) }
}

/**
 * The changes as lines for people: a sum, a line for each kind, then each change with the text that the model gets; of those only the
 * newest `most`.
 */
export function changeLines({ changes, unchanged, own, sent }: RequestChanges, width: number, most = Infinity): string[] {
  const sum = `The model gets ${short(sent)} tokens in place of the agent's ${short(own)} (estimated); ${unchanged.toLocaleString('en-US')} ${unchanged === 1 ? 'part is' : 'parts are'} unchanged.`
  if (changes.length === 0) return [sum.replace(/^The model gets .* in place .*?; /, 'The model gets what the agent wrote: ')]
  const kinds = changesByKind(changes).map(({ kind, count, before, after }) => `${kind.padEnd(10)}${String(count).padStart(5)}  ${sizes(before, after)}`)
  const each = changes.slice(Math.max(0, changes.length - most)).flatMap(({ kind, name, before, after, reason, text }) => {
    const size = sizes(before, after)
    const room = Math.max(12, width - 10 - size.length - 2)
    const line = `${kind.padEnd(10)}${middleCut(plain(name), room).padEnd(room)}  ${size}`
    return [line, ...inLines(reason, width, Infinity), ...inLines(text, width, MOST_LINES)]
  })
  return [...wrapped(sum, width), ...kinds, '', ...each]
}

/** The number of changes of each kind that there is, with the tokens before and now. */
export function changesByKind(changes: readonly PartChange[]): { kind: ChangeKind; count: number; before: number; after: number }[] {
  return KINDS.flatMap((kind) => {
    const those = changes.filter((change) => change.kind === kind)
    const sum = (of: 'before' | 'after'): number => those.reduce((all, one) => all + one[of], 0)
    return those.length === 0 ? [] : [{ kind, count: those.length, before: sum('before'), after: sum('after') }]
  })
}

const KINDS: readonly ChangeKind[] = ['replaced', 'shortened', 'removed', 'added']

/** The longest text of a change that is shown, in characters. */
const LONGEST = 2000

/** Sizes before and now in words: `6.6k -> 14`. */
export function sizes(before: number, after: number): string {
  return `${short(before)} -> ${short(after)}`
}

/** The most lines of a text that the model gets. */
const MOST_LINES = 3

/** A text in lines below the name of its change, at most that many; words that are longer than a line are divided. */
function inLines(text: string, width: number, most: number): string[] {
  const room = Math.max(12, width - 10)
  const words = plain(text.replaceAll(/\s+/g, ' ').trim())
    .split(' ')
    .flatMap((word) => word.match(new RegExp(`.{1,${room}}`, 'gs')) ?? [])
  const lines = words.length === 0 ? [] : wrapped(words.join(' '), room)
  const shown = lines.slice(0, most)
  if (shown.length < lines.length) shown.push(`${shown.pop()?.slice(0, room - 1)}…`)
  return shown.map((line) => `          ${line}`)
}

/** The outputs that left together with their calls, by the places of these. */
function withTheirCalls(before: readonly Part[], found: ReadonlyMap<number, number>): { calls: Map<number, number>; outputs: Set<number> } {
  const gone = [...before.entries()].filter(([at, { id }]) => id !== undefined && !found.has(at))
  const placeOf = new Map(gone.flatMap(([at, { kind, id }]) => (kind === 'call' ? [[id, at] as const] : [])))
  const calls = new Map<number, number>()
  for (const [at, { kind, id }] of gone) {
    const call = kind === 'output' ? placeOf.get(id) : undefined
    if (call !== undefined && !calls.has(call)) calls.set(call, at)
  }
  return { calls, outputs: new Set(calls.values()) }
}

/** `output`: what left together with a call. */
function changeOf(part: Part, now: Part | undefined, output?: Part): PartChange {
  if (output !== undefined) {
    const name = part.name.replace(/^call/, 'call and output')
    return { kind: 'removed', name, before: (part.text.length + output.text.length) / 4, after: 0, reason: BOTH_LEFT, text: '' }
  }
  const [before, after] = [part.text.length / 4, (now?.text.length ?? 0) / 4]
  const kind = now === undefined ? 'removed' : isReference(now.text) || after >= before ? 'replaced' : 'shortened'
  return { kind, name: part.name, before, after, reason: reasonFor(part.kind, kind, now?.text ?? ''), text: now?.text.slice(0, LONGEST) ?? '' }
}

function addedPart(part: Part): PartChange {
  const reason =
    part.kind === 'answer'
      ? 'lines in place of old calls'
      : part.kind === 'output'
        ? 'brought back, or an answer to a call of ours'
        : 'told to the model: a change of a file, or a text that was brought back'
  return { kind: 'added', name: part.name, before: 0, after: part.text.length / 4, reason, text: part.text.slice(0, LONGEST) }
}

const BOTH_LEFT = 'old: one line replaces both, where they still matter; its id brings the text back'

function reasonFor(part: PartKind, kind: ChangeKind, text: string): string {
  if (part === 'output') {
    if (kind === 'removed') return 'old: its call is one line now, or left with it; its id brings the text back'
    return isReference(text)
      ? 'no longer worth its place; the id in this line brings the text back'
      : 'long: its beginning and end, or where the same text is above'
  }
  if (part === 'call') return kind === 'removed' ? 'old: one line replaces it, where it still matters' : 'its arguments are old; the id brings them back'
  if (part === 'reasoning') return 'old reasoning'
  return kind === 'removed' ? 'left with its subject' : 'old: its beginning is kept'
}

function sizeOf(parts: readonly Part[]): number {
  return parts.reduce((sum, { text }) => sum + text.length / 4, 0)
}

/** The places of the parts in one list, and of their partners in the other. */
function paired(before: readonly Part[], after: readonly Part[]): Map<number, number> {
  const found = new Map<number, number>()
  const taken = new Set<number>()
  const pair = (keyOf: (part: Part) => string | undefined): void => {
    const waiting = new Map<string, number[]>()
    for (const [at, part] of after.entries()) {
      const key = taken.has(at) ? undefined : keyOf(part)
      if (key !== undefined) waiting.set(key, [...(waiting.get(key) ?? []), at])
    }
    for (const [at, part] of before.entries()) {
      const key = found.has(at) ? undefined : keyOf(part)
      const to = key === undefined ? undefined : waiting.get(key)?.shift()
      if (to === undefined) continue
      found.set(at, to)
      taken.add(to)
    }
  }
  pair(({ kind, id }) => (id === undefined ? undefined : `${kind} ${id}`))
  pair(({ kind, id, text }) => (id === undefined ? `${kind} ${text}` : undefined))
  // A shortened text keeps its beginning.
  pair(({ kind, id, text }) => (id === undefined && text.length >= BEGINNING ? `${kind} ${text.slice(0, BEGINNING)}` : undefined))
  return found
}

/** Characters by which the beginning of a text is recognized. */
const BEGINNING = 24

function partsOf(messages: readonly ComparedMessage[]): Part[] {
  const names = new Map<string, string>()
  return messages.flatMap((message): Part[] => {
    const { role, content = message.summary ?? '', toolCallId, toolName = '' } = message
    if (role === 'toolResult') {
      const text = textIn(content)
      return [{ kind: 'output', id: toolCallId, name: `output of ${names.get(toolCallId ?? '') ?? toolName}`, text }]
    }
    const kind: PartKind = role === 'assistant' ? 'answer' : role === 'user' ? 'prompt' : 'message'
    if (typeof content === 'string') return content === '' ? [] : [{ kind, id: undefined, name: kind, text: content }]
    return content.flatMap((block): Part[] => {
      const { type, text = '', thinking = '', id, name, arguments: args } = block as Record<string, unknown>
      if (type === 'toolCall') {
        const about = `${String(name)} ${subject(args)}`.trim()
        names.set(String(id), about)
        return [{ kind: 'call', id: String(id), name: `call of ${about}`, text: JSON.stringify(args ?? {}) }]
      }
      if (type === 'thinking') return thinking === '' ? [] : [{ kind: 'reasoning', id: undefined, name: 'reasoning', text: String(thinking) }]
      return type === 'text' && text !== '' ? [{ kind, id: undefined, name: kind, text: String(text) }] : []
    })
  })
}

function textIn(content: string | readonly object[]): string {
  if (typeof content === 'string') return content
  return content.map((block) => ('text' in block && typeof block.text === 'string' ? block.text : '')).join('\n')
}
