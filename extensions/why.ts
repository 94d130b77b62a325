/** The breaks of the cached prefix at the last model calls: what caused them, who did it, and what that cost. */
import type { ExtensionCommandContext, SessionEntry } from '@earendil-works/pi-coding-agent'
import type { PriceStep } from '../index.js'
import { dollars, widthOf, wrapped } from '../lib/ui/index.ts'
import { answeringModel, isOnPlan } from './provider.ts'
import { brokenTokens, callsBack, effortCause, isSame, originsOf, readReport, replacedSentences } from '../lib/models/index.ts'
import type { CachedCall, EditOrigin, ReplacedMessage } from '../lib/models/index.ts'
import type { Made } from './boundary.ts'
import type { Host } from './host.ts'
import { sameReplacement } from './messages.ts'
import type { Replacement } from './messages.ts'
import type { Difference } from './requests.ts'
import { short } from './shares.ts'
import { toolOf } from './tools.ts'

/** The facts that are known apart from the branch. */
interface Evidence {
  /** The replacements that this process made, by entry, oldest first. */
  edited: ReadonlyMap<string, readonly Made[]>
  /** The time from which it made them, in milliseconds since the epoch. Earlier edits are known only by their contents. */
  since: number
  /** The first difference of the last request from the one before; null if it only adds to the end, undefined if unknown. */
  difference: Difference | null | undefined
  /** The lifetime of a prompt at the provider, in milliseconds. */
  cacheTtlMs: number
  /** Steps whose reasoning the rolls in effect have taken along, because it was bound to what they changed. */
  reasoningLost: number
  /** The number of positions before a breakpoint in which the provider looks for a cached prefix; undefined if it finds any. */
  lookback?: number | undefined
  /** Sizes above which the whole prompt costs more. */
  steps?: readonly PriceStep[] | undefined
  /** The model is paid by a plan at a flat rate: nothing is told in dollars. */
  isPlan?: boolean
}

/** The answer to `/context why`, for the user. */
export async function why(host: Host, ctx: ExtensionCommandContext): Promise<string> {
  host.manager()
  const { boundary, requests } = host
  const call = boundary?.circumstances.call(ctx, { atUserTurn: false, isPrompt: true, rolls: false })
  const receipts = await host.manager().receipts()
  const text = explain(ctx.sessionManager.getBranch(), {
    edited: boundary?.edited ?? new Map(),
    since: boundary?.since ?? Infinity,
    difference: requests.difference(),
    cacheTtlMs: call?.cacheTtlMs ?? 0,
    reasoningLost: receipts.reduce((sum, { reasoningLost = 0 }) => sum + reasoningLost, 0),
    lookback: call?.lookbackBlocks,
    steps: call?.prices.tiers,
    isPlan: isOnPlan(ctx, answeringModel(ctx)),
  })
  // Pi leaves a column free on either side.
  const width = widthOf(process.stdout) - 2
  return text
    .split('\n')
    .flatMap((line) => wrapped(line, width, line.startsWith(' ') ? '    ' : ''))
    .join('\n')
}

/**
 * Explains the last call of a branch: what it read from the cache, reasoning that the provider says it dropped, and what
 * broke the prefix; then the breaks before it, the newest first.
 */
export function explain(branch: readonly SessionEntry[], evidence: Evidence): string {
  const calls = callsOf(branch)
  const last = calls.at(-1)
  if (last === undefined) return 'There has been no model call on this branch yet.'
  const dropped = droppedLines(calls, evidence.reasoningLost)
  if (!calls.some((call) => call.cached > 0 || call.written > 0))
    return [...dropped, 'The provider has not reported any cache use in this session, so the cause is unknown.'].join('\n')
  const read = `The last call read ${short(last.cached)} of its ${short(last.prompt)} prompt tokens from the cache`
  if (calls.length === 1) return [...dropped, `${read}. It was the first call on this branch, so there was no cached prefix to break.`].join('\n')
  const found = breaksOf(branch, calls, evidence)
  const now = found.find((one) => one.callsAgo === 0)
  const first =
    now === undefined
      ? `${read}. Nothing broke the cached prefix.`
      : `${read}; ${short(now.lost)} tokens that the previous call had sent were processed again${priceOf(now)}. ${now.causes.join(' ')}`
  const earlier = found.filter((one) => one !== now).slice(0, EARLIER_BREAKS)
  return [...dropped, first, ...stepLines(last, evidence), ...(earlier.length > 0 ? ['Earlier breaks:', ...earlier.map(breakLine)] : [])].join('\n')
}

