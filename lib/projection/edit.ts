/**
 * The difference between a JSON value and what goes out instead of it. It names what stays by its place, so that the same
 * edit can be made to the value as a host sends it next, with other cache markers, and to the text of a body.
 */
import { isMarker } from './identity.ts'
import { isFields } from '../core/index.ts'
import type { Fields } from '../core/index.ts'
import { originOf } from './origins.ts'

/** A change of a value: another one replaces it, or some of its fields or elements change. */
export type JsonEdit = { is: unknown } | { fields: Record<string, JsonEdit | null> } | { items: readonly EditedItem[] }

/** An element of a list that goes out: the one at an index, the same with an edit, or one that is added. */
export type EditedItem = number | readonly [at: number, edit: JsonEdit] | { add: unknown; isNotice?: true }

/**
 * The edit that makes one value of another; undefined if they are the same. Neither may contain itself. Cache markers are not
 * part of it: they move from request to request, so what stays has those of the value to which the edit is made.
 */
export function editOf(before: unknown, after: unknown): JsonEdit | undefined {
  if (before === after) return undefined
  if (Array.isArray(before) && Array.isArray(after)) {
    const items = itemsOf(before, after)
    return isWhole(items, before.length) ? undefined : { items }
  }
  if (!isFields(before) || !isFields(after)) return { is: withoutMarkers(after) }
  const fields: [string, JsonEdit | null][] = []
  const [old, now] = [new Map(Object.entries(before)), new Map(Object.entries(after))]
  for (const [name, value] of old) {
    if (value === undefined || isMarker(name)) continue
    const edit = now.get(name) === undefined ? null : editOf(value, now.get(name))
    if (edit !== undefined) fields.push([name, edit])
  }
  for (const [name, value] of now) if (value !== undefined && !isMarker(name) && old.get(name) === undefined) fields.push([name, { is: withoutMarkers(value) }])
  return fields.length === 0 ? undefined : { fields: Object.fromEntries(fields) }
}

/**
 * The elements of a list in terms of another one. Elements that are the same object are found wherever they stand behind
 * each other, and so is what is sent instead of one; between them, an element is an edited one if it has the same role, type
 * and IDs.
 */
export function itemsOf(before: readonly unknown[], after: readonly unknown[]): EditedItem[] {
  const places = new Map(before.map((value, at) => [value, at]))
  const placeIn = (value: unknown): number | undefined =>
    typeof value === 'object' && value !== null ? (places.get(value) ?? places.get(originOf(value) ?? NOWHERE)) : undefined
  const limits = new Array<number>(after.length)
  for (let n = after.length - 1, limit = before.length; n >= 0; n -= 1) {
    limits[n] = limit
    const place = placeIn(after[n])
    if (place !== undefined && place < limit) limit = place
  }
  let next = 0
  const at = (place: number, value: unknown): EditedItem => {
    next = place + 1
    const edit = editOf(before[place], value)
    return edit === undefined ? place : [place, edit]
  }
  return after.map((value, n): EditedItem => {
    const known = placeIn(value)
    if (known !== undefined && known >= next) return at(known, value)
    for (let place = next; place < (limits[n] as number); place += 1) if (isKin(before[place], value)) return at(place, value)
    return { add: withoutMarkers(value) }
  })
}

/** An element that no list has. */
const NOWHERE = {}

/** The value with an edit. Parts that stay are the same objects. */
export function applied(value: unknown, edit: JsonEdit | undefined): unknown {
  if (edit === undefined) return value
  if ('is' in edit) return edit.is
  if ('items' in edit) return appliedItems(value as readonly unknown[], edit.items)
  const fields = new Map(Object.entries(value as Fields))
  for (const [name, one] of Object.entries(edit.fields)) {
    if (one === null) fields.delete(name)
    else fields.set(name, applied(fields.get(name), one))
  }
  return Object.fromEntries(fields)
}

/** The list that goes out instead of another one. */
export function appliedItems<T>(list: readonly T[], items: readonly EditedItem[]): T[] {
  return items.map((item) => {
    if (typeof item === 'number') return list[item] as T
    return isEdited(item) ? (applied(list[item[0]], item[1]) as T) : (item.add as T)
  })
}

