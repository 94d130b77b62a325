/** The losses of the provider's cache when sessions were recorded: their number, causes and cost. */
import { addLoss, noLoss, pauseOf, PAUSES } from '../models/index.ts'
import type { LossSum, Pause } from '../models/index.ts'
import { tokens as short } from '../ui/index.ts'
import type { Loss } from './record.ts'

/** The losses of sessions: in all, by what they came with and the pause before, and by cause. */
export interface LossSums extends LossSum {
  after: Record<Loss['after'], Record<Pause, number>>
  byCause: Record<Loss['cause'], LossSum>
}

/** No losses. */
export function noLosses(): LossSums {
  const pauses = (): Record<Pause, number> => ({ 'under 5': 0, '5 to 60': 0, 'over 60': 0 })
  return { ...noLoss(), after: { prompt: pauses(), results: pauses() }, byCause: { expired: noLoss(), model: noLoss(), unknown: noLoss() } }
}

/** Adds losses to sums. */
export function addLosses(sums: LossSums, losses: readonly Loss[]): void {
  for (const { after, pauseMs, tokens, cost, cause } of losses) {
    for (const sum of [sums, sums.byCause[cause]]) addLoss(sum, { tokens, cost })
    sums.after[after][pauseOf(pauseMs)] += 1
  }
}

/** The losses as a sentence, given how an amount is written, or without their cost; undefined for none. */
export function lossSentence(sums: LossSums | undefined, written?: (cost: number) => string): string | undefined {
  if (sums === undefined || sums.count === 0) return undefined
  const { count, cost, tokens, after, byCause } = sums
  const kinds = (['prompt', 'results'] as const).flatMap((kind) => {
    const all = PAUSES.reduce((sum, pause) => sum + after[kind][pause], 0)
    if (all === 0) return []
    const pauses = PAUSES.filter((pause) => after[kind][pause] > 0).map((pause) => `${after[kind][pause]} ${pause} minutes`)
    return [`${all} with ${kind === 'prompt' ? (all === 1 ? 'a prompt' : 'prompts') : 'results of tools'} (pause before: ${pauses.join(', ')})`]
  })
  const known = byCause.expired.count + byCause.model.count
  const causes = [
    byCause.expired.count === 0 ? [] : [`${byCause.expired.count} had expired`],
    byCause.model.count === 0 ? [] : [`${byCause.model.count} followed a change of the model`],
    byCause.unknown.count === 0 || known === 0 ? [] : [`${byCause.unknown.count} ${byCause.unknown.count === 1 ? 'has' : 'have'} no recorded cause`],
  ].flat()
  const why = causes.length === 0 ? '' : `; ${causes.join(', ')}`
  const again = written === undefined ? `${short(tokens)} tokens were written again` : `Writing it again cost ${written(cost)}`
  return `The provider lost the cached conversation ${count === 1 ? 'once' : `${count} times`}: ${kinds.join(', ')}${why}. ${again}.`
}
