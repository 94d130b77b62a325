/**
 * A first pass over a recording: the number of calls, the session's characters per token, and the quotes and names in
 * its answers.
 *
 * Providers report the token count of each request. A line is fitted through those counts, over the characters of the
 * requests that were actually sent. Its slope gives the session's characters per token; its intercept gives the size
 * of the system part, which older recordings do not contain.
 */
import { blocksOf, callIn, Calls, costOf, isCall, isFirst, mended, modelOf, SavedSteps, unitsOf } from '../recordings/index.ts'
import { BetweenCalls, CacheRecord } from './record.ts'
import { Reader } from './missed/answer.ts'
import { Vocabulary } from './missed/vocabulary.ts'
import type { Charged, Message, PaidCall, Prices, PricesByModel, Problem, Recording, Saved } from '../recordings/index.ts'
import { PlanSums } from './plan-calls.ts'
import type { NotedCall, PlanCalls } from './plan-calls.ts'
import { RecordedRequest } from './sent.ts'
import { Sizes } from './sizes.ts'

/** The findings of the first pass. */
export interface Survey {
  /** Answers that were asked for, without those that another session also has. */
  calls: number
  /** Their numbers among all answers that were asked for, counted from 0; undefined for none. */
  repeated: ReadonlySet<number>
  /** The provider's reports of its cache. */
  record: CacheRecord
  /** The sizes of single messages by the provider's counts. */
  sizes: Sizes
  /** Dollars that those calls cost, as far as it is known. */
  repeatedCost: number
  /** Calls that are no part of the conversation, and dollars that they cost, as far as it is known. */
  side: { calls: number; cost: number }
  /** Calls with a count that was missing, could not be true, or contradicted another one. */
  doubtful: number
  /** UTF-16 units per token. */
  unitsPerToken: number
  /** Tokens of the system prompt and the tool declarations. */
  systemTokens: number
  /** The user has set one of these two, so that they are not those of the session. */
  isScaled?: boolean
  /** The prices that the recorder noted, by model. */
  prices: Map<string, Prices>
  /** The models that answered, most calls first. */
  models: string[]
  /** Summaries of the recorded compactions. */
  summaries: string[]
  /** Tokens that the provider counted over all calls; 0 where it reported nothing. */
  recordedTokens: number
  /** The quotes and names in the answers that could be recognised elsewhere. */
  vocabulary: Vocabulary
  /** The context manager ran in the recorded session. */
  isManaged: boolean
  /** Its savings then, by its own account. */
  saved: Saved
  /** Calls on a plan at a flat rate, those outside the conversation too; undefined for none. */
  plan?: PlanCalls
  /** It ran in the gateway: the file has the agent's own messages, and counts of what was sent in their place. */
  isThroughGateway: boolean
}

/** For a first pass, which asks for no costs. */
const NO_PRICES = { input: 0, cacheRead: 0, cacheWrite: 0 }

/** Assumed if a recording has no usage. */
const DEFAULT_UNITS_PER_TOKEN = 2.8
const DEFAULT_SYSTEM_TOKENS = 3000

/** Says what a gateway has noted of a call; undefined for one that did not go through it. */
export type ThroughGateway = (call: PaidCall) => NotedCall | undefined

