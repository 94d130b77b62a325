/** Finds the units of a conversation that an older table already has. */
import { isEqual } from './identity.ts'
import { inPieces } from './pieces.ts'
import type { Unchanged } from './reader.ts'
import { hasSameCalls, withSameCalls } from './results.ts'
import type { Results } from './results.ts'
import type { Match, Table } from './table.ts'
import { isOfSameTools, likenessOf, nameOf, renewed, wordsOf } from './unit.ts'
import type { Part, Unit } from './unit.ts'

/** A conversation in units. */
export interface Recognized {
  units: Unit[]
  /** The units that the old table has in the host's original wording, with their places there. */
  seen: Map<Unit, number>
  /** The number of its first units that are the first ones of the old table. */
  same: number
}

/**
 * Returns the units of the messages from `next` on, behind the first `same` units; those that are unchanged as they are. Undefined if a
 * result among these has another tool now.
 */
type Read = (next: number, same: number, unchanged: Unchanged) => Promise<Unit[] | undefined>

/** Splits the messages into units, and finds those of the old table. */
export async function recognize(messages: readonly object[], known: { old: Table; results: Results }, read: Read): Promise<Recognized> {
  const { old } = known
  const match = withSameCalls(old.follow(messages), old.units, messages)
  const unchanged = unchangedIn(old.units, messages, match)
  return ((await recognized(messages, known, match, unchanged, read)) ?? (await recognized(messages, known, match, new Map(), read))) as Recognized
}

/** Undefined if an unchanged unit is taken for another message. */
async function recognized(
  messages: readonly object[],
  { old, results }: { old: Table; results: Results },
  { units: same, next }: Match,
  unchanged: Unchanged,
  read: Read,
): Promise<Recognized | undefined> {
  const again = new Set(unchanged.values())
  const seen = new Map<Unit, number>()
  const units = old.units.slice(0, same).map((unit, index) => {
    const one = { ...renewed(unit, unit.raw, true), notices: unit.notices }
    seen.set(one, index)
    return one
  })
  const places = new Map(old.units.map((unit, index) => [unit, index]))
  const candidates = await old.byFingerprint(same)
  const used = new Set<Unit>()
  results.goOnAfter(old.units.slice(0, same))
  const all = await read(next, same, unchanged)
  if (all === undefined) return undefined
  let isTaken = false
  let at = next
  await inPieces(all, (unit) => {
    const isAgain = again.has(unit)
    const known = isAgain || unit.isOurs || candidates.size === 0 ? undefined : candidates.get(nameOf(unit))
    const found = isAgain ? unit : known?.find((one) => !used.has(one) && isOfSameTools(one, unit) && hasSameCalls(one.parts, unit.parts))
    const first = at
    at += unit.raw.length
    if (found !== undefined) used.add(found)
    if (found === undefined) units.push(unit)
    else if (isAgain) {
      const one = renewed(found, messages.slice(first, at), true)
      seen.set(one, places.get(found) as number)
      units.push(one)
    } else {
      isTaken ||= again.has(found)
      const one = renewed(found, unit.raw)
      for (const [number, { message }] of one.parts.entries()) results.takeOver(message, (unit.parts[number] as Part).message)
      seen.set(one, places.get(found) as number)
      units.push(one)
    }
  })
  return isTaken ? undefined : { units, seen, same }
}

/** The number of units and messages that are looked behind where the host has changed something. */
const MOST_CHANGED = 8

/**
 * The units behind the first ones that are in a conversation as they were: those that are found beside each other, at most a few
 * changed ones apart. One that is like a changed one is not among them, nor are those behind it: which of the two it is depends on all others.
 */
function unchangedIn(old: readonly Unit[], messages: readonly object[], { units: same, next }: Match): Unchanged {
  const found = new Map<number, Unit>()
  const changed: Unit[] = []
  const isAt = (unit: Unit | undefined, at: number): boolean =>
    unit !== undefined && at < messages.length && !unit.isOurs && unit.shape.isAlone === true && likenessOf(unit, messages, at) !== 'different'
  let [number, at] = [same, next]
  while (number < old.length && at < messages.length) {
    const unit = old[number] as Unit
    if (isAt(unit, at)) {
      if (changed.some((one) => isLike(one, unit))) break
      found.set(at, unit)
      number += 1
      at += unit.raw.length
      continue
    }
    const step = stepTo((units, more) => isAt(old[number + units], at + more))
    if (step === undefined) break
    changed.push(...old.slice(number, number + step.units))
    number += step.units
    at += step.messages
  }
  return found
}

/** The nearest place where something is as it was. */
function stepTo(isAt: (units: number, messages: number) => boolean): { units: number; messages: number } | undefined {
  for (let sum = 1; sum <= 2 * MOST_CHANGED; sum += 1) {
    for (let units = Math.max(0, sum - MOST_CHANGED); units <= Math.min(sum, MOST_CHANGED); units += 1) {
      if (isAt(units, sum - units)) return { units, messages: sum - units }
    }
  }
  return undefined
}

/** True if a unit has the words of another one, or those that were sent instead of it. */
function isLike(one: Unit, other: Unit): boolean {
  const words = wordsOf(other)
  return [wordsOf(one), ...one.forms].some((form) => isEqual(form, words))
}
