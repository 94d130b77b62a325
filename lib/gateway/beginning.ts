/**
 * The first messages of a conversation in the form in which they were sent, where the projection has another one: the user
 * went back before a roll, another process rolled, or a roll came too late for its request.
 */
import { cutItems, isEqual, placeOf, wholeLength } from '../projection/index.ts'
import type { EditedItem, Shape } from '../projection/index.ts'

/** The form of the first `length` messages, as it was sent. */
export interface Beginning {
  items: readonly EditedItem[]
  length: number
  /** The projection's own form of them; undefined until it is asked. */
  own?: readonly EditedItem[]
  /** It ends with the next words of the user: it is there only for the reasoning of the turn. */
  isOfTurn?: boolean
}

/** Nothing was sent otherwise. */
export const NO_BEGINNING: Beginning = { items: [], length: 0 }

/**
 * A form with its first messages as they were sent. Undefined if the projection has changed something in them since: then its
 * own form is the new one. Messages behind them that the projection summarizes in one of the first go out as they are.
 */
export function behind(beginning: Beginning, items: readonly EditedItem[], count: number): { beginning: Beginning; items: EditedItem[] } | undefined {
  const { length, items: sent, own } = beginning
  const end = items.findLastIndex((item) => (placeOf(item) ?? length) < length) + 1
  const now = items.slice(0, end)
  if (own !== undefined && !isEqual(own, now)) return undefined
  const has = (item: EditedItem): boolean => placeOf(item) === undefined && sent.some((one) => isEqual(one, item))
  const rest = items.slice(end)
  const next = rest.map(placeOf).find((place) => place !== undefined) ?? count
  const hidden = asTheyAre(length, Math.max(length, next))
  return { beginning: { ...beginning, own: now }, items: [...sent, ...hidden, ...rest.filter((item) => !has(item))] }
}

/** True if the user has said something in the messages from one on. */
export function hasUser(shape: Shape, messages: readonly object[], from: number): boolean {
  for (let at = from; at < messages.length;) {
    const { size, parts } = shape.read(messages, at)
    if (parts.some(({ role }) => role === 'user')) return true
    at += size
  }
  return false
}

/** The form of the first messages, up to `common` at most. Lines for messages behind that must not stay. */
export function beginningOf(items: readonly EditedItem[], count: number, common: number): Beginning {
  const length = wholeLength(items, count, common)
  return { items: cutItems(items, count, length), length }
}

/** The form of `length` messages of which some are in a known form. */
export function withRest({ items, length: known }: Pick<Beginning, 'items' | 'length'>, length: number): EditedItem[] {
  return [...items, ...asTheyAre(known, length)]
}

/** Messages that go out unchanged: from an index to the one before another. */
export function asTheyAre(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, n) => from + n)
}
