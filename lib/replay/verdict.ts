/** The result of a run in sentences, money and percent first. */
import type { SessionReport } from './run.ts'
import type { Summary } from './summary.ts'
import type { Figures } from './tally.ts'
import { tokens } from './tokens.ts'

/** The sentences of a verdict. */
export interface Verdict {
  /** What the sessions would have cost, instead of what they cost under plain Pi. */
  cost: string
  /** What the agent would have had to fetch again. */
  fetch: string
  /** Whether it would have cost less. */
  saves: boolean
}

/** The verdict on a run; undefined if Pi or the context manager was left out, or nothing was replayed. */
export function verdictOf(summary: Summary): Verdict | undefined {
  const { pi, 'pi-context-manager': own } = summary.policies
  if (pi === undefined || own === undefined || pi.cost === 0) return undefined
  const { unit } = summary
  const what = unit === 'USD' ? '' : ' fresh input tokens'
  const paid = `You would have paid ${money(own.cost, unit)}${what} instead of ${money(pi.cost, unit)}`
  return {
    cost: `${paid} (${difference(own.costVsPi)}) for the prompts of ${extent(summary)}.`,
    fetch: fetched(own, summary.calls),
    saves: own.cost < pi.cost,
  }
}

/** A cost for people: dollars, or fresh input tokens. */
export function money(cost: number, unit: SessionReport['unit']): string {
  return unit === 'USD' ? `$${cost.toFixed(2)}` : tokens(cost)
}

/** How much less or more a cost is, given its ratio to another. */
export function difference(ratio: number): string {
  const percent = Math.round(100 * Math.abs(1 - ratio))
  if (percent === 0) return 'the same'
  return `${percent} % ${ratio < 1 ? 'less' : 'more'}`
}

/** The day of a time in milliseconds, in this machine's time zone. */
export function dayOf(at: number): string {
  const date = new Date(at)
  const two = (value: number): string => String(value).padStart(2, '0')
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
}

/** How many sessions and answers, and from when to when. */
function extent({ sessions, calls, from, to }: Summary): string {
  const what = `${sessions === 1 ? 'one session' : `${sessions} sessions`} with ${calls.toLocaleString('en-US')} answers`
  if (from === undefined || to === undefined) return what
  const [first, last] = [dayOf(from), dayOf(to)]
  return first === last ? `${what}, on ${first}` : `${what}, from ${first} to ${last}`
}

function fetched(own: Figures, calls: number): string {
  const strong = (own.missedUses?.toolText.strong ?? 0) + (own.missedUses?.ownWords.strong ?? 0)
  const rate = (count: number): string => String(Math.round((100 * count) / calls))
  if (own.rereads + strong === 0) return 'No answer would have had to fetch anything again.'
  const what = `${rate(own.rereads)} a file for an edit (included in that cost) and ${rate(strong)} other text`
  const rest = strong === 0 ? '' : ` Including the other text, it would be ${difference(own.costVsPiFetched)}.`
  return `${rate(own.rereads + strong)} of 100 answers would have had to fetch something again: ${what}.${rest}`
}
