/** What broke the cached prefix at the last model call, and who did it. */
import type { ExtensionCommandContext, SessionEntry } from '@earendil-works/pi-coding-agent'
import type { Host } from './host.ts'
import { sameReplacement } from './messages.ts'
import type { Replacement } from './messages.ts'
import { isReference, readHeader } from './reference.ts'
import type { Difference } from './requests.ts'
import { short } from './shares.ts'
import { TOOLS } from './tools.ts'

/** Providers cache in blocks, so losing up to this many tokens, or this share of the prompt, does not count. */
const BLOCK_TOKENS = 1024
const BLOCK_SHARE = 0.02

/** What is known apart from the branch. */
export interface Evidence {
  /** The replacements that this process made, by entry. */
  edited: ReadonlyMap<string, Replacement | null>
  /** Where the last request first differs from the one before; null if it only adds to the end, undefined if unknown. */
  difference: Difference | null | undefined
  /** How long the provider keeps a prompt, in milliseconds. */
  cacheTtlMs: number
}

/** The answer to `/context why`, for the user. */
export async function why(host: Host, ctx: ExtensionCommandContext): Promise<string> {
  host.manager()
  const { boundary, requests } = host
  const call = boundary?.circumstances.call(ctx, { atUserTurn: false, rolls: false })
  return explain(ctx.sessionManager.getBranch(), {
    edited: boundary?.edited ?? new Map(),
    difference: requests.difference(),
    cacheTtlMs: call?.cacheTtlMs ?? 0,
  })
}

/** Explains the last call of a branch. */
export function explain(branch: readonly SessionEntry[], evidence: Evidence): string {
  const calls = callsOf(branch)
  const last = calls.at(-1)
  const before = calls.at(-2)
  if (last === undefined) return 'There has been no model call on this branch yet.'
  if (!calls.some((call) => call.cached > 0 || call.written > 0))
    return 'The provider has not reported any cache use in this session, so the cause is unknown.'
  const read = `The last call read ${short(last.cached)} of its ${short(last.prompt)} prompt tokens from the cache`
  if (before === undefined) return `${read}. It was the first call on this branch, so there was no cached prefix to break.`
  const lost = Math.min(before.prompt, last.prompt) - last.cached
  if (lost <= Math.max(BLOCK_TOKENS, BLOCK_SHARE * before.prompt))
    return `${read}. Nothing broke the cached prefix.`
  const between = branch.slice(before.index + 1, last.index)
  const causes = causesOf(before, last, between, evidence)
  return `${read}; ${short(lost)} tokens that the previous call had sent were processed again. ${causes.join(' ')}`
}

/** A model call that was answered. */
interface Call {
  /** Its place on the branch. */
  index: number
  model: string
  atMs: number
  prompt: number
  cached: number
  written: number
}

function callsOf(branch: readonly SessionEntry[]): Call[] {
  return branch.flatMap((entry, index): Call[] => {
    if (entry.type !== 'message' || entry.message.role !== 'assistant') return []
    const { provider, model, timestamp, stopReason, usage } = entry.message
    const prompt = usage.input + usage.cacheRead + usage.cacheWrite
    if (stopReason === 'error' || stopReason === 'aborted' || prompt === 0) return []
    const name = `${provider}/${model}`
    return [{ index, model: name, atMs: timestamp, prompt, cached: usage.cacheRead, written: usage.cacheWrite }]
  })
}

/** Sentences that each say who did what, in the order of the affected parts of the prompt. */
function causesOf(before: Call, last: Call, between: readonly SessionEntry[], evidence: Evidence): string[] {
  if (before.model !== last.model) return [`You: the model changed from ${before.model} to ${last.model}.`]
  const causes = [...toolCauses(between), ...promptCauses(between), ...compactionCauses(between), ...editCauses(between, evidence)]
  if (causes.length > 0) return causes
  const { difference, cacheTtlMs } = evidence
  if (difference !== null && difference !== undefined) return [unexplained(difference)]
  const pauseMs = last.atMs - keptUntil(before, between)
  if (cacheTtlMs > 0 && pauseMs > cacheTtlMs) {
    return [`A pause: there were ${duration(pauseMs)} between the calls, and the provider keeps a prompt for ${duration(cacheTtlMs)}.`]
  }
  return difference === null
    ? ['The provider: the request only added to the end of the previous one, and came in time.']
    : ['Probably the provider: nothing on this branch has changed since the previous call, and the request came in time.']
}

function toolCauses(between: readonly SessionEntry[]): string[] {
  const names = (kind: 'toolsAdded' | 'toolsRemoved'): string[] =>
    between.flatMap((entry) =>
      entry.type === 'message' && entry.message.role === 'system'
        ? (entry.message[kind] ?? []).map((tool) => tool.name)
        : [],
    )
  const [added, removed] = [names('toolsAdded'), names('toolsRemoved')]
  if (added.length + removed.length === 0) return []
  const isOurs = [...added, ...removed].every((name) => TOOLS.includes(name))
  const what = [
    ...(added.length > 0 ? [`added ${added.join(', ')}`] : []),
    ...(removed.length > 0 ? [`removed ${removed.join(', ')}`] : []),
  ]
  const who = isOurs ? 'We, the context manager' : 'A tool change (you, Pi or another extension)'
  return [`${who}: ${what.join(' and ')}.`]
}

function promptCauses(between: readonly SessionEntry[]): string[] {
  const sections = between.flatMap((entry) =>
    entry.type === 'message' && entry.message.role === 'system' ? Object.keys(entry.message.sections ?? {}) : [],
  )
  if (sections.length === 0) return []
  return [`Pi or another extension: the system prompt changed (${[...new Set(sections)].join(', ')}).`]
}

function compactionCauses(between: readonly SessionEntry[]): string[] {
  return between.some((entry) => entry.type === 'compaction') ? ['Pi: it compacted the conversation.'] : []
}

function editCauses(between: readonly SessionEntry[], { edited }: Evidence): string[] {
  const edits = between.filter((entry) => entry.type === 'context_edit')
  const isOurs = ({ targetId, replacement }: (typeof edits)[number]): boolean => {
    const known = edited.get(targetId)
    return known === undefined ? looksLikeOurs(replacement) : sameReplacement(known, replacement)
  }
  const ours = edits.filter(isOurs).length
  const others = edits.length - ours
  const messages = (count: number): string => `${count} ${count === 1 ? 'message' : 'messages'}`
  const were = ours === 1 ? 'was' : 'were'
  const why = 'by a roll or its undo (/context shows the receipt), or because of a restart or a compaction'
  return [
    ...(ours > 0 ? [`We, the context manager: ${messages(ours)} ${were} replaced ${why}.`] : []),
    ...(others > 0 ? [`Another extension: it replaced ${messages(others)} of the conversation.`] : []),
  ]
}

/** All that is known about an earlier process is what it wrote. */
function looksLikeOurs(replacement: Replacement | null): boolean {
  const content: unknown = replacement?.content
  if (!Array.isArray(content)) return false
  const [block] = content as { type?: string; text?: string }[]
  if (block?.type === 'text' && block.text !== undefined) return isReference(block.text) || readHeader(block.text) !== undefined
  return (content as { type?: string }[]).some((one) => one.type === 'toolCall')
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
  return Math.max(before.atMs, ...warmed)
}

function duration(ms: number): string {
  const seconds = Math.round(ms / 1000)
  if (seconds < 120) return `${seconds} s`
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`
}