/** The number of listed breaks before the last call. */
const EARLIER_BREAKS = 5

/** A call that had to process again what the one before it had sent. */
interface Break {
  /** Model calls since then; 0 for the last call. */
  callsAgo: number
  /** Tokens that were processed again. */
  lost: number
  /** The cost of processing them again, in dollars; 0 if it is not known. */
  cost: number
  /** Sentences that each say who did what. */
  causes: string[]
}

/** The breaks of a branch, the newest first. */
function breaksOf(branch: readonly SessionEntry[], calls: readonly Call[], evidence: Evidence): Break[] {
  return calls
    .slice(1)
    .flatMap((call, index): Break[] => {
      const before = calls[index] as Call
      const lost = brokenTokens(before, call)
      if (lost === 0) return []
      const callsAgo = calls.length - 2 - index
      // Only the last two requests are kept.
      const known = callsAgo === 0 ? evidence : { ...evidence, difference: undefined }
      return [{ callsAgo, lost, cost: evidence.isPlan === true ? 0 : lost * call.tokenPrice, causes: causesOf(branch, before, call, known) }]
    })
    .reverse()
}

function breakLine(one: Break): string {
  return `  ${callsBack(one.callsAgo)}: ${short(one.lost)} tokens processed again${priceOf(one)}. ${one.causes.join(' ')}`
}

function priceOf({ cost }: Break): string {
  return cost >= 0.005 ? ` (${dollars(cost)})` : ''
}

/** Returns what a prompt above a step in the price costs. */
function stepLines({ prompt }: Call, { steps = [] }: Evidence): string[] {
  const step = steps.findLast(({ inputTokensAbove }) => prompt > inputTokensAbove)
  if (step === undefined) return []
  return [`The model's price: above ${short(step.inputTokensAbove)} prompt tokens all of them cost ${step.factor} times as much.`]
}

/**
 * Returns what the provider reported about reasoning that it dropped, at the last call and before it; of providers that
 * report nothing, what rolls have taken along.
 */
function droppedLines(calls: readonly Call[], reasoningLost: number): string[] {
  const last = calls.at(-1)?.dropped ?? 0
  const before = calls.slice(0, -1).reduce((sum, call) => sum + call.dropped, 0)
  const steps = (count: number): string => `${count} ${count === 1 ? 'step' : 'steps'}`
  if (last + before === 0 && reasoningLost === 0) return []
  if (last + before === 0) return [`Rolls have cost the model its reasoning of ${steps(reasoningLost)}, because what came before it changed.`]
  const at = [...(last > 0 ? [`of ${steps(last)} at the last call`] : []), ...(before > 0 ? [`of ${steps(before)} at earlier calls`] : [])]
  return [`The provider reports that it dropped reasoning ${at.join(' and ')}, because what came before it had changed.`]
}

/** A model call that was answered. */
interface Call extends CachedCall {
  /** Its place on the branch. */
  index: number
  written: number
  /** Dollars for a token that did not come from the cache; 0 if it is not known. */
  tokenPrice: number
  /** Blocks of reasoning that the provider says it dropped. */
  dropped: number
}

function callsOf(branch: readonly SessionEntry[]): Call[] {
  return branch.flatMap((entry, index): Call[] => {
    if (entry.type !== 'message' || entry.message.role !== 'assistant') return []
    const { provider, model, timestamp, stopReason, usage } = entry.message
    const prompt = usage.input + usage.cacheRead + usage.cacheWrite
    if (stopReason === 'error' || stopReason === 'aborted' || prompt === 0) return []
    const name = `${provider}/${model}`
    const fresh = usage.input + usage.cacheWrite
    const paid = (usage.cost?.input ?? 0) + (usage.cost?.cacheWrite ?? 0)
    return [
      {
        index,
        model: name,
        at: timestamp,
        prompt,
        cached: usage.cacheRead,
        written: usage.cacheWrite,
        tokenPrice: fresh > 0 ? paid / fresh : 0,
        dropped: droppedReasoning(entry.message),
      },
    ]
  })
}

