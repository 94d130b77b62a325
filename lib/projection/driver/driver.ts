/**
 * The protocol between a host and the engine, for Pi, every other host, and replay: each message is handed over once, and
 * counts as handed over only when the engine has accepted it. If a hand-over fails halfway, what it recorded is taken back;
 * if the host's conversation is no longer what was handed over, all of it is read again. The cost of a turn depends on the
 * turn alone.
 */
import type { ContextManager, Edit, HeldBack, IncomingMessage, ModelCall, Plan, RollPreview } from '../../../index.js'
import { LOOK_MS, flattened, invalid, shared, within } from '../../core/index.ts'
import type { Keyed, Landmark, Point, Port, When } from './port.ts'
import { HOW_TO_READ, worthOf } from './port.ts'

/** The state of a driver. */
export type State =
  /** Nothing of the branch that the host is on has been read: it is loaded as of its last point. */
  | { is: 'unread' }
  /** The engine may differ from what the host shows: all of it is read again. */
  | { is: 'doubtful' }
  /** A hand-over began and has not ended. Its writes since the transaction `before` are rolled back before the next one. */
  | { is: 'underway'; before: number }
  /** The engine knows everything that the host had shown at the last hand-over. */
  | { is: 'agreed' }

/** Something that happens to a driver. */
export type Event =
  /** The host has gone to another branch. */
  | { is: 'moved' }
  /** Something may have been missed. */
  | { is: 'doubted' }
  /** A hand-over begins at the transaction `before`. */
  | { is: 'begun'; before: number }
  /** The engine has accepted a hand-over. */
  | { is: 'accepted' }
  /** The record of a broken-off hand-over has been taken back. */
  | { is: 'taken back' }

/** The state after an event. */
export function after(state: State, event: Event): State {
  switch (event.is) {
    case 'moved':
      // A point of the branch is restored, and with it everything before a broken-off hand-over.
      return { is: 'unread' }
    case 'doubted':
      return state.is === 'agreed' ? { is: 'doubtful' } : state
    case 'begun':
      return { is: 'underway', before: event.before }
    case 'accepted':
      return { is: 'agreed' }
    case 'taken back':
      return state.is === 'underway' ? { is: 'doubtful' } : state
  }
}

/** The driver of each session that has one. */
const owners = shared('owners', () => new WeakMap<ContextManager, unknown>())

/** The number of a branch's landmarks that are looked up in the store. */
const LOST_POINTS = 20

/** Hands over the messages of one session. Only {@link Driver.exclusive} and the properties may be used concurrently. */
export class Driver<L extends Landmark = Landmark> {
  readonly manager: ContextManager
  readonly #port: Port<L>
  #state: State = { is: 'unread' }
  /** The model has been told on this branch how to bring back what has left its request. */
  taught = false
  /** The next request will not hit the cache anyway, so that a roll is free, even within a user's turn. */
  #isCold = false
  /** Notices that are to be delivered to the model. */
  #notices: string[] = []
  /** The disk sync of the last records, which runs while the host continues. */
  #settled: Promise<unknown> = Promise.resolve()
  #queue: Promise<unknown> = Promise.resolve()

  constructor(manager: ContextManager, port: Port<L>) {
    this.manager = manager
    this.#port = port
  }

