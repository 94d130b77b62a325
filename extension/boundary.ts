/**
 * Where Pi and the engine meet: each new message goes to the engine once, and its plans become entries of Pi's
 * session. Between calls only the last entry handed over is remembered, so the cost of a turn depends on the turn
 * alone.
 */
import type {
  ContextEvent,
  ContextEventResult,
  ExtensionContext,
  ProjectedSessionEntry,
  SessionBoundaryDraft,
  SessionEntry,
  TurnEndEvent,
  TurnEndEventResult,
} from '@earendil-works/pi-coding-agent'
import type { ContextManager, ModelCall, Plan, RollReceipt } from '../index.js'
import type { Circumstances } from './circumstances.ts'
import { Figures } from './figures.ts'
import { Intake } from './intake.ts'
import { replacementOf } from './messages.ts'
import type { PiMessage, Replacement } from './messages.ts'
import { POINT } from './point.ts'
import type { Point } from './point.ts'
import { sections } from '../lib/sections.ts'
import type { Settings } from './settings.ts'
import { HOW_TO_READ } from './recall.ts'
import type { Recall } from './recall.ts'
import { textOf } from './results.ts'
import { TOOLS_TOKENS } from './tools.ts'

/** The type of the messages that carry notices to the model. */
export const NOTICE = 'context-notice'

/** Connects one Pi session to the engine. Calls to its methods run one after the other. */
export class Boundary {
  readonly manager: ContextManager
  readonly figures = new Figures()
  /** The user has switched rolls off. Recording continues, so that nothing is missing later. */
  off = false
  /** Objects whose text goes to the model with the user's next message. */
  readonly returning = new Set<string>()
  /** The replacements that this process made, by entry, to tell later who changed a prompt. */
  readonly edited = new Map<string, Replacement | null>()
  /** The circumstances of model calls. */
  readonly circumstances: Circumstances
  /** How the model's requests are laid out. */
  readonly layout: Settings['layout']
  readonly #recall: Recall
  /** The model has been told on this branch how to bring back collapsed outputs. */
  #taught = false
  readonly #intake: Intake
  /** The next request will not hit the cache anyway, so a roll is free, even within a user's turn. */
  #cold = false
  #notices: string[] = []
  /** Replacements that this version of Pi takes only at the end of a turn. */
  readonly #owed = new Map<string, Replacement | null>()
  #prompt: string | undefined
  #queue: Promise<unknown> = Promise.resolve()

