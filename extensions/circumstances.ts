/** The circumstances of the next model call, for the engine: the model, its prices and its prompt cache. */
import type { ExtensionAPI, ExtensionContext } from '@earendil-works/pi-coding-agent'
import type { ModelCall } from '../index.js'
import type { Moment, PromptPrices, PromptUsage } from '../lib/projection/index.ts'
import { binds, CacheOdds, cacheNamed, factorsOf, HOUR_WRITE, leftApart, LIFETIME_MS, piCompaction, ratesAt } from '../lib/models/index.ts'
import type { Binding, CacheCounts, CataloguePrices, CompactionRule, Left } from '../lib/models/index.ts'
import { rulesFor, SessionBinding } from './binding.ts'
import { CompactionSettings } from './compaction-settings.ts'
import { SessionLifetimes } from './lifetimes.ts'
import { answeredBefore, answeringModel, isOnPlan, lastAnswer, perCatalogueDollar, physicalModel, possibleModels } from './provider.ts'
import type { PricedUsage } from './provider.ts'
import { appendsTools } from './recall.ts'
import { askedSeconds } from './requests.ts'
import { DEFAULTS } from './settings.ts'
import type { Settings } from './settings.ts'

/** The cache rules of Anthropic's API. */
const ANTHROPIC = cacheNamed('anthropic')

/** Describes model calls. Caches the size of the tool declarations, which rarely change. */
export class Circumstances {
  readonly #pi: ExtensionAPI
  readonly #settings: Settings
  readonly #lastRequest: () => unknown
  /** The provider's handling of reasoning once something before it has changed. */
  readonly binding: SessionBinding
  /** The lifetimes for which the provider is asked to keep what it caches. */
  readonly lifetimes: SessionLifetimes
  readonly #compaction = new CompactionSettings()
  #tools = { key: '', characters: 0 }
  #head = { model: '', tokens: 0 }
  readonly #odds = new CacheOdds()
  /** The request that is not answered yet, and the system part of the last one that was. */
  #asked: Asked | undefined
  #answeredHead: string | undefined

  /** `lastRequest` gives the payload of the last request to the provider, if there was one. */
  constructor(pi: ExtensionAPI, settings: Settings, lastRequest: () => unknown = () => undefined) {
    this.#pi = pi
    this.#settings = settings
    this.#lastRequest = lastRequest
    this.lifetimes = new SessionLifetimes(settings.cacheLifetime)
    this.binding = new SessionBinding(settings.binding, lastRequest)
  }

