/** The outputs of a branch in the usual layout, where they appeared, and what fills the window besides. */
import type { ExtensionContext, SessionEntry } from '@earendil-works/pi-coding-agent'
import type { ContextManager } from '../index.js'
import { shortName } from '../lib/ui/index.ts'
import type { Host } from './host.ts'
import { NOTICE } from './messages.ts'
import type { PiMessage } from './messages.ts'
import { idIn, nameOf, nameOfObject } from './names.ts'
import { headerOf, isReference, referenceOf } from '../lib/lines/index.ts'

/** A part of the window, in tokens. */
export interface Share {
  name: string
  tokens: number
}

/** The part of an output that the model sees; `line`: its call has become one line among others. */
export type ReportForm = 'full' | 'excerpt' | 'reference' | 'line'

/** A tool output on the branch. */
export interface Output {
  /** The id that tools and keys accept. */
  id: string
  tool: string
  /** The file, command or search, whole and on one line; the tool's name if its arguments name none of these. */
  name: string
  form: ReportForm
  /** Tokens that it takes up in the window now; of what was brought back, those of its text there. */
  tokens: number
  /** Tokens of the whole output, which is what bringing it back adds. */
  whole: number
  /** A roll by hand collapses it now. */
  mayCollapse: boolean
  /** For a collapsed output: its text goes to the model with the next message, or is in the conversation again. */
  back?: 'next' | 'there'
  pinned: boolean
  /** The tool reported a failure. */
  failed: boolean
  /** The user's turn in which it came, from 1; 0 before the first one, and if it is not known (in the layout in sections). */
  turn: number
  /** Model calls since the one that asked for it; undefined if that is not known. */
  callsAgo: number | undefined
}

/** The parts of a report. */
export interface BranchLook {
  shares: Share[]
  /** The newest first. */
  outputs: Output[]
}

/** The objects of a session, by their IDs. */
export interface Sets {
  index: ReadonlySet<string>
  pinned: ReadonlySet<string>
  /** The calls whose outputs a roll by hand would collapse now. */
  rolled: ReadonlySet<string>
}

/** Looks at the branch. Turns and model calls are the session's: those whose messages have left the window also count. */
export async function inPlace(host: Host, ctx: ExtensionContext, system: number, sets: Sets): Promise<BranchLook> {
  const walk = new Walk(host.manager(), ctx.cwd, sets, system)
  const shown = new Map(ctx.sessionManager.buildSessionProjection().entries.map((entry) => [entry.sourceEntry.id, entry.messages]))
  for (const entry of ctx.sessionManager.getBranch()) {
    const stored = entry.type === 'message' ? entry.message : undefined
    const messages = shown.get(entry.id)
    if (messages === undefined) walk.count(stored)
    else if (messages.length === 0) await walk.hidden(stored)
    else for (const message of messages) await walk.shown(message, stored)
  }
  return walk.look(host.boundary?.returning ?? new Set())
}

/** True if the model sees text of an output, where it came or brought back. */
export function isInWindow({ form, back }: Output): boolean {
  return form === 'full' || form === 'excerpt' || back === 'there'
}

/** Adds the name of the object that a call brings back, if it is not among them. */
export async function learnName(manager: ContextManager, args: Record<string, unknown>, cwd: string, names: Map<string, string>): Promise<void> {
  const id = idIn(args)
  const object = id === undefined || names.has(id) ? null : await manager.get(id)
  if (object !== null) names.set(id as string, nameOfObject(object, cwd))
}

/** The message of an entry as it is stored. */
type Stored = Extract<SessionEntry, { type: 'message' }>['message'] | undefined

type Part = 'system prompt' | 'messages' | 'tool calls' | 'tool outputs' | 'references'

type Result = Extract<PiMessage, { role: 'toolResult' }>

/** A walk through a branch, from its start. */
class Walk {
  readonly #manager: ContextManager
  readonly #cwd: string
  readonly #sets: Sets
  readonly #sums: Map<Part, number>
  readonly #calls = new Map<string, Record<string, unknown>>()
  /** Names by short id, for calls that bring something back. */
  readonly #names = new Map<string, string>()
  /** Call ids that have occurred. A provider may repeat them, and then only the header identifies the object. */
  readonly #seen = new Set<string>()
  /** In which turn, and after how many calls, each tool call was made. */
  readonly #made = new Map<string, { turn: number; call: number }>()
  /** The sizes of texts that were brought back, by short id. */
  readonly #back = new Map<string, number>()
  #turn = 0
  #call = 0
  /** The newest first. */
  readonly #outputs: (Output & { call: number })[] = []

  constructor(manager: ContextManager, cwd: string, sets: Sets, system: number) {
    this.#manager = manager
    this.#cwd = cwd
    this.#sets = sets
    this.#sums = new Map([['system prompt', system]])
  }

  /** A message that the window no longer has. */
  count(stored: Stored): void {
    if (stored?.role === 'user') this.#turn += 1
    if (stored?.role === 'assistant') this.#call += 1
  }

