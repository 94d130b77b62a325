/**
 * One conversation of a host. Each request goes through the projection; if that fails or takes too long, what went out last
 * goes out again, with the new messages after it.
 */
import { LOOK_MS, sentenceOf, within } from '../core/index.ts'
import { adoptNamed, appliedItems, cutItems, isEqual, isWhole, itemsOf, Projection } from '../projection/index.ts'
import type { EditedItem, RecallInput } from '../projection/index.ts'
import type { RollReceipt, StoreState } from '../../index.js'
import { binds, rulesOf } from '../models/index.ts'
import type { LastChoice } from '../models/index.ts'
import { ContextManager } from '../session/index.ts'
import { LIMIT_MS } from './conversation-options.ts'
import type { ConversationOptions, KnownRequest, OpenSession, ProjectedPass, LastSent } from './conversation-options.ts'
import { asTheyAre, beginningOf, behind, hasUser, NO_BEGINNING, withRest } from './beginning.ts'
import type { Beginning } from './beginning.ts'
import type { StoredForm } from './form-files.ts'
import type { LastForm } from './forms.ts'
import { meetFiles } from './files.ts'
import { isSmallPart } from './cache-account.ts'
import { recallIn, resultsIn } from './hidden.ts'
import type { Beside, CallResult } from './hidden.ts'
import { PlacedNotices } from './notices.ts'
import { chainOf, commonLength } from './prefix.ts'
import { actualReceipt } from './receipt.ts'
import { notePrompt } from './prompt.ts'
import { SaidSoFar } from './said.ts'
import type { Said } from './said.ts'
import type { Api, ModelRequest } from './request.ts'
import { hostShape, newFacts, shapeOf } from './shape.ts'
import type { CallFacts } from './shape.ts'

export type { ConversationOptions } from './conversation-options.ts'

/** The form in which a request goes out, in terms of the host's messages. */
export type SentForm = readonly EditedItem[]

const NONE_BESIDE: Beside = { results: () => [] }

/** One conversation. Requests are taken one after the other. */
export class Conversation {
  readonly id: string
  readonly api: Api
  /** The folder against which paths are resolved: the agent's, or the gateway's own if the agent names none. */
  readonly cwd: string
  /** The folder that the agent works in; undefined if it names none. */
  readonly folder: string | undefined
  /** The session that this one continues: the parent agent's, or the one that the host compacted. */
  before: Conversation | undefined
  /** True if everything of `before` may be brought back, and not only what a prompt names. */
  readonly continues: boolean
  /** Reads the results behind the branch of the last request, if that was one on the side. Few questions are followed by a recall. */
  beside: Beside = NONE_BESIDE
  /** The last request of a process before this one: the number of its messages that are still there, and when it was sent. */
  earlier: { messages: number; at: number } | undefined
  /** The lifetimes of the cache that its last request asked for; undefined: the client's own. */
  lifetimes: LastChoice | undefined
  /** True if nothing was recorded of it anywhere before. */
  readonly #isNew: boolean
  readonly #options: ConversationOptions
  #facts: CallFacts = newFacts()
  readonly #adopted = new Set<string>()
  #opened: Promise<OpenSession> | undefined
  #request: ModelRequest | undefined
  /** The number of its first messages that the request before it had. */
  #common = 0
  #last: LastSent = { raw: [], items: [] }
  /** Too little of the last request is left for what the provider has cached of it to be worth a price. */
  #isElsewhere = false
  #wasEdited = false
  /** The form of the first messages where the projection has another one: the user went back, or another process sent it. */
  #beginning: Beginning = NO_BEGINNING
  /** A request waits no longer for the projection; it still runs. */
  #isLate = false
  /** The projection has failed in this request and given the last form. */
  #isOld = false
  /** The projection has rolled in this request. */
  #hasRolled = false
  /** The look at the disk for this request, which the projection waits for, too. */
  #looked: Promise<unknown> | undefined
  /** The receipts of rolls of what others have edited. */
  #receipts: RollReceipt[] = []
  /** The request before this one went out without the projection. */
  #wasMissed = false
  /** The session has to be opened anew, because another process has gone on with it. */
  #isOutdated = false
  #chain: string[] = ['']
  #said = new SaidSoFar()
  #queue: Promise<unknown> = Promise.resolve()
  #met = 0
  /** Messages that the projection does not know of: notices of an earlier process, and what a user has brought back. */
  readonly #notices = new PlacedNotices()