  /** The next call in `ctx`. */
  call(ctx: ExtensionContext, moment: Moment): ModelCall {
    const last = lastAnswer(ctx.sessionManager)
    const model = physicalModel(ctx, last)
    this.binding.follow(ctx.sessionManager)
    // If Pi has kept the cache warm, its age counts from the last refresh.
    const keptMs = last?.warmedMs === undefined ? 0 : Math.max(0, last.warmedMs - last.atMs)
    const prices = this.#prices(model)
    if (this.#asksHour(model)) prices.cacheWrite = Math.max(prices.cacheWrite, HOUR_WRITE * prices.input)
    const call: ModelCall = {
      model: model === undefined ? '' : `${model.provider}/${model.id}`,
      prices,
      binding: this.bindingOf(ctx),
      contextWindow: model?.contextWindow ?? 0,
      cacheTtlMs: 1000 * this.#cacheSeconds(model) + keptMs,
      nowMs: Date.now(),
      systemTokens: this.#systemTokens(ctx),
      onlyAtUserTurn: this.#settings.rollOnlyAtUserTurn,
      shortens: true,
      atUserTurn: moment.atUserTurn,
      rolls: moment.rolls,
    }
    call.cacheKept = this.#odds.kept({ at: call.nowMs, isPrompt: moment.isPrompt, model: call.model, isElsewhere: this.#hasOtherHead(ctx) })
    if (looksBack(model) && ANTHROPIC.lookback !== undefined) call.lookbackBlocks = ANTHROPIC.lookback
    else if (model !== undefined) {
      const { kind, lookback } = rulesFor(model).cache
      if (kind === 'endings' && lookback !== undefined) call.lookbackEndings = lookback
    }
    if (model !== undefined && rulesFor(model).textIsReasoning) call.textIsReasoning = true
    return call
  }

  /**
   * A request goes out. `isPrompt`: it comes with a prompt; `isChanged`: something has changed before the end of the last one.
   */
  sent(ctx: ExtensionContext, { isPrompt, isChanged }: { isPrompt: boolean; isChanged: boolean }): void {
    const { model, nowMs: at, cacheTtlMs: lifetimeMs } = this.call(ctx, { atUserTurn: false, isPrompt, rolls: false })
    this.#asked = { at, isPrompt, model, isElsewhere: this.#hasOtherHead(ctx), isChanged, lifetimeMs, head: this.#headOf(ctx) }
  }

  /** The payload of the request that goes out, with the lifetimes chosen for it; undefined if it stays as it is, as those of summaries do. */
  withLifetimes(payload: unknown, ctx: ExtensionContext, savedTokens: number): unknown {
    if (this.#asked === undefined) return undefined
    const last = lastAnswer(ctx.sessionManager)
    const binding = this.bindingOf(ctx)
    return this.lifetimes.changed(payload, ctx, {
      at: this.#asked.at,
      warmedMs: last?.warmedMs,
      isNew: last === undefined,
      binding,
      systemTokens: this.#systemTokens(ctx),
      savedTokens,
    })
  }

  /** The part of the last request without us that the provider still has, where its lifetime is another one; undefined: as much as of ours. */
  plainLeft(ctx: ExtensionContext): Left | undefined {
    const { lives } = this.lifetimes
    if (lives === undefined || this.#asked === undefined) return undefined
    return leftApart(lives, this.#asked.at - Math.max(lives.at, lastAnswer(ctx.sessionManager)?.warmedMs ?? 0))
  }

  /** The request was answered. */
  answered(usage: PromptUsage): void {
    const { input, cacheRead: cached, cacheWrite: written } = usage
    this.lifetimes.answered(usage)
    const asked = this.#asked
    this.#asked = undefined
    if (asked === undefined || input + cached + written === 0) return
    const { head, ...call } = asked
    this.#answeredHead = head
    this.#odds.answered({ ...call, prompt: input + cached + written, cached, written, systemTokens: this.#head.tokens })
  }

  /** Calls of this process that found their cache, and calls that did not although nothing explains it. */
  get cacheCounts(): CacheCounts {
    return this.#odds.counts
  }

  /** True if the system prompt or the tools have changed since the last answer, where that costs the cache. */
  #hasOtherHead(ctx: ExtensionContext): boolean {
    return this.#answeredHead !== undefined && !this.appendsTools(ctx) && this.#answeredHead !== this.#headOf(ctx)
  }

  #headOf(ctx: ExtensionContext): string {
    this.#toolCharacters()
    return `${this.#tools.key}\n${this.#tools.characters}\n${ctx.getSystemPrompt()}`
  }

  /** The binding of the model that answers; of the strictest that may, if that is not known before. */
  bindingOf(ctx: ExtensionContext): Binding {
    const all = possibleModels(ctx).map((model) => this.binding.of(model))
    return STRICT.find((one) => all.includes(one)) ?? this.binding.of(ctx.model)
  }

  /** The catalogue's prices and steps. */
  #prices(model: ExtensionContext['model']): ModelCall['prices'] {
    if (model === undefined) return { input: 0, cacheRead: 0, cacheWrite: 0 }
    const { input, cacheRead, cacheWrite } = model.cost
    const tiers = factorsOf(model.cost as Parameters<typeof factorsOf>[0])
    return {
      input,
      cacheRead,
      cacheWrite,
      ...(tiers.length === 0 ? {} : { tiers }),
    }
  }

  /** True if the last request asked a provider to keep the conversation for an hour, which is dearer to write than the catalogue says. */
  #asksHour(model: ExtensionContext['model']): boolean {
    return model?.api === 'anthropic-messages' && askedSeconds(this.#lastRequest()) === 3600
  }

  /** True if a later change of the tools would cost the model its reasoning. */
  bindsTools(ctx: ExtensionContext): boolean {
    const binding = this.bindingOf(ctx)
    return binds(binding) && !this.appendsTools(ctx)
  }

  /** True if the model that answers accepts new tools in mid-conversation, so that the cached prompt before them stays valid. */
  appendsTools(ctx: ExtensionContext): boolean {
    return appendsTools(answeringModel(ctx))
  }

  /** The prices of the model that answers, as far as its provider charges what the catalogue says. `usage` is that of the answer, else the last one counts. */
  prices(ctx: ExtensionContext, usage?: Partial<Pick<PricedUsage, 'cost'>>): PromptPrices {
    const last = lastAnswer(ctx.sessionManager)
    const model = physicalModel(ctx, last)
    const cost = model?.cost as CataloguePrices | undefined
    const charged = usage === undefined ? (last?.perCatalogueDollar ?? 1) : perCatalogueDollar(usage)
    const { input, cacheRead, cacheWrite, ...steps } = this.#prices(model)
    const { lives } = this.lifetimes
    const prices = { ...steps, input: charged * input, cacheRead: charged * cacheRead, cacheWrite: charged * cacheWrite, output: charged * (cost?.output ?? 0) }
    return {
      ...prices,
      isPlan: isOnPlan(ctx, model),
      asksHour: this.#asksHour(model),
      ...(lives !== undefined && { plainAsksHour: lives.own.messages > LIFETIME_MS['5m'] }),
      ...(cost?.tiers === undefined ? {} : { outputAbove: (tokens) => charged * ratesAt(cost, tokens).output }),
    }
  }

  /** The rule by which plain Pi compacts in the model's window. */
  compaction(ctx: ExtensionContext): CompactionRule {
    return piCompaction(ctx.model?.contextWindow ?? 0, this.#compaction.of(ctx))
  }

  /** True if the provider finds the system part in its cache if everything behind it is new. */
  findsHead(ctx: ExtensionContext): boolean {
    const model = answeringModel(ctx)
    return model === undefined || looksBack(model) || rulesFor(model).cache.kind !== 'endings'
  }

  /** True if the provider should still have the last prompt in its cache, by time and model. */
  hasCache(ctx: ExtensionContext): boolean {
    const last = lastAnswer(ctx.sessionManager)
    if (last === undefined) return false
    const { model, cacheTtlMs, nowMs } = this.call(ctx, { atUserTurn: false, isPrompt: true, rolls: false })
    return model === `${last.provider}/${last.model}` && nowMs - last.atMs < cacheTtlMs
  }

  /** True if the model of an answer still had its own answer before that in its cache, by time. */
  hadCache(ctx: ExtensionContext, answer: { provider: string; model: string; timestamp: number }): boolean {
    const before = answeredBefore(ctx.sessionManager, answer)
    const model = ctx.modelRegistry.find(answer.provider, answer.model)
    return before !== undefined && answer.timestamp - before < 1000 * this.#cacheSeconds(model)
  }

  /** Characters of the system prompt and the tool declarations. */
  systemCharacters(ctx: ExtensionContext): number {
    return ctx.getSystemPrompt().length + this.#toolCharacters()
  }

  /** If a provider accepts changes in mid-conversation, the head of the prompt stays as first sent. */
  #systemTokens(ctx: ExtensionContext): number {
    const model = answeringModel(ctx)
    const name = model === undefined ? '' : `${model.provider}/${model.id}`
    if (!appendsTools(model) || this.#head.model !== name) {
      this.#head = { model: name, tokens: Math.ceil(this.systemCharacters(ctx) / 4) }
    }
    return this.#head.tokens
  }

  /**
   * How long the provider keeps the last request's prompt: what the request asked for, by the times of Pi's catalogue.
   * Before the first request, what Pi is set to ask for.
   */
  #cacheSeconds(model: ExtensionContext['model']): number {
    const tiers: { short?: number; long?: number } | undefined = model?.promptCache
    const asked = askedSeconds(this.#lastRequest())
    if (typeof asked === 'number') return tiers?.long ?? asked
    const isLong = asked === undefined && process.env['PI_CACHE_RETENTION'] === 'long'
    const known = isLong ? (tiers?.long ?? tiers?.short) : tiers?.short
    const { cacheLifetimeSeconds } = this.#settings
    if (known !== undefined || model === undefined || cacheLifetimeSeconds !== DEFAULTS.cacheLifetimeSeconds) return known ?? cacheLifetimeSeconds
    return rulesFor(model).cache.lifetimeMs / 1000
  }

  #toolCharacters(): number {
    const active = this.#pi.getActiveTools()
    const key = active.join(' ')
    if (key !== this.#tools.key) {
      const names = new Set(active)
      const declared = this.#pi
        .getAllTools()
        .filter((tool) => names.has(tool.name))
        .map(({ name, description, parameters }) => ({ name, description, parameters }))
      this.#tools = { key, characters: JSON.stringify(declared).length }
    }
    return this.#tools.characters
  }
}

/** The bindings, the strictest first. */
const STRICT: readonly Binding[] = ['refuses', 'drops', 'keeps', 'none']

/** A request that was sent. */
interface Asked {
  at: number
  isPrompt: boolean
  model: string
  isElsewhere: boolean
  isChanged: boolean
  lifetimeMs: number
  /** The system prompt and the tools. */
  head: string
}

/**
 * True if the provider finds a cached prefix only near its breakpoints, so that an early edit re-bills
 * everything.
 */
function looksBack(model: ExtensionContext['model']): boolean {
  if (model === undefined) return false
  if (model.api === 'anthropic-messages') return true
  if (model.api === 'bedrock-converse-stream') return rulesFor(model).cache.kind === 'breakpoints'
  const format = (model.compat as { cacheControlFormat?: string } | undefined)?.cacheControlFormat
  return format === 'anthropic'
}
