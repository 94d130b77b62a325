/**
 * Passes Pi's branch to the engine. Each message is handed over once, and counts as handed over only when the engine
 * has accepted it. Between calls only the last such entry is remembered, so the cost of a turn depends on the turn
 * alone.
 */
import type { ExtensionContext, ProjectedSessionEntry, SessionEntry } from '@earendil-works/pi-coding-agent'
import type { ContextManager, IncomingMessage, ModelCall, Plan } from '../index.js'
import type { Moment } from './circumstances.ts'
import { flattened } from './flat.ts'
import { entriesAfter, messageOf, messagesOf, sameReplacement } from './messages.ts'
import type { PiMessage, Replacement } from './messages.ts'
import { points } from './point.ts'
import type { Point } from './point.ts'

/** How many points of a branch are looked up in the store. */
const LOST_POINTS = 20

/** What the intake needs to know, and whom it tells. */
export interface Listener {
  /** The circumstances of the next model call. */
  call(ctx: ExtensionContext, moment: Moment): ModelCall
  /** The engine has made a plan. */
  planned(plan: Plan): void
  /** The engine has returned to the state of a point. */
  cameBack(point: Point): void
  /** A message could not be recorded in any form. */
  leftOut(sentence: string): void
}

/** Hands over the messages of one session's branch. Its methods must not run concurrently. */
export class Intake {
  readonly #manager: ContextManager
  readonly #listener: Listener
  /** The last entry that the engine has accepted. */
  #last: string | null = null
  /** The engine may not know what the branch shows, so the next hand-over reads all of it. */
  #doubt = true
  /** The state before a hand-over that failed halfway. Whatever it recorded is undone before the next one. */
  #before: number | undefined
  /** Edits that were given to Pi and must be on the branch next time. */
  readonly #asked = new Map<string, Replacement | null>()
  /** Messages that were handed over otherwise than they are stored, because something had edited them before. */
  readonly #edited = new Map<string, PiMessage>()
  /** Messages that edits of ours have left out since. */
  readonly #left = new Set<string>()
  /** The disk sync of the last records, which runs while Pi continues. */
  #settled: Promise<void> = Promise.resolve()

  constructor(manager: ContextManager, listener: Listener) {
    this.#manager = manager
    this.#listener = listener
  }

  /** The engine may lack messages after a call failed halfway; the next hand-over reads the branch again. */
  doubt(): void {
    this.#doubt = true
  }

  /** Edits that go to Pi now, by entry. */
  expect(edits: ReadonlyMap<string, Replacement | null>): void {
    for (const [key, replacement] of edits) {
      this.#asked.set(key, replacement)
      if (replacement === null) this.#left.add(key)
      else this.#left.delete(key)
    }
  }

  /** A message as it was handed over; an edit says what differs from that. */
  handed(key: string, ctx: ExtensionContext): PiMessage | undefined {
    const entry = ctx.sessionManager.getEntry(key)
    return this.#edited.get(key) ?? (entry?.type === 'message' ? entry.message : undefined)
  }

  /** Whether an edit of ours has left a message out. */
  hasLeft(key: string): boolean {
    return this.#left.has(key)
  }

