/** Finds out what of a host's conversation the record has, where the host keeps no points to return to. */
import type { ContextManager } from '../../index.js'
import { handed, invalid, recordable } from '../core/index.ts'
import type { EngineMessage } from '../core/index.ts'
import { objectFor, standingOf } from './objects.ts'
import { groupsOf, inPieces } from './pieces.ts'
import { commonOf, isPrefix, lastCommon, longestRun, placesOf, recordedOf, recordOf, remembering, turnMessage } from './recorded.ts'
import type { TurnMessage } from './recorded.ts'
import type { Part, Unit } from './unit.ts'

/** The number of objects that are fetched at once. */
const AT_ONCE = 64

/** The share that a run of recorded messages has of those from its beginning on, where it says what is recorded. */
const SHARE = 1 / 3

/** The boundary in a conversation between what is in the session's record and what is not. */
export class CallBoundary {
  readonly #manager: ContextManager
  /** Lengths of the record at which this process continued with a conversation that has none of its messages. */
  #starts: number[] = []

  constructor(manager: ContextManager) {
    this.#manager = manager
  }

  /**
   * Returns how many units are in the record. If the record diverges from the conversation, it is restored to the last
   * common point; a conversation that has nothing in common with it continues after it. `known` is the record, if it was read.
   *
   * Throws `INVALID_ARGUMENT` if the conversation is one that another has followed in the record.
   */
  async of(units: readonly Unit[], seen: ReadonlyMap<Unit, number>, known?: readonly TurnMessage[]): Promise<number> {
    const grouped = await inPieces(units, (unit, index) => turnMessages(unit).map((one) => ({ ...one, index })))
    const messages = grouped.flat()
    const record = remembering(known ?? (await recordOf(this.#manager)), messages)
    const count = recordedOf(record, messages) ?? (await this.#diverged(record, messages))
    let boundary = count === 0 ? 0 : (messages[count - 1]?.index ?? -1) + 1
    const objects = await this.#index()
    for (let unit = units[boundary]; unit !== undefined && (await this.#isRecorded(unit, seen, objects)); unit = units[boundary]) boundary += 1
    return boundary
  }

  /**
   * The same for a host that has removed the newest units and left the others as they were. The record may have more than the
   * conversation, from which others were removed before. Undefined if it does not have all of it, in this order.
   */
  async behind(kept: readonly Unit[], removed: readonly Unit[]): Promise<number | undefined> {
    const record = await recordOf(this.#manager)
    const end = placesOf(record, removed.flatMap(turnMessages))?.[0]
    const places = placesOf(record.slice(0, end), kept.flatMap(turnMessages))
    if (end === undefined || places === undefined) return undefined
    await this.#keep(record, end)
    return kept.length
  }

  /**
   * The results that the record does not have as they are: under their call ID it has another text or other arguments, or, before
   * the boundary, nothing at all. `changed` returns the arguments of a result's call if the host has changed the answer with it.
   */
  async unrecorded(
    units: readonly Unit[],
    seen: ReadonlyMap<Unit, number>,
    boundary: number,
    changed: (message: EngineMessage) => object | undefined,
  ): Promise<{ reworded: Set<Part>; unknown: Set<Part> }> {
    const found = { reworded: new Set<Part>(), unknown: new Set<Part>() }
    const objects = await this.#index()
    const parts = units.flatMap((unit, at) =>
      unit.parts.flatMap((part) => {
        const args = changed(part.message)
        return seen.has(unit) && args === undefined ? [] : [{ part, args, isBefore: at < boundary }]
      }),
    )
    for (const group of groupsOf(parts, AT_ONCE)) {
      const standings = await Promise.all(group.map(({ part, args }) => standingOf(this.#manager, part.message, objects, args)))
      for (const [place, { part, isBefore }] of group.entries()) {
        if (standings[place] === 'reworded') found.reworded.add(part)
        if (standings[place] === 'unknown' && isBefore) found.unknown.add(part)
      }
    }
    return found
  }

  /** The number of a conversation's messages in the record, after the record was made to agree with it. */
  async #diverged(record: readonly TurnMessage[], messages: readonly TurnMessage[]): Promise<number> {
    const manager = this.#manager
    const rest = await this.#atRun(record, messages)
    if (rest !== undefined) return rest
    const point = await lastCommon(manager, messages)
    const atPoint = (await recordOf(manager, point)).length
    const common = Math.max(atPoint, commonOf(record, messages))
    // Another conversation does not continue after an emptied record: each restart would make the record longer.
    const isLeft = record.some(({ isErased, calls }) => isErased !== true || calls.length > 0)
    if (common === 0 && isLeft && messages.length > 0 && record.filter(({ role }) => role === 'user').length > 1) {
      this.#starts.push(record.length)
      return 0
    }
    if (this.#starts.some((start) => common <= start)) {
      throw invalid(
        'these messages are of a conversation that another one has followed in this session; a session records one conversation at a time. Open a separate session for each, with ContextManager.open and another sessionId',
      )
    }
    await (common === atPoint ? manager.goBack(point) : manager.keepBeginning(common))
    const left = remembering(await recordOf(manager), messages)
    if (isPrefix(left, messages)) return left.length
    await manager.restore(manager.sessionId, 0)
    return 0
  }

  /**
   * The same for a host that has removed the newest messages and changed others: the record ends where it last was as the
   * conversation is. Undefined if too little of it is.
   */
  async #atRun(record: readonly TurnMessage[], messages: readonly TurnMessage[]): Promise<number | undefined> {
    const run = longestRun(record, messages)
    const start = run.record - run.length
    // Single messages, and a few among many others, are the same by chance.
    if (run.length < 2 || run.length < SHARE * (messages.length - run.messages + run.length) || this.#starts.some((one) => start < one)) return undefined
    await this.#keep(record, run.record)
    return run.messages
  }

  /** Makes the record end behind its first messages. A fork has no point before its own beginning. */
  async #keep(record: readonly TurnMessage[], count: number): Promise<void> {
    const manager = this.#manager
    const point = await lastCommon(manager, record.slice(0, count))
    const isThere = (await recordOf(manager, point)).length === count
    await (isThere ? manager.goBack(point) : manager.keepBeginning(count))
  }

  /** True if a unit that consists of results only is in the record. */
  async #isRecorded(unit: Unit, seen: ReadonlyMap<Unit, number>, objects: ReadonlySet<string>): Promise<boolean> {
    if (!isOfResults(unit)) return false
    if (seen.has(unit)) return true
    for (const { message } of unit.parts) if ((await objectFor(this.#manager, message, objects)) === undefined) return false
    return true
  }

  async #index(): Promise<ReadonlySet<string>> {
    return new Set((await this.#manager.sessionSets()).sessionIndex)
  }
}

/**
 * How many units are recorded if the host has changed what was said before the last two messages of the user and the model, which are as
 * they were: then the record ends with these. Undefined if they are not.
 */
export function behindChange(old: readonly Unit[], units: readonly Unit[], seen: ReadonlyMap<Unit, number>): number | undefined {
  const last = old.findLastIndex(isSaid)
  const lastButOne = old.slice(0, Math.max(last, 0)).findLastIndex(isSaid)
  let end = units.findLastIndex((unit) => seen.get(unit) === last)
  const before = units.slice(0, Math.max(end, 0)).findLast(isSaid)
  if (lastButOne < 0 || before === undefined || seen.get(before) !== lastButOne) return undefined
  const places = units.slice(0, end + 1).flatMap((unit) => seen.get(unit) ?? [])
  if (places.some((place, at) => at > 0 && place < (places[at - 1] as number))) return undefined
  end += 1
  while (units[end] !== undefined && isOfResults(units[end] as Unit) && seen.has(units[end] as Unit)) end += 1
  // The record may have a result that the host has not shown yet.
  return units[end] !== undefined && isOfResults(units[end] as Unit) ? undefined : end
}

function isSaid({ parts }: Unit): boolean {
  return parts.some(({ message: { role } }) => role === 'user' || role === 'assistant')
}

function isOfResults({ parts }: Unit): boolean {
  return parts.every(({ message: { role } }) => role === 'toolResult')
}

/** The messages of the user and the model in a unit, as they are compared with the record. */
function turnMessages({ parts }: Unit): TurnMessage[] {
  return parts.flatMap(({ message }) => turnMessage(recordable(handed(message))) ?? [])
}
