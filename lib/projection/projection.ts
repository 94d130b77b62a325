/**
 * The projection: what a harness sends instead of its conversation. Each new message goes to the engine once. The engine's
 * edits are kept in a table and applied to the host's own messages at each call.
 */
import type { ContextManager, HeldBack, ModelCall, Plan } from '../../index.js'
import { Driver } from './driver/driver.ts'
import { ask, incoming, invalid, Warnings, within } from '../core/index.ts'
import type { Keyed, Moment, Visible } from './driver/port.ts'
import { behindChange, CallBoundary } from './boundary.ts'
import { callOf } from './call.ts'
import { changedCalls } from './changed.ts'
import { callsOf, Results } from './results.ts'
import { sizeIn, sizeInRecord } from './ends.ts'
import type { SizeOf } from './ends.ts'
import { plainMessages } from './instances.ts'
import { isReplaced, standsFor, withdraw } from './objects.ts'
import { checkedOptions, checkedSession, UNKNOWN_MODEL } from './options.ts'
import type { ProjectedModel, ProjectionOptions } from './options.ts'
import type { Pass } from './pass.ts'
import { inPieces } from './pieces.ts'
import { rulesOf } from '../models/index.ts'
import { Reasoning } from './reasoning.ts'
import { isIdOfText } from './recall.ts'
import { readUnits } from './reader.ts'
import type { Unchanged } from './reader.ts'
import { recognize } from './recognize.ts'
import { recordedMs, recordOf } from './recorded.ts'
import { sections } from './sections.ts'
import { isClosed, isHeld } from './shape.ts'
import type { Shape } from './shape.ts'
import { shapeNamed, shapeOf, UNDECIDED } from './shapes.ts'
import { Table, undisturbed } from './table.ts'
import { hasList, placeOfNext, placesBehind, Told } from './told.ts'
import { noticeOf, unitsWithin } from './unit.ts'
import { behindAnswers } from './waiting.ts'
import type { Part, Unit } from './unit.ts'

export type { ProjectedModel, ProjectionOptions } from './options.ts'

/** The time limit of a call, in milliseconds. */
const LIMIT_MS = 30_000

/** The projection of one session's messages. Calls run one after the other. */
export class Projection {
  readonly #manager: ContextManager
  readonly #options: ProjectionOptions
  #shape: Shape | undefined
  readonly #driver: Driver
  readonly #boundary: CallBoundary
  #table: Table
  /** The call that is under way. */
  #pass: Pass | undefined
  readonly #told = new Told()
  readonly #results: Results
  /** Calls whose results were already dropped when the table was rebuilt for a host that returns what it was sent. */
  readonly #left = new Set<string>()
  /** Objects handed over by another session. */
  readonly #allowed = new Set<string>()
  readonly #reasoning = new Reasoning()
  #keys = 0
  /** The last rendering of the layout `sections`. */
  #view: Parameters<typeof sections>[1] | undefined
  /** A call has taken too long and has not ended. */
  #isLate = false
  /** When the last call was carried out, or its request sent again. */
  #sentMs: number | undefined
  /** When the host has sent the last form again since the last call. */
  #againMs: number | undefined
  /** Its model. */
  #lastModel: string | undefined
  readonly #warnings: Warnings

