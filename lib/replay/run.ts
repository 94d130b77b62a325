/** Runs a recording through policies, side by side, and meters what each would have sent. */
import { basename } from 'node:path'
import { ASKING_TOKENS, lookAgain, needsOf, readAgain, searchAgain, seen } from './again.ts'
import type { Need } from './again.ts'
import { callsOf, Files, isCall, isSent, modelOf, promptCost, textBlock, unitsOf } from '../recordings/index.ts'
import type { BranchStep, EditStep, FileEvent, Message, Problem, RecordedEntry, Recording, ReplayBlock, Step } from '../recordings/index.ts'
import { choicesIn, costOf, momentIn, openLanes, plainCost } from './lanes.ts'
import type { Lane } from './lanes.ts'
import { Meter } from './missed/meter.ts'
import type { Missed, Sent } from './missed/meter.ts'
import { Managed } from './policies/managed.ts'
import { BlockCache } from './policies/block-cache.ts'
import { Append } from './policies/conversation.ts'
import { Recorded } from './policies/recorded.ts'
import type { PolicyMoment, Policy, PolicyName, PolicyRequest, Setting } from './policies/policy.ts'
import { BetweenCalls, CacheRecord } from './record.ts'
import type { Before } from './record.ts'
import { isOnPlan } from './plan-calls.ts'
import { aboveBound, crossingOf } from './prefixes.ts'
import { Regime } from './regime.ts'
import type { Details, ReplayOptions, SessionReport } from './report.ts'
import type { Survey } from './survey.ts'
import { Bound } from './tally.ts'
import type { TallyFigures, OwnFigures } from './tally.ts'

export type { ReplayOptions, SessionReport } from './report.ts'

/**
 * If one of this many latest answers named a file, the agent reads it again without searching first: of 77 recorded
 * partial reads, 49 had no search in the three answers before, most of them after another read of the same file.
 */
