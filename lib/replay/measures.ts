/** The figures of a policy as rows that explain themselves, for the terminal and the page. */
import { POLICY_NAMES } from './policies/policy.ts'
import type { PolicyName } from './policies/policy.ts'
import { isOnPlan } from './plan-calls.ts'
import type { SessionReport } from './run.ts'
import type { Summary } from './summary.ts'
import type { TallyFigures } from './tally.ts'
import { shareCell, tokens } from '../ui/index.ts'
import { fetchedRatio, money } from './verdict.ts'

/** Policies side by side, and a row for each figure. */
export interface Measures {
  names: PolicyName[]
  /** The measured figure, and a cell for each policy. A row without cells is the heading of those after it. */
  rows: { label: string; cells: string[] }[]
}

/** A session, or all of them: what its answers cost stands in one place or the other. */
export type Measured =
  | Pick<SessionReport, 'policies' | 'unit' | 'calls' | 'paid' | 'plan' | 'side' | 'regime'>
  | Pick<Summary, 'policies' | 'unit' | 'calls' | 'accounts' | 'sessions' | 'onPlan'>

/** The rows for the policies that were replayed. */
export function measuresOf(measured: Measured): Measures {
  const { policies, unit, calls } = measured
  const answers =
    'accounts' in measured
      ? (measured.accounts ?? []).reduce((sum, account) => sum + account.answers, 0)
      : 'paid' in measured
        ? (measured.paid?.answers ?? 0)
        : 0
  // On a plan, tokens and room in the window say more than list prices, which were not paid.
  const isPlan = 'sessions' in measured ? measured.onPlan === measured.sessions : isOnPlan(measured)
  const window = 'regime' in measured ? measured.regime.window : undefined
  const names = POLICY_NAMES.filter((name) => policies[name] !== undefined)
  const all = names.map((name) => policies[name] as TallyFigures)
  const rate = (uses: number | undefined): string => (uses === undefined ? '-' : ((100 * uses) / calls).toFixed(1))
  const saved = (ratio: number): string => (Number.isFinite(ratio) ? shareCell(ratio) : '-')
  const row = (label: string, cell: (figures: TallyFigures) => string): Measures['rows'][number] => ({ label, cells: all.map(cell) })
  const over = all.some(({ overWindow }) => overWindow > 0)
  const lost = all.some(({ reasoningLost }) => reasoningLost > 0)
  const lostOf = ({ reasoningLost, reasoningLostRunning }: TallyFigures): string => `${reasoningLost} (${reasoningLostRunning})`
  const rows = [
    ...(answers > 0 && !isPlan ? [row('cost, answers included', ({ cost }) => money(cost + answers, unit))] : []),
    ...(isPlan
      ? []
      : [
          row('cost of the prompts', ({ cost }) => money(cost, unit)),
          row('saved of what the prompts cost without us', (figures) => saved(figures.costVsPlain ?? figures.costVsPi)),
        ]),
    row('share of the tokens read from the cache', ({ cacheHit }) => cacheHit.toFixed(3)),
    row('tokens sent', ({ tokensSent }) => tokens(tokensSent)),
    row('tokens of the largest request', ({ peakTokens }) => tokens(peakTokens)),
    ...(isPlan && window !== undefined
      ? [row(`least room in the window of ${tokens(window)}`, ({ peakTokens }) => tokens(Math.max(0, window - peakTokens)))]
      : []),
    ...(over ? [row('requests larger than the window (would fail)', ({ overWindow }) => String(overWindow))] : []),
    row('summaries in place of messages', ({ compactions }) => String(compactions)),
    row('rolls (old text replaced by references)', ({ rolls }) => String(rolls)),
    ...(lost
      ? [row('steps of reasoning lost to rolls (in a running turn)', lostOf), row('requests that a strict provider refuses', ({ refused }) => String(refused))]
      : []),
    row('files read again because an edit needs them', ({ rereads }) => String(rereads)),
    row('reads answered without repeating the text', ({ answeredReads }) => String(answeredReads)),
    { label: 'hidden text that was used, per 100 answers:', cells: [] },
    row('  of tools', ({ missedUses }) => rate(missedUses?.toolText.all)),
    row('    quoted or named three times', ({ missedUses }) => rate(missedUses?.toolText.strong)),
    row('    which probably harms', ({ missedUses }) => rate(missedUses?.probableHarm)),
    row('    by the very next answer', ({ missedUses }) => rate(missedUses?.atOnce.all)),
    row('  of the model and the user', ({ missedUses }) => rate(missedUses?.ownWords.all)),
    ...(isPlan ? [] : [row('saved if three or more are fetched', (figures) => saved(fetchedRatio(figures)))]),
  ]
  return { names, rows }
}