  constructor(
    identity: { id: string; api: Api; cwd: string; folder?: string | undefined; before?: Conversation | undefined; continues?: boolean; isNew?: boolean },
    options: ConversationOptions,
  ) {
    this.id = identity.id
    this.api = identity.api
    this.cwd = identity.cwd
    this.folder = identity.folder
    this.before = identity.before
    this.continues = identity.continues ?? false
    this.#isNew = identity.isNew ?? false
    this.#options = options
  }

  /** The host's messages in the last request, and what went out for them. */
  get last(): { raw: readonly object[]; sent: readonly object[] } {
    const { raw, items } = this.#last
    return { raw, sent: appliedItems(raw, items) }
  }

  get raw(): readonly object[] {
    return this.#last.raw
  }

  /** True once anything in it has been edited: the model's later reasoning is bound to that, even where nothing is edited any more. */
  get wasEdited(): boolean {
    return this.#wasEdited
  }

  /** The last request that the projection has seen. */
  get request(): ModelRequest | undefined {
    return this.#request
  }

  /** The window of the last request's model in tokens; 0 if that is not known. */
  get contextWindow(): number {
    return this.#request === undefined ? 0 : this.#options.modelOf(this.#request).contextWindow
  }

  /** The answers in the last request. */
  get said(): Said {
    return this.#said.of(this.api, this.#last.raw)
  }

