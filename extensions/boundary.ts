/**
 * Where Pi and the engine meet: each new message goes to the engine once, and its plans become entries of Pi's
 * session. Between calls only the last entry handed over is remembered, so the cost of a turn depends on the turn
 * alone.
 */
import type {
  ContextEventResult,
  ContextWithSystemEvent,
  ExtensionContext,
  ProjectedSessionEntry,
  SessionBoundaryDraft,
  SessionCompactEvent,
  TurnEndEvent,
  TurnEndEventResult,
} from '@earendil-works/pi-coding-agent'
import type { ContextManager, Plan, RollPreview, RollReceipt } from '../index.js'
import { Branch, realCompaction, usageIn } from './branch.ts'
import type { Mark, Replacements } from './branch.ts'
import type { Circumstances } from './circumstances.ts'
import { Driver, sections } from '../lib/projection/index.ts'
import { canEdit, canSay, edit, say, withEdits } from './editable.ts'
import type { Point, Rendering, Size } from '../lib/projection/index.ts'
import type { Held } from '../lib/ui/index.ts'
import { Figures } from './shares.ts'
import { NOTICE, POINT } from './messages.ts'
import type { PiMessage, Replacement } from './messages.ts'
import { answeringModel } from './provider.ts'
import type { Settings } from './settings.ts'
import type { Recall } from './recall.ts'
import { TOOLS_TOKENS } from './tools.ts'

export { NOTICE } from './messages.ts'

/** A replacement that this process made, and why. */
export interface Made {
  replacement: Replacement
  by: 'roll' | 'undo'
}

/** Connects one Pi session to the engine. Calls to its methods run one after the other. */
export class Boundary {
  readonly manager: ContextManager
  readonly figures = new Figures()
  /** The user has switched rolls off. Recording continues, so that nothing is missing later. */
  off = false
  /** Objects whose text goes to the model with the user's next message. */
  readonly returning = new Set<string>()
  /** The replacements that this process made, by entry and oldest first, to tell later who changed a prompt. */
  readonly edited = new Map<string, Made[]>()
  /** From when on, in milliseconds since the epoch. */
  readonly since = Date.now()
  /** The circumstances of model calls. */
  readonly circumstances: Circumstances
  /** The layout of the model's requests. */
  readonly layout: Settings['layout']
  readonly #recall: Recall
  readonly #branch = new Branch(this.figures.ledger)
  readonly #driver: Driver<Mark>
  /** Replacements that this version of Pi takes only at the end of a turn. */
  readonly #owed = new Map<string, Replacement>()
  #prompt: string | undefined
  /** The last rendering of the layout `sections`. */
  #view: Rendering | undefined

