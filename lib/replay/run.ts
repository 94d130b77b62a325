/** Runs a recording through policies, side by side, and meters what each would have sent. */
import { basename } from 'node:path'
import { ASKING_TOKENS, lookAgain, needsOf, readAgain, searchAgain, seen } from './again.ts'
import type { Need } from './again.ts'
import { textBlock, unitsOf } from './blocks.ts'
import type { ReplayBlock } from './blocks.ts'
import type { CacheRules } from './cache.ts'
import { Files } from './files.ts'
import type { FileEvent } from './files.ts'
import { Meter } from './missed/meter.ts'
import type { Missed, Sent } from './missed/meter.ts'
import type { OwnPhrases } from './missed/phrases.ts'
import { Managed } from './policies/managed.ts'
import type { Lifetime } from './policies/managed.ts'
import { BlockCache } from './policies/block-cache.ts'
import { Append } from './policies/conversation.ts'
import { openPolicy } from './policies/open.ts'
import type { ManagerOptions, PolicyMoment, Policy, PolicyName, Setting } from './policies/policy.ts'
import { knownPrices, promptCost, ratioPrices } from './prices.ts'
import type { Prices } from './prices.ts'
import { callsOf, isCall, isSent, modelOf } from './recording.ts'
import type { BranchStep, RecordedEntry, Format, Message, Problem, Recording } from './recording.ts'
import type { Survey } from './survey.ts'
import { Bound, Tally } from './tally.ts'
import type { ByLabel, TallyFigures, OwnFigures, RollRecord, Series } from './tally.ts'

/**
 * If one of this many latest answers named a file, the agent reads it again without searching first: of 77 recorded
 * partial reads, 49 had no search in the three answers before, most of them after another read of the same file.
 */
const ANSWERS_REMEMBERED = 3

/** How to replay. */
export interface ReplayOptions {
  policies: readonly PolicyName[]
  cache: CacheRules
  /** The same prices for every model; if undefined, each model's own. */
  prices?: Prices
  /** The context window in tokens. */
  window: number
  manager: ManagerOptions
  /** Keep the context manager's store in this file. */
  store?: string
  /** Phrases that models write on their own, learned from the sessions of one run. */
  phrases?: OwnPhrases
  /** Do not count missed uses, for runs that only need costs. */
  onlyCosts?: boolean
}

/** One session, replayed. */
export interface SessionReport {
  file: string
  /** The agent's working directory. */
  cwd: string
  /** When the first and last messages came, in milliseconds since the epoch; absent if not recorded. */
  from?: number
  to?: number
  format: Format
  /** Lines of the file that are not part of the conversation, by kind, including calls of subagents. */
  skipped: Record<string, number>
  /** Model calls of the recording, without those that another session of the run has, too. */
  calls: number
  /** Those calls: they are made, as the others are, and count nowhere. Dollars are those that were paid, answers included. */
  repeated?: { calls: number; cost: number }
  /** Calls that are no part of the conversation, such as those of subagents, and dollars that were paid for them, answers included. */
  side?: { calls: number; cost: number }
  /** Calls with a token count that was missing, could not be true, or contradicted another one; absent for none. */
  doubtful?: number
  models: string[]
  /** UTF-16 units per token in this session. */
  charsPerToken: number
  systemTokens: number
  /** The unit of `cost`. */
  unit: 'USD' | 'input tokens'
  /** Prompt tokens that the provider counted when the session was recorded. */
  recordedTokens: number
  /** The cost of the prompts when the session was recorded, in `unit`; absent unless the provider counted every call. */
  recordedCost?: number
  /** The context manager ran when the session was recorded. */
  isManaged: boolean
  /** Its savings then against plain Pi by its own account, in `unit`; only if it ran. */
  recordedSaved?: number
  policies: Partial<Record<PolicyName, TallyFigures>>
  /** For the picture. */
  details: Details
}

/** The details that the picture shows besides the figures. */
export interface Details {
  series: Partial<Record<PolicyName, Series>>
  rolls: RollRecord[]
  byLabel: Partial<Record<PolicyName, ByLabel>>
  lifetimes: Lifetime[]
}

