/**
 * Pi's current branch as the driver sees it. Between calls only the last entry that was handed over is remembered, so the
 * cost of a turn depends on the turn alone.
 */
import type { ExtensionContext, ProjectedSessionEntry, SessionEntry } from '@earendil-works/pi-coding-agent'
import type { Edit, IncomingMessage } from '../index.js'
import type { Landmark, News, PlainMessage, Port, PromptUsage, RealCompaction, SavingLedger, Visible } from '../lib/projection/index.ts'
import { plainMessage, sizeOf } from '../lib/projection/index.ts'
import { entriesAfter, messageOf, messagesOf, NOTICE, points, replacementOf, sameReplacement } from './messages.ts'
import type { PiMessage, Replacement } from './messages.ts'

/** A point of the branch, with its place. */
export interface Mark extends Landmark {
  /** The point's entry on the branch, counted from 0. */
  index: number
}

/** The replacements that a plan asks for, by entry. */
export type Replacements = ReadonlyMap<string, Replacement>

/** One session's branch. */
export class Branch implements Pick<Port<Mark>, 'news' | 'visible' | 'landmarks' | 'accepted'> {
  /** Pi's own view, as of the call that is running. */
  ctx!: ExtensionContext
  /** The last entry that the engine has accepted. */
  #last: string | null = null
  /** The leaf when the driver last asked what is new. */
  #leaf: string | null = null
  /** Edits that were given to Pi and must be on the branch next time. */
  readonly #asked = new Map<string, Replacement>()
  /** Messages that were handed over otherwise than they are stored, because something had edited them before. */
  readonly #edited = new Map<string, PiMessage>()
  /** Messages that edits of ours have left out since. */
  readonly #left = new Set<string>()
  readonly #ledger: SavingLedger
  /** By how many characters a result would be longer without us: by call, and once it has one, by entry. */
  readonly #births = new Map<string, number>()
  #born = new Map<string, number>()
  /** Those of them that no point has yet. */
  #unsaved: Record<string, number> = {}

  constructor(ledger: SavingLedger) {
    this.#ledger = ledger
  }

  /** A result of a call would have `characters` more without us. */
  birth(callId: string, characters: number): void {
    if (characters !== 0) this.#births.set(callId, (this.#births.get(callId) ?? 0) + characters)
  }

  /** Takes the differences that the next point has to keep. */
  takeBorn(): Record<string, number> | undefined {
    const born = this.#unsaved
    this.#unsaved = {}
    return Object.keys(born).length === 0 ? undefined : born
  }

