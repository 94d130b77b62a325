/** The report on what fills the window, for the user. Reads the whole branch, so it is made only on request. */
import type { ExtensionContext } from '@earendil-works/pi-coding-agent'
import type { ContextManager, RollReceipt } from '../index.js'
import type { Held } from '../lib/held-back.ts'
import type { Host } from './host.ts'
import type { PiMessage } from './messages.ts'
import { shortName } from '../lib/inspect/names.ts'
import { idIn, nameOf, nameOfObject } from './names.ts'
import { bytesOf, sizeHint, storeLine } from './place.ts'
import { billOf, lastAnswer, physicalModel } from './provider.ts'
import { isReference, readHeader } from './reference.ts'

/** A part of the window, in tokens. */
export interface Share {
  name: string
  tokens: number
}

/** How much of an output the model sees. */
export type ReportForm = 'full' | 'excerpt' | 'reference'

/** A tool output on the branch. */
export interface Output {
  /** The id that tools and keys accept. */
  id: string
  tool: string
  /** The file, command or search, whole and on one line; the tool's name if its arguments name none of these. */
  name: string
  form: ReportForm
  /** Tokens that it takes up in the window now. */
  tokens: number
  /** Neither active nor pinned, and larger than its reference: a roll by hand collapses it, whatever its age. */
  inactive: boolean
  pinned: boolean
  /** The tool reported a failure. */
  failed: boolean
  /** The user's turn in which it came, from 1; 0 before the first one, and if it is not known (in the layout in sections). */
  turn: number
  /** Model calls since the one that asked for it; undefined if that is not known. */
  callsAgo: number | undefined
}

/** The report. */
export interface Report {
  /** The parts of the window, largest first. They add up to `contextTokens`. */
  shares: Share[]
  /** Full outputs and excerpts, largest first; then references, newest first. */
  outputs: Output[]
  /** Tokens of the next request: as in Pi's footer if Pi knows, otherwise characters / 4. */
  contextTokens: number
  /** How many of them a roll would remove. */
  staleTokens: number
  /** The model's window in tokens; 0 if unknown. */
  contextWindow: number
  active: number
  objects: number
  /** Share of the last request that the provider read from its cache, 0 to 1; undefined before the first answer. */
  cachedShare: number | undefined
  /** The cost of the session so far, in dollars. */
  cost: number
  /** Every figure in `cost` was reported by a provider as charged. */
  isBilled: boolean
  /** Dollars for a fresh input token of the next call, written to the cache if the provider charges for that; 0 if unknown. */
  tokenPrice: number
  /** The saving against plain Pi, in dollars; undefined if the model has no prices. */
  saved: number | undefined
  /** The same in fresh input tokens. */
  savedTokens: number
  /** Why nobody knows what was saved; undefined if that is known. */
  uncounted: string | undefined
  receipts: RollReceipt[]
  /** What could leave the window and has not, and why; undefined if nothing could. */
  held: Held | undefined
  off: boolean
  /** Where the store is, and what is waiting to be sent to it. */
  store: string
  /** How to make the store smaller, once it is large. */
  storeHint: string | undefined
}

