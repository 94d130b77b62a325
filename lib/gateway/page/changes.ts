/** The page's list of what the model gets instead of what the agent wrote, in the last request. */
import { changesByKind, escape, sizes, tokens } from '../../ui/index.ts'
import type { PartChange } from '../../ui/index.ts'
import type { Look } from './look.ts'

/** The most changes that are listed, the newest ones. */
const MOST = 100

/** The sum over all parts, as HTML; empty before the first request. */
export function changesText(look: Look | undefined): string {
  if (look === undefined || look.changes.own === 0) return ''
  const { changes, unchanged, own, sent } = look.changes
  const same = `${unchanged.toLocaleString('en-US')} ${unchanged === 1 ? 'part is' : 'parts are'} unchanged.`
  if (changes.length === 0) return `<p class="dim">The same as the agent wrote: ${same}</p>`
  const kinds = changesByKind(changes).map(({ kind, count, before, after }) => `${count.toLocaleString('en-US')} ${kind} (${sizes(before, after)} tokens)`)
  const left = changes.length > MOST ? ` The newest ${MOST} of ${changes.length} changes:` : ''
  return `<p>The last request has ${tokens(sent)} tokens in place of the agent's ${tokens(own)} (estimated): ${escape(kinds.join(', '))}. ${same}${left}</p>`
}

/** The changes, each with a key that stays. */
export function changeRows(look: Look | undefined): [key: string, html: string][] {
  const counts = new Map<string, number>()
  const rows = (look?.changes.changes ?? []).map((change): [string, string] => {
    const count = (counts.get(change.name) ?? 0) + 1
    counts.set(change.name, count)
    return [`${change.name} ${count}`, rowOf(change)]
  })
  return rows.slice(-MOST)
}

/** The inside of an element that opens. */
function rowOf({ kind, name, before, after, reason, text }: PartChange): string {
  const shown = text === '' ? '' : `<pre>${escape(text)}</pre>`
  return `<summary><b>${kind}</b> ${escape(name)} <span class="dim">${escape(sizes(before, after))}</span></summary><p class="dim">${escape(reason)}</p>${shown}`
}
