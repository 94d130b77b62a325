/** The result of a run in sentences, money and percent first. */
import { accountText, dayOf, difference, dollars, tokens } from '../ui/index.ts'
import type { Savings } from '../ui/index.ts'
import type { Account, AccountKind } from './accounts.ts'
import { lossSentence } from './losses.ts'
import type { Format } from '../recordings/index.ts'
import { crossingSentence } from './prefixes.ts'
import type { SessionReport } from './run.ts'
import type { OriginSums, Summary } from './summary.ts'
import type { TallyFigures } from './tally.ts'

/** The sentences of a verdict. */
interface Verdict {
  /** The one that matters most, in a line: what was paid, or would have been. */
  headline: string
  /** The cost of the sessions as it was and as it would have been: a sentence for each kind of sessions. */
  cost: string
  /** The number of losses of the provider's cache, and their cost; undefined where unknown or none. */
  losses: string | undefined
  /** The size from which on a session with a long window costs more than one that rolls; undefined without such a session. */
  window: string | undefined
  /** A sentence about what the agent would have had to fetch again. */
  fetch: string
  /** True if the context manager costs less than what the sessions cost without it. */
  saves: boolean
}

/** The verdict on a run; undefined if the context manager or what it is compared with was left out, or nothing was replayed. */
export function verdictOf(summary: Summary): Verdict | undefined {
  const { pi, recorded, 'pi-context-manager': own } = summary.policies
  if (own === undefined) return undefined
  const { unit, calls } = summary
  const accounts = summary.accounts ?? accountsBySource(summary, recorded?.cost ?? pi?.cost ?? Number.NaN, own.cost)
  const plain = accounts.reduce((sum, account) => sum + account.plain, 0)
  if (!(plain > 0)) return undefined
  const cost = accounts.map((account) => sentenceOf(account, account.isPlan === true ? 'tokens' : unit)).join(' ')
  const leading = leadingOf(accounts)
  const leadingUnit = unitOf(leading, unit)
  const losses = leadingUnit === 'tokens' ? lossSentence(summary.losses) : lossSentence(summary.losses, (amount) => price(amount, unit))
  const { paid: now, without } = comparedBy(leading)
  return {
    headline: headlineOf(leading, leadingUnit),
    cost,
    losses,
    window: crossingSentence(summary.crossings),
    fetch: fetched(own, calls, leading),
    saves: now < without,
  }
}

/** The unit of an amount: of costs as in a report, or tokens of prompts on a plan at a flat rate. */
export type AmountUnit = SessionReport['unit'] | 'tokens'

/** The accounts that are told first: of what was paid by the token, and without any such those of plans. */
export function leadingOf(accounts: readonly Account[]): readonly Account[] {
  const paid = accounts.filter(({ isPlan }) => isPlan !== true)
  return paid.length > 0 ? paid : accounts
}

/** The unit of the amounts of such accounts, given that of costs. */
export function unitOf(leading: readonly Account[], unit: SessionReport['unit']): AmountUnit {
  return leading.some(({ isPlan }) => isPlan === true) ? 'tokens' : unit
}

/** The two figures that accounts of one unit compare: what was or would have been paid with the context manager, and without it. */
export function comparedBy(accounts: readonly Account[]): Savings {
  const of = ({ kind, paid, plain, own }: Account): Savings =>
    kind === 'managed' ? { paid: Number.isNaN(paid) ? own : paid, without: plain } : { paid: own, without: kind === 'paid' ? paid : plain }
  return accounts.map(of).reduce((sum, one) => ({ paid: sum.paid + one.paid, without: sum.without + one.without }), { paid: 0, without: 0 })
}

/** The accounts of a summary that has none, as one of an earlier version. */
function accountsBySource({ sessions, calls, bySource, from, to }: Summary, plain: number, own: number): Account[] {
  const period = { ...(from !== undefined && { from }), ...(to !== undefined && { to }) }
  if (bySource === undefined) return [{ kind: 'assumed', programs: ['pi'], sessions, calls, paid: Number.NaN, uncounted: 0, answers: 0, plain, own, ...period }]
  const of = (kind: AccountKind, sums: OriginSums | undefined): Account[] =>
    sums === undefined
      ? []
      : [
          {
            ...sums,
            kind,
            paid: sums.recorded,
            uncounted: 0,
            answers: 0,
            plain: kind === 'managed' && sums.recorded > 0 ? sums.recorded + sums.saved : sums.pi,
            isPlainPi: true,
          },
        ]
  return [...of('managed', bySource.managed), ...of('assumed', bySource.pi), ...of('assumed', bySource.other)]
}

