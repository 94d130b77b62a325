/** What the person sees: the status line, and the report as lines of text. */
import type { ExtensionContext } from '@earendil-works/pi-coding-agent'
import type { RollReceipt } from '../index.js'
import type { Host } from './host.ts'
import { longWait } from './place.ts'
import { lastAnswer, physicalModel } from './provider.ts'
import type { Report } from './report.ts'

/** Cells of the longest bar. */
const BAR_CELLS = 24

/** Largest outputs in the report. */
const LARGEST = 8

/** Writes the status line, as `ctx 41k/200k · 12 active · saved $0.84`. Never rejects. */
export async function showStatus(host: Host, ctx: ExtensionContext): Promise<void> {
  if (!ctx.hasUI || host.settings?.statusLine === false) return
  const { boundary } = host
  if (boundary === undefined) return
  try {
    const { figures, manager, off } = boundary
    const [{ active_set: active }, state] = await Promise.all([manager.sessionSets(), manager.storeState()])
    const window = ctx.model?.contextWindow ?? 0
    const parts = [
      `ctx ${short(figures.contextTokens)}${window > 0 ? `/${short(window)}` : ''}`,
      `${active.length} active`,
    ]
    const model = physicalModel(ctx, lastAnswer(ctx.sessionManager))
    const saved = savings(figures.saved, model?.cost.input ?? 0)
    if (saved !== undefined) parts.push(`saved ${saved}`)
    if (off) parts.push('off')
    const wait = longWait(state, Date.now())
    if (wait !== undefined) parts.push(wait)
    ctx.ui.setStatus('context', parts.join(' · '))
  } catch {
    // A status line that is missing once is no failure of the session; the next call tells what is wrong.
  }
}

/** The report for places where no component can be drawn. */
export function reportLines(report: Report): string[] {
  const { contextTokens, contextWindow, staleTokens } = report
  const of =
    contextWindow > 0 ? ` of ${short(contextWindow)} (${percent(contextTokens / contextWindow)})` : ''
  const lines = [`Context: ${short(contextTokens)}${of} tokens${report.off ? ', rolls are off' : ''}`]
  lines.push(...shareLines(report).map((line) => `  ${line}`))
  const { active, objects, visible, collapsed } = report
  lines.push(
    `Objects: ${objects} known, ${active} active, ${visible.length} outputs in sight, ${collapsed.length} collapsed`,
  )
  for (const one of visible.slice(0, LARGEST)) {
    const marks = [one.pinned ? 'pinned' : '', one.stale ? 'stale' : ''].filter((mark) => mark !== '')
    const mark = marks.length > 0 ? ` [${marks.join(', ')}]` : ''
    lines.push(`  ${short(one.tokens).padStart(5)}  ${one.id}  ${one.tool} ${one.about}${mark}`)
  }
  if (staleTokens > 0)
    lines.push(
      `Stale: ${short(staleTokens)} tokens wait until collapsing them pays (/context roll does it now)`,
    )
  lines.push(...costLines(report))
  for (const receipt of report.receipts) lines.push(`  ${receiptLine(receipt)}`)
  lines.push(`Store: ${report.store}`)
  return lines
}

/** One line for each kind of content, with a bar. */
export function shareLines({ shares }: Report): string[] {
  const most = Math.max(1, ...shares.map((share) => share.tokens))
  const width = Math.max(0, ...shares.map((share) => share.name.length))
  return shares.map(({ name, tokens }) => {
    const bar = '█'.repeat(Math.max(1, Math.round((BAR_CELLS * tokens) / most)))
    return `${name.padEnd(width)} ${short(tokens).padStart(6)}  ${bar}`
  })
}

/** What the session has cost, and what was saved. */
export function costLines(report: Report): string[] {
  const parts: string[] = []
  if (report.cachedShare !== undefined) parts.push(`last call ${percent(report.cachedShare)} cached`)
  if (report.cost > 0) parts.push(`${report.isBilled ? 'billed' : 'cost'} so far ${money(report.cost)}`)
  const lines = parts.length > 0 ? [`Cost: ${parts.join(', ')}`] : []
  const rolls = report.receipts.length
  const saved = report.saved === undefined ? `${short(report.savedTokens)} input tokens` : money(report.saved)
  if (rolls > 0 || Math.round(report.savedTokens) !== 0) {
    const by = rolls === 0 ? 'excerpts and answered reads' : `${rolls} ${rolls === 1 ? 'roll' : 'rolls'}, excerpts, answered reads`
    lines.push(`Saved against plain Pi: ${saved} (${by})`)
  }
  return lines
}

/** A roll's receipt as a sentence. */
export function receiptLine(receipt: RollReceipt): string {
  const { items, removedTokens, cost, paysBackAfterCalls: calls } = receipt
  const what = `${items} ${items === 1 ? 'item' : 'items'}, -${short(removedTokens)} tokens`
  if (cost <= 0) return `${what}, free`
  const back =
    calls === undefined ? 'does not pay back' : `pays back in ${calls} ${calls === 1 ? 'call' : 'calls'}`
  return `${what}, cost ${short(cost)} input tokens, ${back}`
}

/** A number of tokens as `950`, `41k`, `1.2M`. */
export function short(count: number): string {
  const size = Math.abs(count)
  if (size < 999.5) return String(Math.round(count))
  if (size < 9_950) return `${(count / 1000).toFixed(1)}k`
  if (size < 999_500) return `${Math.round(count / 1000)}k`
  return `${(count / 1e6).toFixed(1)}M`
}

/** What was saved, in dollars where there are prices; undefined where it is not worth a word. */
function savings(savedTokens: number, inputPrice: number): string | undefined {
  if (inputPrice <= 0) return savedTokens >= 1000 ? `${short(savedTokens)} tokens` : undefined
  const dollars = (savedTokens * inputPrice) / 1e6
  return dollars >= 0.005 ? money(dollars) : undefined
}

function money(dollars: number): string {
  return `${dollars < 0 ? '-' : ''}$${Math.abs(dollars).toFixed(2)}`
}

function percent(share: number): string {
  return `${Math.round(100 * share)} %`
}
