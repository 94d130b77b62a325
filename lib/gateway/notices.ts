/** The messages of ours in a conversation that its projection does not know of, and the places where they stay. */
import { behindAnswers, isEqual, nextsOf } from '../projection/index.ts'
import type { EditedItem } from '../projection/index.ts'

/** A notice of ours, and how many of the host's messages came before it. */
interface PlacedNotice {
  at: number
  message: object
}

/**
 * Notices of an earlier process, texts that a user has brought back, and notices of facts that the gateway itself has found. The
 * projection places its own ones.
 */
export class PlacedNotices {
  /** Notices that stay in their places: of an earlier process, of a session that was left, or brought back by a user. */
  #old: readonly PlacedNotice[] = []
  /** Notices that the projection of this process has placed. */
  #new: readonly PlacedNotice[] = []
  /** Messages that the next request takes along. */
  #waiting: object[] = []

  /** Adds a message to the next request that has a place for it. Returns false if it already waits for that. */
  wait(message: object): boolean {
    if (this.#waiting.some((one) => isEqual(one, message))) return false
    this.#waiting.push(message)
    return true
  }

  /** Takes over the notices in the form of `length` messages that another process has sent. */
  takeOver(form: readonly EditedItem[], length: number): void {
    this.#old = noticesIn(form, length).filter(({ message }) => !this.#new.some((one) => isEqual(one.message, message)))
  }

  /** The projection that placed the new ones is left: they stay where they are. */
  keepAll(): void {
    this.#old = [...this.#old, ...this.#new]
    this.#new = []
  }

  /** The host went back to its first `length` messages. */
  goBack(length: number): void {
    this.#old = this.#old.filter(({ at }) => at <= length)
    this.#new = this.#new.filter(({ at }) => at <= length)
  }

  /**
   * Gives places behind these messages: to the `placed` ones, which the projection's shape has put there, and, unless `isHeld`, to those
   * that wait.
   */
  place(messages: readonly object[], placed: readonly object[], isHeld: boolean): void {
    const at = lengthWithoutSystem(messages)
    this.#new = [...this.#new, ...placed.map((message) => ({ at, message }))]
    if (!isHeld) this.#old = [...this.#old, ...this.#waiting.splice(0).map((message) => ({ at, message }))]
  }

  /** Adds them to what goes out for `messages`; with `wantsAnswer`, none stands directly behind results. */
  addTo(sent: readonly object[], messages: readonly object[], wantsAnswer: boolean): object[] {
    const told = withNotices(sent, messages, this.#old)
    if (!wantsAnswer) return told
    // The notices may have come while another model answered.
    const ours = this.#messages()
    return behindAnswers(told, (message) => ours.has(message))
  }

  /** Marks them in a form, for a later process. */
  markIn(form: readonly EditedItem[]): EditedItem[] {
    const ours = this.#messages()
    return form.map((item) => (typeof item === 'object' && 'add' in item && ours.has(item.add as object) ? { ...item, isNotice: true as const } : item))
  }

  /** Forgets those that have a place. Those that wait still go to the next request. */
  clear(): void {
    ;[this.#old, this.#new] = [[], []]
  }

  #messages(): Set<object> {
    return new Set([...this.#old, ...this.#new].map(({ message }) => message))
  }
}

/**
 * The messages that go out, with notices of an earlier process in their old places. One whose neighbours have both been
 * edited is left out: what it stood between has changed anyway.
 */
export function withNotices(sent: readonly object[], raw: readonly object[], notices: readonly PlacedNotice[]): object[] {
  if (notices.length === 0) return [...sent]
  const places = new Map(sent.map((message, place) => [message, place]))
  const added = new Map<number, object[]>()
  for (const { at, message } of notices) {
    const after = places.get(raw[at - 1] as object)
    const place = after === undefined ? places.get(raw[at] as object) : after + 1
    if (place !== undefined) added.set(place, [...(added.get(place) ?? []), message])
  }
  return [...sent.flatMap((message, place) => [...(added.get(place) ?? []), message]), ...(added.get(sent.length) ?? [])]
}

/**
 * How many messages there are without those of the system at the end, which have to stand there or before an answer: nothing may
 * be added behind them.
 */
function lengthWithoutSystem(messages: readonly object[]): number {
  const last = messages.findLastIndex((message) => (message as { role?: unknown }).role !== 'system')
  return last < 0 ? messages.length : last + 1
}

/** The notices in a form of `count` messages, in their places. */
function noticesIn(items: readonly EditedItem[], count: number): PlacedNotice[] {
  const nexts = nextsOf(items, count)
  return items.flatMap((item, n) =>
    typeof item === 'object' && 'add' in item && item.isNotice === true ? [{ at: nexts[n] as number, message: item.add as object }] : [],
  )
}
