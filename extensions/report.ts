/** The report on what fills the window, for the user. Reads the whole branch, so it is made only on request. */
import type { ExtensionContext } from '@earendil-works/pi-coding-agent'
import type { ContextManager, RollReceipt } from '../index.js'
import { poolLineOf } from '../lib/lines/index.ts'
import type { PlanTokens } from '../lib/projection/index.ts'
import type { Held, LifetimeChoice } from '../lib/ui/index.ts'
import type { Host } from './host.ts'
import { shortName } from '../lib/ui/index.ts'
import { nameOfObject } from './names.ts'
import { inPlace, isInWindow, learnName } from './outputs.ts'
import type { BranchLook, Output, Share } from './outputs.ts'
import { bytesOf, sizeHint, storeLine } from './place.ts'
import { billOf, isOnPlan, lastAnswer, physicalModel } from './provider.ts'

/** The report. */
export interface Report {
  /** The parts of the window, largest first. They add up to `contextTokens`. */
  shares: Share[]
  /** The outputs in the window, largest first; then the collapsed ones, newest first. */
  outputs: Output[]
  /** Tokens of the next request: as in Pi's footer if Pi knows, otherwise characters / 4. */
  contextTokens: number
  /** Tokens for each character of a text in the window, as counted for `contextTokens`. */
  perCharacter: number
  /** The receipt of a roll by hand now; undefined if it would collapse nothing. */
  roll: RollReceipt | undefined
  /** The model's window in tokens; 0 if unknown. */
  contextWindow: number
  active: number
  objects: number
  /** Share of the last request that the provider read from its cache, 0 to 1; undefined before the first answer. */
  cachedShare: number | undefined
  /** The cost of the session so far, in dollars. */
  cost: number
  /** The model is paid by a plan at a flat rate: what counts is tokens and room in the window. */
  isPlan: boolean
  /** The session's calls on such a plan; undefined without one. */
  plan: PlanTokens | undefined
  /** Every figure in `cost` was reported by a provider as charged. */
  isBilled: boolean
  /** Dollars for a fresh input token of the next call, written to the cache if the provider charges for that; 0 if unknown. */
  tokenPrice: number
  /** The same for one that is not written to the cache, in which the cost of a roll is counted. */
  inputPrice: number
  /** The saving against plain Pi, in dollars; undefined if the model has no prices, or on a plan. */
  saved: number | undefined
  /** The same in fresh input tokens. */
  savedTokens: number
  /** The reason why the saving is unknown; undefined if it is known. */
  uncounted: string | undefined
  receipts: RollReceipt[]
  /** The text that could leave the window and has not, with the reason; undefined if none could. */
  held: Held | undefined
  /** The lifetime of the cache that was chosen for the last request; undefined: as Pi asks. */
  lifetime: LifetimeChoice | undefined
  off: boolean
  /** The place of the store, and the writes that wait to be sent to it. */
  store: string
  /** The way to make the store smaller, once it is large. */
  storeHint: string | undefined
}