/** The number of blocks of reasoning that the provider reports to have dropped from the request of this answer. */
function droppedReasoning({ diagnostics = [] }: { diagnostics?: readonly { type: string; details?: unknown }[] }): number {
  return readReport({ diagnostics })?.dropped ?? 0
}

/** Who chose another model: the user, or a virtual model that the user has chosen before. */
function modelCause(branch: readonly SessionEntry[], before: Call, last: Call): string {
  const at = branch.findLastIndex((entry, index) => index < last.index && entry.type === 'model_change')
  const entry = branch[at]
  const chosen = entry?.type === 'model_change' ? `${entry.provider}/${entry.modelId}` : last.model
  if (at > before.index || chosen === last.model) return `You: the model changed from ${before.model} to ${last.model}.`
  return `The router (${chosen}): it chose ${last.model} after ${before.model}.`
}

/** Sentences that each say who did what, in the order of the affected parts of the prompt. */
function causesOf(branch: readonly SessionEntry[], before: Call, last: Call, evidence: Evidence): string[] {
  const between = branch.slice(before.index + 1, last.index)
  if (before.model !== last.model) return [modelCause(branch, before, last)]
  const causes = [
    ...toolCauses(between),
    ...promptCauses(between),
    ...compactionCauses(between),
    ...thinkingCauses(branch, before, between),
    ...editCauses(branch, before, between, evidence),
  ]
  if (causes.length > 0) return causes
  const { difference, cacheTtlMs, lookback } = evidence
  if (difference !== null && difference !== undefined) return [unexplained(difference)]
  const pauseMs = last.at - keptUntil(before, between)
  if (cacheTtlMs > 0 && pauseMs > cacheTtlMs) {
    return [`A pause: there were ${duration(pauseMs)} between the calls, and the provider keeps a prompt for ${duration(cacheTtlMs)}.`]
  }
  const added = positionsOf([branch[before.index] as SessionEntry, ...between])
  if (lookback !== undefined && added > lookback) {
    return [`The provider: it looks for a cached prefix at most ${lookback} positions back, and ${added} were added.`]
  }
  return difference === null
    ? ['The provider: the request only added to the end of the previous one, and came in time.']
    : ['Probably the provider: nothing on this branch has changed since the previous call, and the request came in time.']
}

/** The number of entries' positions in Anthropic's format, where a run of calls, or of results, is one. */
function positionsOf(entries: readonly SessionEntry[]): number {
  const kinds = entries.flatMap((entry): string[] => {
    if (entry.type === 'custom_message') return ['text']
    if (entry.type !== 'message') return []
    const { message } = entry
    if (message.role === 'toolResult') return ['result']
    if (message.role !== 'user' && message.role !== 'assistant') return []
    const { content = [] } = message as { content?: string | { type: string }[] }
    return typeof content === 'string' ? ['text'] : content.map(({ type }) => (type === 'toolCall' ? 'call' : 'text'))
  })
  return kinds.filter((kind, at) => kind === 'text' || kind !== kinds[at - 1]).length
}

function toolCauses(between: readonly SessionEntry[]): string[] {
  const names = (kind: 'toolsAdded' | 'toolsRemoved'): string[] =>
    between.flatMap((entry) => (entry.type === 'message' && entry.message.role === 'system' ? (entry.message[kind] ?? []).map((tool) => tool.name) : []))
  const [added, removed] = [names('toolsAdded'), names('toolsRemoved')]
  if (added.length + removed.length === 0) return []
  const isOurs = [...added, ...removed].every((name) => toolOf(name) !== undefined)
  const what = [...(added.length > 0 ? [`added ${added.join(', ')}`] : []), ...(removed.length > 0 ? [`removed ${removed.join(', ')}`] : [])]
  const who = isOurs ? 'We, the context manager' : 'A tool change (you, Pi or another extension)'
  return [`${who}: ${what.join(' and ')}.`]
}

