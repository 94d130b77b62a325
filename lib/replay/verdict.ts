/** The result of a run in sentences, money and percent first. */
import { difference } from '../saving.ts'
import type { Format } from './recording.ts'
import type { SessionReport } from './run.ts'
import type { OriginSums, Summary } from './summary.ts'
import type { TallyFigures } from './tally.ts'
import { tokens } from './tokens.ts'

/** The sentences of a verdict. */
interface Verdict {
  /** The one that matters most, in a line: what was paid, or would have been. */
  headline: string
  /** The cost of the sessions as it was and as it would have been: a sentence for each kind of sessions. */
  cost: string
  /** A sentence about what the agent would have had to fetch again. */
  fetch: string
  /** True if the context manager costs less than plain Pi. */
  saves: boolean
}

/** The verdict on a run; undefined if Pi or the context manager was left out, or nothing was replayed. */
export function verdictOf(summary: Summary): Verdict | undefined {
  const { pi, 'pi-context-manager': own } = summary.policies
  if (pi === undefined || own === undefined || pi.cost === 0) return undefined
  const { sessions, calls, bySource, from, to } = summary
  const all: OriginSums = { sessions, calls, programs: ['pi'], pi: pi.cost, own: own.cost, recorded: Number.NaN, saved: 0, ...(from !== undefined && { from }), ...(to !== undefined && { to }) }
  const { managed, pi: plain, other } = bySource ?? { pi: all }
  const sentences = [
    managed === undefined ? [] : [managedSentence(managed, extent(managed), summary.unit)],
    plain === undefined ? [] : [plainSentence(plain, extent(plain), summary.unit)],
    other === undefined ? [] : [otherSentence(other, extent(other, ` of ${namesOf(other)}`), summary.unit)],
  ].flat()
  return { headline: headlineOf(managed, pi.cost, own.cost, summary.unit), cost: sentences.join(' '), fetch: fetched(own, calls), saves: own.cost < pi.cost }
}

/** Prefers what was paid to what would have been. */
function headlineOf(managed: OriginSums | undefined, pi: number, own: number, unit: SessionReport['unit']): string {
  if (managed === undefined || Number.isNaN(managed.recorded)) return `With pi-context-manager: ${price(own, unit)} instead of ${money(pi, unit)}, ${difference(own / pi)}`
  const { recorded, saved } = managed
  return `You paid ${price(recorded, unit)} instead of ${money(recorded + saved, unit)}, ${difference(recorded / (recorded + saved))}`
}

/** The context manager ran, so what it saved is saved, and the replay shows another setting. */
function managedSentence({ pi, own, recorded, saved }: OriginSums, about: string, unit: SessionReport['unit']): string {
  const setting = `With the settings of this replay it would have been ${price(own, unit)}.`
  if (Number.isNaN(recorded))
    return `Plain Pi would have cost ${price(pi, unit)} for the prompts of ${about}, which ran with pi-context-manager. What they did cost is not recorded. ${setting}`
  const plain = recorded + saved
  const paid = `You paid ${price(recorded, unit)} with pi-context-manager, where plain Pi would have cost ${money(plain, unit)}`
  return `${paid} (${difference(recorded / plain)}) for the prompts of ${about}. ${setting}`
}

function plainSentence({ pi, own }: OriginSums, about: string, unit: SessionReport['unit']): string {
  return `You would have paid ${price(own, unit)} instead of ${money(pi, unit)} (${difference(own / pi)}) for the prompts of ${about}.`
}

/** Other agents send other requests, so their own bill is beside and not in the comparison. */
function otherSentence(share: OriginSums, about: string, unit: SessionReport['unit']): string {
  const { pi, own, recorded } = share
  const bill = Number.isNaN(recorded) ? '' : ` In ${namesOf(share)} they cost ${price(recorded, unit)}.`
  const would = `would have cost ${price(own, unit)} with pi-context-manager and ${money(pi, unit)} without it (${difference(own / pi)})`
  return `In Pi, the prompts of ${about} ${would}.${bill}`
}

function namesOf({ programs }: OriginSums): string {
  return programs.map((program) => PROGRAMS[program]).join(' and ')
}

const PROGRAMS: Readonly<Record<Format, string>> = {
  pi: 'Pi',
  'claude-code': 'Claude Code',
  codex: 'Codex',
  opencode: 'OpenCode',
  'mini-swe-agent': 'mini-swe-agent',
}

/** A cost with its unit. */
function price(cost: number, unit: SessionReport['unit']): string {
  return unit === 'USD' ? money(cost, unit) : `${money(cost, unit)} fresh input tokens`
}

/** A cost for people: dollars, or fresh input tokens. */
export function money(cost: number, unit: SessionReport['unit']): string {
  return unit === 'USD' ? `$${cost.toFixed(2)}` : tokens(cost)
}

/** The day of a time in milliseconds, in this machine's time zone. */
export function dayOf(at: number): string {
  const date = new Date(at)
  const two = (value: number): string => String(value).padStart(2, '0')
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
}

/** How many sessions and answers, and from when to when. */
function extent({ sessions, calls, from, to }: OriginSums, whose = ''): string {
  const what = `${sessions === 1 ? 'one session' : `${sessions} sessions`}${whose} with ${calls.toLocaleString('en-US')} answers`
  if (from === undefined || to === undefined) return what
  const [first, last] = [dayOf(from), dayOf(to)]
  return first === last ? `${what} on ${first}` : `${what} from ${first} to ${last}`
}

function fetched(own: TallyFigures, calls: number): string {
  const strong = (own.missedUses?.toolText.strong ?? 0) + (own.missedUses?.ownWords.strong ?? 0)
  const rate = (count: number): string => String(Math.round((100 * count) / calls))
  if (own.rereads + strong === 0) return 'No answer would have had to fetch anything again.'
  const what = `${rate(own.rereads)} a file for an edit (included in that cost) and ${rate(strong)} other text`
  const rest = strong === 0 ? '' : ` Including the other text, it would be ${difference(own.costVsPiFetched)}.`
  return `${rate(own.rereads + strong)} of 100 answers would have had to fetch something again: ${what}.${rest}`
}