/** Prefers what was paid to what would have been. */
function headlineOf(accounts: readonly Account[], unit: AmountUnit): string {
  const paid = accounts.filter((account) => account.kind === 'paid' && account.paid > 0)
  if (paid.length > 0) {
    const [cost, with_] = [sumOf(paid, (one) => one.paid), sumOf(paid, (one) => one.own)]
    return `You ${verbOf(unit)} ${price(cost, unit)} in ${namesOf(paid)}; ${wayOf(paid)} about ${money(with_, unit)}, ${difference(with_ / cost)}`
  }
  const managed = accounts.filter((account) => account.kind === 'managed' && !Number.isNaN(account.paid))
  if (managed.length > 0) return capitalized(accountText(comparedBy(managed), (amount) => price(amount, unit), verbOf(unit)))
  const { paid: with_, without } = comparedBy(accounts)
  return `With pi-context-manager: ${price(with_, unit)} instead of ${money(without, unit)}, ${difference(with_ / without)}`
}

/** An account as a sentence or two. On a plan, tokens are sent in place of what is paid. */
function sentenceOf(account: Account, unit: AmountUnit): string {
  return unit === 'tokens' ? `On a plan at a flat rate: ${uncapitalized(costSentence(account, unit))}` : costSentence(account, unit)
}

function costSentence(account: Account, unit: AmountUnit): string {
  const { kind, paid, plain, own, uncounted } = account
  const [verb, cost] = unit === 'tokens' ? (['sent', 'sent'] as const) : (['paid', 'cost'] as const)
  const programs = namesOf([account])
  const isPi = account.programs.every((program) => program === 'pi')
  const about = extent(account, isPi ? '' : ` of ${programs}`)
  switch (kind) {
    case 'managed': {
      const setting = `With the settings of this replay it would have been ${price(own, unit)}${chosenWords(account, plain, unit)}.`
      if (Number.isNaN(paid))
        return `Plain Pi would have cost ${price(plain, unit)} for ${about}, which ran with pi-context-manager. What they did cost is not recorded. ${setting}`
      return `${capitalized(accountText({ paid, without: plain }, (amount) => price(amount, unit), verb))}, for ${about}, by its own account. ${setting}`
    }
    case 'paid': {
      const without = uncounted === 0 ? '' : ` (${uncounted} of them without a count)`
      const way = wayOf([account])
      // Users do not pay in a benchmark's agent.
      const [where, whose] = isPi || way === GATEWAY ? [` in ${programs}`, ''] : ['', ` of ${programs}`]
      return `You ${verb} ${price(paid, unit)}${where} for ${extent(account, whose)}${without}. ${capitalized(way)} they would have ${cost} about ${price(own, unit)} (${difference(own / paid)}), on the same cache and window${chosenWords(account, paid, unit)}.`
    }
    case 'assumed': {
      const instead = `${price(own, unit)} instead of ${money(plain, unit)} (${difference(own / plain)})`
      const chosen = chosenWords(account, plain, unit)
      if (isPi) return `You would have ${verb} ${instead} for ${about}${chosen}.`
      const bill = Number.isNaN(paid) ? '' : ` In ${programs} they ${cost} ${price(paid, unit)}.`
      const with_ = `would have ${cost} ${price(own, unit)} with pi-context-manager and ${money(plain, unit)} without it (${difference(own / plain)})${chosen}`
      return `${account.isPlainPi === true ? 'In Pi' : 'On an assumed cache'}, ${about} ${with_}.${bill}`
    }
  }
}

