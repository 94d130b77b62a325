/**
 * The notices that were sent, and where: a host that keeps only its own messages does not have those of an earlier process, and
 * without them its first request would differ from the last one of that process.
 */
import { createHash } from 'node:crypto'
import type { ContextManager } from '../../index.js'
import { fingerprint } from './identity.ts'
import { entriesOf } from './recorded.ts'
import { isClosed } from './shape.ts'
import type { Shape } from './shape.ts'
import { UNDECIDED } from './shapes.ts'
import { isOfSystem, textsOf } from './table.ts'
import { contentOf, nameOf } from './unit.ts'
import type { Unit } from './unit.ts'

/** Characters of a place's name. */
const DIGITS = 16

/** The circumstances in which notices are put back. `wantsAnswer`: the model's provider wants an answer behind results. */
interface Telling {
  manager: ContextManager
  shape: Shape | undefined
  nowMs: number
  wantsAnswer: boolean
}

/** The notices of one conversation. */
export class Told {
  /** Their fingerprints. A host may return them as if they were its own messages. */
  readonly #sent = new Set<string>()
  /** The names of the places behind the units of the last call. */
  #places: readonly string[] = []

  /** True if a message is a notice that was sent. */
  has(message: object, shape: Shape = UNDECIDED): boolean {
    return this.#sent.size > 0 && this.#sent.has(fingerprint(contentOf(shape, message)))
  }

  /** Makes a message with a notice, and remembers it. */
  notice(text: string, shape: Shape | undefined, nowMs: number): object {
    const notice = shape === undefined ? { role: 'user', content: text } : shape.notice(text, nowMs)
    this.#sent.add(fingerprint(contentOf(shape ?? UNDECIDED, notice)))
    return notice
  }

  /** The names of the places behind all units, once these follow those of the last call. */
  placesWith(fresh: readonly Unit[]): readonly string[] {
    return fresh.length === 0 ? this.#places : [...this.#places, ...placesBehind(fresh, this.#places.at(-1))]
  }

  /** A call was carried out. */
  keep(places: readonly string[]): void {
    this.#places = places
  }

  /**
   * Puts the notices in the session's record back where they came. A host that has kept them has them behind that place. Those of
   * places where nothing could be added came with the next ones; the engine repeats those that have not come yet.
   */
  async putBack(units: readonly Unit[], { manager, shape, nowMs, wantsAnswer }: Telling): Promise<void> {
    const recorded = await recordedBy(manager)
    if (recorded.size === 0) return
    const places = placesBehind(units)
    let waiting: string[] = []
    for (const [at, unit] of units.entries()) {
      const [first, ...others] = textsAt(recorded, places[at] as string)
      const lines = first?.split('\n') ?? []
      waiting = [...waiting.filter((line) => !lines.includes(line)), ...lines]
      // Few places have notices, and looking back from a unit costs as much as its turn is long.
      if (waiting.length === 0 && others.length === 0) continue
      // A request seldom ends with an answer, and nothing may stand between a call and its result.
      const isAnswer = unit.parts.some(({ message: { role } }) => role === 'assistant')
      if ((isAnswer && first === undefined) || isClosed({ shape: unit.shape, messages: upTo(units, at) }, wantsAnswer)) continue
      const texts = waiting.length === 0 ? others : [waiting.join('\n'), ...others]
      waiting = []
      const behind = units.slice(at + 1, at + 1 + texts.length).flatMap(({ parts }) => parts.flatMap(({ message }) => textsOf(message)))
      for (const text of texts) if (!behind.some((one) => one.includes(text))) unit.notices.push(this.notice(text, shape, nowMs))
    }
  }
}

/** The messages that decide whether a notice may stand behind a unit: those since the user last spoke. */
function upTo(units: readonly Unit[], at: number): object[] {
  const isSaid = ({ parts }: Unit): boolean => parts.some(({ message: { role } }) => role === 'user')
  return units.slice(Math.max(0, units.slice(0, at + 1).findLastIndex(isSaid)), at + 1).flatMap(({ raw }) => raw)
}

/**
 * The name of the place where a notice would come now: behind the last unit that is not the system's, and behind the notices that
 * are there already. `places` are the names behind all units, of which `fresh` are the last.
 */
export function placeOfNext(
  now: { table: { units: readonly Unit[] }; fresh: readonly Unit[] | undefined; places: readonly string[] } | undefined,
): string | undefined {
  const { table: { units } = { units: [] }, fresh = [], places = [] } = now ?? {}
  const isLast = (unit: Unit): boolean => !isOfSystem(unit)
  const before = places.length - fresh.length
  const among = fresh.findLastIndex(isLast)
  const at = among >= 0 ? before + among : units.findLastIndex(isLast)
  const [place, unit] = at < 0 ? [places.at(-1), fresh.at(-1) ?? units.at(-1)] : [places[at], fresh[at - before] ?? units[at]]
  return place === undefined ? undefined : numbered(place, unit?.notices.length ?? 0)
}

/** The name of a place behind some notices. */
function numbered(place: string, notices: number): string {
  return notices === 0 ? place : `${place}~${notices}`
}

/** The texts of the notices at a place, in the order in which they came. */
function textsAt(recorded: ReadonlyMap<string, string>, place: string): string[] {
  const texts: string[] = []
  for (let text = recorded.get(place); text !== undefined; text = recorded.get(numbered(place, texts.length))) texts.push(text)
  return texts
}

/**
 * Names for the places behind units: each is a hash of the conversation up to there. `before` is the name of the place before
 * them. Notices that the host has returned are no part of the conversation.
 */
export function placesBehind(units: readonly Unit[], before = ''): string[] {
  let place = before
  return units.map((unit) => {
    if (!unit.isOurs) place = createHash('sha256').update(place).update(nameOf(unit)).digest('base64url').slice(0, DIGITS)
    return place
  })
}

/** True if an ID is that of a list in the session's record: of notices that no request had room for. */
export async function hasList(manager: ContextManager, id: string): Promise<boolean> {
  const lists = (await entriesOf(manager)).map(({ listed }) => listed)
  return lists.some((list) => typeof list === 'string' && createHash('sha256').update(list).digest('hex').startsWith(id))
}

/** The notices in the session's record by their places, each as one text. */
async function recordedBy(manager: ContextManager): Promise<ReadonlyMap<string, string>> {
  const lines = new Map<string, Set<string>>()
  for (const { said } of await entriesOf(manager)) {
    if (typeof said?.place !== 'string' || !Array.isArray(said.lines)) continue
    lines.set(said.place, new Set([...(lines.get(said.place) ?? []), ...said.lines.map(String)]))
  }
  // As the engine sorts them.
  return new Map([...lines].map(([place, all]) => [place, [...all].sort((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other))).join('\n')]))
}