/** Makes the report of the open session. Rejects if there is none. */
export async function makeReport(host: Host, ctx: ExtensionContext): Promise<Report> {
  const manager = host.manager()
  const boundary = host.boundary
  if (boundary === undefined) throw new Error('the context manager has no open session')
  await boundary.refresh(ctx)
  const [sets, stats, receipts, state] = await Promise.all([manager.sessionSets(), manager.stats(), manager.receipts(), manager.storeState()])
  const preview = await boundary.previewRoll(ctx)
  const pinned = new Set(sets.pinnedSet)
  const system = boundary.circumstances.systemCharacters(ctx)
  const look = boundary.inSections
    ? await inSections(manager, ctx.cwd, system, pinned)
    : await inPlace(host, ctx, system, { index: new Set(sets.sessionIndex), pinned, rolled: new Set(preview?.outputs) })
  const sum = look.shares.reduce((all, share) => all + share.tokens, 0)
  // Pi's footer is on the same screen and must show the same number.
  const counted = boundary.inSections ? undefined : ctx.getContextUsage()?.tokens
  const contextTokens = Math.round(counted ?? sum)
  const scale = sum > 0 ? contextTokens / sum : 1
  const { figures } = boundary
  const { perCatalogueDollar, cachedShare, cost, isBilled } = billOf(ctx.sessionManager.getBranch())
  const last = lastAnswer(ctx.sessionManager)
  const model = physicalModel(ctx, last)
  const prices = model?.cost
  const isPlan = isOnPlan(ctx, model)
  const { saved, dollars, plan } = figures.ledger
  const isCounted = last === undefined || cachedShare !== undefined
  return {
    shares: look.shares
      .map(({ name, tokens }) => ({ name, tokens: tokens * scale }))
      .filter((share) => share.tokens > 0)
      .sort((left, right) => right.tokens - left.tokens),
    outputs: look.outputs.map((one) => ({ ...one, tokens: one.tokens * scale, whole: one.whole * scale })).sort(byForm),
    contextTokens,
    perCharacter: scale / 4,
    roll: preview?.receipt,
    contextWindow: ctx.model?.contextWindow ?? 0,
    active: sets.activeSet.length,
    objects: stats.objects,
    cachedShare,
    cost,
    isBilled,
    isPlan,
    plan,
    inputPrice: isPlan ? 0 : ((prices?.input ?? 0) * perCatalogueDollar) / 1e6,
    tokenPrice: isPlan ? 0 : (Math.max(prices?.input ?? 0, prices?.cacheWrite ?? 0) * perCatalogueDollar) / 1e6,
    saved: !isPlan && (dollars !== 0 || (prices?.input ?? 0) > 0) ? dollars : undefined,
    savedTokens: saved,
    uncounted: boundary.inSections ? 'the layout "sections" keeps no account' : isCounted ? undefined : 'the provider reports no token counts',
    receipts,
    held: await boundary.heldBack(ctx),
    lifetime: boundary.circumstances.lifetimes.chosen,
    off: boundary.off,
    store: storeLine(host.place, state),
    storeHint: state.kind === 'sqlite' ? sizeHint(await bytesOf(host.place)) : undefined,
  }
}

/** The layout in sections: active contents have their own section. */
async function inSections(manager: ContextManager, cwd: string, system: number, pinned: ReadonlySet<string>): Promise<BranchLook> {
  const view = await manager.assemble()
  const lines = new Map(
    view.metadataPool
      .split('\n')
      .map(poolLineOf)
      .map((line) => [line?.id, line]),
  )
  const parts: [string, number][] = [
    ['system prompt', system],
    ['metadata pool', view.metadataPool.length],
    ['messages', JSON.stringify(view.chat).length],
    ['active contents', view.activeContent.length],
  ]
  const outputs: Output[] = []
  for (const { id, content } of view.blocks) {
    const line = lines.get(id)
    const tool = line?.tool ?? 'file'
    const object = await manager.get(id)
    const names = new Map<string, string>()
    await learnName(manager, (object?.['args'] ?? {}) as Record<string, unknown>, cwd, names)
    const name = object === null ? tool : nameOfObject(object, cwd, names)
    const tokens = content.length / 4
    const failed = line?.status === 'fail'
    outputs.push({
      id: shortName(id),
      tool,
      name,
      form: 'full',
      tokens,
      whole: tokens,
      mayCollapse: false,
      pinned: pinned.has(id),
      failed,
      turn: 0,
      callsAgo: undefined,
    })
  }
  return { shares: parts.map(([name, size]) => ({ name, tokens: size / 4 })), outputs: outputs.reverse() }
}

/** The order of outputs: collapsed ones are last and keep their order; the others are sorted by size. */
function byForm(left: Output, right: Output): number {
  const [first, second] = [!isInWindow(left), !isInWindow(right)]
  if (first !== second) return first ? 1 : -1
  return first ? 0 : right.tokens - left.tokens
}