/** Reads a recording once. Calls under a name in `charged` are repeated ones; the names of the others are added. */
export async function survey(
  recording: Recording,
  report: (problem: Problem) => void,
  charged: Charged = new Set(),
  throughGateway: ThroughGateway = () => undefined,
  given?: PricesByModel,
): Promise<Survey> {
  const points: Point[] = []
  const prices = new Map<string, Prices>()
  const models = new Map<string, number>()
  const summaries: string[] = []
  const calls = new Calls()
  const request = new RecordedRequest(calls)
  const vocabulary = new Vocabulary()
  const reader = new Reader(vocabulary, recording.origin.cwd)
  const repeated = new Set<number>()
  const side = { calls: 0, cost: 0 }
  let [count, repeatedCost, doubtful] = [0, 0, 0]
  const record = new CacheRecord()
  const between = new BetweenCalls()
  const sizes = new Sizes(recording.origin.format === 'claude-code')
  const savings = new SavedSteps()
  const saved: Saved = { tokens: 0, dollars: 0 }
  const plan = new PlanSums()
  let [isManaged, isThroughGateway] = [false, false]
  let recordedTokens = 0
  for await (const step of recording.steps(report)) {
    const call = callIn(step, recording.file)
    const before = between.take(step)
    if (before !== undefined && call !== undefined) record.take(call.usage, { ...before, model: call.model }, NO_PRICES)
    if (step.kind === 'compaction' && step.firstKept === undefined)
      sizes.summarized(step.summary, unitsOf(blocksOf({ key: '', message: { role: 'compactionSummary', summary: step.summary } }, calls)))
    else if (step.kind === 'branch' || step.kind === 'compaction' || step.kind === 'edit') sizes.change()
    const isNew = call === undefined || isFirst(charged, call.names)
    if (call !== undefined && !isNew) repeatedCost += costOf(call, given) ?? 0
    if (call?.usage?.isDoubtful === true && isNew) doubtful += 1
    const passed = call === undefined ? undefined : throughGateway(call)
    if (passed?.saved !== undefined) isManaged = isThroughGateway = true
    if (call !== undefined && isNew) plan.call(call, passed?.plan)
    const gained = isNew ? (passed?.saved ?? savings.take(step, charged)) : undefined
    if (step.kind === 'managed' || step.kind === 'off') plan.account(gained?.plan)
    saved.tokens += gained?.tokens ?? 0
    saved.dollars += gained?.dollars ?? 0
    if (step.kind === 'side') {
      if (isNew) side.calls += 1
      if (isNew) side.cost += costOf(step, given) ?? 0
    } else if (step.kind === 'branch') request.branch(step)
    else if (step.kind === 'compaction') {
      summaries.push(step.summary)
      request.compaction(step.summary, step.firstKept)
    } else if (step.kind === 'edit') request.edit(step.key, step.content)
    else if (step.kind === 'managed') isManaged = true
    else if (step.kind === 'message') {
      const { message } = step.entry
      if (isCall(message)) {
        if (!isNew) repeated.add(count)
        count += 1
        reader.learn(message)
        const model = modelOf(message)
        models.set(model, (models.get(model) ?? 0) + 1)
        const tokens = promptTokens(message)
        sizes.call(tokens, message.usage?.cacheRead ?? 0)
        if (tokens > 0) points.push({ units: request.units, tokens })
        if (isNew) recordedTokens += tokens
        const noted = notedPrices(message)
        if (noted !== undefined) merge(prices, model, noted)
      }
      calls.add(message)
      sizes.add(step.entry.key, request.add(step.entry))
    }
  }
  for (const [model, noted] of prices) {
    if (noted.input > 0) prices.set(model, mended(noted))
    else prices.delete(model)
  }
  const byCalls = [...models].sort((left, right) => right[1] - left[1]).map(([model]) => model)
  return {
    calls: count - repeated.size,
    repeated,
    record,
    sizes,
    repeatedCost,
    side,
    doubtful,
    ...fit(isThroughGateway ? points.slice(0, 1) : points),
    prices,
    models: byCalls,
    summaries,
    recordedTokens,
    vocabulary,
    isManaged,
    saved,
    isThroughGateway,
    ...(plan.sums.calls > 0 && { plan: plan.sums }),
  }
}

interface Point {
  units: number
  tokens: number
}

/** The line through the points, by least squares; its intercept is kept between 0 and the smallest request. */
export function fit(points: readonly Point[]): { unitsPerToken: number; systemTokens: number } {
  const n = points.length
  const assumed = { unitsPerToken: DEFAULT_UNITS_PER_TOKEN, systemTokens: DEFAULT_SYSTEM_TOKENS }
  if (n === 0) return assumed
  const smallest = Math.min(...points.map((point) => point.tokens))
  const meanX = points.reduce((sum, point) => sum + point.units, 0) / n
  const meanY = points.reduce((sum, point) => sum + point.tokens, 0) / n
  let xx = 0
  let xy = 0
  for (const { units, tokens } of points) {
    xx += (units - meanX) ** 2
    xy += (units - meanX) * (tokens - meanY)
  }
  const slope = xx > 0 ? xy / xx : 0
  // Texts have 1 to 8 characters per token; a line outside that range does not describe the text.
  if (!(slope > 1 / 8 && slope < 1)) {
    const system = meanY - meanX / DEFAULT_UNITS_PER_TOKEN
    return { ...assumed, systemTokens: Math.round(Math.min(smallest, Math.max(0, system))) }
  }
  const start = meanY - slope * meanX
  if (start >= 0 && start <= smallest) return { unitsPerToken: 1 / slope, systemTokens: Math.round(start) }
  // With the intercept fixed, the slope is that of the line through the intercept and the mean.
  const system = start < 0 ? 0 : smallest
  const rest = (meanY - system) / Math.max(1, meanX)
  return { unitsPerToken: 1 / Math.min(1, Math.max(1 / 8, rest)), systemTokens: Math.round(system) }
}

function promptTokens({ usage }: Message): number {
  return usage === undefined ? 0 : (usage.input ?? 0) + (usage.cacheRead ?? 0) + (usage.cacheWrite ?? 0)
}

function notedPrices({ usage }: Message): Prices | undefined {
  const cost = usage?.cost
  if (usage === undefined || cost === undefined) return undefined
  const price = (dollars: number | undefined, tokens: number): number =>
    tokens > 0 && dollars !== undefined && dollars > 0 ? (dollars / tokens) * 1_000_000 : 0
  return {
    input: price(cost.input, usage.input),
    output: price(cost.output, usage.output),
    cacheRead: price(cost.cacheRead, usage.cacheRead),
    cacheWrite: price(cost.cacheWrite, usage.cacheWrite),
  }
}

function merge(prices: Map<string, Prices>, model: string, noted: Prices): void {
  const known = prices.get(model) ?? { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }
  for (const name of ['input', 'output', 'cacheRead', 'cacheWrite'] as const) {
    if (known[name] === 0) known[name] = noted[name]
  }
  prices.set(model, known)
}
