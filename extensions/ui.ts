/** The user's view: the status line, and the report as lines of text. */
import type { ExtensionContext } from '@earendil-works/pi-coding-agent'
import type { RollReceipt } from '../index.js'
import type { SavingLedger } from '../lib/projection/index.ts'
import { dollars, heldStatus, heldText, lifetimeText, paidText, percent, savingText, shareText } from '../lib/ui/index.ts'
import type { Held, Savings } from '../lib/ui/index.ts'
import type { Host } from './host.ts'
import { longWait } from './place.ts'
import { answeringModel, isOnPlan } from './provider.ts'
import { isInWindow } from './outputs.ts'
import type { Report } from './report.ts'
import { percentParts, short, shortParts } from './shares.ts'

/** The largest number of outputs that the report lists. */
const LARGEST = 8

/**
 * Writes the status line, as dim as Pi's own footer: `context: saved $0.84`. Clears it if there is nothing to say.
 * Never rejects.
 */
export async function showStatus(host: Host, ctx: ExtensionContext): Promise<void> {
  if (!ctx.hasUI || host.settings?.statusLine === false) return
  const { boundary } = host
  if (boundary === undefined) return
  try {
    const state = await boundary.manager.storeState()
    const parts: string[] = []
    const isPlan = isOnPlan(ctx, answeringModel(ctx))
    const saved = savings(boundary.figures.ledger, isPlan)
    if (saved !== undefined) parts.push(saved)
    const room = isPlan ? roomIn(ctx) : undefined
    if (saved !== undefined && room !== undefined) parts.push(room)
    if (boundary.off) parts.push('off')
    const held = await boundary.heldBack(ctx)
    const waits = held === undefined ? undefined : heldStatus(held)
    if (waits !== undefined) parts.push(waits)
    const wait = longWait(state, Date.now())
    if (wait !== undefined) parts.push(wait)
    const text = parts.length === 0 ? undefined : ctx.ui.theme.fg('dim', `context: ${parts.join(' · ')}`)
    ctx.ui.setStatus('context', text)
  } catch {
    // A missing status line is not a failure of the session; the next call reports what is wrong.
  }
}

/** The report as plain lines, for modes without a screen. */
export function reportLines(report: Report): string[] {
  const { contextTokens, contextWindow, roll, shares, outputs } = report
  const used = contextWindow > 0 ? Math.round((100 * contextTokens) / contextWindow) : 100
  const of = contextWindow > 0 ? ` of ${short(contextWindow)} tokens (${used} %)` : ' tokens'
  const lines = [`Context: ${short(contextTokens)}${of}${report.off ? ', off: nothing collapses' : ''}`]
  const tokens = shares.map((share) => share.tokens)
  const sizes = shortParts(tokens, contextTokens)
  const percents = percentParts(tokens, used)
  const width = Math.max(0, ...shares.map((share) => share.name.length))
  for (const [index, { name }] of shares.entries()) {
    lines.push(`  ${name.padEnd(width)} ${sizes[index]?.padStart(6)} ${percents[index]?.padStart(5)}`)
  }
  lines.push(savedLine(report))
  const cost = costLine(report)
  if (cost !== undefined) lines.push(cost)
  const lifetime = lifetimeLine(report)
  if (lifetime !== undefined) lines.push(lifetime)
  for (const receipt of report.receipts) lines.push(`  Roll: ${receiptLine(receipt)}`)
  const seen = outputs.filter(isInWindow)
  const asLines = outputs.filter((one) => one.form === 'line' && !isInWindow(one)).length
  const ofLines = asLines === 0 ? '' : `, ${asLines} to lines`
  lines.push(`Outputs: ${seen.length} in the window, ${outputs.length - seen.length - asLines} collapsed to references${ofLines}`)
  for (const one of seen.slice(0, LARGEST)) {
    const marks = [one.back === undefined ? one.form : 'brought back', one.pinned ? 'pinned' : '', one.mayCollapse ? 'may collapse' : ''].filter(
      (mark) => mark !== '',
    )
    const tool = one.tool === one.name ? '' : `, ${one.tool}`
    lines.push(`  ${one.name}  ${marks.join(', ')}, ${short(one.tokens)} tokens${tool}, id=${one.id}`)
  }
  if (roll !== undefined) lines.push(`/context roll collapses now: ${receiptLine(roll)}`)
  if (report.held !== undefined) lines.push(heldLine(report.held))
  lines.push(`Store: ${report.store}`)
  if (report.storeHint !== undefined) lines.push(report.storeHint)
  return lines
}

/** Returns what was saved so far, and which share of what plain Pi would have cost. */
export function savedLine(report: Report): string {
  const { saved, savedTokens, isPlan, plan, uncounted, receipts } = report
  if (uncounted !== undefined) return `What was saved is not known: ${uncounted}.`
  if (Math.round(isPlan && plan !== undefined ? plan.without - plan.sent : savedTokens) === 0)
    return `Nothing saved yet: ${receipts.length === 0 ? 'nothing has been worth collapsing' : 'what has collapsed shows at the next call'}.`
  const account = accountOf(report)
  // Less than a cent is told in tokens.
  const isWorth = isPlan || (saved !== undefined && Math.abs(saved) >= 0.005)
  const text =
    isWorth && account !== undefined ? shareText(account, isPlan ? tokensText : dollars) : savingText(savedTokens, (some) => `${short(some)} input tokens`)
  return capital(text)
}