/** True if a list of `count` elements is sent as it is. */
export function isWhole(items: readonly EditedItem[], count: number): boolean {
  return items.length === count && items.every((item, at) => item === at)
}

/**
 * The items for the first `length` elements of a list of `count`. An added item stays if all items before it do. An element with
 * lines for removed ones is sent as it is if not all of those are among the first, and so are those.
 */
export function cutItems(items: readonly EditedItem[], count: number, length: number): EditedItem[] {
  const whole = wholeLength(items, count, length)
  const nexts = nextsOf(items, count)
  const kept = items.filter((item, n) => (placeOf(item) === undefined ? (nexts[n] as number) <= whole : (nexts[n] as number) < whole))
  return [...kept, ...Array.from({ length: length - whole }, (_, n) => whole + n)]
}

/**
 * How many of the first `length` elements go out in the form of the whole list of `count`. Elements that are removed are
 * summarized in the one before them, so they are cut off only together, with that one. The last of them may be a part of the
 * next element: the result of a removed call, with words of the user behind it. `lacks` tells that of an item.
 */
export function wholeLength(items: readonly EditedItem[], count: number, length: number, lacks = lacksParts): number {
  let last = -1
  for (const item of items) {
    const place = placeOf(item)
    if (place === undefined) continue
    if (place >= length) return (place > length || lacks(item)) && place > last + 1 ? Math.max(last, 0) : length
    last = place
  }
  return count > length && count > last + 1 ? Math.max(last, 0) : length
}

/** True if an element goes out without one of its first parts. */
export function lacksParts(item: EditedItem): boolean {
  if (!isEdited(item) || !('fields' in item[1])) return false
  return Object.values(item[1].fields).some((edit) => edit !== null && 'items' in edit && edit.items.some((part, at) => (placeOf(part) ?? at) > at))
}

/** For each item, the index of the first element of a list of `count` that is at its place or after it. */
export function nextsOf(items: readonly EditedItem[], count: number): number[] {
  const nexts = new Array<number>(items.length)
  for (let n = items.length - 1, next = count; n >= 0; n -= 1) {
    next = placeOf(items[n] as EditedItem) ?? next
    nexts[n] = next
  }
  return nexts
}

/** The index of the element that an item represents; undefined if it is added. */
export function placeOf(item: EditedItem): number | undefined {
  return typeof item === 'number' ? item : isEdited(item) ? item[0] : undefined
}

/** True if an item is an element with an edit. */
export function isEdited(item: EditedItem): item is readonly [number, JsonEdit] {
  return Array.isArray(item)
}

/** A value without cache markers; the same object where it has none. */
function withoutMarkers(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  const before = Object.entries(value)
  const after = before.flatMap(([name, one]): [string, unknown][] => (isMarker(name) ? [] : [[name, withoutMarkers(one)]]))
  if (after.length === before.length && after.every(([, one], at) => one === before[at]?.[1])) return value
  return Array.isArray(value) ? after.map(([, one]) => one) : Object.fromEntries(after)
}

/** Fields that say which block or message something is. */
const NAMES = ['role', 'type', 'id', 'call_id', 'tool_use_id', 'tool_call_id'] as const

function isKin(one: unknown, other: unknown): boolean {
  if (!isFields(one) || !isFields(other)) return one === other
  return NAMES.every((name) => one[name] === other[name]) && hasSameIds(idsIn(one), idsIn(other))
}

/** Messages have no IDs in some formats; their blocks and calls do. */
function hasSameIds(one: ReadonlySet<unknown>, other: ReadonlySet<unknown>): boolean {
  return one.size === 0 ? other.size === 0 : [...other].some((id) => one.has(id))
}

function idsIn({ content, tool_calls: calls }: Fields): Set<unknown> {
  const blocks = [content, calls].flatMap((list): unknown[] => (Array.isArray(list) ? list : []))
  return new Set(blocks.flatMap((block) => (isFields(block) ? [block['tool_use_id'] ?? block['id'] ?? []].flat() : [])))
}