  /** Notes a message that an edit leaves out: a line in another message replaces it. */
  async hidden(stored: Stored): Promise<void> {
    this.count(stored)
    if (stored?.role === 'assistant') this.#learnCalls(stored)
    else if (stored?.role === 'toolResult') await this.#addOutput(stored, stored, 'line')
  }

  /** A message as the model sees it. */
  async shown(message: PiMessage, stored: Stored): Promise<void> {
    this.count(message)
    if (message.role === 'assistant') {
      // The arguments as the model wrote them, because collapsed ones say little.
      this.#learnCalls(stored?.role === 'assistant' ? stored : message)
      for (const block of message.content) {
        if (block.type === 'text') this.#add('messages', block.text.length)
        else if (block.type === 'thinking') this.#add('messages', block.thinking.length)
        else this.#add('tool calls', block.name.length + JSON.stringify(block.arguments).length)
      }
    } else if (message.role === 'toolResult') {
      const whole = stored?.role === 'toolResult' ? stored : message
      const form = formOf(textOf(message.content), textOf(whole.content))
      this.#add(form === 'reference' ? 'references' : 'tool outputs', sizeOfResult(message))
      await this.#addOutput(message, whole, form)
    } else if (message.role !== 'system') {
      const returned = returnedId(message)
      if (returned !== undefined) this.#back.set(returned, sizeOf(message))
      this.#add(returned === undefined ? 'messages' : 'tool outputs', sizeOf(message))
    }
  }

  /** The parts found. `returning`: the ids of the outputs that go to the model with the next message. */
  look(returning: ReadonlySet<string>): BranchLook {
    const last = this.#call
    const outputs = this.#outputs.map(({ call, ...one }): Output => {
      const size = this.#back.get(one.id)
      const hasLeft = one.form === 'reference' || one.form === 'line'
      const back: Pick<Output, 'back' | 'tokens'> | undefined = !hasLeft
        ? undefined
        : size !== undefined
          ? { back: 'there', tokens: size / 4 }
          : returning.has(one.id)
            ? { back: 'next', tokens: one.tokens }
            : undefined
      return { ...one, ...back, callsAgo: last - call }
    })
    return { shares: [...this.#sums].map(([name, size]) => ({ name, tokens: size / 4 })), outputs }
  }

  #add(part: Part, characters: number): void {
    this.#sums.set(part, (this.#sums.get(part) ?? 0) + characters)
  }

  #learnCalls({ content }: Extract<PiMessage, { role: 'assistant' }>): void {
    for (const block of content) {
      if (block.type !== 'toolCall') continue
      this.#calls.set(block.id, block.arguments)
      this.#made.set(block.id, { turn: this.#turn, call: this.#call })
    }
  }

  async #addOutput(message: Result, whole: Result, form: ReportForm): Promise<void> {
    const { toolName: tool, toolCallId: callId, isError: failed } = message
    const [text, stored] = [textOf(message.content), textOf(whole.content)]
    const id = referenceOf(text)?.id ?? headerOf(text)?.id ?? shortName(callId)
    const isKnown = this.#sets.index.has(callId) && !this.#seen.has(callId)
    const full = isKnown ? callId : ((await this.#manager.get(id))?.['xt/id'] ?? id)
    this.#seen.add(callId)
    const args = this.#calls.get(callId) ?? {}
    await learnName(this.#manager, args, this.#cwd, this.#names)
    const name = nameOf(tool, args, this.#cwd, this.#names)
    this.#names.set(id, name)
    const tokens = form === 'line' ? 0 : sizeOfResult(message) / 4
    const size = (sizeOfResult(whole) - (headerOf(stored)?.length ?? 0)) / 4
    const state = { mayCollapse: this.#sets.rolled.has(full), pinned: this.#sets.pinned.has(full), failed }
    const at = this.#made.get(callId) ?? { turn: this.#turn, call: this.#call }
    this.#outputs.unshift({ id, tool, name, form, tokens, whole: size, ...state, callsAgo: 0, ...at })
  }
}

/** The id of the output whose text a message brings back; undefined for any other message. */
export function returnedId(message: PiMessage): string | undefined {
  if (message.role !== 'custom' || message.customType !== NOTICE || typeof message.content !== 'string') return undefined
  return headerOf(message.content)?.id
}

/** The number of characters that Pi counts for an image. */
const IMAGE_CHARACTERS = 4800

function formOf(shown: string, stored: string): ReportForm {
  if (isReference(shown)) return 'reference'
  return shown.length < stored.length ? 'excerpt' : 'full'
}

function textOf(content: readonly { type: string; text?: string }[]): string {
  return content.map((block) => (block.type === 'text' ? block.text : '')).join('\n')
}

function sizeOfResult({ content }: Result): number {
  return textOf(content).length + IMAGE_CHARACTERS * content.filter((block) => block.type === 'image').length
}

function sizeOf(message: PiMessage): number {
  const { content, summary, command, output } = message as unknown as Record<string, unknown>
  const texts = typeof content === 'string' || content === undefined ? [content, summary, command, output] : content
  return (texts as unknown[]).reduce<number>((sum, one) => {
    const text = typeof one === 'string' ? one : (one as { text?: unknown } | undefined)?.text
    return sum + (typeof text === 'string' ? text.length : 0)
  }, 0)
}
