/** Reads a host's messages into units with named results. Those that are unchanged are taken as they were read before. */
import { checkWidth } from '../core/index.ts'
import type { SizeOf } from './ends.ts'
import { guarded } from './identity.ts'
import { inPieces } from './pieces.ts'
import type { Results } from './results.ts'
import type { Shape } from './shape.ts'
import { read } from './unit.ts'
import type { Unit } from './unit.ts'

/** Units of the last call that stand in a conversation as they were, by the index of their first message. They are not read again. */
export type Unchanged = ReadonlyMap<number, Unit>

/** The facts that reading needs. */
interface Reader {
  shape: Shape
  /** Makes the key of a part. */
  key: () => string
  /** True for a notice of ours. */
  isOurs: (message: object) => boolean
  /** Returns how many of the messages that may be one answer are. */
  sizeOf: SizeOf | undefined
  /** Takes in the messages that are read. */
  see: () => void
  results: Results
  /** The name of the next call's model. */
  model: string
}

/**
 * Reads the messages from an index on. Undefined if a result among the unchanged units is of another tool now, so that all have to be read.
 *
 * Throws `INVALID_ARGUMENT` for an object with too many fields, before anything else happens.
 */
export async function readUnits(
  messages: readonly object[],
  from: number,
  { shape, key, isOurs, sizeOf, see, results, model }: Reader,
  unchanged: Unchanged = new Map(),
): Promise<Unit[] | undefined> {
  guarded(() => {
    for (let at = from; at < messages.length; at += 1) if (!unchanged.has(at)) checkWidth(messages[at])
  })
  see()
  const again = new Set(unchanged.values())
  let isAsBefore = true
  const units = await inPieces(read(messages, from, shape, key, isOurs, sizeOf, unchanged), (unit) => {
    if (again.has(unit)) for (const { message } of unit.parts) isAsBefore = results.again(message) && isAsBefore
    else for (const part of unit.parts) part.message = results.named(part.message, model)
    return unit
  })
  return isAsBefore ? units : undefined
}
