/** The sums of missed uses. */

import { fieldOf, setField } from '../../core/index.ts'
import { HARM_CLASSES, isProbablyHarm } from './harm.ts'
import type { HarmClass } from './harm.ts'

/** The number of uses, and of the strong ones among them. */
export interface Count {
  all: number
  /** With at least three quotes (45 characters or so) or three names. */
  strong: number
}

/** Missed uses of one policy, as counts; divide by the number of calls for a rate. */
export interface MissedUses {
  /** Uses of outputs and of arguments of tools. */
  toolText: Count
  /** Uses of the model's thinking and prose, and of the user's text. */
  ownWords: Count
  /** Uses of tool text by the very next call, so the text was never shown whole. */
  atOnce: Count
  /** Uses of tool text by the calls since it came: 1 is the next one. */
  byAge: Record<string, Count>
  /** Uses of tool text by its kind: a tool, the command of a shell, or a call's arguments. */
  byKind: Record<string, Count>
  /** Uses of tool text by the place in the answer; one use may be in several places. */
  byUse: Record<string, Count>
  /** The strong ones of tool text by what the recorded agent did next. */
  byHarm: Record<HarmClass, number>
  /** Those of them that probably harm. */
  probableHarm: number
}

/** The last call of each age, and the name of the age. */
const AGES: readonly [last: number, name: string][] = [
  [1, '1'],
  [3, '2-3'],
  [6, '4-6'],
  [12, '7-12'],
  [25, '13-25'],
  [50, '26-50'],
  [Number.POSITIVE_INFINITY, '51+'],
]

/** Quotes or names that make a use a strong one. */
const STRONG = 3

/** One use of text that a policy did not show. */
interface Use {
  kind: string
  /** True if the text is the model's or the user's own. */
  ownWords: boolean
  /** Calls since the text came; 1 is the next one. */
  age: number
  quotes: number
  names: number
  where: ReadonlySet<string>
}

/** True if a use is strong. */
export function isStrong({ quotes, names }: Pick<Use, 'quotes' | 'names'>): boolean {
  return quotes >= STRONG || names >= STRONG
}

/** No use at all. */
export function noUses(): MissedUses {
  const none = (): Count => ({ all: 0, strong: 0 })
  const byAge = Object.fromEntries(AGES.map(([, name]) => [name, none()]))
  const byHarm = Object.fromEntries(HARM_CLASSES.map((name) => [name, 0])) as Record<HarmClass, number>
  return { toolText: none(), ownWords: none(), atOnce: none(), byAge, byKind: {}, byUse: {}, byHarm, probableHarm: 0 }
}

/** Counts one use. */
export function count(uses: MissedUses, use: Use): void {
  const strong = isStrong(use) ? 1 : 0
  if (use.ownWords) {
    grow(uses.ownWords, 1, strong)
    return
  }
  grow(uses.toolText, 1, strong)
  if (use.age <= 1) grow(uses.atOnce, 1, strong)
  const [, age] = AGES.find(([last]) => use.age <= last) as [number, string]
  grow(at(uses.byAge, age), 1, strong)
  grow(at(uses.byKind, use.kind), 1, strong)
  for (const place of use.where) grow(at(uses.byUse, place), 1, strong)
}

/** Notes the class of a strong use of tool text that has been counted. */
export function classify(uses: MissedUses, name: HarmClass): void {
  uses.byHarm[name] += 1
  if (isProbablyHarm(name)) uses.probableHarm += 1
}

/** Adds the uses of another session. */
export function addUses(sum: MissedUses, more: MissedUses): void {
  for (const field of ['toolText', 'ownWords', 'atOnce'] as const) grow(sum[field], more[field].all, more[field].strong)
  for (const field of ['byAge', 'byKind', 'byUse'] as const) {
    for (const [name, { all, strong }] of Object.entries(more[field])) grow(at(sum[field], name), all, strong)
  }
  for (const name of HARM_CLASSES) sum.byHarm[name] += more.byHarm[name]
  sum.probableHarm += more.probableHarm
}

function at(counts: Record<string, Count>, name: string): Count {
  const known = fieldOf(counts, name)
  if (known !== undefined) return known
  const count = { all: 0, strong: 0 }
  setField(counts, name, count)
  return count
}

function grow(sum: Count, all: number, strong: number): void {
  sum.all += all
  sum.strong += strong
}
