/** What fills the window, for the person. Reads the whole branch, so it is made only when somebody asks. */
import type { ExtensionContext } from '@earendil-works/pi-coding-agent'
import type { Assembled, RollReceipt } from '../index.js'
import type { Host } from './host.ts'
import type { PiMessage } from './messages.ts'
import { storeLine } from './place.ts'
import { billOf, lastAnswer, physicalModel } from './provider.ts'
import { isReference, readHeader } from './reference.ts'

/** A part of the window. Tokens are characters / 4. */
export interface Share {
  name: string
  tokens: number
}

/** A tool output that the model sees in full or as an excerpt. */
export interface Visible {
  /** What the tools and the keys take. */
  id: string
  tool: string
  /** The path or command it is about, where there is one. */
  about: string
  tokens: number
  /** Neither active nor pinned: the next roll takes it. */
  stale: boolean
  pinned: boolean
}

/** A tool output that the model sees as a reference only. */
export interface Collapsed {
  id: string
  tool: string
  about: string
}

/** The report. */
export interface Report {
  shares: Share[]
  /** The largest first. */
  visible: Visible[]
  /** The newest first. */
  collapsed: Collapsed[]
  /** The estimate of the next request. */
  contextTokens: number
  staleTokens: number
  /** The model's window; 0 where it is unknown. */
  contextWindow: number
  active: number
  objects: number
  /** Share of the last request that the provider read from its cache, 0 to 1; undefined before the first answer. */
  cachedShare: number | undefined
  /** What the session has cost so far, in dollars. */
  cost: number
  /** All of it is what providers say they charge. */
  isBilled: boolean
  /** What was saved against plain Pi, in dollars; undefined where the model has no prices. */
  saved: number | undefined
  /** The same in fresh input tokens. */
  savedTokens: number
  receipts: RollReceipt[]
  off: boolean
  /** Where the store is, and what waits to be sent to it. */
  store: string
}

/** Looks at the session that is open. Rejects where there is none. */
export async function makeReport(host: Host, ctx: ExtensionContext): Promise<Report> {
  const manager = host.manager()
  const boundary = host.boundary
  if (boundary === undefined) throw new Error('the context manager has no open session')
  const [sets, stats, receipts, state] = await Promise.all([
    manager.sessionSets(),
    manager.stats(),
    manager.receipts(),
    manager.storeState(),
  ])
  const index = new Set(sets.session_index)
  const active = new Set(sets.active_set)
  const pinned = new Set(sets.pinned_set)
  const stateOf = (id: string) => ({ stale: !active.has(id) && !pinned.has(id), pinned: pinned.has(id) })
  const projection = ctx.sessionManager.buildSessionProjection().entries
  const sums = new Map<string, number>(KINDS.map((kind) => [kind, 0]))
  const add = (kind: Kind, characters: number): void =>
    void sums.set(kind, (sums.get(kind) ?? 0) + characters)
  const system = boundary.circumstances.systemCharacters(ctx)
  add('system prompt and tools', system)
  const calls = new Map<string, string>()
  /** Call ids that occurred already: a provider may repeat them, and then only the header tells the object. */
  const named = new Set<string>()
  const visible: Visible[] = []
  const collapsed: Collapsed[] = []
  for (const { message, source } of projection.flatMap((entry) =>
    entry.messages.map((message) => ({ message, source: entry.sourceEntry })),
  )) {
    if (message.role === 'assistant') {
      // As the model wrote them: arguments that have collapsed tell a person little.
      const written = source.type === 'message' && source.message.role === 'assistant' ? source.message : message
      for (const block of written.content) {
        if (block.type === 'toolCall') calls.set(block.id, about(block.arguments))
      }
      for (const block of message.content) {
        if (block.type === 'text') add("the model's words", block.text.length)
        else if (block.type === 'thinking') add("the model's words", block.thinking.length)
        else add('tool calls', block.name.length + JSON.stringify(block.arguments).length)
      }
    } else if (message.role === 'toolResult') {
      const text = message.content.map((block) => (block.type === 'text' ? block.text : '')).join('\n')
      const one = { tool: message.toolName, about: calls.get(message.toolCallId) ?? '' }
      if (isReference(text)) {
        add('references', text.length)
        collapsed.unshift({ id: /id=(\S+)/.exec(text)?.[1] ?? message.toolCallId, ...one })
        continue
      }
      const size =
        text.length + IMAGE_CHARACTERS * message.content.filter((block) => block.type === 'image').length
      add('tool results', size)
      const id = readHeader(text)?.id ?? message.toolCallId
      const known = index.has(message.toolCallId) && !named.has(message.toolCallId)
      const full = known ? message.toolCallId : ((await manager.get(id))?.['xt/id'] ?? id)
      named.add(message.toolCallId)
      const state = stateOf(full)
      visible.push({ id, ...one, tokens: tokens(size), ...state, stale: state.stale && size > LONGEST_KEPT })
    } else {
      add(message.role === 'user' ? 'your words' : 'other', sizeOf(message))
    }
  }
  const { figures } = boundary
  const { perCatalogueDollar, cachedShare, cost, isBilled } = billOf(ctx.sessionManager.getBranch())
  const price = (physicalModel(ctx, lastAnswer(ctx.sessionManager))?.cost.input ?? 0) * perCatalogueDollar
  return {
    shares: [...sums]
      .map(([name, size]) => ({ name, tokens: tokens(size) }))
      .filter((share) => share.tokens > 0),
    visible: visible.sort((left, right) => right.tokens - left.tokens),
    collapsed,
    contextTokens: figures.contextTokens || stats.contextTokens,
    staleTokens: figures.staleTokens,
    contextWindow: ctx.model?.contextWindow ?? 0,
    active: sets.active_set.length,
    objects: stats.objects,
    cachedShare,
    cost,
    isBilled,
    saved: price > 0 ? (figures.saved * price) / 1e6 : undefined,
    savedTokens: figures.saved,
    receipts,
    off: boundary.off,
    store: storeLine(host.place, state),
    ...(boundary.inSections ? inSections(await manager.assemble(), system, pinned) : {}),
  }
}