  constructor(
    manager: ContextManager,
    circumstances: Circumstances,
    recall: Recall,
    layout: Settings['layout'] = 'references',
    leftOut: (sentence: string) => void = () => {},
  ) {
    this.manager = manager
    this.layout = layout
    this.circumstances = circumstances
    this.#recall = recall
    const branch = this.#branch
    this.#driver = new Driver<Mark>(manager, {
      news: () => branch.news(),
      visible: (known) => branch.visible(known),
      landmarks: () => branch.landmarks(),
      accepted: () => branch.accepted(),
      cameBack: ({ point }) => {
        this.off = point.off === true
        this.figures.ledger.takeOver(point)
      },
      call: (moment) => circumstances.call(branch.ctx, moment),
      mayRoll: (when) => this.rolls && (when !== 'call' || canEdit(branch.ctx)),
      // Active contents are always the newest version, and nothing else shown could be stale.
      planned: (plan) => {
        if (!this.inSections) this.figures.planned(plan)
      },
      leftOut,
      tools: {
        tokens: TOOLS_TOKENS,
        given: () => recall.tools,
        bound: () => circumstances.bindsTools(branch.ctx),
        appends: () => circumstances.appendsTools(branch.ctx),
        give: () => this.#bringTools(),
      },
    })
  }

  /** Loads Pi's current branch: the sets as of its last point, what is visible, and what is new on it. */
  synchronize(ctx: ExtensionContext): Promise<void> {
    return this.#exclusive(ctx, async () => {
      this.figures.ledger.takeOver({})
      await this.#driver.load()
    })
  }

  /** Reads what is visible again after Pi has compacted the branch. The sets stay. */
  compacted({ reason }: SessionCompactEvent, ctx: ExtensionContext): Promise<void> {
    return this.#exclusive(ctx, async () => {
      const branch = ctx.sessionManager.getBranch()
      const real = realCompaction(branch)
      const { circumstances } = this
      if (real !== undefined)
        this.figures.ledger.compacted(real, reason === 'manual', usageIn(branch, real.id), circumstances.prices(ctx), circumstances.compaction(ctx))
      await this.#driver.compacted()
    })
  }

  /**
   * Called before a user's prompt is stored, or before a run that has none. Returns notices for the model about what
   * happened since the last turn.
   */
  beforePrompt(ctx: ExtensionContext, isUsers = true): Promise<string | undefined> {
    return this.#exclusive(ctx, async () => {
      // They are sent with the user's prompt.
      if (isUsers) this.returning.clear()
      // Asked even if the branch has nothing new: files may have changed, and other clients may have written.
      const plan = await this.#driver.take('prompt', true)
      if (plan !== undefined) this.#correct(plan)
      return this.#takeNotices()
    })
  }

  /**
   * Called before a model call. Hands over the user's message, and executes a roll if now is the time for it. Returns
   * the messages with that roll, or undefined if they don't change.
   */
  beforeCall(event: ContextWithSystemEvent, ctx: ExtensionContext): Promise<ContextEventResult | undefined> {
    return this.#exclusive(ctx, async () => {
      await this.#recordPrompt(ctx)
      const result = await this.#projected(event, ctx)
      this.circumstances.sent(ctx, { isPrompt: !endsWithResult(event.messages), isChanged: this.figures.ledger.prefix !== 'kept' })
      this.figures.ledger.sent(this.#systemSize(ctx), this.circumstances.hasCache(ctx), this.circumstances.findsHead(ctx), this.circumstances.plainLeft(ctx))
      return result
    })
  }

  async #projected(event: ContextWithSystemEvent, ctx: ExtensionContext): Promise<ContextEventResult | undefined> {
    const plan = await this.#driver.take('call')
    if (this.layout === 'sections') {
      if (!this.off) return { messages: await this.#render(event, ctx) }
      this.#view = undefined
      return undefined
    }
    if (plan === undefined || plan.edits.length === 0) return undefined
    const before = ctx.sessionManager.buildSessionProjection().entries
    const edits = this.#replacements(plan, [], before)
    edit(ctx, edits)
    const messages = withEdits(event.messages, before, edits)
    return { messages: [...messages, ...this.#sayNotices(ctx)] }
  }

  /** Called at the end of a turn. Hands over the answer and its results, and returns the entries for Pi to add. */
  turnEnd(event: TurnEndEvent, ctx: ExtensionContext): Promise<TurnEndEventResult> {
    return this.#exclusive(ctx, async () => {
      this.#bill(event, ctx)
      const plan = await this.#driver.take('end')
      if (event.outcome === 'completed' && !this.inSections) this.figures.ledger.turnEnded(this.circumstances.prices(ctx), this.circumstances.compaction(ctx))
      const mine: SessionBoundaryDraft[] = []
      for (const [targetId, replacement] of this.#owed) mine.push({ type: 'context_edit', targetId, replacement })
      this.#owed.clear()
      if (plan !== undefined && plan.edits.length > 0) {
        for (const [targetId, replacement] of this.#replacements(plan, event.toolResultEntryIds, event.context.contextEntries)) {
          mine.push({ type: 'context_edit', targetId, replacement })
        }
      }
      const notice = this.#takeNotices()
      if (notice !== undefined) {
        mine.push({ type: 'custom_message', customType: NOTICE, content: notice, display: true })
      }
      mine.push({ type: 'custom', customType: POINT, data: await this.point(plan) })
      return { entries: [...event.entries, ...mine] }
    })
  }

  /**
   * Returns what goes out if a call fails: in sections, those of the last call around the messages. In the usual
   * layout, Pi itself has the edits that are in force, and sends that.
   */
  lastForm({ messages }: ContextWithSystemEvent): ContextEventResult | undefined {
    return this.#view === undefined ? undefined : { messages: sections(messages, this.#view) as PiMessage[] }
  }

  async #render({ messages }: ContextWithSystemEvent, ctx: ExtensionContext): Promise<PiMessage[]> {
    const view = await this.manager.assemble()
    this.#view = { view, binding: this.circumstances.bindingOf(ctx) }
    const rendered = sections(messages, this.#view)
    const characters = this.circumstances.systemCharacters(ctx) + view.text.length - view.systemPrompt.length
    this.figures.contextTokens = Math.ceil(characters / 4)
    return rendered as PiMessage[]
  }

  /** A result of a call would have `characters` more in plain Pi. */
  birth(callId: string, characters: number): void {
    this.#branch.birth(callId, characters)
  }

  /** The size of what stands before the messages, in characters. */
  #systemSize(ctx: ExtensionContext): Size {
    const own = this.circumstances.systemCharacters(ctx)
    return { own, plain: own - (this.#recall.tools ? 4 * TOOLS_TOKENS : 0) }
  }

  /** Enters the answered call in the ledger. */
  #bill({ message }: TurnEndEvent, ctx: ExtensionContext): void {
    if (message.role !== 'assistant') return
    this.circumstances.answered(message.usage)
    if (this.inSections) return
    const by = { name: `${message.provider}/${message.model}`, isAlive: () => this.circumstances.hadCache(ctx, message) }
    this.figures.ledger.answered(message.usage, this.circumstances.prices(ctx, message.usage), this.circumstances.compaction(ctx), by)
  }

  /** Updates the figures after the user changed the sets. Nothing collapses. */
  refresh(ctx: ExtensionContext): Promise<void> {
    return this.#exclusive(ctx, async () => {
      // During a turn, the engine gets its messages at the end of the turn.
      if (ctx.isIdle()) await this.#putRight(true)
    })
  }

  /** Returns what a roll would do now; undefined if nothing could be rolled. */
  previewRoll(ctx: ExtensionContext): Promise<RollPreview | undefined> {
    return this.#exclusive(ctx, async () => {
      // During a turn, the engine gets its messages at the end of the turn.
      if (ctx.isIdle()) await this.#putRight()
      return this.inSections ? undefined : this.#driver.preview()
    })
  }

  /** Returns what could leave the request and has not, and why; undefined if nothing could, or if that is not known now. */
  heldBack(ctx: ExtensionContext): Promise<Held | undefined> {
    return this.#exclusive(ctx, async () => {
      const held = this.inSections ? undefined : await this.#driver.heldBack()
      if (held === undefined) return undefined
      return { ...held, model: answeringModel(ctx)?.id ?? '', ...(this.off || this.#recall.possible ? {} : { lacksRecall: true }) }
    })
  }

  /** Rolls everything stale now. Returns the receipt, or undefined if nothing could be rolled. */
  rollNow(ctx: ExtensionContext): Promise<RollReceipt | undefined> {
    return this.#exclusive(ctx, async () => {
      await this.#putRight()
      const plan = await this.#driver.roll()
      edit(ctx, this.#replacements(plan))
      this.#sayNotices(ctx)
      return plan.receipt
    })
  }

  /** Undoes the last roll of this process. Returns how many messages are shown as before it. */
  undoRoll(ctx: ExtensionContext): Promise<number> {
    return this.#exclusive(ctx, async () => {
      await this.#putRight()
      const edits = this.#replacements(await this.#driver.undo(), [], undefined, 'undo')
      edit(ctx, edits)
      return edits.size
    })
  }

  /** The point to return to, as stored on the branch. A plan made just now has it. */
  async point(plan?: Plan): Promise<Point> {
    const { saved, dollars, plan: onPlan, last, prefix, summary } = this.figures.ledger
    const point = await this.#driver.point(plan)
    if (Math.round(saved) !== 0) point.saved = Math.round(saved)
    if (dollars !== 0) point.dollars = Number(dollars.toFixed(6))
    if (onPlan !== undefined) point.plan = { sent: Math.round(onPlan.sent), without: Math.round(onPlan.without) }
    if (last !== undefined) point.last = { ...last, plain: Math.round(last.plain) }
    if (prefix !== 'kept') point.prefix = prefix
    if (summary !== undefined) point.plain = { ...summary }
    const born = this.#branch.takeBorn()
    if (born !== undefined) point.born = born
    if (this.off) point.off = true
    return point
  }

  /** True if rolls may happen. */
  get rolls(): boolean {
    return this.sendsReferences && this.#recall.possible
  }

  /** True if outputs stay where they appeared and have headers there. */
  get sendsReferences(): boolean {
    return !this.off && this.layout === 'references'
  }

  /** True if requests are laid out in sections now. */
  get inSections(): boolean {
    return !this.off && this.layout === 'sections'
  }

  /** The engine may lack messages after a call failed halfway; the next call reads the branch again. */
  doubt(): void {
    this.#driver.doubt()
  }

  #bringTools(): void {
    this.#recall.bringTools()
    if (this.#recall.tools && !this.circumstances.appendsTools(this.#branch.ctx)) this.figures.ledger.touch()
  }

  #exclusive<T>(ctx: ExtensionContext, work: () => Promise<T>): Promise<T> {
    return this.#driver.exclusive(() => {
      this.#branch.ctx = ctx
      return work()
    })
  }

  /** Hands over everything new outside of a turn. */
  async #putRight(always = false): Promise<void> {
    const plan = await this.#driver.take('aside', always)
    if (plan !== undefined) this.#correct(plan)
  }

  /** Puts right what a plan asks for outside the end of a turn. */
  #correct(plan: Plan): void {
    if (plan.edits.length === 0) return
    const { ctx } = this.#branch
    const edits = this.#replacements(plan)
    if (canEdit(ctx)) edit(ctx, edits)
    else for (const [key, replacement] of edits) this.#owed.set(key, replacement)
  }

  #takeNotices(): string | undefined {
    const lines = this.#driver.takeNotices()
    return lines.length === 0 || this.inSections ? undefined : lines.join('\n')
  }

  /** Adds the notices to the session outside the end of a turn. Returns them as messages of the request. */
  #sayNotices(ctx: ExtensionContext): PiMessage[] {
    const content = canSay(ctx) ? this.#takeNotices() : undefined
    return content === undefined ? [] : [say(ctx, content)]
  }

  /** The replacements that a plan asks for. If one does not fit, the branch is read again at the next call. */
  #replacements(plan: Plan, unsent?: readonly string[], visible?: readonly ProjectedSessionEntry[], by: Made['by'] = 'roll'): Replacements {
    const { found, isWhole } = this.#branch.replacements(plan.edits, unsent, visible)
    if (!isWhole) this.#driver.doubt()
    for (const [key, replacement] of found) this.edited.set(key, [...(this.edited.get(key) ?? []), { replacement, by }])
    return found
  }

  async #recordPrompt(ctx: ExtensionContext): Promise<void> {
    const prompt = ctx.getSystemPrompt()
    if (prompt === this.#prompt) return
    await this.manager.setSystemPrompt(prompt)
    this.#prompt = prompt
  }
}

/** True if a call comes with results of tools: the messages after the last answer begin with one. */
function endsWithResult(messages: readonly { role: string }[]): boolean {
  const answer = messages.findLastIndex(({ role }) => role === 'assistant')
  return messages.slice(answer + 1).some(({ role }) => role === 'toolResult') && !messages.slice(answer + 1).some(({ role }) => role === 'user')
}