  /**
   * Hands over everything new. Returns undefined if nothing is, unless `always`. `rolls` says whether a roll may
   * follow. After a rejection, everything is still new.
   */
  async take(
    ctx: ExtensionContext,
    rolls: (atUserTurn: boolean) => boolean,
    always = false,
  ): Promise<Plan | undefined> {
    const entries = this.#doubt ? undefined : entriesAfter(ctx.sessionManager, this.#last)
    const messages = entries && this.#incoming(entries)
    for (const { key, message } of messages ?? []) this.#note(key, message as PiMessage, ctx)
    if (messages === undefined) {
      if (this.#last !== null && entriesAfter(ctx.sessionManager, this.#last) === undefined) await this.restore(ctx)
      else await this.reread(ctx)
    }
    const leaf = ctx.sessionManager.getLeafId()
    const atUserTurn = (messages ?? []).some(({ message }) => (message as PiMessage).role === 'user')
    const may = rolls(atUserTurn)
    if (messages?.length === 0 && !may && !always) {
      this.#last = leaf
      return undefined
    }
    const call = this.#listener.call(ctx, { atUserTurn, rolls: may })
    const advance = (some: IncomingMessage[]) => this.#manager.advance(some, call)
    let plan = await this.#recorded(async () => {
      await this.#settled
      return advance(messages ?? [])
    }, messages?.length)
    if (plan === undefined) {
      // One of the messages was refused. They are handed over one by one, so that it doesn't stop the others.
      await this.reread(ctx)
      plan = await this.#recorded(() => advance([]))
    }
    this.#last = leaf
    // The disk syncs while Pi and the model work. A failure is reported when the next messages are handed over.
    this.#settled = this.#manager.settle()
    this.#settled.catch(() => {})
    this.#listener.planned(plan)
    return plan
  }

  /** Loads Pi's current branch: the state as of its last point, what is visible, and what is new on it. */
  async restore(ctx: ExtensionContext): Promise<void> {
    const branch = ctx.sessionManager.getBranch()
    const known = branch.slice(0, await this.#lastPoint(branch))
    this.#before = undefined
    await this.#resync(ctx, new Set(known.map((entry) => entry.id)))
  }

  /** Reads what is visible again. The sets stay. */
  async reread(ctx: ExtensionContext): Promise<void> {
    await this.#takeBack()
    const branch = ctx.sessionManager.getBranch()
    const until = branch.findIndex((entry) => entry.id === this.#last)
    await this.#resync(ctx, new Set(branch.slice(0, until + 1).map((entry) => entry.id)))
  }

  /** Remembers a message that is handed over otherwise than it is stored. */
  #note(key: string, message: PiMessage, ctx: ExtensionContext): void {
    const entry = ctx.sessionManager.getEntry(key)
    if (entry?.type === 'message' && entry.message !== message) this.#edited.set(key, message)
  }

  /** Restores the last state of a branch that the store has. Returns how many of the branch's entries it covers. */
  async #lastPoint(branch: readonly SessionEntry[]): Promise<number> {
    let tried = 0
    for (const { index, point } of points(branch)) {
      if (await this.#comeBack(point)) return index + 1
      // A power failure loses only the last turns. If more is missing, the whole store is, and each lookup takes
      // time.
      tried += 1
      if (tried === LOST_POINTS) break
    }
    // Nothing of it is recorded, so start from the very beginning.
    await this.#manager.restore(this.#manager.sessionId, 0)
    return 0
  }

  /** Whether the store knew the point. */
  async #comeBack(point: Point): Promise<boolean> {
    try {
      await this.#manager.restore(point.session, point.tx, point.times)
    } catch (error) {
      // The session comes from another machine, its store was removed, or the store's last turns were lost.
      if ((error as { code?: string }).code !== 'UNKNOWN_OBJECT') throw error
      return false
    }
    this.#listener.cameBack(point)
    return true
  }

  /** Lets the engine rebuild what is visible, and record the entries outside `recorded`. */
  async #resync(ctx: ExtensionContext, recorded: ReadonlySet<string>): Promise<void> {
    this.#doubt = true
    this.#asked.clear()
    const leaf = ctx.sessionManager.getLeafId()
    const projection = ctx.sessionManager.buildSessionProjection().entries
    const messages = messagesOf(projection)
    this.#left.clear()
    this.#edited.clear()
    for (const { key, message } of messages) this.#note(key, message as PiMessage, ctx)
    await this.#recordSummarized(ctx, projection, recorded)
    // A compaction comes first in the projection, wherever it is on the branch, and is not part of the record.
    const first =
      projection[0]?.sourceEntry.type === 'compaction' ? messages.findIndex((m) => recorded.has(m.key)) : 0
    let count = Math.max(0, first)
    while (count < messages.length && recorded.has((messages[count] as IncomingMessage).key)) count += 1
    const call = this.#listener.call(ctx, { atUserTurn: false, rolls: false })
    const plan =
      (await this.#recorded(() => this.#manager.resync(messages, count, call), messages.length - count)) ??
      (await this.#oneByOne(messages, count, call))
    this.#last = leaf
    this.#doubt = false
    this.#listener.planned(plan)
  }

  /**
   * Records the messages that a compaction has removed before they were recorded, for instance because the store could
   * not be written. They are only handed over if earlier ones were: what came before the first use of a store stays out.
   */
  async #recordSummarized(
    ctx: ExtensionContext,
    projection: readonly ProjectedSessionEntry[],
    recorded: ReadonlySet<string>,
  ): Promise<void> {
    if (recorded.size === 0 || projection[0]?.sourceEntry.type !== 'compaction') return
    const branch = ctx.sessionManager.getBranch()
    const first = branch.findIndex((entry) => entry.id === projection[1]?.sourceEntry.id)
    const entries = branch.slice(0, Math.max(0, first)).filter((entry) => !recorded.has(entry.id))
    const messages = shownBy(entries)
    if (messages.length === 0) return
    const call = this.#listener.call(ctx, { atUserTurn: false, rolls: false })
    const plan = await this.#recorded(() => this.#manager.resync(messages, 0, call), messages.length)
    if (plan === undefined) await this.#oneByOne(messages, 0, call)
    this.#last = (entries.at(-1) as SessionEntry).id
  }

  /**
   * Runs a hand-over. If it fails, the next one first undoes whatever it recorded. Resolves with undefined if one of
   * its `count` new messages was refused as invalid; rejects if the store or the engine failed.
   */
  async #recorded(work: () => Promise<Plan>): Promise<Plan>
  async #recorded(work: () => Promise<Plan>, count: number | undefined): Promise<Plan | undefined>
  async #recorded(work: () => Promise<Plan>, count = 0): Promise<Plan | undefined> {
    this.#doubt = true
    this.#before = await this.#manager.point()
    try {
      const plan = await work()
      this.#doubt = false
      this.#before = undefined
      return plan
    } catch (error) {
      if (count === 0 || !isRefusal(error)) throw error
      await this.#takeBack()
      return undefined
    }
  }

  /** Undoes what a failed hand-over recorded: it may have stored some of its messages, and they will come again. */
  async #takeBack(): Promise<void> {
    if (this.#before === undefined) return
    await this.#manager.restore(this.#manager.sessionId, this.#before)
    this.#before = undefined
  }

  /** Hands over messages one by one. A refused message is flattened; if it is refused again, it is left out. */
  async #oneByOne(messages: IncomingMessage[], count: number, call: ModelCall): Promise<Plan> {
    this.#before = await this.#manager.point()
    let plan = await this.#manager.resync(messages.slice(0, count), count, call)
    for (const one of messages.slice(count)) {
      const next = await this.#alone(one, call)
      if (next !== undefined) {
        plan = { ...next, edits: [...plan.edits, ...next.edits], notices: [...plan.notices, ...next.notices] }
      }
    }
    this.#before = undefined
    return plan
  }

  async #alone({ key, message }: IncomingMessage, call: ModelCall): Promise<Plan | undefined> {
    let refusal: unknown
    for (const form of [message, flattened(message)]) {
      try {
        return await this.#manager.advance([{ key, message: form }], call)
      } catch (error) {
        if (!isRefusal(error)) throw error
        refusal = error
      }
    }
    this.#listener.leftOut((refusal as Error).message)
    return undefined
  }

  /**
   * The messages of new entries. Undefined if the branch is not what the engine knows: after a compaction, after
   * someone else edited a message that was handed over, or if our own edits did not arrive.
   */
  #incoming(entries: readonly SessionEntry[]): IncomingMessage[] | undefined {
    const messages = new Map<string, object>()
    const arrived: string[] = []
    for (const entry of entries) {
      if (entry.type === 'compaction') return undefined
      if (entry.type !== 'context_edit') {
        const message = messageOf(entry)
        if (message !== undefined) messages.set(entry.id, message)
        continue
      }
      const { targetId, replacement } = entry
      if (!arrived.includes(targetId) && sameReplacement(this.#asked.get(targetId), replacement)) {
        arrived.push(targetId)
        continue
      }
      const message = messages.get(targetId)
      if (message === undefined) return undefined
      if (replacement === null) messages.delete(targetId)
      else messages.set(targetId, { ...message, content: replacement.content })
    }
    if (arrived.length < this.#asked.size) return undefined
    this.#asked.clear()
    return [...messages].map(([key, message]) => ({ key, message }))
  }
}

/** What entries show after the edits among them. */
function shownBy(entries: readonly SessionEntry[]): IncomingMessage[] {
  const messages = new Map<string, object>()
  for (const entry of entries) {
    if (entry.type !== 'context_edit') {
      const message = messageOf(entry)
      if (message !== undefined) messages.set(entry.id, message)
      continue
    }
    const { targetId, replacement } = entry
    const message = messages.get(targetId)
    if (replacement === null) messages.delete(targetId)
    else if (message !== undefined) messages.set(targetId, { ...message, content: replacement.content })
  }
  return [...messages].map(([key, message]) => ({ key, message }))
}

/** Whether the engine refused its input, as opposed to failing. */
function isRefusal(error: unknown): boolean {
  return (error as { code?: string } | null)?.code === 'INVALID_ARGUMENT'
}