/** Prices assumed for an unknown model: a fresh input token costs 1. */
const UNKNOWN_PRICES = ratioPrices(0.1, 1.25)

/** Replays one recording. `progress` is called with the number of calls done. */
export async function replaySession(
  recording: Recording,
  survey: Survey,
  options: ReplayOptions,
  progress: (calls: number) => void = () => {},
  report: (problem: Problem) => void = () => {},
): Promise<SessionReport> {
  const run = await Run.open(recording, survey, options)
  try {
    let calls = 0
    for await (const step of recording.steps(report)) {
      if (step.kind === 'branch') await run.branch(step)
      else if (step.kind === 'compaction') run.compaction(step)
      else if (step.kind === 'managed') run.managed(step.saved.tokens)
      else if (step.kind === 'message') {
        await run.message(step.entry)
        if (isCall(step.entry.message)) progress((calls += 1))
      }
    }
    return run.report(recording)
  } finally {
    await run.close()
  }
}

interface Lane {
  policy: Policy
  tally: Tally
}

class Run {
  readonly #survey: Survey
  readonly #options: ReplayOptions
  readonly #setting: Setting
  readonly #cache: BlockCache
  readonly #lanes: Lane[]
  /** The plain conversation, to which the others are compared; in the report only if requested. */
  readonly #plain: Append
  readonly #bound: Bound
  readonly #files = new Files()
  readonly #entries = new Map<string, RecordedEntry>()
  readonly #managed: Managed | undefined
  readonly #meter: Meter | undefined
  #at = 0
  #from = 0
  #again = 0
  /** Calls so far. */
  #number = 0
  /** The cost of the recorded prompts; undefined once a call has no count. */
  #recorded: number | undefined = 0
  /** The context manager's savings when the session was recorded: in all, and on this branch in fresh input tokens. */
  #saved = 0
  #savedHere = 0
  /** The price of a fresh input token of the newest model. */
  #price = 0
  /** The calls of the newest answers, as text. */
  #latest: string[] = []

  static async open(recording: Recording, survey: Survey, options: ReplayOptions): Promise<Run> {
    const { cwd, id } = recording.origin
    const setting: Setting = {
      sessionId: id,
      cwd,
      unitsPerToken: survey.unitsPerToken,
      systemTokens: survey.systemTokens,
      window: options.window,
      cache: options.cache,
      summaries: survey.summaries,
      manager: options.manager,
      ...(options.store !== undefined && { store: options.store }),
    }
    const cache = new BlockCache()
    const policies: Policy[] = []
    for (const name of options.policies) {
      const policy = await openPolicy(name, setting, cache)
      if (policy !== undefined) policies.push(policy)
    }
    const { vocabulary, unitsPerToken } = survey
    const meter =
      options.onlyCosts === true
        ? undefined
        : new Meter({ cwd, unitsPerToken, vocabulary, phrases: options.phrases, calls: cache.calls })
    return new Run(survey, options, setting, cache, policies, meter)
  }

  private constructor(
    survey: Survey,
    options: ReplayOptions,
    setting: Setting,
    cache: BlockCache,
    policies: Policy[],
    meter: Meter | undefined,
  ) {
    this.#survey = survey
    this.#options = options
    this.#setting = setting
    this.#cache = cache
    this.#lanes = policies.map((policy) => ({ policy, tally: new Tally(policy.name, setting) }))
    this.#plain = new Append(setting, cache)
    this.#bound = new Bound(setting.systemTokens)
    this.#managed = policies.find((policy) => policy instanceof Managed)
    this.#meter = meter
  }

