/** Turns the lines of many sessions into the figures of docs/harm.md. Everything here is arithmetic on recorded lines. */
import { randomNumbers } from '../../lib/core/index.ts'
import type { Line, Nats } from './measure.ts'
import type { Part } from './chat.ts'
import { costOf } from './costs.ts'
import type { Answers, Ratios, Units } from './costs.ts'

/** One session's lines, and by arm what its requests cost and how many answers come after its first roll. */
export interface RunLines {
  run: string
  lines: readonly Line[]
  costs: Record<string, Units & Answers>
}

/** An interval of a bootstrap over sessions. */
export interface Interval {
  value: number
  low: number
  high: number
}

/** The figures of one arm, over the answers after its first roll. */
export interface ArmFigures {
  arm: string
  runs: number
  answers: number
  /** Tokens of its requests over those of the full ones, at the measured answers. */
  prompt: number
  /** The cost of all requests of these sessions over that of the full ones. */
  cost: number
  /** Nats of an answer after the full request, and its tokens. */
  full: number
  tokens: number
  /** More nats for an answer than after the full request; likewise for the parts. */
  nats: Interval
  parts: Record<Part, number>
  /** The share of the change that falls on names and quotes which stand only in hidden text. */
  hiddenShare: number
  /** The median of the changes of single answers. */
  median: number
  ninth: number
  /** The share of answers with more than five nats more. */
  worse: number
}

/** The number of samples behind the intervals. */
const SAMPLES = 2000

/** A change of more nats than this counts as worse. */
const WORSE = 5

/** Returns the figures of one arm; undefined if no answer was measured. */
export function figuresOf(arm: string, all: readonly RunLines[], ratios: Ratios): ArmFigures | undefined {
  const runs = all.flatMap(({ lines, costs }) => {
    const own = measuredIn(lines, arm)
    return own.length === 0 ? [] : [{ own, costs }]
  })
  const lines = runs.flatMap(({ own }) => own)
  if (lines.length === 0) return undefined
  const changes = lines.map(changeOf).sort((left, right) => left - right)
  const perRun = runs.map(({ own }) => ({ sum: total(own.map(changeOf)), count: own.length }))
  const hidden = total(lines.map(({ hidden }) => (hidden === undefined ? 0 : hidden.nats - hidden.fullNats)))
  const part = (name: Part): number => total(lines.map((line) => natsOf(line.parts[name]) - natsOf(line.fullParts?.[name]))) / lines.length
  return {
    arm,
    runs: runs.length,
    answers: lines.length,
    prompt: total(lines.map((line) => line.prompt)) / total(lines.map((line) => line.full)),
    cost: total(runs.map(({ costs }) => cost(costs[arm], ratios))) / total(runs.map(({ costs }) => cost(costs['full'], ratios))),
    full: total(lines.map(({ fullParts = {} }) => total(Object.values(fullParts).map(natsOf)))) / lines.length,
    tokens: total(lines.map(({ parts }) => total(Object.values(parts).map(({ tokens }) => tokens)))) / lines.length,
    nats: bootstrap(perRun),
    parts: { thinking: part('thinking'), text: part('text'), calls: part('calls') },
    hiddenShare: hidden / total(changes),
    median: quantile(changes, 0.5),
    ninth: quantile(changes, 0.9),
    worse: changes.filter((change) => change > WORSE).length / changes.length,
  }
}

/** Counts the sessions, their answers, and the answers before which an arm had hidden something, measured or not. */
export function reachOf(arm: string, all: readonly RunLines[]): Answers & { sessions: number; rolled: number } {
  const own = all.flatMap(({ costs }) => costs[arm] ?? [])
  return {
    sessions: own.length,
    rolled: own.filter(({ changed }) => changed > 0).length,
    answers: total(own.map(({ answers }) => answers)),
    changed: total(own.map(({ changed }) => changed)),
  }
}

/** An arm beside another one, on the answers that both have measured. */
export interface Comparison {
  arm: string
  runs: number
  answers: number
  /** Tokens of the requests over those of the full ones: of the other arm, and of this one. */
  prompts: [other: number, own: number]
  /** The cost of all requests of these sessions over that of the full ones, likewise. */
  costs: [other: number, own: number]
  /** More nats for an answer than after the full request, likewise. */
  nats: [other: number, own: number]
  /** More nats for an answer than with the other arm. */
  more: Interval
  /** The share of answers with more than five nats more than with the other arm, and with more than five nats less. */
  worse: number
  better: number
}

/** Compares an arm with another one; undefined if they share no answer. */
export function comparedWith(other: string, arm: string, all: readonly RunLines[], ratios: Ratios): Comparison | undefined {
  const runs = all.flatMap(({ lines, costs }) => {
    const own = new Map(measuredIn(lines, arm).map((line) => [line.answer, line]))
    const pairs = measuredIn(lines, other).flatMap((line): [Line, Line][] => {
      const same = own.get(line.answer)
      return same === undefined ? [] : [[line, same]]
    })
    return pairs.length === 0 ? [] : [{ pairs, costs }]
  })
  const pairs = runs.flatMap((run) => run.pairs)
  if (pairs.length === 0) return undefined
  const changes = pairs.map(moreOf)
  const share = (is: (change: number) => boolean): number => changes.filter(is).length / pairs.length
  const mean = (of: (line: Line) => number): [number, number] => [
    total(pairs.map(([line]) => of(line))) / pairs.length,
    total(pairs.map(([, line]) => of(line))) / pairs.length,
  ]
  const full = total(pairs.map(([line]) => line.full)) / pairs.length
  const [otherPrompt, ownPrompt] = mean((line) => line.prompt)
  const costIn = (name: string): number => total(runs.map(({ costs }) => cost(costs[name], ratios)))
  return {
    arm,
    runs: runs.length,
    answers: pairs.length,
    prompts: [otherPrompt / full, ownPrompt / full],
    costs: [costIn(other) / costIn('full'), costIn(arm) / costIn('full')],
    nats: mean(changeOf),
    more: bootstrap(runs.map((run) => ({ sum: total(run.pairs.map(moreOf)), count: run.pairs.length }))),
    worse: share((change) => change > WORSE),
    better: share((change) => change < -WORSE),
  }
}

