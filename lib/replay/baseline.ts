/** Figures of an earlier run that a later one must not fall behind. */
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import type { SessionReport } from './run.ts'
import type { TallyFigures } from './tally.ts'

/** Stored figures of the policy `pi-context-manager`, by the session file's name. */
interface Baseline {
  version: 1
  /** The options of the run that measured the figures; a run with other options is not comparable. */
  options: string
  sessions: Record<string, BaselineFigures>
}

/**
 * The figures that are checked, and counted missed uses beside them. Baselines from before missed uses were counted do not
 * contain those, baselines from before their classes no probable harm, and baselines from before replays by the record no
 * `costVsPlain`.
 */
export type BaselineFigures = Pick<TallyFigures, 'costVsPi' | 'cacheHit' | 'peakTokens' | 'compactions'> &
  Partial<Pick<TallyFigures, 'costVsPlain' | 'missed' | 'missedStrong' | 'missedHarm' | 'costVsPiFetched'>> & {
    /** The paid cost of the prompts, and the cost of policy `recorded` over that. Not checked: the record decides them. */
    paid?: number
    recordedVsPaid?: number
    /** The number of losses of the provider's cache. Not checked. */
    losses?: number
    /** The cost with the lifetime of the cache chosen, over what the session cost without the context manager. Absent where none can be chosen. */
    chosenVsPlain?: number
  }

/** The parts of a session's report that a baseline keeps. */
export type HeldSession = Pick<SessionReport, 'file' | 'policies' | 'paid' | 'regime'>

/** The largest rise (as a fraction) of a figure, or fall of a cache hit, that does not yet count as worse. */
const TOLERANCE = 0.01

/** Reads a baseline. Throws an error with a clear sentence if the file is not one. */
export function readBaseline(file: string): Baseline {
  let found: Partial<Baseline>
  try {
    found = JSON.parse(readFileSync(file, 'utf8')) as Partial<Baseline>
  } catch (error) {
    throw new Error(`the baseline ${file} can't be read: ${(error as Error).message}`)
  }
  if (found.version !== 1 || typeof found.options !== 'string' || typeof found.sessions !== 'object') {
    throw new Error(`${file} is not a baseline; write one with --save-baseline`)
  }
  return found as Baseline
}

/** The figures of a run as a baseline; `earlier` are those that it replaces or keeps. */
export function baselineOf(reports: readonly HeldSession[], options: string): Baseline {
  const sessions: Baseline['sessions'] = {}
  for (const { file, policies, paid, regime } of reports) {
    const own = policies['pi-context-manager']
    if (own === undefined) continue
    const { recorded, 'chosen-lifetime': chosen } = policies
    const { peakTokens, compactions } = own
    sessions[basename(file)] = {
      costVsPi: rounded(own.costVsPi),
      ...(own.costVsPlain !== undefined && { costVsPlain: rounded(own.costVsPlain) }),
      ...(chosen?.costVsPlain !== undefined && { chosenVsPlain: rounded(chosen.costVsPlain) }),
      ...(paid !== undefined && { paid: rounded(paid.cost) }),
      ...(paid !== undefined && paid.cost > 0 && recorded !== undefined && { recordedVsPaid: rounded(recorded.cost / paid.cost) }),
      losses: regime.losses.length,
      cacheHit: rounded(own.cacheHit),
      peakTokens,
      compactions,
      missed: rounded(own.missed),
      missedStrong: rounded(own.missedStrong),
      missedHarm: rounded(own.missedHarm),
      costVsPiFetched: rounded(own.costVsPiFetched),
    }
  }
  return { version: 1, options, sessions }
}

/** Returns what is worse than in the baseline, one line each, and the sessions that it does not contain. */
export function compare(baseline: Baseline, reports: readonly HeldSession[], options: string): { worse: string[]; unknown: string[] } {
  if (options !== baseline.options) {
    return {
      worse: [`the baseline was measured with "${baseline.options}", this run with "${options}"`],
      unknown: [],
    }
  }
  const worse: string[] = []
  const unknown: string[] = []
  let compared = 0
  for (const { file, policies } of reports) {
    const name = basename(file)
    const before = baseline.sessions[name]
    const now = policies['pi-context-manager']
    if (before === undefined || now === undefined) {
      unknown.push(name)
      continue
    }
    compared += 1
    if (!(now.costVsPi <= before.costVsPi * (1 + TOLERANCE))) {
      worse.push(`${name}: cost relative to Pi ${now.costVsPi.toFixed(3)}, was ${before.costVsPi.toFixed(3)}`)
    }
    if (!(now.cacheHit >= before.cacheHit - TOLERANCE)) {
      worse.push(`${name}: cache hit ${now.cacheHit.toFixed(3)}, was ${before.cacheHit.toFixed(3)}`)
    }
    if (!(now.peakTokens <= before.peakTokens * (1 + TOLERANCE))) {
      worse.push(`${name}: peak ${now.peakTokens} tokens, was ${before.peakTokens}`)
    }
    for (const [field, words] of MISSED) {
      const limit = before[field]
      const value = now[field] ?? Number.NaN
      if (limit === undefined || value <= limit * (1 + TOLERANCE) + ROUNDING) continue
      worse.push(`${name}: ${words} ${value.toFixed(3)}, was ${limit.toFixed(3)}`)
    }
    const chosen = policies['chosen-lifetime']?.costVsPlain
    if (before.chosenVsPlain !== undefined && chosen !== undefined && !(chosen <= before.chosenVsPlain * (1 + TOLERANCE) + ROUNDING)) {
      worse.push(
        `${name}: cost relative to what it cost without the context manager, with the lifetime chosen, ${chosen.toFixed(3)}, was ${before.chosenVsPlain.toFixed(3)}`,
      )
    }
    if (now.compactions > before.compactions) {
      worse.push(`${name}: ${now.compactions} compactions, was ${before.compactions}`)
    }
  }
  if (compared === 0) worse.push('none of the sessions is in the baseline, so nothing was compared')
  return { worse, unknown }
}

/** Half of the last digit that a baseline keeps. */
const ROUNDING = 0.000_05

const MISSED = [
  ['costVsPlain', 'cost relative to what it cost without the context manager'],
  ['missedHarm', 'missed uses that probably harm, per 100 calls,'],
  ['costVsPiFetched', 'cost relative to Pi with every strong missed use fetched'],
] as const

function rounded(value: number): number {
  return Math.round(value * 10_000) / 10_000
}