/** Makes the report of the open session. Rejects if there is none. */
export async function makeReport(host: Host, ctx: ExtensionContext): Promise<Report> {
  const manager = host.manager()
  const boundary = host.boundary
  if (boundary === undefined) throw new Error('the context manager has no open session')
  await boundary.refresh(ctx)
  const [sets, stats, receipts, state] = await Promise.all([
    manager.sessionSets(),
    manager.stats(),
    manager.receipts(),
    manager.storeState(),
  ])
  const pinned = new Set(sets.pinnedSet)
  const system = boundary.circumstances.systemCharacters(ctx)
  const look = boundary.inSections
    ? await inSections(manager, ctx.cwd, system, pinned)
    : await inPlace(host, ctx, system, { ...sets, pinned })
  const sum = look.shares.reduce((all, share) => all + share.tokens, 0)
  // Pi's footer is on the same screen and must show the same number.
  const counted = boundary.inSections ? undefined : ctx.getContextUsage()?.tokens
  const contextTokens = Math.round(counted ?? sum)
  const scale = sum > 0 ? contextTokens / sum : 1
  const { figures } = boundary
  const { perCatalogueDollar, cachedShare, cost, isBilled } = billOf(ctx.sessionManager.getBranch())
  const last = lastAnswer(ctx.sessionManager)
  const prices = physicalModel(ctx, last)?.cost
  const { saved, dollars } = figures.ledger
  const isCounted = last === undefined || cachedShare !== undefined
  return {
    shares: look.shares
      .map(({ name, tokens }) => ({ name, tokens: tokens * scale }))
      .filter((share) => share.tokens > 0)
      .sort((left, right) => right.tokens - left.tokens),
    outputs: look.outputs
      .map((one) => ({ ...one, tokens: one.tokens * scale }))
      .sort(byForm),
    contextTokens,
    staleTokens: Math.min(contextTokens, figures.staleTokens),
    contextWindow: ctx.model?.contextWindow ?? 0,
    active: sets.activeSet.length,
    objects: stats.objects,
    cachedShare,
    cost,
    isBilled,
    tokenPrice: (Math.max(prices?.input ?? 0, prices?.cacheWrite ?? 0) * perCatalogueDollar) / 1e6,
    saved: dollars !== 0 || (prices?.input ?? 0) > 0 ? dollars * perCatalogueDollar : undefined,
    savedTokens: saved,
    uncounted: boundary.inSections ? 'the layout "sections" keeps no account' : isCounted ? undefined : 'the provider reports no token counts',
    receipts,
    held: await boundary.heldBack(ctx),
    off: boundary.off,
    store: storeLine(host.place, state),
    storeHint: state.kind === 'sqlite' ? sizeHint(await bytesOf(host.place)) : undefined,
  }
}

interface Look {
  shares: Share[]
  /** The newest first. */
  outputs: Output[]
}

interface Sets {
  sessionIndex: readonly string[]
  activeSet: readonly string[]
  pinned: ReadonlySet<string>
}

/** The usual layout: outputs are where they appeared. */
async function inPlace(host: Host, ctx: ExtensionContext, system: number, sets: Sets): Promise<Look> {
  const manager = host.manager()
  const index = new Set(sets.sessionIndex)
  const active = new Set(sets.activeSet)
  const sums = new Map<Part, number>([['system prompt', system]])
  const add = (part: Part, characters: number): void => void sums.set(part, (sums.get(part) ?? 0) + characters)
  const calls = new Map<string, Record<string, unknown>>()
  /** Names by short id, for calls that bring something back. */
  const names = new Map<string, string>()
  /** Call ids that have occurred. A provider may repeat them, and then only the header identifies the object. */
  const seen = new Set<string>()
  /** In which turn, and after how many calls, each tool call was made. */
  const made = new Map<string, { turn: number; call: number }>()
  let [turn, call] = [0, 0]
  const outputs: (Output & { call: number })[] = []
  for (const { messages, sourceEntry: source } of ctx.sessionManager.buildSessionProjection().entries) {
    const stored = source.type === 'message' ? source.message : undefined
    for (const message of messages) {
      if (message.role === 'user') turn += 1
      if (message.role === 'assistant') {
        call += 1
        // The arguments as the model wrote them, because collapsed ones say little.
        const written = stored?.role === 'assistant' ? stored : message
        for (const block of written.content) {
          if (block.type !== 'toolCall') continue
          calls.set(block.id, block.arguments)
          made.set(block.id, { turn, call })
        }
        for (const block of message.content) {
          if (block.type === 'text') add('messages', block.text.length)
          else if (block.type === 'thinking') add('messages', block.thinking.length)
          else add('tool calls', block.name.length + JSON.stringify(block.arguments).length)
        }
      } else if (message.role === 'toolResult') {
        const text = textOf(message.content)
        const form = formOf(text, stored?.role === 'toolResult' ? textOf(stored.content) : text)
        const images = message.content.filter((block) => block.type === 'image').length
        const size = text.length + IMAGE_CHARACTERS * images
        add(form === 'reference' ? 'references' : 'tool outputs', size)
        const id =
          (form === 'reference' ? /id=(\S+)/.exec(text)?.[1] : readHeader(text)?.id) ?? shortName(message.toolCallId)
        const known = index.has(message.toolCallId) && !seen.has(message.toolCallId)
        const full = known ? message.toolCallId : ((await manager.get(id))?.['xt/id'] ?? id)
        seen.add(message.toolCallId)
        const args = calls.get(message.toolCallId) ?? {}
        await learnName(manager, args, ctx.cwd, names)
        const name = nameOf(message.toolName, args, ctx.cwd, names)
        names.set(id, name)
        const isPinned = sets.pinned.has(full)
        const ages = form !== 'reference' && !active.has(full) && !isPinned
        const inactive = ages && size > (await referenceLength(manager, full, id, message.toolName, size))
        const { toolName: tool, isError: failed } = message
        const at = made.get(message.toolCallId) ?? { turn, call }
        outputs.unshift({ id, tool, name, form, tokens: size / 4, inactive, pinned: isPinned, failed, callsAgo: 0, ...at })
      } else if (message.role !== 'system') add('messages', sizeOf(message))
    }
  }
  const last = call
  const aged = outputs.map(({ call, ...one }): Output => ({ ...one, callsAgo: last - call }))
  return { shares: [...sums].map(([name, size]) => ({ name, tokens: size / 4 })), outputs: aged }
}