/** The missed uses that replay counts in the measured answers of an arm, beside their nats. */
export interface Meter {
  /** By what the meter found in an answer: its strong missed uses that probably harm, others, or none. */
  kinds: Record<MissedKind, { answers: number; nats: number; share: number }>
  /** The rank correlation of an answer's change in nats with its strong missed uses; 0 if there is nothing to compare. */
  correlation: number
}

/** The answers that the meter tells apart. */
export type MissedKind = 'probable harm' | 'other missed uses' | 'none'

/** Compares the change of each answer with what the meter of missed uses found in it. */
export function meterOf(arm: string, all: readonly RunLines[]): Meter {
  const found = all.flatMap(({ lines, costs }) =>
    measuredIn(lines, arm).map((line) => ({ change: changeOf(line), strong: 0, harms: 0, ...costs[arm]?.missed?.[line.answer] })),
  )
  const sum = total(found.map(({ change }) => change))
  const kind = (is: (one: { strong: number; harms: number }) => boolean): Meter['kinds']['none'] => {
    const own = found.filter(is)
    const nats = total(own.map(({ change }) => change))
    return { answers: own.length, nats: own.length === 0 ? 0 : nats / own.length, share: sum === 0 ? 0 : nats / sum }
  }
  return {
    kinds: {
      'probable harm': kind(({ harms }) => harms > 0),
      'other missed uses': kind(({ strong, harms }) => strong > 0 && harms === 0),
      none: kind(({ strong }) => strong === 0),
    },
    correlation: correlation(ranks(found.map(({ change }) => change)), ranks(found.map(({ strong }) => strong))),
  }
}

/** Joins two sets of sessions: those of `newer` replace those of the same name, arm by arm and answer by answer. */
export function merged(older: readonly RunLines[], newer: readonly RunLines[]): RunLines[] {
  const runs = new Map(older.map((run) => [run.run, run]))
  for (const run of newer) {
    const before = runs.get(run.run)
    const key = ({ arm, answer }: Line): string => `${arm} ${answer}`
    const replaced = new Set(run.lines.map(key))
    const lines = [...(before?.lines.filter((line) => !replaced.has(key(line))) ?? []), ...run.lines]
    runs.set(run.run, { run: run.run, lines, costs: { ...before?.costs, ...run.costs } })
  }
  return [...runs.values()].sort((left, right) => (left.run < right.run ? -1 : 1))
}

/** The lines of an arm that can be compared with the full request. */
export function measuredIn(lines: readonly Line[], arm: string): Line[] {
  return lines.filter((line) => line.arm === arm && line.fullParts !== undefined)
}

/** One answer's change in nats. */
export function changeOf(line: Line): number {
  return total(Object.values(line.parts).map(natsOf)) - total(Object.values(line.fullParts ?? {}).map(natsOf))
}

/** The mean over answers, with the fifth and the ninety-fifth percentile of samples of whole sessions. */
export function bootstrap(runs: readonly { sum: number; count: number }[], samples = SAMPLES): Interval {
  const mean = (some: readonly { sum: number; count: number }[]): number => total(some.map(({ sum }) => sum)) / total(some.map(({ count }) => count))
  const random = randomNumbers(1)
  const means = Array.from({ length: samples }, () => mean(runs.map(() => runs[Math.floor(random() * runs.length)] ?? { sum: 0, count: 0 })))
  means.sort((left, right) => left - right)
  return { value: mean(runs), low: quantile(means, 0.05), high: quantile(means, 0.95) }
}

/** More nats of an answer in the second of two lines. */
function moreOf([other, own]: readonly [Line, Line]): number {
  return changeOf(own) - changeOf(other)
}

function natsOf(nats: Nats | undefined): number {
  return nats?.nats ?? 0
}

function cost(units: Units | undefined, ratios: Ratios): number {
  return units === undefined ? Number.NaN : costOf(units, ratios)
}

function total(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0)
}

function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN
}

/** The rank of each value, from 1; equal values share the mean of theirs. */
function ranks(values: readonly number[]): number[] {
  const sorted = values.toSorted((left, right) => left - right)
  return values.map((value) => (sorted.indexOf(value) + sorted.lastIndexOf(value)) / 2 + 1)
}

/** Pearson's correlation; 0 if one side does not vary. */
function correlation(left: readonly number[], right: readonly number[]): number {
  const mean = (values: readonly number[]): number => total(values) / values.length
  const [one, other] = [mean(left), mean(right)]
  const product = (a: readonly number[], b: readonly number[], x: number, y: number): number => total(a.map((value, at) => (value - x) * ((b[at] ?? y) - y)))
  const spread = Math.sqrt(product(left, left, one, one) * product(right, right, other, other))
  return spread > 0 ? product(left, right, one, other) / spread : 0
}