/** What of it is another where the requests are laid out in sections. */
function inSections(
  view: Assembled,
  system: number,
  pinned: ReadonlySet<string>,
): Pick<Report, 'shares' | 'visible' | 'collapsed'> {
  const lines = new Map(view.metadataPool.split('\n').map((line) => [/^id=(\S+)/.exec(line)?.[1] ?? '', line]))
  const parts: [string, number][] = [
    [KINDS[0], system],
    ['metadata pool', view.metadataPool.length],
    ['conversation', JSON.stringify(view.chat).length],
    ['active contents', view.activeContent.length],
  ]
  const visible = view.blocks.map(({ id, content }): Visible => {
    const line = lines.get(id) ?? ''
    const tool = / type=toolcall tool=(\S+)/.exec(line)?.[1] ?? 'file'
    const path = / path=(.*) file_type=/.exec(line)?.[1] ?? ''
    return { id, tool, about: path, tokens: tokens(content.length), stale: false, pinned: pinned.has(id) }
  })
  return {
    shares: parts.map(([name, size]) => ({ name, tokens: tokens(size) })).filter((share) => share.tokens > 0),
    visible: visible.sort((left, right) => right.tokens - left.tokens),
    collapsed: [],
  }
}

const KINDS = [
  'system prompt and tools',
  'your words',
  "the model's words",
  'tool calls',
  'tool results',
  'references',
  'other',
] as const
type Kind = (typeof KINDS)[number]

/** An output of so many characters is no longer than its reference, and never collapses. */
const LONGEST_KEPT = 48

/** What Pi counts for an image. */
const IMAGE_CHARACTERS = 4800

function tokens(characters: number): number {
  return Math.ceil(characters / 4)
}

/** As much of it as is shown. */
const ABOUT_CHARACTERS = 80

/** The argument by which a person knows a call. */
function about(args: Record<string, unknown>): string {
  for (const name of ['path', 'command', 'pattern', 'id', 'query']) {
    const value = args[name]
    if (typeof value === 'string') {
      const line = value.replaceAll(/\s+/g, ' ')
      return line.length > ABOUT_CHARACTERS ? `${line.slice(0, ABOUT_CHARACTERS - 1)}…` : line
    }
  }
  return ''
}

function sizeOf(message: PiMessage): number {
  const { content, summary, command, output } = message as unknown as Record<string, unknown>
  const texts =
    typeof content === 'string' || content === undefined ? [content, summary, command, output] : content
  return (texts as unknown[]).reduce<number>((sum, one) => {
    const text = typeof one === 'string' ? one : (one as { text?: unknown } | undefined)?.text
    return sum + (typeof text === 'string' ? text.length : 0)
  }, 0)
}
