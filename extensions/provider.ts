/** Facts that Pi knows about the provider of a session: the model that really answers, its cache, and the bill. */
import type { ExtensionContext, SessionEntry } from '@earendil-works/pi-coding-agent'
import { entriesAfter, entriesBack } from './messages.ts'
import type { SessionTree } from './messages.ts'

/** The API name of models that route each request to another one. */
const VIRTUAL_API = 'pi-virtual'

/** An entry of newer versions of Pi for requests that no message shows, such as those that keep a cache warm. */
interface UsageEntry {
  type: 'usage'
  kind: string
  usage: PricedUsage
}

/** The tokens and costs that a provider reports for a request. */
export interface PricedUsage {
  input: number
  output: number
  cacheRead: number
  cacheWrite: number
  cost: { input: number; output: number; cacheRead: number; cacheWrite: number; total: number; totalFromProvider?: boolean }
}

/** The last answer of a branch. */
interface LastAnswer {
  /** The provider that gave it. */
  provider: string
  model: string
  /** When it was requested, in milliseconds since the epoch. */
  atMs: number
  /** Dollars charged per dollar of the catalogue price, if the provider reports what it charges; otherwise 1. */
  perCatalogueDollar: number
  /** When Pi last refreshed its prompt in the provider's cache since then; undefined if it did not. */
  warmedMs: number | undefined
}

/** Finds the last answer of a provider, starting at the leaf. */
export function lastAnswer(branch: SessionTree): LastAnswer | undefined {
  let warmedMs: number | undefined
  for (const entry of entriesBack(branch)) {
    if (isUsage(entry) && entry.kind === 'cache_warm') warmedMs ??= Date.parse(entry.timestamp)
    if (entry.type === 'message' && entry.message.role === 'assistant') {
      const { provider, model, timestamp, stopReason, usage } = entry.message
      if (stopReason !== 'error' && stopReason !== 'aborted')
        return { provider, model, atMs: timestamp, perCatalogueDollar: perCatalogueDollar(usage as Partial<PricedUsage> | undefined), warmedMs }
    }
  }
  return undefined
}

/** When a model has answered before one of its answers, in milliseconds since the epoch; undefined if that was its first one. */
export function answeredBefore(
  branch: SessionTree,
  { provider, model, timestamp }: { provider: string; model: string; timestamp: number },
): number | undefined {
  for (const entry of entriesBack(branch)) {
    if (entry.type === 'message' && entry.message.role === 'assistant') {
      const { message: said } = entry
      const isFailed = said.stopReason === 'error' || said.stopReason === 'aborted'
      if (said.provider === provider && said.model === model && said.timestamp < timestamp && !isFailed) return said.timestamp
    }
  }
  return undefined
}

/**
 * The model whose prices and cache apply to the next request. For a model that routes its requests, the one that
 * answered last.
 */
export function physicalModel(ctx: ExtensionContext, last: LastAnswer | undefined): ExtensionContext['model'] {
  const { model } = ctx
  if (model === undefined || !isVirtual(model) || last === undefined) return model
  return ctx.modelRegistry.find(last.provider, last.model) ?? model
}

/** The same for the branch that is current. */
export function answeringModel(ctx: ExtensionContext): ExtensionContext['model'] {
  return isVirtual(ctx.model) ? physicalModel(ctx, lastAnswer(ctx.sessionManager)) : ctx.model
}

/**
 * The models that may get the next request and have answered on the branch: for a model that routes its requests all that have, else
 * the one that is chosen.
 */
export function possibleModels(ctx: ExtensionContext): NonNullable<ExtensionContext['model']>[] {
  const { model } = ctx
  if (!isVirtual(model)) return model === undefined ? [] : [model]
  return [...answeredOn(ctx.sessionManager).values()].flatMap(([provider, name]) => ctx.modelRegistry.find(provider, name) ?? [])
}

/** Providers and names of the models that have answered on a branch, by both. */
type Answering = ReadonlyMap<string, readonly [provider: string, name: string]>

/** The models found on the branch that a session was on last, and its last entry then. */
const walked = new WeakMap<SessionTree, { last: string | null; found: Answering }>()

/** The models that have answered on a session's branch. Costs what is new on it; on another branch, all of it. */
function answeredOn(branch: SessionTree): Answering {
  const before = walked.get(branch)
  const added = before === undefined ? undefined : entriesAfter(branch, before.last)
  const found = new Map(added === undefined ? [] : before?.found)
  for (const entry of added ?? entriesBack(branch)) {
    if (entry.type !== 'message' || entry.message.role !== 'assistant') continue
    const { provider, model } = entry.message
    found.set(`${provider}/${model}`, [provider, model])
  }
  walked.set(branch, { last: branch.getLeafId(), found })
  return found
}

function isVirtual(model: ExtensionContext['model']): boolean {
  return (model?.api as string | undefined) === VIRTUAL_API
}

/** True if the model is paid by a plan at a flat rate, so that tokens count and not dollars. */
export function isOnPlan({ modelRegistry }: Pick<ExtensionContext, 'modelRegistry'>, model: ExtensionContext['model']): boolean {
  // Earlier versions of Pi do not tell.
  return model !== undefined && (modelRegistry as Partial<typeof modelRegistry> | undefined)?.isUsingOAuth?.(model) === true
}

/** Dollars charged for an answer per dollar of the catalogue price, if its provider reports what it charges; otherwise 1. */
export function perCatalogueDollar(usage: Partial<Pick<PricedUsage, 'cost'>> | undefined): number {
  if (usage?.cost?.totalFromProvider !== true) return 1
  const { total, input, output, cacheRead, cacheWrite } = usage.cost
  const listed = input + output + cacheRead + cacheWrite
  return listed > 0 ? total / listed : 1
}

/** The cost of a branch. */
interface Bill {
  /** In dollars. */
  cost: number
  /** The whole amount was reported as charged by providers, and none of it is estimated from a price catalogue. */
  isBilled: boolean
  /** The charge per dollar of the catalogue price, if providers report what they charge; otherwise 1. */
  perCatalogueDollar: number
  /** Share of the last prompt that the provider read from its cache, 0 to 1; undefined before the first answer. */
  cachedShare: number | undefined
}

/** Adds up what providers reported on a branch: for answers, summaries, tools, and requests that keep a cache warm. */
export function billOf(entries: readonly SessionEntry[]): Bill {
  let [cost, estimated, charged, listed] = [0, 0, 0, 0]
  let cachedShare: number | undefined
  for (const entry of entries) {
    const usage = usageOf(entry)
    if (usage === undefined) continue
    const { total, totalFromProvider, ...parts } = usage.cost
    cost += total
    if (totalFromProvider === true) {
      charged += total
      listed += parts.input + parts.output + parts.cacheRead + parts.cacheWrite
    } else estimated += total
    if (entry.type !== 'message' || entry.message.role !== 'assistant') continue
    const prompt = usage.input + usage.cacheRead + usage.cacheWrite
    if (prompt > 0) cachedShare = usage.cacheRead / prompt
  }
  const isBilled = charged > 0 && estimated === 0
  return { cost, isBilled, perCatalogueDollar: listed > 0 ? charged / listed : 1, cachedShare }
}

function usageOf(entry: SessionEntry): PricedUsage | undefined {
  if (isUsage(entry)) return entry.usage
  const holder = entry.type === 'message' ? entry.message : entry
  return (holder as { usage?: PricedUsage }).usage
}

function isUsage<E extends { type: string }>(entry: E): entry is E & UsageEntry {
  return entry.type === 'usage'
}