  constructor(manager: ContextManager, options: ProjectionOptions = {}) {
    this.#manager = checkedSession(manager)
    this.#options = checkedOptions(options)
    this.#table = new Table(this.#manager)
    this.#warnings = new Warnings(options.onWarning, 'CONTEXT_PROJECTION')
    this.#shape = typeof options.shape === 'string' ? shapeNamed(options.shape) : options.shape
    this.#boundary = new CallBoundary(manager)
    this.#results = new Results(manager)
    this.#driver = new Driver(manager, {
      news: () => (this.#pass?.fresh === undefined ? { is: 'changed' } : { is: 'new', messages: this.#keyed(this.#pass) }),
      visible: () => this.#visible(),
      accepted: () => {},
      call: (moment) => this.#call(moment),
      mayRoll: () => this.#pass?.isRepeated !== true && !isHeld(this.#pass) && this.#mayHide(),
      looked: () => this.#options.looked?.(),
    })
  }

  /**
   * Returns the messages to send instead of the conversation's own. Records new messages: turns, and tool results that
   * `receive` or `recordToolcall` have not recorded. Messages that the host has changed, removed or moved since the last call are
   * sent as they are now. The same messages again, as for a retry, get the same form, at most with a notice at its end. The cost
   * depends on what is new, apart from comparing and copying the array.
   *
   * If the engine fails or takes longer than {@link ProjectionOptions.limitMs}, resolves with {@link lastForm}, or with what
   * {@link ProjectionOptions.fallback} gives, and {@link ProjectionOptions.onWarning} says so once. The next call records what is missing.
   *
   * Rejects with `INVALID_ARGUMENT` for anything but an array, for messages of an unknown shape or with an object of more than
   * 100,000 fields, for messages of a conversation that another has followed in this session, and if another projection
   * already has this session. Nothing has then changed here.
   */
  async transform<T>(messages: readonly T[]): Promise<T[]> {
    if (!Array.isArray(messages)) throw invalid('messages must be an array; nothing was recorded')
    if (this.#isLate) return this.#fallback(messages)
    const plain = plainMessages(messages as readonly object[], this.#options.shape)
    const pass = this.#driver.exclusive(() => this.#transform(plain.messages))
    try {
      return this.#reasoning.sent(await within(this.#options.limitMs ?? LIMIT_MS, pass, () => this.#late(pass))).map(plain.own) as T[]
    } catch (error) {
      if ((error as { code?: string }).code === 'INVALID_ARGUMENT') throw error
      this.#warn(error)
      return this.#fallback(messages)
    }
  }

  /**
   * The messages as they were last sent, with those that are new since then as they are: what goes out if a call fails. It
   * is never more than the conversation itself, asks the engine nothing and changes nothing.
   */
  lastForm<T>(messages: readonly T[]): T[] {
    if (this.#view !== undefined) return sections(messages as Parameters<typeof sections>[0], this.#view) as T[]
    const plain = plainMessages(messages as readonly object[], this.#options.shape)
    return this.#reasoning.sent(this.#orderly(this.#table.lastForm(plain.messages))).map(plain.own) as T[]
  }

  /**
   * Takes in that the host has just sent the last form again without a call of {@link transform}, as for a retry: the provider has it
   * cached since then.
   */
  sentAgain(): void {
    if (this.#sentMs !== undefined) this.#sentMs = this.#againMs = this.#now()
  }

  /**
   * True if an object may be brought back. Files may, and outputs that the host still has in its conversation,
   * unchanged. Outputs that it has changed or removed are never sent again.
   */
  async permits(name: string): Promise<boolean> {
    const document = await this.#manager.get(name.replace(/@\d+$/, ''))
    // A host may have removed a message from the middle that the record still has.
    if (document === null && isIdOfText(name)) return this.#table.says(name) || hasList(this.#manager, name)
    if (document?.type !== 'toolcall' || this.#allowed.has(document['xt/id'])) return true
    for (const callId of callsOf(document['xt/id'])) {
      if (this.#left.has(callId)) return true
      for (const [text, results] of this.#table.results(callId)) {
        if (this.#results.isCut(callId, text)) return true
        if (!(await standsFor(this.#manager, text, document))) continue
        if (!(await isReplaced(this.#manager, document, callId, text, this.#results.argumentsOf(results)))) return true
      }
    }
    return false
  }

  /**
   * Takes in a request as it is sent, or the AI SDK's `providerOptions`: if it asks the provider to drop reasoning that no longer
   * fits (`thinking.block_binding`), the model counts as one that drops it.
   */
  asked(request: unknown): void {
    this.#reasoning.asked(request)
  }

  /**
   * Takes in what an answer reports about the reasoning that it was sent: an answer in Anthropic's or OpenAI's format, or an
   * event of its stream, that may have `input_transformations`. It corrects the model's binding for this conversation.
   */
  answered(answer: unknown): void {
    this.#reasoning.answered(answer)
  }

  /**
   * Takes in a failed request. True if the provider has refused reasoning that is bound to another conversation. If
   * so, the next `transform` returns the messages without any reasoning up to now, which then stays out: the host can send
   * them at once, and tells its user.
   */
  refused(error: unknown): boolean {
    return this.#reasoning.refused(error)
  }

  /** The number of blocks of reasoning that are kept back because the provider has refused them. */
  get withheldReasoning(): number {
    return this.#reasoning.withheld
  }

  /** Returns what could leave the request and has not, and why; undefined if nothing could, or if that is not known now. */
  heldBack(): Promise<HeldBack | undefined> {
    return this.#driver.exclusive(() => this.#driver.heldBack())
  }

  /** Allows bringing back an object that is not in the conversation, because another session has handed it over. */
  allow(id: string): void {
    this.#allowed.add(id)
  }

  async #transform(messages: readonly object[]): Promise<object[]> {
    const { layout, onRoll } = this.#options
    const old = this.#table
    const match = this.#driver.agrees ? old.follow(messages) : undefined
    const follows = match !== undefined && match.units === old.units.length
    const shape = shapeOf(messages, follows ? match.next : 0, this.#shape)
    if (layout === 'sections' && (shape ?? UNDECIDED) !== UNDECIDED) {
      throw invalid(`the layout "sections" is for pi-ai's messages; these are of the shape ${shape?.name}`)
    }
    const fresh = follows ? await this.#read(messages, match.next, shape) : undefined
    const model = this.#model().name
    const isRepeated = fresh?.length === 0 && messages.length > 0 && model === this.#lastModel
    const places = this.#told.placesWith(fresh ?? [])
    const pass: Pass = { messages, shape, table: old, fresh, places, wasCertain: this.#driver.agrees, isRepeated, reworded: new Set(), unsent: new Set() }
    if (follows && this.#againMs !== undefined) pass.sentMs = this.#againMs
    this.#pass = pass
    try {
      const plan = (await this.#driver.take('end', true)) as Plan
      await this.#enforce(pass, plan)
      this.#sentMs = this.#now()
      this.#againMs = undefined
      this.#lastModel = model
      if (!follows) {
        this.#reasoning.rebuilt(
          this.#table.units.flatMap(({ raw }) => raw),
          messages,
        )
        await this.#withdraw(old, pass.reworded)
      }
      if (plan.receipt !== undefined) onRoll?.(plan.receipt)
    } finally {
      this.#pass = undefined
    }
    if (layout === 'sections') {
      this.#view = { view: await this.#manager.assemble(), binding: this.#reasoning.binding(this.#model()) }
      return sections(messages as Parameters<typeof sections>[0], this.#view)
    }
    return this.#orderly(this.#table.output())
  }

  /** Adds what was handed over to the table, and puts the plan in force. */
  async #enforce({ table, fresh = [], shape, places }: Pass, plan: Plan): Promise<void> {
    try {
      await table.add(fresh)
      table.apply(plan.edits, this.#reasoning.binding(this.#model()) === 'refuses')
      for (const { parts } of fresh) for (const { message } of parts) this.#results.noteCut(message)
      this.#say(table, shape)
      this.#table = table
      this.#told.keep(places)
      this.#shape = shape
      ask(this.#manager, (name) => this.permits(name))
    } catch (error) {
      this.#driver.doubt()
      throw error
    }
  }

  #fallback<T>(messages: readonly T[]): T[] {
    return (this.#options.fallback?.(messages as readonly object[]) as T[] | undefined) ?? this.lastForm(messages)
  }

  #late(pass: Promise<unknown>): void {
    this.#isLate = true
    void pass.catch(() => {}).finally(() => (this.#isLate = false))
  }

  #warn(error: unknown): void {
    const { code = '' } = error as { code?: string }
    const why = error instanceof Error ? error.message : String(error)
    this.#warnings.tell(code, `the messages go out as they were last sent, with the new ones as they are: ${why}${code === '' ? '' : ` (${code})`}`)
  }

  #read(messages: readonly object[], from: number, shape: Shape | undefined, sizeOf?: SizeOf, unchanged?: Unchanged): Promise<Unit[] | undefined> {
    const [key, isOurs] = [(): string => String((this.#keys += 1)), (message: object): boolean => this.#told.has(message, shape)]
    const see = (): void => this.#reasoning.see(messages, from)
    const reader = { shape: shape ?? UNDECIDED, key, isOurs, see, sizeOf, results: this.#results, model: this.#model().name ?? '' }
    return readUnits(messages, from, reader, unchanged)
  }

  /**
   * The new messages in the form that the engine takes. Results that the host has reworded are recorded as new objects
   * first, because the engine would take the object that it knows by the call ID.
   */
  #keyed({ fresh = [], reworded, unsent }: Pass): Keyed[] {
    return fresh
      .flatMap((unit) => unit.parts)
      .map((part) => {
        const apart = reworded.has(part)
        const given = incoming(part, unsent.has(part))
        if (!apart && !this.#results.isTranslated(part.message)) return given
        return { ...given, apart, record: () => this.#results.receive(part.message) }
      })
  }

  #say(table: Table, shape: Shape | undefined): void {
    // The engine tells of nothing where nothing may be added. A model that the host names meanwhile may have another rule.
    const text = table.units.length === 0 || isClosed(this.#pass, this.#wantsAnswer()) ? '' : this.#driver.takeNotices().join('\n')
    if (text === '') return
    table.say(this.#told.notice(text, shape, this.#now()))
  }

  /** Everything visible: at the first call, after a failed one, and when the conversation has changed. */
  async #visible(): Promise<Visible> {
    const pass = this.#pass as Pass
    const old = this.#table
    const isFirst = old.units.length === 0
    const lastMs = isFirst && this.#sentMs === undefined ? await recordedMs(this.#manager) : undefined
    const record = isFirst ? await recordOf(this.#manager) : []
    const { units, seen, same } = await recognize(pass.messages, { old, results: this.#results }, async (next, same, unchanged) => {
      const sizeOf = isFirst ? await sizeInRecord(this.#manager, record, pass.shape) : sizeIn(old.units, same, pass.shape)
      return this.#read(pass.messages, next, pass.shape, sizeOf, unchanged)
    })
    if (old.isCarried) for (const callId of old.left()) this.#left.add(callId)
    const isCut = pass.wasCertain && same > 0 && units.slice(same).every((unit) => !seen.has(unit))
    const boundary =
      (pass.wasCertain ? undisturbed(old, units, seen) : undefined) ??
      (isCut ? await this.#boundary.behind(units.slice(0, same), old.units.slice(same)) : undefined) ??
      (pass.wasCertain ? behindChange(old.units, units, seen) : undefined) ??
      (await this.#boundary.of(units, seen, isFirst ? record : undefined))
    const changed = this.#results.changed(
      await changedCalls(
        this.#manager,
        units.filter((unit) => !seen.has(unit)),
        isFirst,
      ),
    )
    const { reworded, unknown } = await this.#boundary.unrecorded(units, seen, boundary, changed)
    pass.reworded = reworded
    const isAsRecorded = reworded.size === 0 && unknown.size === 0
    const sentMs = isFirst ? (isAsRecorded && boundary > 0 ? lastMs : undefined) : this.#sentMs
    if (sentMs !== undefined) pass.sentMs = sentMs
    for (const part of units.slice(0, boundary).flatMap((unit) => unit.parts))
      if (reworded.has(part) || unknown.has(part)) await this.#results.record(part.message)
    // A later process finds the same ones. Texts that no request had are those that the record does not have.
    pass.unsent = new Set([...reworded, ...unknown])
    const known = units.slice(0, boundary)
    pass.places = placesBehind(units)
    if (isFirst && this.#options.keepsNotices !== true)
      await this.#told.putBack(known, { manager: this.#manager, shape: pass.shape, nowMs: this.#now(), wantsAnswer: this.#wantsAnswer() })
    pass.fresh = units.slice(boundary)
    await (pass.table = new Table(this.#manager)).add(known)
    // Notices are part of what is visible. The engine repeats those that are not.
    const visible = await inPieces(known, ({ shape, parts, notices }) => [
      ...parts.map((part) => this.#results.incoming(part, pass.unsent.has(part))),
      ...notices.map((notice) => ({ key: 'notice', message: noticeOf(shape, notice) })),
    ])
    const messages = visible.flat()
    const sent = isFirst ? unitsWithin(known, this.#options.sentMessages ?? Infinity) : same
    if (sent < known.length) pass.sentMessages = visible.slice(0, sent).flat().length
    return { messages, recorded: messages.length }
  }

  /** Removes from the pool and the active set what the host has reworded or removed. */
  async #withdraw(old: Table, reworded: ReadonlySet<Part>): Promise<void> {
    const calls = old.callsWithout(this.#table)
    for (const { message } of reworded) calls.add(message.toolCallId ?? '')
    await withdraw(this.#manager, calls, (id) => this.permits(id))
  }

  /** True if the model can bring back what is not in its request. */
  #mayHide(): boolean {
    const { layout, canRecall = true } = this.#options
    return layout !== 'sections' && (typeof canRecall === 'function' ? canRecall() : canRecall)
  }

  #call(moment: Moment): ModelCall {
    const { systemTokens, shortens, cacheKept } = this.#options
    const sentMs = (this.#sentMs === undefined ? this.#options.sentMs : undefined) ?? this.#pass?.sentMs
    const model = this.#model()
    return callOf(model, {
      moment,
      binding: this.#reasoning.binding(model),
      nowMs: this.#now(),
      systemTokens,
      shortens,
      sentMs,
      sentMessages: this.#pass?.sentMessages,
      repeats: this.#mayHide(),
      place: placeOfNext(this.#pass),
      closed: isClosed(this.#pass, this.#wantsAnswer()),
      cacheKept: cacheKept?.({ isPrompt: moment.isPrompt }),
    })
  }

  #model(): ProjectedModel {
    const { model } = this.#options
    return (typeof model === 'function' ? model() : model) ?? UNKNOWN_MODEL
  }

  /** True if the model's provider refuses a notice behind results. It waits for the next prompt. */
  #wantsAnswer(): boolean {
    return rulesOf(this.#model().name ?? '').wantsAnswer
  }

  /** The messages that are sent, with the notices where the model's provider takes them: the model may be another one than when they came. */
  #orderly(sent: object[]): object[] {
    if (!this.#wantsAnswer()) return sent
    const notices = new Set(this.#table.units.flatMap((unit) => unit.notices))
    return behindAnswers(sent, (message) => notices.has(message))
  }

  #now(): number {
    return (this.#options.now ?? Date.now)()
  }
}
