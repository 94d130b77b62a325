/** The state of one call of the projection, from the host's messages to the form that is sent. */
import type { Shape } from './shape.ts'
import type { Table } from './table.ts'
import type { Part, Unit } from './unit.ts'

/** A call of `Projection.transform` under way. */
export interface Pass {
  messages: readonly object[]
  shape: Shape | undefined
  /** The table that the call leads to: the old one, or one built anew. */
  table: Table
  /** The units that are handed over; undefined until they are known. */
  fresh: readonly Unit[] | undefined
  /** True if engine and table agreed before. */
  wasCertain: boolean
  /** The same messages for the same model as in the last call: the host tries again, or only counts tokens. */
  isRepeated: boolean
  /** Results that the host has reworded. */
  reworded: ReadonlySet<Part>
  /** Results that the host has put into the past, or changed there: no request had them. */
  unsent: ReadonlySet<Part>
  /** The names of the places behind the units of `table` and `fresh`. */
  places: readonly string[]
  /**
   * When everything recorded of the messages was last sent in the form that the record gives it, if the engine does not know;
   * undefined if it was not.
   */
  sentMs?: number
  /** The number of visible messages that an earlier process has sent as they are, if the host has changed something behind them since. */
  sentMessages?: number
}