  constructor(
    manager: ContextManager,
    circumstances: Circumstances,
    recall: Recall,
    layout: Settings['layout'] = 'anchored',
    leftOut: (sentence: string) => void = () => {},
  ) {
    this.#intake = new Intake(manager, {
      call: (ctx, moment) => circumstances.call(ctx, moment),
      planned: (plan) => this.#note(plan),
      cameBack: (point) => this.#takeOver(point),
      leftOut,
    })
    this.manager = manager
    this.layout = layout
    this.circumstances = circumstances
    this.#recall = recall
  }

  /** Loads Pi's current branch: the sets as of its last point, what is visible, and what is new on it. */
  synchronize(ctx: ExtensionContext): Promise<void> {
    return this.#exclusive(() => this.#intake.restore(ctx))
  }

  /** Reads what is visible again after Pi has rewritten the branch's projection (a compaction). The sets stay. */
  reread(ctx: ExtensionContext): Promise<void> {
    return this.#exclusive(async () => {
      this.figures.gain = 0
      // The message that said so may have gone into the summary.
      this.#taught = false
      await this.#intake.reread(ctx)
      this.#cold = true
    })
  }

  /**
   * Called before a user's prompt is stored, or before a run that has none. Returns notices for the model about what
   * happened since the last turn.
   */
  beforePrompt(ctx: ExtensionContext, isUsers = true): Promise<string | undefined> {
    return this.#exclusive(async () => {
      // They are sent with the user's prompt.
      if (isUsers) this.returning.clear()
      // Asked even if the branch has nothing new: files may have changed, and other clients may have written.
      const plan = await this.#correct(ctx, true)
      if (plan !== undefined && this.#taught && this.rolls) this.#bringTools(plan, ctx)
      return this.#takeNotices()
    })
  }

  /**
   * Called before a model call. Hands over the user's message, and executes a roll if now is the time for it. Returns
   * the messages with that roll, or undefined if they don't change.
   */
  beforeCall(event: ContextEvent, ctx: ExtensionContext): Promise<ContextEventResult | undefined> {
    return this.#exclusive(async () => {
      await this.#recordPrompt(ctx)
      const plan = await this.#take(ctx, (atUserTurn) => (atUserTurn || this.#cold) && canEdit(ctx))
      this.#cold = false
      if (this.layout === 'sections') return this.off ? undefined : { messages: await this.#render(event, ctx) }
      if (plan === undefined || plan.edits.length === 0) return undefined
      const before = ctx.sessionManager.buildSessionProjection().entries
      const edits = this.#replacements(plan, ctx, before)
      edit(ctx, edits)
      const messages = withEdits(event.messages, before, edits)
      this.#teach()
      return { messages: [...messages, ...this.#sayNotices(ctx)] }
    })
  }

  /** Called at the end of a turn. Hands over the answer and its results, and returns the entries for Pi to add. */
  turnEnd(event: TurnEndEvent, ctx: ExtensionContext): Promise<TurnEndEventResult> {
    return this.#exclusive(async () => {
      if (event.outcome === 'completed') this.figures.saved += this.figures.gain
      const plan = await this.#take(ctx, () => true)
      const mine: SessionBoundaryDraft[] = []
      for (const [targetId, replacement] of this.#owed) mine.push({ type: 'context_edit', targetId, replacement })
      this.#owed.clear()
      if (plan !== undefined && plan.edits.length > 0) {
        for (const [targetId, replacement] of this.#replacements(plan, ctx, event.context.contextEntries)) {
          mine.push({ type: 'context_edit', targetId, replacement })
        }
        this.#countExcerpts(plan, event, ctx)
        this.#bringTools(plan, ctx)
        this.#teach()
      }
      this.figures.countSpared(this.circumstances.prices(ctx))
      const notice = this.#takeNotices()
      if (notice !== undefined) {
        mine.push({ type: 'custom_message', customType: NOTICE, content: notice, display: true })
      }
      mine.push({ type: 'custom', customType: POINT, data: await this.point(plan) })
      return { entries: [...event.entries, ...mine] }
    })
  }

  async #render({ messages }: ContextEvent, ctx: ExtensionContext): Promise<PiMessage[]> {
    const view = await this.manager.assemble()
    const rendered = sections(messages, view)
    const characters = this.circumstances.systemCharacters(ctx) + view.text.length - view.systemPrompt.length
    this.figures.contextTokens = Math.ceil(characters / 4)
    return rendered as PiMessage[]
  }

  #countExcerpts(plan: Plan, { toolResultEntryIds }: TurnEndEvent, ctx: ExtensionContext): void {
    for (const edit of plan.edits) {
      if (edit.kind !== 'result' || edit.text === undefined || !toolResultEntryIds.includes(edit.key)) continue
      const entry = ctx.sessionManager.getEntry(edit.key)
      if (entry?.type !== 'message' || entry.message.role !== 'toolResult') continue
      this.figures.spare(textOf(entry.message.content).length - edit.text.length)
    }
  }

  /** Updates the figures after the user changed the sets. Nothing collapses. */
  refresh(ctx: ExtensionContext): Promise<void> {
    return this.#exclusive(async () => {
      // During a turn, the engine gets its messages at the end of the turn.
      if (ctx.isIdle()) await this.#correct(ctx, true)
    })
  }

  /** Rolls everything stale now. Returns the receipt, or undefined if nothing could be rolled. */
  rollNow(ctx: ExtensionContext): Promise<RollReceipt | undefined> {
    return this.#exclusive(async () => {
      await this.#correct(ctx)
      const plan = await this.manager.rollNow(this.#call(ctx, false, true))
      this.#note(plan)
      edit(ctx, this.#replacements(plan, ctx))
      if (plan.edits.length > 0) this.#teach()
      this.#sayNotices(ctx)
      return plan.receipt
    })
  }

  /** Undoes the last roll of this process. Returns how many messages are shown as before it. */
  undoRoll(ctx: ExtensionContext): Promise<number> {
    return this.#exclusive(async () => {
      await this.#correct(ctx)
      const last = (await this.manager.receipts()).at(-1)
      const plan = await this.manager.undoRoll()
      this.#note(plan)
      const edits = this.#replacements(plan, ctx)
      // The receipts also have rolls of earlier processes, which this one can't undo.
      if (edits.size > 0) this.figures.gain = Math.max(0, this.figures.gain - (last?.gain ?? 0))
      edit(ctx, edits)
      return edits.size
    })
  }

  /** The point to return to, as stored on the branch. A plan made just now has it. */
  async point(plan?: Plan): Promise<Point> {
    const { saved, gain } = this.figures
    const [tx, times] = await Promise.all([
      plan?.point ?? this.manager.point(),
      plan?.pointTimes ?? this.manager.pointTimes(),
    ])
    const point: Point = { session: this.manager.sessionId, tx, times }
    if (saved !== 0 || gain !== 0) Object.assign(point, { saved: Math.round(saved), gain: Math.round(gain) })
    if (this.off) point.off = true
    if (this.#taught) point.taught = true
    return point
  }

  /** Whether rolls may happen. */
  get rolls(): boolean {
    return this.anchored && this.#recall.possible
  }

  /** Whether outputs stay where they appeared and have headers there. */
  get anchored(): boolean {
    return !this.off && this.layout === 'anchored'
  }

  /** Whether requests are laid out in sections now. */
  get inSections(): boolean {
    return !this.off && this.layout === 'sections'
  }

  /** The engine may lack messages after a call failed halfway; the next call reads the branch again. */
  doubt(): void {
    this.#intake.doubt()
  }

  #bringTools(plan: Plan, ctx: ExtensionContext): void {
    if (this.#recall.tools || this.circumstances.bindsTools(ctx)) return
    const price = this.#recall.bringToolsIfWorth(plan, ctx.model)
    this.figures.saved -= price
    if (price > 0) this.figures.gain -= TOOLS_TOKENS * this.circumstances.prices(ctx).read
  }

  /** Makes sure that the model knows how to bring back what is collapsing now. */
  #teach(): void {
    if (this.#taught) return
    this.#taught = true
    if (!this.#recall.tools) this.#notices.push(HOW_TO_READ)
  }

  #exclusive<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#queue.then(work)
    this.#queue = result.catch(() => {})
    return result
  }

  /** Hands over everything new outside of a turn. What a plan puts right then, without a roll, is put right. */
  async #correct(ctx: ExtensionContext, always = false): Promise<Plan | undefined> {
    const plan = await this.#take(ctx, () => false, always)
    if (plan === undefined || plan.edits.length === 0) return plan
    const edits = this.#replacements(plan, ctx)
    if (canEdit(ctx)) edit(ctx, edits)
    else for (const [key, replacement] of edits) this.#owed.set(key, replacement)
    return plan
  }

  #take(ctx: ExtensionContext, rolls: (atUserTurn: boolean) => boolean, always = false): Promise<Plan | undefined> {
    return this.#intake.take(ctx, (atUserTurn) => this.rolls && rolls(atUserTurn), always)
  }

  #call(ctx: ExtensionContext, atUserTurn: boolean, rolls: boolean): ModelCall {
    return this.circumstances.call(ctx, { atUserTurn, rolls })
  }

  #takeOver(point: Point): void {
    this.off = point.off === true
    this.#taught = point.taught === true
    this.figures.takeOver(point)
  }

  #note(plan: Plan): void {
    // Active contents are always the newest version, and nothing else shown could be stale.
    if (this.inSections) return
    this.figures.planned(plan)
    this.#notices.push(...plan.notices)
  }

  #takeNotices(): string | undefined {
    const lines = this.#notices
    this.#notices = []
    return lines.length === 0 ? undefined : lines.join('\n')
  }

  /** Adds the notices to the session outside the end of a turn. Returns them as messages of the request. */
  #sayNotices(ctx: ExtensionContext): PiMessage[] {
    const content = canSay(ctx) ? this.#takeNotices() : undefined
    return content === undefined ? [] : [say(ctx, content)]
  }

  /**
   * The replacements that a plan asks for. An edit of an entry that the branch does not show is left out, because Pi
   * would refuse all edits for it, and the branch is read again at the next call.
   */
  #replacements(
    plan: Plan,
    ctx: ExtensionContext,
    visible: readonly ProjectedSessionEntry[] = ctx.sessionManager.buildSessionProjection().entries,
  ): Map<string, Replacement | null> {
    const ids = new Set(visible.flatMap((entry) => (entry.messages.length > 0 ? [entry.sourceEntry.id] : [])))
    const found = new Map<string, Replacement | null>()
    for (const one of plan.edits) {
      const replacement = replacementOf(one, this.#intake.handed(one.key, ctx))
      if (replacement === undefined || !(ids.has(one.key) || this.#intake.hasLeft(one.key))) this.#intake.doubt()
      else found.set(one.key, replacement)
    }
    this.#intake.expect(found)
    for (const [key, replacement] of found) this.edited.set(key, replacement)
    return found
  }

  async #recordPrompt(ctx: ExtensionContext): Promise<void> {
    const prompt = ctx.getSystemPrompt()
    if (prompt === this.#prompt) return
    await this.manager.setSystemPrompt(prompt)
    this.#prompt = prompt
  }
}

/** Pi's session object at run time. The type given to extensions lacks these methods. */
interface Editable {
  appendContextEdit?: (targetId: string, replacement: Replacement | null) => string
  appendCustomMessageEntry?: (customType: string, content: string, display: boolean) => string
}

/** Whether messages can be replaced outside the end of a turn. */
function canEdit(ctx: ExtensionContext): boolean {
  return typeof (ctx.sessionManager as Editable).appendContextEdit === 'function'
}

function edit(ctx: ExtensionContext, edits: ReadonlyMap<string, Replacement | null>): void {
  const session = ctx.sessionManager as Editable
  if (edits.size > 0 && session.appendContextEdit === undefined) {
    throw new Error('this version of Pi replaces messages only at the end of a turn')
  }
  for (const [targetId, replacement] of edits) session.appendContextEdit?.(targetId, replacement)
}

/** Whether messages can be added outside the end of a turn. */
function canSay(ctx: ExtensionContext): boolean {
  return typeof (ctx.sessionManager as Editable).appendCustomMessageEntry === 'function'
}

/** Adds a notice to the session. Returns it as a message of the request. */
function say(ctx: ExtensionContext, content: string): PiMessage {
  ;(ctx.sessionManager as Editable).appendCustomMessageEntry?.(NOTICE, content, true)
  return { role: 'custom', customType: NOTICE, content, display: true, timestamp: Date.now() }
}

/**
 * Applies edits to the messages of a request. The messages are in the projection's order, without system messages. If
 * another extension has changed that, they are returned unchanged, and the edits take effect at the next request.
 */
function withEdits(
  messages: readonly PiMessage[],
  projection: readonly ProjectedSessionEntry[],
  edits: ReadonlyMap<string, Replacement | null>,
): PiMessage[] {
  const flat = projection.flatMap((entry) =>
    entry.messages
      .filter((m) => m.role !== 'system')
      .map((m) => ({ id: entry.sourceEntry.id, role: m.role })),
  )
  if (flat.length !== messages.length || flat.some((one, index) => one.role !== messages[index]?.role)) {
    return [...messages]
  }
  return messages.flatMap((message, index) => {
    const replacement = edits.get(flat[index]?.id ?? '')
    if (replacement === null) return []
    return [replacement === undefined ? message : ({ ...message, content: replacement.content } as PiMessage)]
  })
}