  /** The form of the last request, for a later process. */
  get form(): LastForm {
    this.#chain = chainOf(this.#last.raw, this.#chain)
    const { items } = this.#last
    return { chain: [...this.#chain], atMs: this.#now(), items, wasEdited: this.#wasEdited, lifetimes: this.lifetimes }
  }

  /** Marks it as edited, because it continues a conversation that was. */
  markEdited(): void {
    this.#wasEdited = true
  }

  /** Goes on with what another one has sent for the same first messages. Each link of its form is a message of its last request. */
  takeOver(messages: readonly object[], beginning: Beginning, { atMs, links, wasEdited, lifetimes }: StoredForm): void {
    const { length } = messages
    const { raw, items: own } = this.#last
    const items = withRest(beginning, length)
    // The other one's rolls are in the record, and not in a session that was open meanwhile.
    if (!isEqual(cutItems(items, length, raw.length), own)) this.#isOutdated = this.isOpen
    this.#chain.length = Math.min(this.#chain.length, commonLength(this.#last.raw, messages) + 1)
    this.#beginning = beginning
    this.#last = { raw: messages, items }
    this.#notices.takeOver(items, length)
    this.earlier = { messages: length, at: atMs }
    this.lifetimes = lifetimes
    this.#isElsewhere = isSmallPart(length, links.length - 1)
    this.#wasEdited ||= wasEdited
  }

  /** Has the trackers see what has changed on the disk up to now; undefined if there are none yet. Never rejects. */
  look(): Promise<unknown> | undefined {
    return this.#opened?.then(({ manager }) => manager.look()).catch(() => undefined)
  }

  /** The form in which a request goes out. Never rejects. */
  async next(request: ModelRequest, known: KnownRequest = {}): Promise<SentForm> {
    const { chain, looked, asBranch } = known
    const { raw, items } = this.#last
    this.beside = NONE_BESIDE
    const { messages } = request
    const common = known.common ?? commonLength(raw, messages)
    // A retry gets the same bytes; only its cache markers are its own.
    if (common > 0 && common === raw.length && common === messages.length) {
      if (chain !== undefined) this.#chain = [...chain]
      this.#again()
      return items
    }
    this.#options.onNext?.(this, request)
    const form = await this.#formed(request, common, { isGivenUp: false, looked, asBranch })
    this.#last = { raw: messages, items: form }
    if (chain === undefined) this.#chain.length = Math.min(this.#chain.length, common + 1)
    else this.#chain = [...chain]
    this.#wasEdited ||= !isWhole(form, messages.length)
    return form
  }

  /**
   * Answers a call of our tool. Undefined if this conversation has no such object. `later`: the one that continues it and asks, whose
   * beginning may be in the form of this one. Its host may have changed a result since, also where a new process only sends again.
   */
  async recall(input: RecallInput, later?: Conversation): Promise<string[] | undefined> {
    const opened = await within(this.#limitMs, this.#open())
    const [shape, asking, isOnlyRecord] = [shapeOf(this.api), later ?? this, (): boolean => this.#met === 0]
    const beside = (): CallResult[] => [...this.beside.results(), ...resultsIn(later?.raw ?? (isOnlyRecord() ? this.raw : []), shape)]
    return recallIn(opened, input, { isOnlyRecord, sent: () => asking.beside.sent?.() ?? asking.last.sent, beside, shape })
  }

  /**
   * Adds a text to the next request of the model, at its end, and leaves it there: what a user brings back. Returns false
   * if it already goes there.
   */
  tell(text: string): boolean {
    const message = shapeOf(this.api).notice(text, this.#now())
    return !this.last.sent.some((one) => isEqual(one, message)) && this.#notices.wait(message)
  }

  /** The session, if it is open or can be opened. */
  async session(): Promise<{ manager: ContextManager; projection: Projection }> {
    return this.#open()
  }

  /** True if a session has been opened. */
  get isOpen(): boolean {
    return this.#opened !== undefined
  }

  /** Closes the session, if it is open. Resolves with the last state of its store. */
  async close(): Promise<StoreState | undefined> {
    await this.#queue
    return this.#leave()
  }

  /**
   * Closes it and lets go of its messages: another object takes its next request. It answers
   * the questions of others from the record.
   */
  async release(): Promise<StoreState | undefined> {
    const left = await this.close()
    this.#last = { raw: [], items: [] }
    this.beside = NONE_BESIDE
    this.#chain = ['']
    this.#said = new SaidSoFar()
    this.#request = undefined
    this.#facts = newFacts()
    this.#beginning = NO_BEGINNING
    this.#notices.clear()
    if (!this.continues) this.before = undefined
    return left
  }

  async #leave(): Promise<StoreState | undefined> {
    const opened = await this.#opened?.catch(() => undefined)
    // A conversation that continues it may still ask: then only the record is left.
    this.#opened = undefined
    this.#met = 0
    this.#facts.met = new WeakMap()
    return opened?.manager.close()
  }

  async #formed(request: ModelRequest, common: number, pass: ProjectedPass): Promise<SentForm> {
    const { length } = request.messages
    // One request has waited for this work in vain. The user has been told.
    if (this.#isLate) return this.#missed(length, common)
    const work = this.#queue.then(() => this.#project(request, common, pass))
    this.#queue = work.catch(() => {})
    try {
      return await within(this.#limitMs, work, () => {
        this.#isLate = pass.isGivenUp = true
        void this.#queue.then(() => (this.#isLate = false))
      })
    } catch (error) {
      this.#options.onTrouble('projection', `a request went out without new edits: ${sentenceOf(error)}`)
      return this.#missed(length, common)
    }
  }

  /** The last request goes out once more: from now on, the provider has it cached. */
  #again(): void {
    this.earlier = { messages: this.raw.length, at: this.#now() }
    void this.#opened?.then(({ projection }) => projection.sentAgain()).catch(() => {})
  }

  #missed(length: number, common: number): SentForm {
    this.#wasMissed = true
    return this.#oldForm(length, common)
  }

  async #project(request: ModelRequest, common: number, pass: ProjectedPass): Promise<SentForm> {
    this.#request = request
    this.#common = common
    this.#facts.isPlainRecall ||= request.isPlainRecall
    const { messages } = request
    if (this.#isOutdated) {
      this.#isOutdated = false
      this.#notices.keepAll()
      await this.#leave()
    }
    const { manager, projection } = await this.#open()
    // This request notifies the model of files that changed on disk before it.
    const looked = (this.#looked = pass.looked ?? manager.look())
    await within(LOOK_MS, looked).catch(() => undefined)
    await meetFiles(manager, { api: this.api, cwd: this.cwd, facts: this.#facts }, messages, Math.min(common, this.#met))
    this.#isOld = false
    this.#hasRolled = false
    const isBack = common < this.#last.raw.length
    this.#isElsewhere ||= isSmallPart(common, this.#last.raw.length)
    const sent = await projection.transform(messages)
    if (this.#isOld) return this.#missed(messages.length, common)
    const { length } = messages
    this.#met = length
    this.#isElsewhere = false
    if (isBack) this.#notices.goBack(common)
    const shape = shapeOf(this.api)
    this.#notices.place(messages, this.#facts.notices.splice(0), shape.isHeld?.(messages) === true)
    await this.#adopt(messages.slice(common), { manager, projection })
    const placed = this.#notices.addTo(sent, messages, rulesOf(request.model).wantsAnswer)
    const items = this.#notices.markIn(itemsOf(messages, placed))
    // Text that others had collapsed in the first messages is not removed again.
    const before = this.#receipts.length === 0 ? [] : appliedItems(messages, this.#oldForm(length, common))
    const form = pass.isGivenUp ? items : this.#behindBeginning(items, common, request, pass.asBranch)
    for (const receipt of this.#receipts.splice(0)) this.#options.onRoll(this.id, actualReceipt(receipt, before, appliedItems(messages, form)))
    return form
  }

  /**
   * The projection may have another form of the first messages than the one that was sent: the user went back before a roll,
   * another process rolled, or a roll came too late for its request. The provider has cached the form that was sent, and the
   * model's reasoning may be bound to it, so it stays until the projection changes something in it.
   */
  #behindBeginning(items: readonly EditedItem[], common: number, request: ModelRequest, asBranch = 0): SentForm {
    const { raw, items: last } = this.#last
    const isOfTurn = this.#wasMissed && binds(this.#options.modelOf(request).binding)
    this.#wasMissed = false
    if (common < raw.length || isOfTurn) this.#beginning = { ...beginningOf(last, raw.length, common), isOfTurn: isOfTurn && common === raw.length }
    // The question's own messages have gone out as they are.
    if (asBranch > this.#beginning.length) this.#beginning = { items: withRest(this.#beginning, asBranch), length: asBranch }
    if (this.#beginning.length === 0) return items
    const isOver = this.#hasRolled || (this.#beginning.isOfTurn === true && hasUser(shapeOf(this.api), request.messages, common))
    const found = isOver ? undefined : behind(this.#beginning, items, request.messages.length)
    this.#beginning = found?.beginning ?? NO_BEGINNING
    return found?.items ?? items
  }

  /** The last form of the first `common` messages, with the others behind it as they are. */
  #oldForm(length: number, common: number): SentForm {
    return [...cutItems(this.#last.items, this.raw.length, common), ...asTheyAre(common, length)]
  }

  get #limitMs(): number {
    return this.#options.limitMs ?? LIMIT_MS
  }

  #now(): number {
    return (this.#options.now ?? Date.now)()
  }

  #open(): Promise<OpenSession> {
    if (this.#opened === undefined) {
      const opening = (this.#opened = this.#start())
      // A failure may pass: the next request tries again.
      opening.catch(() => (this.#opened = this.#opened === opening ? undefined : this.#opened))
    }
    return this.#opened
  }

  async #start(): Promise<OpenSession> {
    const { open, modelOf, onRoll, keptOf, now } = this.#options
    const manager = await ContextManager.open({ ...open, sessionId: this.id, isNew: this.#isNew, cwd: this.cwd, guessesCwd: this.folder === undefined })
    await notePrompt(manager, this.#request)
    const projection = new Projection(manager, {
      shape: hostShape(this.api, this.#facts),
      canRecall: () => this.#request?.canRecall ?? false,
      shortens: true,
      keepsNotices: true,
      limitMs: 0.9 * this.#limitMs,
      fallback: (messages) => {
        this.#isOld = true
        return [...messages]
      },
      ...(this.earlier === undefined ? {} : { sentMs: this.earlier.at, sentMessages: this.#common }),
      looked: () => this.#looked,
      onWarning: (sentence) => this.#options.onTrouble('projection', sentence.replace(/^pi-context-manager: /, '')),
      model: () => modelOf(this.#request as ModelRequest),
      ...(keptOf === undefined
        ? {}
        : { cacheKept: ({ isPrompt }) => (this.#isElsewhere ? 0 : keptOf(this.id, this.#request as ModelRequest, { isPrompt, common: this.#common })) }),
      onRoll: (receipt) => {
        this.#hasRolled = true
        if (this.#beginning.length === 0) onRoll(this.id, receipt)
        else this.#receipts.push(receipt)
      },
      ...(this.#request === undefined ? {} : { systemTokens: this.#request.systemTokens }),
      ...(now === undefined ? {} : { now }),
    })
    return { manager, projection }
  }

  /** Takes over from the session before this one what its prompts and its summary name. */
  async #adopt(messages: readonly object[], own: OpenSession): Promise<void> {
    const { before } = this
    const prompts = messages.filter((message) => (message as { role?: unknown }).role === 'user')
    if (before !== undefined) await adoptNamed(prompts, this.#adopted, own, () => before.session())
  }
}
