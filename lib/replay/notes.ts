/** Sentences about what a report leaves out, with what was paid for it, and about counts that can't be right. */
import type { JsonReport } from './json.ts'
import type { RegimeReport } from './report.ts'
import type { Summary } from './summary.ts'
import { counted, dollars, tokens } from '../ui/index.ts'

/** Calls, and dollars that were paid for them. */
interface Paid {
  calls: number
  cost: number
}

const NOTHING: NonNullable<Summary['leftOut']> = { side: { calls: 0, cost: 0 }, repeated: { calls: 0, cost: 0 }, doubtful: 0 }

/** Beyond this number, files are not listed but counted in one line. */
const MAX_LEFT_OUT = 5

/** The parts that were left out on purpose, as lines for people. */
export function leftOutLines(files: JsonReport['leftOut'], { leftOut, calls, planCalls = 0 }: Pick<Summary, 'leftOut' | 'calls' | 'planCalls'>): string[] {
  const lines = files
    .slice(0, MAX_LEFT_OUT)
    .map(({ file, message, calls: own = 0, cost = 0 }) => `left out: ${file}: ${message}${own === 0 ? '' : ` (${paid({ calls: own, cost })})`}`)
  const more = files.slice(MAX_LEFT_OUT)
  const moreCalls = { calls: sumOf(more, (one) => one.calls), cost: sumOf(more, (one) => one.cost) }
  const rest =
    more.length === 0 ? [] : [`left out: ${more.length} more such files (${moreCalls.calls === 0 ? '' : `${paid(moreCalls)}; `}all of them in --json)`]
  const { repeated: again, doubtful } = leftOut ?? NOTHING
  const copies = {
    calls: again.calls + sumOf(files, ({ repeated }) => repeated?.calls),
    cost: again.cost + sumOf(files, ({ repeated }) => repeated?.cost),
  }
  return [...lines, ...rest, ...repeatedLine(copies), ...doubtsLine(doubtful, calls), ...planLine(planCalls, calls)]
}

/** Says what a session was replayed with. */
export function regimeText({ from, cache, lifetimeMs, lifetime, window, losses }: RegimeReport): string {
  const kept = lifetime === undefined ? minutes(lifetimeMs) : lifetime === 'mixed' ? 'five minutes and an hour, mixed' : lifetime
  const lost = losses.length === 0 ? '' : `, lost ${losses.length === 1 ? 'once' : `${losses.length} times`}`
  return from === 'record'
    ? `on the recorded cache (${cache}, ${kept}${lost}), window of ${tokens(window)}`
    : `on an assumed cache (${cache}, ${minutes(lifetimeMs)}), window of ${tokens(window)}`
}

/** Whole minutes, or seconds. */
function minutes(ms: number): string {
  return ms % 60_000 === 0 ? counted(ms / 60_000, 'minute') : counted(ms / 1000, 'second')
}

/** Says what was paid outside the conversations, such as for subagents; undefined for nothing. */
export function sideNote(side: Paid | undefined): string | undefined {
  return side === undefined || side.calls === 0 ? undefined : `${paid(side)} outside the conversation`
}

/** Says how many calls came more than once, as a line; none for none. */
export function repeatedLine({ calls, cost }: Paid): string[] {
  if (calls === 0) return []
  return [`left out: ${calls} ${calls === 1 ? 'call that another file has' : 'calls that other files have'}, too (${dollars(cost)}); each call counts once`]
}

/** Says how many calls have counts that can't be right, as a line; none for none. */
export function doubtsLine(doubtful: number, calls: number): string[] {
  if (doubtful === 0) return []
  return [
    `${doubtful} of ${calls} calls ${doubtful === 1 ? 'has' : 'have'} token counts that are missing, negative, too large or contradict each other; what can't be true counts as 0`,
  ]
}

/** Says how many calls count although a plan paid for them, as a line; none for none. */
function planLine(some: number, calls: number): string[] {
  if (some === 0) return []
  return [
    `${some} of ${calls} calls ${some === 1 ? 'was' : 'were'} made on a plan at a flat rate, and ${some === 1 ? 'counts at its list price' : 'count at list prices'}: other calls of the same session were paid`,
  ]
}

/** Calls with what was paid for them; nothing is paid on a plan. */
function paid({ calls, cost }: Paid): string {
  return `${calls} ${calls === 1 ? 'call' : 'calls'}${cost === 0 ? '' : `, ${dollars(cost)}`}`
}

function sumOf<T>(all: readonly T[], of: (one: T) => number | undefined): number {
  return all.reduce((sum, one) => sum + (of(one) ?? 0), 0)
}
