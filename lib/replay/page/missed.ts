/** Missed uses on the page: what was hidden that the agent used, by age and by kind. */
import type { PolicyName } from '../policies/policy.ts'
import type { TallyFigures } from '../tally.ts'
import { HARM_CLASSES, isProbablyHarm } from '../missed/harm.ts'
import type { Count, MissedUses } from '../missed/uses.ts'
import { escape } from '../../ui/index.ts'

/** Kinds that are shown; the most frequent. */
const MAX_KINDS = 8

/** Collapsible tables of what `pi-context-manager` hid; empty if nothing was measured. */
export function missedUses(policies: Partial<Record<PolicyName, TallyFigures>>, calls: number): string {
  const uses = policies['pi-context-manager']?.missedUses
  if (uses === undefined || uses.toolText.all + uses.ownWords.all === 0) return ''
  const kinds = Object.entries(uses.byKind).sort((left, right) => right[1].all - left[1].all)
  const places = Object.entries(uses.byUse).sort((left, right) => right[1].all - left[1].all)
  const parts = [
    counts('calls since it came', Object.entries(uses.byAge), calls),
    counts('what it was', kinds.slice(0, MAX_KINDS), calls),
    counts('where it was used', places.slice(0, MAX_KINDS), calls),
    harm(uses.byHarm, calls),
  ]
  const explained =
    'Text of tools that the recorded agent quoted or named in an answer and that this context manager no longer showed, per 100 answers; in a clear case the answer quotes it three times or uses three names from it. A model would have asked for it again, or continued from memory.'
  return `<details><summary>What was hidden and used</summary><p class="dim">${escape(explained)}</p><div class="charts">${parts.join('')}</div></details>`
}

/** The clear cases by what the recorded agent did next, the probable harm last. */
function harm(classes: MissedUses['byHarm'], calls: number): string {
  const lines = HARM_CLASSES.map(
    (name) =>
      `<tr><td>${escape(isProbablyHarm(name) ? `${name}: probable harm` : name)}</td><td class="n">${((100 * classes[name]) / calls).toFixed(2)}</td></tr>`,
  )
  return `<div class="scroll"><table><thead><tr><th>clear cases, by what came next</th><th class="n">all</th></tr></thead><tbody>${lines.join('')}</tbody></table></div>`
}

function counts(title: string, rows: readonly [name: string, count: Count][], calls: number): string {
  const rate = (uses: number): string => ((100 * uses) / calls).toFixed(2)
  const lines = rows.map(([name, { all, strong }]) => `<tr><td>${escape(name)}</td><td class="n">${rate(all)}</td><td class="n">${rate(strong)}</td></tr>`)
  return `<div class="scroll"><table><thead><tr><th>${escape(title)}</th><th class="n">all</th><th class="n">clear cases</th></tr></thead><tbody>${lines.join('')}</tbody></table></div>`
}