  /** The messages after the last one handed over. */
  news(): News {
    const { sessionManager } = this.ctx
    this.#leaf = sessionManager.getLeafId()
    const entries = entriesAfter(sessionManager, this.#last)
    if (entries === undefined) return { is: this.#last === null ? 'changed' : 'elsewhere' }
    const messages = this.#incoming(entries)
    if (messages === undefined) return { is: 'changed' }
    for (const { key, message } of messages) {
      this.#note(key, message as PiMessage)
      this.#ledger.add(key, sizeOf(message), this.#plainMessage(key, message))
    }
    return { is: 'new', messages }
  }

  /** Pi's projection of the branch. */
  visible(known: 'kept' | Mark | undefined): Visible {
    const { sessionManager } = this.ctx
    const branch = sessionManager.getBranch()
    const until = known === 'kept' ? branch.findIndex((entry) => entry.id === this.#last) : (known?.index ?? -1)
    const before = new Set(branch.slice(0, until + 1).map((entry) => entry.id))
    this.#leaf = sessionManager.getLeafId()
    const projection = sessionManager.buildSessionProjection().entries
    const messages = messagesOf(projection)
    for (const noted of [this.#asked, this.#left, this.#edited]) noted.clear()
    this.#born = new Map([...points(branch)].flatMap(({ point }) => Object.entries(point.born ?? {})))
    for (const { key, message } of messages) this.#note(key, message as PiMessage)
    this.#ledger.reset(
      messages.map(({ key, message }) => [key, sizeOf(message)]),
      this.#plainMessages(branch),
      realCompaction(branch),
    )
    // A compaction comes first in the projection, wherever it is on the branch, and is not part of the record.
    const isCompacted = projection[0]?.sourceEntry.type === 'compaction'
    let recorded = Math.max(0, isCompacted ? messages.findIndex(({ key }) => before.has(key)) : 0)
    while (before.has(messages[recorded]?.key ?? '')) recorded += 1
    return { messages, recorded, lost: isCompacted ? lostOf(branch, projection, before) : [] }
  }

  /** The points of the branch, the last one first. */
  landmarks(): Iterable<Mark> {
    return points(this.ctx.sessionManager.getBranch())
  }

  /** Everything up to the leaf has been handed over. */
  accepted(): void {
    this.#last = this.#leaf
  }

  /**
   * The replacements that edits ask for; `isWhole` says whether all of them fit. An edit of an entry that the branch does
   * not show is left out, because Pi would refuse all edits for it. Those returned must be on the branch at the next call.
   * `unsent` are the entries that no request has had yet.
   */
  replacements(
    edits: readonly Edit[],
    unsent: readonly string[] = [],
    visible: readonly ProjectedSessionEntry[] = this.ctx.sessionManager.buildSessionProjection().entries,
  ): { found: Replacements; isWhole: boolean } {
    const ids = new Set(visible.flatMap((entry) => (entry.messages.length > 0 ? [entry.sourceEntry.id] : [])))
    const found = new Map<string, Replacement>()
    for (const edit of edits) {
      const replacement = replacementOf(edit, this.#handed(edit.key))
      if (replacement !== undefined && (ids.has(edit.key) || this.#left.has(edit.key))) found.set(edit.key, replacement)
    }
    for (const [key, replacement] of found) {
      this.#asked.set(key, replacement)
      this.#ledger.edit(key, replacement === null ? 0 : sizeOf(replacement), !unsent.includes(key))
      if (replacement === null) this.#left.add(key)
      else this.#left.delete(key)
    }
    return { found, isWhole: found.size === new Set(edits.map(({ key }) => key)).size }
  }

  /** All messages of a branch as plain Pi would have them. */
  #plainMessages(branch: readonly SessionEntry[]): PlainMessage[] {
    return branch.flatMap((entry) => {
      const message = messageOf(entry)
      const plain = message === undefined ? undefined : this.#plainMessage(entry.id, message)
      return plain === undefined ? [] : [plain]
    })
  }

  /** An entry's message in plain Pi; undefined for a message of ours. `shown` is the message with the edits in force. */
  #plainMessage(key: string, shown: object): PlainMessage | undefined {
    const entry = this.ctx.sessionManager.getEntry(key)
    if (entry?.type === 'custom_message' && entry.customType === NOTICE) return undefined
    const message = entry?.type === 'message' ? entry.message : (shown as PiMessage)
    if (message.role !== 'toolResult') return plainMessage(key, message)
    const birth = this.#births.get(message.toolCallId)
    if (birth !== undefined) {
      this.#births.delete(message.toolCallId)
      this.#born.set(key, birth)
      this.#unsaved[key] = birth
    }
    return plainMessage(key, message, this.#born.get(key) ?? 0)
  }

  /** A message as it was handed over; an edit says what differs from that. */
  #handed(key: string): PiMessage | undefined {
    const entry = this.ctx.sessionManager.getEntry(key)
    return this.#edited.get(key) ?? (entry?.type === 'message' ? entry.message : undefined)
  }

  /** Remembers a message that is handed over otherwise than it is stored. */
  #note(key: string, message: PiMessage): void {
    const entry = this.ctx.sessionManager.getEntry(key)
    if (entry?.type === 'message' && entry.message !== message) this.#edited.set(key, message)
  }

  /**
   * The messages of new entries. Undefined if the branch is not what the engine knows: after a compaction, after
   * someone else edited a message that was handed over, or if our own edits did not arrive.
   */
  #incoming(entries: readonly SessionEntry[]): IncomingMessage[] | undefined {
    const messages = new Map<string, IncomingMessage>()
    const arrived: string[] = []
    for (const entry of entries) {
      if (entry.type === 'compaction') return undefined
      if (entry.type === 'context_edit') {
        const { targetId, replacement } = entry
        if (!arrived.includes(targetId) && sameReplacement(this.#asked.get(targetId), replacement)) {
          arrived.push(targetId)
          continue
        }
        if (!messages.has(targetId)) return undefined
      }
      show(entry, messages)
    }
    if (arrived.length < this.#asked.size) return undefined
    this.#asked.clear()
    return [...messages.values()]
  }
}

/** The last compaction of a branch. */
export function realCompaction(branch: readonly SessionEntry[]): RealCompaction | undefined {
  const entry = branch.findLast((one) => one.type === 'compaction')
  if (entry === undefined) return undefined
  // Pi may name an entry that shows nothing.
  const from = branch.findIndex(({ id }) => id === entry.firstKeptEntryId)
  const kept = branch.slice(Math.max(0, from)).find((one) => messageOf(one) !== undefined)
  return { id: entry.id, kept: kept?.id ?? entry.firstKeptEntryId, size: entry.summary.length, told: toldIn(entry.summary) }
}

/** The tokens that a compaction of a branch has cost; undefined if Pi has not noted them. */
export function usageIn(branch: readonly SessionEntry[], id: string): PromptUsage | undefined {
  const entry = branch.find((one) => one.id === id)
  return entry?.type === 'compaction' ? entry.usage : undefined
}

/** Characters of each text by the model in one of Pi's summaries: there are two if it cuts a turn; lists of files follow. */
function toldIn(summary: string): number {
  const texts = summary.replace(/\n\n<(?:read|modified)-files>\n[^]*$/, '').split('**Turn Context (split turn):**')
  return texts.reduce((sum, text) => sum + text.length, 0) / texts.length
}

/**
 * The messages that a compaction has removed before they were recorded, for instance because the store could not be
 * written. They count only if earlier ones were recorded: what came before the first use of a store stays out.
 */
function lostOf(branch: readonly SessionEntry[], projection: readonly ProjectedSessionEntry[], before: ReadonlySet<string>): IncomingMessage[] {
  if (before.size === 0) return []
  const first = branch.findIndex((entry) => entry.id === projection[1]?.sourceEntry.id)
  const messages = new Map<string, IncomingMessage>()
  for (const entry of branch.slice(0, Math.max(0, first))) if (!before.has(entry.id)) show(entry, messages)
  return [...messages.values()]
}

/** Adds the message of an entry, or applies its edit to one that is there. */
function show(entry: SessionEntry, messages: Map<string, IncomingMessage>): void {
  if (entry.type !== 'context_edit') {
    const message = messageOf(entry)
    if (message !== undefined) messages.set(entry.id, { key: entry.id, message })
    return
  }
  const { targetId: key, replacement } = entry
  const message = messages.get(key)?.message
  if (replacement === null) messages.delete(key)
  else if (message !== undefined) messages.set(key, { key, message: { ...message, content: replacement.content } })
}