  async message(entry: RecordedEntry): Promise<void> {
    const { message } = entry
    this.#at = Math.max(this.#at, entry.at)
    if (this.#from === 0) this.#from = this.#at
    this.#entries.set(entry.key, entry)
    if (isCall(message)) await this.#call(message)
    const blocks = this.#cache.of(entry)
    const file = this.#files.take(entry, this.#cache.calls)
    for (const { policy, tally } of this.#lanes) {
      if (isCall(message)) tally.answered(blocks)
      await policy.add(entry, file)
    }
    this.#plain.add(entry)
    this.#meter?.message(entry, blocks)
    if (isSent(message)) this.#bound.add(this.#tokens(blocks), this.#tokens(proseOf(blocks)))
  }

  async branch(step: BranchStep): Promise<void> {
    const path = step.keys.flatMap((key) => this.#entries.get(key) ?? [])
    for (const { policy } of this.#lanes) await policy.branch(path)
    this.#plain.branch(path)
    this.#savedHere = step.saved?.tokens ?? 0
    const { compaction } = step
    this.#meter?.branch(step, compaction === undefined ? undefined : textBlock(compaction.summary, 'summary'))
  }

  /** The recorded program compacted; the policies make their own compactions. */
  compaction({ summary, firstKept }: { summary: string; firstKept: string | undefined }): void {
    this.#meter?.compaction(firstKept, textBlock(summary, 'summary'))
  }

  /** The context manager's own account of what it had saved on this branch, in fresh input tokens. */
  managed(saved: number): void {
    this.#saved += (saved - this.#savedHere) * this.#price
    this.#savedHere = saved
  }

  async close(): Promise<void> {
    for (const { policy } of this.#lanes) await policy.close?.()
  }

  report({ file, origin, skipped }: Recording): SessionReport {
    const { repeated, repeatedCost, side, doubtful } = this.#survey
    const figures: Partial<Record<PolicyName, TallyFigures>> = {}
    const series: Details['series'] = {}
    const byLabel: Details['byLabel'] = {}
    const piCost = this.#lanes.find(({ policy }) => policy.name === 'pi')?.tally.figures().cost
    const versus = (cost: number): number => (piCost === undefined || piCost === 0 ? Number.NaN : cost / piCost)
    for (const { policy, tally } of this.#lanes) {
      const own = tally.figures(policy === this.#managed ? this.#managed.answeredReads : 0)
      figures[policy.name] = this.#complete(own, this.#meter?.missed(policy.name), versus)
      series[policy.name] = tally.series
      byLabel[policy.name] = tally.byLabel
    }
    if (this.#options.policies.includes('bound')) {
      const own = this.#bound.figures()
      figures.bound = this.#complete(own, undefined, versus)
      series.bound = this.#bound.series
    }
    return {
      file,
      cwd: origin.cwd,
      ...(this.#at > 0 && { from: this.#from, to: this.#at }),
      format: origin.format,
      skipped: Object.fromEntries(skipped),
      calls: this.#survey.calls,
      ...(repeated.size > 0 && { repeated: { calls: repeated.size, cost: repeatedCost } }),
      ...(side.calls > 0 && { side }),
      ...(doubtful > 0 && { doubtful }),
      models: this.#survey.models,
      charsPerToken: this.#survey.unitsPerToken,
      systemTokens: this.#survey.systemTokens,
      unit: this.#unit(),
      recordedTokens: this.#survey.recordedTokens,
      ...(this.#recorded !== undefined && { recordedCost: this.#recorded }),
      isManaged: this.#survey.isManaged,
      ...(this.#survey.isManaged && { recordedSaved: this.#saved }),
      policies: figures,
      details: {
        series,
        byLabel,
        rolls: this.#lanes.find(({ policy }) => policy === this.#managed)?.tally.rolls ?? [],
        lifetimes: [...(this.#managed?.lifetimes.values() ?? [])],
      },
    }
  }

  #complete(own: OwnFigures, missed: Missed | undefined, versus: (cost: number) => number): TallyFigures {
    const rate = (uses: number): number => (100 * uses) / this.#survey.calls
    const fetchCost = missed?.fetchCost ?? Number.NaN
    const figures = {
      ...own,
      costVsPi: versus(own.cost),
      missed: missed === undefined ? Number.NaN : rate(missed.uses.toolText.all),
      missedStrong: missed === undefined ? Number.NaN : rate(missed.uses.toolText.strong),
      missedHarm: missed === undefined ? Number.NaN : rate(missed.uses.probableHarm),
      fetchCost,
      costVsPiFetched: versus(own.cost + fetchCost),
    }
    return missed === undefined ? figures : { ...figures, missedUses: missed.uses }
  }

  async #call(message: Message): Promise<void> {
    const isRepeated = this.#survey.repeated.has(this.#number)
    this.#number += 1
    const moment: PolicyMoment = { at: this.#at, model: modelOf(message), prices: this.#prices(message), ...(isRepeated && { isRepeated }) }
    this.#bound.call(this.#setting.systemTokens, moment)
    const paid = isRepeated ? 0 : promptCost(message, moment.prices, this.#options.prices !== undefined)
    this.#price = moment.prices.input / 1_000_000
    this.#recorded = paid === undefined || this.#recorded === undefined ? undefined : this.#recorded + paid
    const needs = needsOf(message)
    const plain = needs.length === 0 ? [] : this.#plain.request(moment).blocks
    const sent: Sent[] = []
    for (const lane of this.#lanes) {
      const request = await lane.policy.request(moment)
      lane.tally.send(request, moment)
      let { blocks } = request
      for (const need of needs) blocks = (await this.#fetch(lane, need, plain, request.blocks, moment)) ?? blocks
      sent.push({ name: lane.policy.name, blocks, prices: moment.prices })
    }
    if (!isRepeated) this.#meter?.answer(message, sent)
    this.#latest = [...this.#latest, JSON.stringify(callsOf(message))].slice(-ANSWERS_REMEMBERED)
  }

  /**
   * Lets the agent read a file again if the policy no longer shows what the plain conversation shows. Returns what is
   * sent after that; undefined if nothing was read.
   */
  async #fetch(
    lane: Lane,
    need: Need,
    plain: readonly ReplayBlock[],
    shown: readonly ReplayBlock[],
    moment: PolicyMoment,
  ): Promise<readonly ReplayBlock[] | undefined> {
    const tagged = seen(plain, need, false)
    const anywhere = tagged.size === 0 || lane.policy.untagged === true
    const possible = tagged.size > 0 ? tagged : seen(plain, need, true)
    const visible = seen(shown, need, anywhere)
    const missing = [...possible].filter((text) => !visible.has(text))
    if (missing.length === 0) return undefined
    const again = lookAgain(plain, { path: need.path, texts: missing }, this.#files)
    if (again === undefined) return undefined
    this.#again += 1
    const name = basename(need.path)
    if (again.found !== undefined && !this.#latest.some((calls) => calls.includes(name))) {
      await this.#ask(lane, searchAgain(need.path, again.found, this.#again, moment.at), undefined, moment)
    }
    if (moment.isRepeated !== true) lane.tally.rereads += 1
    return this.#ask(lane, readAgain(need.path, again, this.#again, moment.at), again.file, moment)
  }

  /** A call that is not in the recording: an answer asks for something and gets it. Returns what is sent then. */
  async #ask(
    lane: Lane,
    [answer, result]: readonly [RecordedEntry, RecordedEntry],
    file: FileEvent | undefined,
    moment: PolicyMoment,
  ): Promise<readonly ReplayBlock[]> {
    this.#cache.of(answer)
    await lane.policy.add(answer, undefined)
    await lane.policy.add(result, file)
    const request = await lane.policy.request(moment)
    lane.tally.sendAgain(request, moment, ASKING_TOKENS)
    return request.blocks
  }

  #tokens(blocks: readonly ReplayBlock[]): number {
    return unitsOf(blocks) / this.#setting.unitsPerToken
  }

  #prices(message: Message): Prices {
    const { prices, cache } = this.#options
    if (prices !== undefined) return prices
    const model = modelOf(message)
    const known = knownPrices(model)
    const own = { ...known, ...(this.#survey.prices.get(model) ?? known ?? UNKNOWN_PRICES) }
    return cache.write === undefined ? own : { ...own, cacheWrite: cache.write * own.input }
  }

  #unit(): 'USD' | 'input tokens' {
    if (this.#options.prices !== undefined) return 'input tokens'
    const known = this.#survey.models.every((m) => this.#survey.prices.has(m) || knownPrices(m) !== undefined)
    return known ? 'USD' : 'input tokens'
  }
}

function proseOf(blocks: readonly ReplayBlock[]): ReplayBlock[] {
  return blocks.filter(
    ({ label }) => label === 'answer' || label === 'thinking' || label === 'user' || label === 'summary',
  )
}