/** The layout in sections: active contents have their own section. */
async function inSections(manager: ContextManager, cwd: string, system: number, pinned: ReadonlySet<string>): Promise<Look> {
  const view = await manager.assemble()
  const lines = new Map(view.metadataPool.split('\n').map((line) => [/^id=(\S+)/.exec(line)?.[1] ?? '', line]))
  const parts: [string, number][] = [
    ['system prompt', system],
    ['metadata pool', view.metadataPool.length],
    ['messages', JSON.stringify(view.chat).length],
    ['active contents', view.activeContent.length],
  ]
  const outputs: Output[] = []
  for (const { id, content } of view.blocks) {
    const line = lines.get(id) ?? ''
    const tool = / type=toolcall tool=(\S+)/.exec(line)?.[1] ?? 'file'
    const object = await manager.get(id)
    const names = new Map<string, string>()
    await learnName(manager, (object?.['args'] ?? {}) as Record<string, unknown>, cwd, names)
    const name = object === null ? tool : nameOfObject(object, cwd, names)
    const tokens = content.length / 4
    const failed = line.includes(' status=fail')
    outputs.push({ id: shortName(id), tool, name, form: 'full', tokens, inactive: false, pinned: pinned.has(id), failed, turn: 0, callsAgo: undefined })
  }
  return { shares: parts.map(([name, size]) => ({ name, tokens: size / 4 })), outputs: outputs.reverse() }
}

/** Adds the name of the object that a call brings back, if it is not among them. */
async function learnName(manager: ContextManager, args: Record<string, unknown>, cwd: string, names: Map<string, string>): Promise<void> {
  const id = idIn(args)
  const object = id === undefined || names.has(id) ? null : await manager.get(id)
  if (object !== null) names.set(id as string, nameOfObject(object, cwd))
}

type Part = 'system prompt' | 'messages' | 'tool calls' | 'tool outputs' | 'references'

/** How long an output's reference is, in characters. What the output came to is looked up only where it may decide. */
async function referenceLength(manager: ContextManager, full: string, id: string, tool: string, size: number): Promise<number> {
  const plain = `toolcall_ref id=${id} tool=${tool} status=fail`.length
  if (size <= plain || size > plain + LONGEST_OUTCOME) return plain
  const outcome = (await manager.get(full))?.['outcome']
  return typeof outcome === 'string' ? plain + ` -> ${outcome}`.length : plain
}

/** The most characters that an outcome adds to a reference, with the arrow before it. */
const LONGEST_OUTCOME = 164

/** How many characters Pi counts for an image. */
const IMAGE_CHARACTERS = 4800

function formOf(shown: string, stored: string): ReportForm {
  if (isReference(shown)) return 'reference'
  return shown.length < stored.length ? 'excerpt' : 'full'
}

/** References go last and keep their order; the others are sorted by size. */
function byForm(left: Output, right: Output): number {
  const [first, second] = [left.form === 'reference', right.form === 'reference']
  if (first !== second) return first ? 1 : -1
  return first ? 0 : right.tokens - left.tokens
}

function textOf(content: readonly { type: string; text?: string }[]): string {
  return content.map((block) => (block.type === 'text' ? block.text : '')).join('\n')
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