  /** A session has one driver, because two would record everything twice. Throws `INVALID_ARGUMENT` for a second one. */
  #claim(): void {
    const owner = owners.get(this.manager)
    if (owner === undefined) owners.set(this.manager, this)
    else if (owner !== this) {
      throw invalid(
        'this session already has a projection, and a second one would record everything again; use that one (transformContext has its own), or open another session for another conversation',
      )
    }
  }

  /** True if the engine knows everything that the host had shown at the last hand-over. */
  get agrees(): boolean {
    return this.#state.is === 'agreed'
  }

  /** Runs work on the driver after all work that came before it. */
  exclusive<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#queue.then(work)
    this.#queue = result.catch(() => {})
    return result
  }

  /** The engine may lack something after a failure elsewhere; the next hand-over reads everything again. */
  doubt(): void {
    this.#become({ is: 'doubted' })
  }

  /**
   * Hands over everything new. Returns undefined if nothing is and no roll may follow, unless `always`. After a rejection,
   * everything is still new.
   */
  async take(when: When, always = false): Promise<Plan | undefined> {
    this.#claim()
    // The next call tells the model of files that changed on disk before it. What fails here, `advance` tries again.
    if (when === 'prompt' || when === 'end') await within(LOOK_MS, this.#port.looked?.() ?? this.manager.look()).catch(() => {})
    const fresh = await this.#news()
    const atUserTurn = fresh.some(({ message }) => roleOf(message) === 'user')
    const isTime = when === 'end' || (when === 'call' && (atUserTurn || this.#isCold))
    const rolls = isTime && this.#port.mayRoll(when)
    if (fresh.length === 0 && !rolls && !always) {
      if (when === 'call') this.#isCold = false
      this.#port.accepted()
      return undefined
    }
    const isPrompt = atUserTurn || (when === 'end' && roleOf(fresh.at(-1)?.message) === 'assistant')
    const call = this.#port.call({ atUserTurn, isPrompt, rolls })
    let plan = await this.#underway(() => this.#advance(fresh, call), fresh.length)
    if (plan === undefined) {
      // One of the messages was refused. They are read again one by one, so that it doesn't stop the others.
      await this.reread()
      plan = (await this.#underway(() => this.#advance([], call))) as Plan
    }
    if (when === 'call') this.#isCold = false
    this.#port.accepted()
    this.#settled = this.manager.settle()
    this.#settled.catch(() => {})
    this.#note(plan, when, when === 'call' || when === 'end')
    return plan
  }

  /** Loads the host's current branch: the engine's state at its last point, what is visible, and what is new on it. */
  async load(): Promise<void> {
    this.#claim()
    this.#become({ is: 'moved' })
    await this.#resync(this.#port.landmarks === undefined ? 'kept' : await this.#lastLandmark(this.#port.landmarks()))
  }

  /** Reads everything visible again. The sets stay. */
  async reread(): Promise<void> {
    if (this.#state.is === 'unread') return this.load()
    await this.#takeBack()
    await this.#resync('kept')
  }

  /** Reads everything visible again after the host has summarized a part of it, which leaves no cached prompt. */
  async compacted(): Promise<void> {
    // The message that said so may have gone into the summary.
    this.taught = false
    await this.reread()
    this.#isCold = true
  }

  /** Rolls everything stale now, because a user asks for it. */
  async roll(): Promise<Plan> {
    const plan = await this.manager.rollNow(this.#port.call({ atUserTurn: false, isPrompt: true, rolls: true }))
    this.#note(plan, 'aside', true)
    return plan
  }

  /** Returns what a roll would remove and cost now; undefined if nothing can be rolled. */
  async preview(): Promise<RollPreview | undefined> {
    return (await this.manager.previewRoll(this.#port.call({ atUserTurn: false, isPrompt: true, rolls: true }))) ?? undefined
  }

  /** Returns what could leave the request and has not, and why; undefined if nothing could, or if that is not known now. */
  async heldBack(): Promise<HeldBack | undefined> {
    if (!this.agrees) return undefined
    return (await this.manager.heldBack(this.#port.call({ atUserTurn: false, isPrompt: true, rolls: this.#port.mayRoll('end') }))) ?? undefined
  }

  /** Undoes the last roll of this process. */
  async undo(): Promise<Plan> {
    const plan = await this.manager.undoRoll()
    this.#note(plan, 'aside', false)
    return plan
  }

  /** Takes the notices that are to be delivered to the model. */
  takeNotices(): string[] {
    const notices = this.#notices
    this.#notices = []
    return notices
  }

  /** The engine's state now, to return to. A plan made just now has it. */
  async point(plan?: Plan): Promise<Point> {
    const [tx, times] = await Promise.all([plan?.point ?? this.manager.point(), plan?.pointTimes ?? this.manager.pointTimes()])
    return { session: this.manager.sessionId, tx, times, ...(this.taught ? { taught: true } : {}) }
  }

  #become(event: Event): void {
    this.#state = after(this.#state, event)
  }

  /** Returns what is new, once the engine knows everything before it. */
  async #news(): Promise<readonly Keyed[]> {
    const news = await this.#port.news()
    if (news.is === 'new' && this.agrees) return news.messages
    await (news.is === 'elsewhere' ? this.load() : this.reread())
    const rest = await this.#port.news()
    if (rest.is === 'new') return rest.messages
    // The host has gone on meanwhile.
    this.doubt()
    return []
  }

  async #advance(messages: readonly Keyed[], call: ModelCall): Promise<Plan> {
    // An error of the store is reported once.
    const settled = this.#settled
    this.#settled = Promise.resolve()
    await settled
    const edits: Edit[] = []
    let waiting: IncomingMessage[] = []
    for (const { key, message, record, apart } of messages) {
      if (apart === true) {
        const plan = await this.manager.advance(waiting, { ...call, rolls: false, closed: true })
        edits.push(...plan.edits)
        waiting = []
      }
      await record?.()
      waiting.push({ key, message })
    }
    const plan = await this.manager.advance(waiting, call)
    return { ...plan, edits: [...edits, ...plan.edits] }
  }

  /** Restores the state at the last landmark that the store has. */
  async #lastLandmark(landmarks: Iterable<L>): Promise<L | undefined> {
    let tried = 0
    for (const landmark of landmarks) {
      if (await this.#comeBack(landmark)) return landmark
      // A power failure loses only the last turns. If more is missing, the whole store is, and each lookup takes time.
      tried += 1
      if (tried === LOST_POINTS) break
    }
    // Nothing of it is recorded, so start from the very beginning.
    await this.manager.restore(this.manager.sessionId, 0)
    return undefined
  }

  /** True if the store knew the landmark's point. */
  async #comeBack(landmark: L): Promise<boolean> {
    const { session, tx, times, taught } = landmark.point
    try {
      await this.manager.restore(session, tx, times)
    } catch (error) {
      // The session comes from another machine, its store was removed, or the store's last turns were lost.
      if (codeOf(error) !== 'UNKNOWN_OBJECT') throw error
      return false
    }
    this.taught = taught === true
    this.#port.cameBack?.(landmark)
    return true
  }

  /** Lets the engine rebuild what is visible, and record what is not recorded yet. */
  async #resync(known: 'kept' | L | undefined): Promise<void> {
    this.doubt()
    // The engine tells again of files that what is visible now says something else of.
    this.#notices = this.#notices.filter((line) => line === HOW_TO_READ)
    const { messages, recorded, lost = [] } = await this.#port.visible(known)
    const call = this.#port.call({ atUserTurn: false, isPrompt: true, rolls: false })
    const all = async (): Promise<Plan> => {
      if (lost.length > 0) await this.manager.resync(lost, 0, call)
      return this.manager.resync(messages, recorded, call)
    }
    const plan =
      (await this.#underway(all, lost.length + messages.length - recorded)) ?? (await this.#underway(() => this.#oneByOne(lost, messages, recorded, call)))
    this.#port.accepted()
    this.#note(plan as Plan, 'aside', false)
  }

  /**
   * Runs a hand-over. If it fails, the next one first takes back what it recorded. Resolves with undefined if one of its
   * `count` new messages was refused and the host lets such a message be left out.
   */
  async #underway(work: () => Promise<Plan>, count = 0): Promise<Plan | undefined> {
    await this.#takeBack()
    this.#become({ is: 'begun', before: await this.manager.point() })
    try {
      const plan = await work()
      this.#become({ is: 'accepted' })
      return plan
    } catch (error) {
      if (count === 0 || this.#port.leftOut === undefined || !isRefusal(error)) throw error
      await this.#takeBack()
      return undefined
    }
  }

  /** Takes back what a broken-off hand-over recorded: it may have stored some of its messages, and they come again. */
  async #takeBack(): Promise<void> {
    if (this.#state.is !== 'underway') return
    await this.manager.restore(this.manager.sessionId, this.#state.before)
    this.#become({ is: 'taken back' })
  }

  /**
   * Hands over messages one by one. A refused message is flattened; if it is refused again, it is left out. As after any other
   * reading of all messages, the next hand-over tells of files.
   */
  async #oneByOne(lost: readonly IncomingMessage[], messages: IncomingMessage[], recorded: number, call: ModelCall): Promise<Plan> {
    if (lost.length > 0) {
      await this.manager.resync([], 0, call)
      for (const one of lost) await this.#alone(one, call)
    }
    let plan = await this.manager.resync(messages.slice(0, recorded), recorded, call)
    for (const one of messages.slice(recorded)) {
      const next = await this.#alone(one, call)
      if (next !== undefined) plan = { ...next, edits: [...plan.edits, ...next.edits] }
    }
    return plan
  }

  async #alone({ key, message }: IncomingMessage, call: ModelCall): Promise<Plan | undefined> {
    let refusal: unknown
    for (const form of [message, flattened(message)]) {
      try {
        return await this.manager.advance([{ key, message: form }], { ...call, closed: true })
      } catch (error) {
        if (!isRefusal(error)) throw error
        refusal = error
      }
    }
    this.#port.leftOut?.((refusal as Error).message)
    return undefined
  }

  /** Passes on what a plan says. `rolls`: what its edits take from the model, the model must be able to bring back. */
  #note(plan: Plan, when: When, rolls: boolean): void {
    this.#port.planned?.(plan)
    this.#notices.push(...plan.notices)
    const { tools } = this.#port
    const hasLeft = rolls && plan.edits.length > 0
    const isBefore = when === 'prompt' && this.taught && this.#port.mayRoll(when)
    if (tools !== undefined && !tools.given() && tools.bound?.() !== true && (isBefore || (when === 'end' && hasLeft))) {
      const price = worthOf(tools, plan)
      if (price !== undefined) tools.give(price)
    }
    if (!hasLeft || this.taught) return
    this.taught = true
    if (tools?.given() === false) this.#notices.push(HOW_TO_READ)
  }
}

function roleOf(message: object | undefined): unknown {
  return (message as { role?: unknown } | undefined)?.role
}

function codeOf(error: unknown): string | undefined {
  return (error as { code?: string } | null)?.code
}

/** True if the engine refused its input, as opposed to failing. */
function isRefusal(error: unknown): boolean {
  return codeOf(error) === 'INVALID_ARGUMENT'
}
