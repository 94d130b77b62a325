/** Finds the units of a conversation that an older table already has. */
import { fingerprint } from './identity.ts'
import { inPieces } from './pieces.ts'
import { hasSameCalls, withSameCalls } from './results.ts'
import type { Results } from './results.ts'
import type { Table } from './table.ts'
import { isOfSameTools, renewed, wordsOf } from './unit.ts'
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
 * Splits the messages into units, and finds those of the old table. `read` returns the units of the messages from `next` on; the first
 * `same` units come before them.
 */
export async function recognize(
  messages: readonly object[],
  { old, results }: { old: Table; results: Results },
  read: (next: number, same: number) => Promise<Unit[]>,
): Promise<Recognized> {
  const { units: same, next } = withSameCalls(old.follow(messages), old.units, messages)
  const seen = new Map<Unit, number>()
  const units = old.units.slice(0, same).map((unit, index) => {
    const one = { ...renewed(unit, unit.raw), notices: unit.notices }
    seen.set(one, index)
    return one
  })
  const places = new Map(old.units.map((unit, index) => [unit, index]))
  const candidates = await old.byFingerprint(same)
  const used = new Set<Unit>()
  results.goOnAfter(old.units.slice(0, same))
  await inPieces(await read(next, same), (unit) => {
    const known = unit.isOurs || candidates.size === 0 ? undefined : candidates.get(fingerprint(wordsOf(unit)))
    const found = known?.find((one) => !used.has(one) && isOfSameTools(one, unit) && hasSameCalls(one.parts, unit.parts))
    if (found === undefined) units.push(unit)
    else {
      used.add(found)
      const one = renewed(found, unit.raw)
      for (const [number, { message }] of one.parts.entries()) results.takeOver(message, (unit.parts[number] as Part).message)
      seen.set(one, places.get(found) as number)
      units.push(one)
    }
  })
  return { units, seen, same }
}