const ANSWERS_REMEMBERED = 3

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
      const before = run.before(step)
      if (step.kind === 'branch') await run.branch(step)
      else if (step.kind === 'compaction') run.compaction(step)
      else if (step.kind === 'edit') run.edit(step)
      else if (step.kind === 'message') {
        await run.message(step.entry, before)
        if (isCall(step.entry.message)) progress((calls += 1))
      }
    }
    return run.report(recording)
  } finally {
    await run.close()
  }
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
  readonly #regime: Regime
  readonly #record = new CacheRecord()
  readonly #between = new BetweenCalls()
  /** The recorded requests, and the blocks of the latest one: a change of earlier messages tells by them what stays. */
  readonly #sent: Recorded
  #sentBefore: readonly ReplayBlock[] = []
  readonly #files = new Files()
  readonly #entries = new Map<string, RecordedEntry>()
  readonly #managed: Managed | undefined
  readonly #meter: Meter | undefined
  #at = 0
  #from = 0
  #again = 0
  /** Calls so far. */
  #number = 0
  /** The cost of the recorded prompts and answers, and how many calls have no count. */
  readonly #paid = { cost: 0, answers: 0, uncounted: 0 }
  /** The price of a fresh input token of the newest model. */
  #price = 0
  /** The calls of the newest answers, as text. */
  #latest: string[] = []

  static async open(recording: Recording, survey: Survey, options: ReplayOptions): Promise<Run> {
    const { cwd, id } = recording.origin
    const regime = new Regime(options, survey)
    const setting: Setting = {
      sessionId: isSessionId(id) ? id : 'unknown',
      cwd,
      unitsPerToken: survey.unitsPerToken,
      systemTokens: regime.sized.systemTokens ?? survey.systemTokens,
      window: regime.window,
      cache: regime.cache,
      ...(regime.kept !== undefined && { kept: regime.kept }),
      summaries: survey.summaries,
      manager: options.manager,
      ...(options.store !== undefined && { store: options.store }),
    }
    const cache = new BlockCache(regime.sized.factors)
    const lanes = await openLanes(options.policies, regime, setting, cache)
    const { vocabulary, unitsPerToken } = survey
    const { phrases, onMissed } = options
    const meter = options.onlyCosts === true ? undefined : new Meter({ cwd, unitsPerToken, vocabulary, phrases, onMissed, calls: cache.calls })
    return new Run(survey, options, regime, setting, cache, lanes, meter)
  }

  private constructor(survey: Survey, options: ReplayOptions, regime: Regime, setting: Setting, cache: BlockCache, lanes: Lane[], meter: Meter | undefined) {
    this.#survey = survey
    this.#options = options
    this.#regime = regime
    this.#setting = setting
    this.#cache = cache
    this.#lanes = lanes
    this.#plain = new Append(setting, cache)
    this.#sent = new Recorded(setting, cache)
    this.#bound = new Bound(setting.systemTokens)
    const managed = lanes.find(({ policy }) => policy.name === 'pi-context-manager')?.policy
    this.#managed = managed instanceof Managed ? managed : undefined
    this.#meter = meter
  }

  /** Returns what stood before a call. */
  before(step: Step): Omit<Before, 'model'> | undefined {
    return this.#between.take(step)
  }

  async message(entry: RecordedEntry, before: Omit<Before, 'model'> | undefined): Promise<void> {
    const { message } = entry
    this.#at = Math.max(this.#at, entry.at)
    if (this.#from === 0) this.#from = this.#at
    this.#entries.set(entry.key, entry)
    if (before !== undefined) await this.#call(message, before)
    const blocks = this.#cache.of(entry)
    const file = this.#files.take(entry, this.#cache.calls)
    for (const { policy, tally } of this.#lanes) {
      if (isCall(message)) tally.answered(blocks)
      await policy.add(entry, file)
    }
    this.#plain.add(entry)
    this.#sent.add(entry)
    this.#meter?.message(entry, blocks)
    if (isSent(message)) this.#bound.add(this.#tokens(blocks), this.#tokens(proseOf(blocks)))
  }

  async branch(step: BranchStep): Promise<void> {
    const path = step.keys.flatMap((key) => this.#entries.get(key) ?? [])
    for (const { policy } of this.#lanes) await policy.branch(path, step)
    this.#plain.branch(path, step)
    this.#sent.branch(path, step)
    const { compaction } = step
    this.#meter?.branch(step, compaction === undefined ? undefined : textBlock(compaction.summary, 'summary'))
  }

  /** The recorded program compacted; all policies but `recorded` make their own compactions. */
  compaction({ summary, firstKept }: { summary: string; firstKept: string | undefined }): void {
    for (const { policy } of this.#lanes) policy.compacted?.(summary, firstKept)
    this.#sent.compacted(summary, firstKept)
    this.#meter?.compaction(firstKept, textBlock(summary, 'summary'))
  }

  /** The recorded program showed a message in another form. */
  edit(step: EditStep): void {
    for (const { policy } of this.#lanes) policy.edited?.(step)
    this.#sent.edited(step)
  }

  async close(): Promise<void> {
    for (const { policy } of this.#lanes) await policy.close?.()
  }

  report({ file, origin, skipped }: Recording): SessionReport {
    const { repeated, repeatedCost, side, doubtful, record, plan: onPlan } = this.#survey
    const figures: Partial<Record<PolicyName, TallyFigures>> = {}
    const series: Details['series'] = {}
    const byLabel: Details['byLabel'] = {}
    const piCost = costOf(this.#lanes, 'pi')
    const plain = plainCost(this.#lanes, this.#survey.isManaged)
    const versus = (cost: number): number => (piCost === undefined || piCost === 0 ? Number.NaN : cost / piCost)
    for (const { policy, tally } of this.#lanes) {
      const own = tally.figures(policy instanceof Managed ? policy.answeredReads : 0)
      figures[policy.name] = this.#complete(own, this.#meter?.missed(policy.name), versus, plain)
      series[policy.name] = tally.series
      byLabel[policy.name] = tally.byLabel
    }
    if (this.#options.policies.includes('bound')) {
      const own = this.#bound.figures()
      figures.bound = this.#complete(own, undefined, versus, plain)
      series.bound = this.#bound.series
    }
    const chosen = choicesIn(this.#lanes)
    const isPlan = isOnPlan({ plan: onPlan, calls: this.#survey.calls, side })
    const [crossing, bound] = [crossingOf(series), aboveBound(series, this.#price)]
    return {
      file,
      id: origin.id,
      cwd: origin.cwd,
      ...(this.#at > 0 && { from: this.#from, to: this.#at }),
      format: origin.format,
      skipped: Object.fromEntries(skipped),
      calls: this.#survey.calls,
      ...(repeated.size > 0 && { repeated: { calls: repeated.size, cost: repeatedCost } }),
      ...(side.calls > 0 && { side: isPlan ? { calls: side.calls, cost: 0 } : side }),
      ...(doubtful > 0 && { doubtful }),
      models: this.#survey.models,
      charsPerToken: this.#survey.unitsPerToken,
      systemTokens: this.#setting.systemTokens,
      unit: this.#regime.unit,
      recordedTokens: this.#survey.recordedTokens,
      ...(this.#paid.uncounted === 0 && { recordedCost: this.#paid.cost }),
      ...(this.#paid.uncounted < this.#survey.calls && { paid: this.#paid }),
      regime: {
        from: this.#regime.hasLosses ? 'record' : 'options',
        cache: this.#regime.cache.name,
        ...(record.lifetime !== undefined && { lifetime: record.lifetime }),
        lifetimeMs: this.#regime.cache.lifetimeMs,
        window: this.#regime.window,
        losses: record.isKnown ? this.#record.losses : [],
      },
      isManaged: this.#survey.isManaged,
      ...(this.#survey.isManaged && { recordedSaved: this.#regime.unit === 'USD' ? this.#survey.saved.dollars : this.#survey.saved.tokens * this.#price }),
      ...(onPlan !== undefined && { plan: onPlan }),
      policies: figures,
      ...(crossing !== undefined && { crossing }),
      ...(bound !== undefined && { bound }),
      ...(chosen !== undefined && { chosen }),
      details: {
        series,
        byLabel,
        rolls: this.#lanes.find(({ policy }) => policy === this.#managed)?.tally.rolls ?? [],
        lifetimes: [...(this.#managed?.lifetimes.values() ?? [])],
      },
    }
  }

  #complete(own: OwnFigures, missed: Missed | undefined, versus: (cost: number) => number, plain: number): TallyFigures {
    const rate = (uses: number): number => (100 * uses) / this.#survey.calls
    const fetchCost = missed?.fetchCost ?? Number.NaN
    const figures = {
      ...own,
      costVsPi: versus(own.cost),
      ...(plain > 0 && { costVsPlain: own.cost / plain }),
      missed: missed === undefined ? Number.NaN : rate(missed.uses.toolText.all),
      missedStrong: missed === undefined ? Number.NaN : rate(missed.uses.toolText.strong),
      missedHarm: missed === undefined ? Number.NaN : rate(missed.uses.probableHarm),
      fetchCost,
      costVsPiFetched: versus(own.cost + fetchCost),
    }
    return missed === undefined ? figures : { ...figures, missedUses: missed.uses }
  }

  async #call(message: Message, before: Omit<Before, 'model'>): Promise<void> {
    const isRepeated = this.#survey.repeated.has(this.#number)
    const left = this.#regime.sized.clearings.get(this.#number)
    if (left !== undefined) for (const policy of [this.#sent, ...this.#lanes.map((lane) => lane.policy)] as Policy[]) policy.cleared?.(left)
    this.#number += 1
    const model = modelOf(message)
    const isChanged = before.isChanged || left !== undefined
    const keptTokens = this.#keptTokens(isChanged)
    const call = this.#record.take(message.usage, { ...before, isChanged, model, ...(keptTokens !== undefined && { keptTokens }) }, this.#regime.usual(model))
    const [prices, record] = [this.#regime.prices(model, call), this.#regime.recordOf(call)]
    const moment: PolicyMoment = { at: this.#at, model, prices, ...(isRepeated && { isRepeated }), ...(record !== undefined && { record }) }
    this.#bound.call(this.#setting.systemTokens, moment)
    const paid = isRepeated ? 0 : promptCost(message, this.#regime.pricesOfCounts(model, prices), this.#regime.isWriteGiven)
    this.#price = moment.prices.input / 1_000_000
    if (paid === undefined) this.#paid.uncounted += 1
    if (paid !== undefined && !isRepeated) {
      const bill = this.#regime.billOf({ usage: message.usage, model }, paid, moment.prices)
      // A recorder may note a smaller cost than its counts have.
      this.#paid.cost += Math.min(paid, bill)
      this.#paid.answers += Math.max(0, bill - paid)
    }
    const needs = needsOf(message)
    const plain = needs.length === 0 ? [] : this.#plain.request(moment).blocks
    const sent: Sent[] = []
    const requests: PolicyRequest[] = []
    const plainSoFar = plainCost(this.#lanes, this.#survey.isManaged)
    for (const lane of this.#lanes) {
      const own = momentIn(lane, moment, this.#setting, plainSoFar)
      const request = await lane.policy.request(own)
      lane.tally.send(request, own)
      requests.push({ name: lane.policy.name, blocks: request.blocks })
      let { blocks } = request
      for (const need of needs) blocks = (await this.#fetch(lane, need, plain, request.blocks, own)) ?? blocks
      sent.push({ name: lane.policy.name, blocks, prices: own.prices })
    }
    if (!isRepeated) this.#meter?.answer(message, sent)
    this.#options.onCall?.(message, requests)
    this.#latest = [...this.#latest, JSON.stringify(callsOf(message))].slice(-ANSWERS_REMEMBERED)
  }

  /** The part of the latest recorded request with which the next one begins, in tokens; undefined if nothing has changed since. */
  #keptTokens(isChanged: boolean): number | undefined {
    const before = this.#sentBefore
    const now = this.#sent.blocks
    this.#sentBefore = now
    if (!isChanged) return undefined
    const end = now.findIndex((block, at) => block !== before[at])
    return this.#tokens(end < 0 ? now : now.slice(0, end))
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
}

function proseOf(blocks: readonly ReplayBlock[]): ReplayBlock[] {
  return blocks.filter(({ label }) => label === 'answer' || label === 'thinking' || label === 'user' || label === 'summary')
}

/** True if the store takes a text as the ID of a session: at most 512 bytes, without control characters. */
function isSessionId(id: string): boolean {
  return id !== '' && Buffer.byteLength(id) <= 512 && !/\p{Cc}/u.test(id)
}