function promptCauses(between: readonly SessionEntry[]): string[] {
  const sections = between.flatMap((entry) => (entry.type === 'message' && entry.message.role === 'system' ? Object.keys(entry.message.sections ?? {}) : []))
  if (sections.length === 0) return []
  return [`Pi or another extension: the system prompt changed (${[...new Set(sections)].join(', ')}).`]
}

function thinkingCauses(branch: readonly SessionEntry[], before: Call, between: readonly SessionEntry[]): string[] {
  const levelIn = (entries: readonly SessionEntry[]): string | undefined =>
    entries.flatMap((entry) => (entry.type === 'thinking_level_change' ? [entry.thinkingLevel] : [])).at(-1)
  return effortCause(levelIn(branch.slice(0, before.index)), levelIn(between)).map((sentence) => `You: ${sentence.charAt(0).toLowerCase()}${sentence.slice(1)}`)
}

function compactionCauses(between: readonly SessionEntry[]): string[] {
  return between.some((entry) => entry.type === 'compaction') ? ['Pi: it compacted the conversation.'] : []
}

/** The authors of the edits between two calls. Only the last edit of a message counts: no request had those before it. */
function editCauses(branch: readonly SessionEntry[], before: Call, between: readonly SessionEntry[], evidence: Evidence): string[] {
  const last = new Map(between.flatMap((entry) => (entry.type === 'context_edit' ? [[entry.targetId, entry] as const] : [])))
  if (last.size === 0) return []
  const earlier = branch.slice(0, before.index)
  const shown = new Map<string, unknown>()
  for (const entry of earlier) {
    if (entry.type === 'message' && 'content' in entry.message) shown.set(entry.id, entry.message.content)
    if (entry.type === 'context_edit') shown.set(entry.targetId, contentOf(entry.replacement))
  }
  const isUnsent = new Set(branch.slice(before.index).map(({ id }) => id))
  const originals = new Map(earlier.map((entry) => [entry.id, entry.type === 'message' && 'content' in entry.message ? entry.message.content : undefined]))
  const origins: EditOrigin[] = []
  const unclear: ReplacedMessage[] = []
  for (const [id, edit] of last) {
    if (isUnsent.has(id)) continue
    const message = { original: originals.get(id), before: shown.get(id), now: contentOf(edit.replacement) }
    if (isSame(message.before, message.now)) continue
    const known = knownOrigin(edit, evidence)
    if (known === undefined) unclear.push(message)
    else origins.push(known)
  }
  return replacedSentences([...origins, ...originsOf(unclear)])
}

/** The origin of an edit as far as this process knows it: its own, or another extension's; undefined for one of an earlier process. */
function knownOrigin({ targetId, replacement, timestamp }: ContextEdit, { edited, since }: Evidence): EditOrigin | undefined {
  const own = edited.get(targetId)?.findLast((one) => sameReplacement(one.replacement, replacement))
  if (own !== undefined) return own.by
  return Date.parse(timestamp) >= since ? 'other' : undefined
}

type ContextEdit = Extract<SessionEntry, { type: 'context_edit' }>

function contentOf(replacement: Replacement): unknown {
  return replacement === null ? null : replacement.content
}

/** The sentence for a difference that the session does not explain. */
function unexplained(difference: Difference): string {
  const what =
    difference.part === 'message'
      ? `message ${difference.index + 1} of the request (${difference.role}) has changed`
      : `the ${difference.part} of the request changed`
  return `Another extension: ${what}, and no entry of the session explains it.`
}

/** When the prompt was last used or kept warm. */
function keptUntil(before: Call, between: readonly SessionEntry[]): number {
  const warmed = between.filter((entry) => (entry.type as string) === 'usage').map((entry) => Date.parse(entry.timestamp))
  return Math.max(before.at, ...warmed)
}

function duration(ms: number): string {
  const seconds = Math.round(ms / 1000)
  if (seconds < 120) return `${seconds} s`
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`
}