/** The session's account: in dollars, or in tokens of its prompts on a plan; undefined while there is nothing to compare, or without prices. */
function accountOf({ saved, savedTokens, cost, isPlan, plan, uncounted }: Report): Savings | undefined {
  if (uncounted !== undefined) return undefined
  if (isPlan) return plan === undefined || Math.round(plan.without - plan.sent) === 0 ? undefined : { paid: plan.sent, without: plan.without }
  return saved === undefined || Math.round(savedTokens) === 0 ? undefined : { paid: cost, without: cost + saved }
}

function tokensText(count: number): string {
  return `${short(count)} tokens`
}

/** Returns why text that could leave the window is still there. */
export function heldLine(held: Held): string {
  return `${heldText(held)}.`
}

/**
 * Returns what the session has cost, and would have cost in plain Pi, and what the last call found in the cache; undefined before
 * the first answer.
 */
export function costLine(report: Report): string | undefined {
  const { cachedShare, cost, isPlan, contextTokens, contextWindow } = report
  const account = accountOf(report)
  const parts: string[] = []
  if (isPlan && contextWindow > 0) {
    const sent = account === undefined ? '' : `${paidText(account, tokensText, 'sent')} · `
    parts.push(`On a plan at a flat rate: ${sent}${roomText(contextTokens, contextWindow)}`)
  } else if (cost > 0 && !isPlan) parts.push(account === undefined ? `Paid ${dollars(cost)}` : capital(paidText(account, dollars)))
  if (cachedShare !== undefined) {
    const why = cachedShare < LOW_SHARE ? ' (/context why)' : ''
    parts.push(`${parts.length === 0 ? 'Last' : 'last'} call ${percent(cachedShare)} from the cache${why}`)
  }
  return parts.length === 0 ? undefined : parts.join(' · ')
}

/** Returns the lifetime of the cache that was chosen, why, and what that has saved; undefined where it is as Pi asks. */
export function lifetimeLine({ lifetime, inputPrice }: Report): string | undefined {
  if (lifetime === undefined) return undefined
  const isMoney = Math.abs(lifetime.savedTokens * inputPrice) >= 0.005
  return `The cache's lifetime: ${lifetimeText(lifetime, (some) => `about ${isMoney ? dollars(some * inputPrice) : `${short(some)} input tokens`}`)}.`
}

/** If the last call read less than this from the cache, the user will want to know why. */
const LOW_SHARE = 0.5

/** A roll's receipt as a sentence; if it is brief, without the cost. */
export function receiptLine(receipt: RollReceipt, isBrief = false): string {
  const { items, removedTokens, cost, paysBackAfterCalls: calls, reasoningLost = 0 } = receipt
  const lost = reasoningLost === 0 ? '' : `, reasoning of ${reasoningLost} ${reasoningLost === 1 ? 'step' : 'steps'} lost`
  const what = `${items} ${items === 1 ? 'item' : 'items'}, ${short(removedTokens)} tokens${isBrief ? '' : ' removed'}${lost}`
  if (cost <= 0) return `${what}, free`
  const back = calls === undefined ? 'never pays back' : `pays back in ${calls} ${calls === 1 ? 'call' : 'calls'}`
  return isBrief ? `${what}, ${back}` : `${what}, cost ${short(cost)} input tokens, ${back}`
}

/** The effect of the key for a roll: `roll 22k, $0.03`. `price`: dollars for a fresh input token; 0 if unknown. */
export function rollHint({ removedTokens, cost }: RollReceipt, price: number): string {
  const once = cost <= 0 ? 'free' : price > 0 ? dollars(cost * price) : `for ${short(cost)} once`
  return `roll ${short(removedTokens)}, ${once}`
}

/** Returns the room that is left in the window, which says more than dollars on a plan at a flat rate; undefined if it is not known. */
function roomIn(ctx: ExtensionContext): string | undefined {
  const tokens = ctx.getContextUsage()?.tokens
  const window = ctx.model?.contextWindow ?? 0
  return tokens === undefined || tokens === null || window === 0 ? undefined : roomText(tokens, window)
}

function roomText(tokens: number, window: number): string {
  return `room for ${short(Math.max(0, window - tokens))} tokens`
}

/** Returns what was saved or cost more, in dollars if prices are known and paid; undefined if it is not worth mentioning. */
function savings({ saved, dollars: amount, plan }: SavingLedger, isPlan: boolean): string | undefined {
  if (isPlan && plan !== undefined) return Math.abs(plan.without - plan.sent) >= 1000 ? savingText(plan.without - plan.sent, tokensText) : undefined
  if (amount === 0 || isPlan) return Math.abs(saved) >= 1000 ? savingText(saved, tokensText) : undefined
  return Math.abs(amount) >= 0.005 ? savingText(amount, dollars) : undefined
}

function capital(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`
}