/** The cost with the lifetime of the cache chosen, too, as the beginning of a next sentence; nothing where none can be chosen. */
function chosenWords({ chosen }: Account, before: number, unit: AmountUnit): string {
  return chosen === undefined || !(before > 0)
    ? ''
    : `. With the cache's lifetime chosen as well, it would be about ${price(chosen, unit)} (${difference(chosen / before)})`
}

const GATEWAY = 'through the gateway'

/** The way in which these sessions get the context manager. */
function wayOf(accounts: readonly Account[]): string {
  return accounts.flatMap(({ programs }) => programs).every((program) => program === 'claude-code' || program === 'codex' || program === 'gemini-cli')
    ? GATEWAY
    : 'with pi-context-manager'
}

function namesOf(accounts: readonly Account[]): string {
  return [...new Set(accounts.flatMap(({ programs }) => programs))].map((program) => PROGRAMS[program]).join(' and ')
}

function capitalized(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1)
}

function uncapitalized(words: string): string {
  return words.charAt(0).toLowerCase() + words.slice(1)
}

/** The verb for an amount. */
function verbOf(unit: AmountUnit): 'paid' | 'sent' {
  return unit === 'tokens' ? 'sent' : 'paid'
}

function sumOf(accounts: readonly Account[], of: (account: Account) => number): number {
  return accounts.reduce((sum, account) => sum + of(account), 0)
}

const PROGRAMS: Readonly<Record<Format, string>> = {
  pi: 'Pi',
  'claude-code': 'Claude Code',
  codex: 'Codex',
  'gemini-cli': 'Gemini CLI',
  opencode: 'OpenCode',
  'mini-swe-agent': 'mini-swe-agent',
}

/** A cost with its unit. */
function price(cost: number, unit: AmountUnit): string {
  return unit === 'USD' ? money(cost, unit) : `${money(cost, unit)} ${unit === 'tokens' ? unit : 'fresh input tokens'}`
}

/** An amount for people: dollars, or a number of tokens. */
export function money(cost: number, unit: AmountUnit): string {
  return unit === 'USD' ? dollars(cost) : tokens(cost)
}

/** The number of sessions and answers, with the first and last time. */
function extent({ sessions, calls, from, to }: Pick<Account, 'sessions' | 'calls' | 'from' | 'to'>, whose = ''): string {
  const what = `${sessions === 1 ? 'one session' : `${sessions} sessions`}${whose} with ${calls.toLocaleString('en-US')} answers`
  if (from === undefined || to === undefined) return what
  const [first, last] = [dayOf(from), dayOf(to)]
  return first === last ? `${what} on ${first}` : `${what} from ${first} to ${last}`
}

function fetched(own: TallyFigures, calls: number, accounts: readonly Account[]): string {
  const strong = (own.missedUses?.toolText.strong ?? 0) + (own.missedUses?.ownWords.strong ?? 0)
  const rate = (count: number): string => String(Math.round((100 * count) / calls))
  const isPlan = accounts.some((account) => account.isPlan === true)
  if (own.rereads + strong === 0) return 'No answer would have had to fetch anything again.'
  const what = `${rate(own.rereads)} a file for an edit (included in ${isPlan ? 'these tokens' : 'that cost'}) and ${rate(strong)} other text`
  const rest = strong === 0 || isPlan ? '' : ` Including the other text, it would be ${difference(withAnswers(fetchedRatio(own), own, accounts))}.`
  return `${rate(own.rereads + strong)} of 100 answers would have had to fetch something again: ${what}.${rest}`
}

/** The ratio of two costs of the prompts, with the answers in both. */
function withAnswers(ratio: number, { cost, costVsPlain, costVsPi }: TallyFigures, accounts: readonly Account[]): number {
  const answers = accounts.reduce((sum, account) => sum + account.answers, 0)
  const without = cost / (costVsPlain ?? costVsPi)
  return answers === 0 ? ratio : (ratio * without + answers) / (without + answers)
}

/** The cost with every strong missed use fetched, over the cost without the context manager. */
export function fetchedRatio({ cost, fetchCost, costVsPlain, costVsPiFetched }: TallyFigures): number {
  return costVsPlain === undefined || !(cost > 0) ? costVsPiFetched : (costVsPlain * (cost + fetchCost)) / cost
}
