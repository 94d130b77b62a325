/**
 * The ledger of a session: what each model call was billed, and what it would have been billed without us, on the same
 * branch, with the same cache, and with the compactions that the agent would have made. Nothing is predicted: a roll or an
 * undo changes the sums only when the next call has been answered. Sizes are counted in characters. How many tokens a character takes is measured where a request has only grown:
 * what a provider puts around the messages is the same without us, and must not grow with them.
 */

import { factorAt, tokensLeft, writeCost } from '../../models/index.ts'
import type { CompactionRule, Left, PriceFactor } from '../../models/index.ts'
import { FOUND, ModelPrompts } from './model-prompts.ts'
import type { ModelPrompt } from './model-prompts.ts'
import { PlainConversation } from './plain.ts'
import type { PlainMessage, PlainSummary, RealCompaction } from './plain.ts'

/** The size of a part of the request, in characters. */
export interface Size {
  /** As it is sent. */
  own: number
  /** As the host would send it without us. */
  plain: number
}

/** The tokens of a prompt, as a provider reports them. */
export interface PromptUsage {
  /** Neither read from the cache nor written to it. */
  input: number
  cacheRead: number
  cacheWrite: number
  /** Those of `cacheWrite` that were written to be kept for an hour; undefined if the provider does not tell them apart. */
  cacheWrite1h?: number
  /** Those of the answer. */
  output?: number
}

/** Prices of a million tokens, in dollars. 0 means unknown. */
export interface PromptPrices extends Pick<PromptUsage, 'input' | 'cacheRead' | 'cacheWrite' | 'output'> {
  /** A plan at a flat rate pays for the call, so that it counts in tokens. */
  isPlan?: boolean
  /** The request asks to keep what it writes for an hour: so it is priced where the answer does not tell. `cacheWrite` is the usual price. */
  asksHour?: boolean
  /** The same of the request without us, where another lifetime was chosen for ours; undefined: as ours. */
  plainAsksHour?: boolean
  /** Sizes above which the whole prompt costs more. */
  tiers?: readonly PriceFactor[]
  /** The price of the answer to a prompt of `promptTokens` tokens, where it depends on them. */
  outputAbove?(promptTokens: number): number
}

/** The last answered call of a branch, in tokens. */
export interface Prompts {
  /** The provider's count. */
  own: number
  /** The provider's count as it would have been without us. */
  plain: number
  /** Characters of the request without us. */
  plainSize?: number
  /** By how much requests have grown so far, where nothing else in them has changed. */
  grown?: { tokens: number; characters: number }
  /** The name of the model, and the last prompts of all models by name; undefined where models are not told apart. */
  model?: string
  models?: Readonly<Record<string, ModelPrompt>> | undefined
}

/** The model that has answered a call. */
export interface AnsweringModel {
  name: string
  /** True if it should still have its own last prompt in its cache, by time. Asked only if another model has answered since. */
  isAlive(): boolean
}

/** A change at the beginning of a request: none, an edit of ours, or one that the host would also have made without us. */
export type Prefix = 'kept' | 'edited' | 'rewritten'

/** Above this number of characters, the growth gives the tokens of a character; below it, the whole last request does. */
const ENOUGH = 2000

/** The difference that a count of the same model may have from the characters' estimate, as a share of it. */
const SAME = 0.05

/** The share of its limit from which on a plain conversation counts as having been compacted together with ours. */
const NEAR = 0.9

/** Tokens of the prompts of calls for which a plan at a flat rate paid. */
export interface PlanTokens {
  sent: number
  /** The same without us. */
  without: number
}

/** The cost of a compaction to the plain conversation, in fresh tokens, dollars and tokens on a plan; and whether that one had none itself before. */
interface Charged {
  tokens: number
  dollars: number
  onPlan: number
  wasReal: boolean
}

/** The sums of a branch up to a point. */
export interface BranchSums {
  /** The saving on the branch so far, in fresh input tokens. */
  saved?: number
  /** The same in dollars, as far as the models' prices were known. */
  dollars?: number
  /** The branch's calls for which a plan at a flat rate paid; absent: none. */
  plan?: PlanTokens
  /** The branch's last answered call. */
  last?: Prompts
  /** The change to that call's prefix since then; absent: none. */
  prefix?: Prefix
  /** The summary that the conversation would have without us by now; absent: none. */
  plain?: PlainSummary
}

/** The sums of one session's branch. */
export class SavingLedger {
  /** The saving, in fresh input tokens of the models that were called; negative if it was more expensive. */
  saved = 0
  /** The same in dollars, as far as the models' prices are known; also of calls on a plan, which cost nothing by themselves. */
  dollars = 0
  /** The calls for which a plan at a flat rate paid; undefined without one. */
  plan: PlanTokens | undefined
  /** The last answered call. */
  last: Prompts | undefined
  readonly #sizes = new Map<string, number>()
  #sum = 0
  readonly #plain = new PlainConversation()
  readonly #models = new ModelPrompts()
  /** The characters of the last answered request; undefined after a start. */
  #answered: number | undefined
  #prefix: Prefix = 'kept'
  #request: (Size & { messages: number; head: number; prefix: Prefix; isAlive: boolean; left: Left | undefined }) | undefined
  /** Tokens of the last answer, and of what has come since then without the user; the agent counts four characters each. */
  #since = 0
  /** Tokens for each character, as last measured. */
  #perCharacter = 0.25
  /** The compaction that was charged to the plain conversation and that no request has had. */
  #estimated: Charged | undefined

  /** The change to the last request's prefix since that request. */
  get prefix(): Prefix {
    return this.#prefix
  }

  /** The summary that the agent would have without us; undefined if it would not have compacted. */
  get summary(): PlainSummary | undefined {
    return this.#plain.summary
  }

  /** Continues with the sums of a point. {@link SavingLedger.reset} has to follow. */
  takeOver({ saved = 0, dollars = 0, plan, last, prefix = 'kept', plain }: BranchSums): void {
    this.saved = saved
    this.dollars = dollars
    this.plan = plan
    this.last = last
    this.#prefix = prefix
    this.#request = undefined
    this.#answered = undefined
    this.#since = 0
    this.#estimated = undefined
    this.#plain.takeOver(plain)
    this.#models.takeOver(last?.models)
  }

  /**
   * Everything has been read again: the sizes of what is visible, all messages of the branch as they would be without us, and the
   * agent's last compaction on it.
   */
  reset(own: Iterable<readonly [key: string, size: number]>, plain: Iterable<PlainMessage>, real?: RealCompaction): void {
    this.#sizes.clear()
    this.#sum = 0
    for (const [key, size] of own) this.#set(key, size)
    this.#plain.reset(plain, real)
  }

  /** A message is shown from now on. `plain` is the same without us; undefined for a message of ours. */
  add(key: string, own: number, plain: PlainMessage | undefined): void {
    this.#set(key, own)
    if (plain === undefined) return
    this.#plain.add(plain)
    if (plain.kind === 'result' || plain.kind === 'other') this.#since += Math.ceil(plain.size / 4)
  }

  /** A message is shown otherwise, or left out (`own` is 0). `isSent`: an earlier request had it. */
  edit(key: string, own: number, isSent: boolean): void {
    this.#set(key, own)
    if (isSent) this.touch()
  }

  /** We have changed something before the end of the last request. */
  touch(): void {
    if (this.#prefix === 'kept') this.#prefix = 'edited'
    this.#models.touch()
  }

  /**
   * The host has compacted the conversation. `isAsked`: the user wanted it, so that it would also have happened without us.
   * {@link SavingLedger.reset} has to follow.
   */
  compacted(real: RealCompaction, isAsked: boolean, usage: PromptUsage | undefined, prices: PromptPrices, rule: CompactionRule): void {
    const paid = usage === undefined ? 0 : answerCost(usage, prices)
    const isNear = this.#plain.isReal && (this.last?.plain ?? 0) + this.#since >= NEAR * rule.limit
    this.#plain.learn(real)
    if (this.#estimated === undefined && (isAsked || isNear)) this.#compact(rule, prices)
    const charged = this.#estimated
    this.#estimated = undefined
    const prompt = usage === undefined ? 0 : promptOf(usage)
    const isSame = charged === undefined ? isAsked && this.#plain.isReal : charged.wasReal && this.#plain.summary?.kept === real.kept
    if (isSame) {
      this.saved -= charged?.tokens ?? 0
      this.dollars -= charged?.dollars ?? 0
      this.#send(prompt, prompt - (charged?.onPlan ?? 0), prices)
      this.#plain.adopt(real)
      this.#models.clear()
      this.#prefix = 'rewritten'
    } else {
      this.#gain(-paid, prices)
      this.#send(prompt, 0, prices)
      this.#plain.passOver(real)
      this.touch()
    }
  }

  /**
   * A request goes out. `system` is what stands before the messages; `isAlive`: the provider has the last prompt in its
   * cache, as far as time and model say. `isFound`: it finds the system part there behind which everything is new. `left`: what is left
   * of the last request without us, where its lifetime is another one.
   */
  sent(system: Size, isAlive: boolean, isFound = true, left?: Left): void {
    const messages = this.#plain.size
    this.#request = {
      own: this.#sum + system.own,
      plain: messages + system.plain,
      messages,
      head: isFound ? system.plain : 0,
      prefix: this.#prefix,
      isAlive,
      left,
    }
  }

  /** The request was answered. `rule` is how the agent compacts; `by` is undefined where models are not told apart. */
  answered(usage: PromptUsage, prices: PromptPrices, rule?: CompactionRule, by?: AnsweringModel): void {
    const request = this.#request
    this.#request = undefined
    const own = promptOf(usage)
    if (request === undefined || own === 0 || request.own === 0) return
    const other = by !== undefined && this.last?.model !== undefined && this.last.model !== by.name ? by : undefined
    if (other !== undefined) request.isAlive = false
    this.#prefix = 'kept'
    const grown = this.#grownTo(request, own)
    this.#perCharacter = grown.characters < ENOUGH ? own / request.own : grown.tokens / grown.characters
    const plain = this.#plainTokens({ ...request, other: other?.name }, own, prices, rule)
    const read = Math.min(plain, this.#cached(request, usage, other))
    const { input, cacheRead, tiers, outputAbove } = known(prices)
    const fresh = usage.input + usage.cacheWrite
    const writeOf = (some: PromptUsage, at: PromptPrices): number =>
      fresh === 0 ? written({ cacheWrite: 1 }, at) : (usage.input * input + written(some, at)) / fresh
    const cost = (cached: number, all: number, write: number): number =>
      (cached * cacheRead + (all - cached) * write) * factorAt(tiers, all) + (usage.output ?? 0) * outputAbove(all)
    const { cacheWrite1h: _, ...untold } = usage
    const { plainAsksHour: asksHour } = prices
    const plainWrite = asksHour === undefined ? writeOf(usage, prices) : writeOf(untold, { ...prices, asksHour })
    this.#gain(cost(read, plain, plainWrite) - cost(usage.cacheRead, own, writeOf(usage, prices)), prices)
    this.#send(own, plain, prices)
    const plainSize = this.#plain.size + request.plain - request.messages
    if (by !== undefined) this.#models.answered(by.name, { own, plain, ownSize: request.own, plainSize })
    const models = by === undefined ? {} : { model: by.name, models: this.#models.all }
    this.last = { own, plain, plainSize, ...(grown.characters > 0 && { grown }), ...models }
    this.#answered = request.own
    this.#since = usage.output ?? 0
    this.#estimated = undefined
    this.#plain.sent()
  }

  /** A turn has ended, and its results are added: the agent compacts now if its conversation has become too long. */
  turnEnded(prices: PromptPrices, rule: CompactionRule): void {
    if (this.last === undefined || rule.window === 0 || this.last.plain + this.#since <= rule.limit) return
    this.#compact(rule, prices)
  }

  /** The tokens of the request without us. One that exceeds the window is refused, and the agent compacts. */
  #plainTokens(request: Size & { prefix: Prefix; other: string | undefined }, own: number, prices: PromptPrices, rule: CompactionRule | undefined): number {
    const tokens = this.#plainGrown(request, own)
    if (rule === undefined || rule.window === 0 || tokens <= rule.window) return tokens
    const before = this.#plain.size
    this.#compact(rule, prices)
    return Math.min(rule.window, Math.max(0, tokens + (this.#plain.size - before) * this.#perCharacter))
  }

  /**
   * The tokens of the request without us, from those of the one before: it has grown as ours has. Only where nothing is known of
   * that one, or its model counted otherwise, the difference to ours is estimated as a whole: with each message that we have
   * shortened, that counts what stands around it once more. After another model's answer, the one before is this model's own last one.
   */
  #plainGrown(request: Size & { prefix: Prefix; other: string | undefined }, own: number): number {
    const { last } = this
    const [before, size] = [this.#answered, last?.plainSize]
    const by = (tokens: number, characters: number): number => Math.max(0, tokens + characters * this.#perCharacter)
    if (last === undefined || size === undefined || request.prefix === 'rewritten') return by(own, request.plain - request.own)
    if (request.other !== undefined) {
      const same = this.#models.of(request.other)
      const hidden = request.plain - request.own
      if (same === undefined) return by(own, hidden)
      // The host may leave out what other models have thought.
      return same.isEdited === true ? by(same.plain, request.plain - same.plainSize) : by(same.plain + own - same.own, hidden - same.plainSize + same.ownSize)
    }
    const isNew = this.#plain.summary?.isNew === true
    const grown = before === undefined || request.prefix !== 'kept' ? undefined : request.own - before
    if (grown !== undefined && Math.abs(by(last.own, grown) - own) > SAME * own) return by(own, request.plain - request.own)
    const isMeasured = grown !== undefined && grown > 0 && own > last.own && !isNew
    return isMeasured ? by(last.plain + own - last.own, request.plain - size - grown) : by(last.plain, request.plain - size)
  }

  /** Compacts the plain conversation, and charges it. */
  #compact(rule: CompactionRule, prices: PromptPrices): void {
    const wasReal = this.#plain.isReal
    const done = this.#plain.compact(rule)
    if (done === undefined) return
    this.#models.clear()
    const { input, output, tiers } = known(prices)
    const tokens = (characters: number): number => characters * this.#perCharacter
    const asked = done.asked.reduce((sum, one) => sum + tokens(one) * input * factorAt(tiers, tokens(one)), 0)
    const onPlan = done.asked.reduce((sum, one) => sum + tokens(one), 0)
    const answered = done.answered.reduce((sum, one) => sum + tokens(one), 0) * output
    const [saved, dollars] = [this.saved, this.dollars]
    this.#gain(asked + answered, prices)
    this.#send(0, onPlan, prices)
    this.#estimated = { tokens: this.saved - saved, dollars: this.dollars - dollars, onPlan, wasReal }
  }

  #gain(cost: number, prices: PromptPrices): void {
    this.saved += cost / known(prices).input
    if (prices.input > 0) this.dollars += cost / 1_000_000
  }

  /** Counts the prompt of a call on a plan: as it was sent, and as it would have been without us. */
  #send(sent: number, without: number, { isPlan }: PromptPrices): void {
    if (isPlan !== true) return
    this.plan = { sent: (this.plan?.sent ?? 0) + sent, without: (this.plan?.without ?? 0) + without }
  }

  #set(key: string, own: number): void {
    this.#sum += own - (this.#sizes.get(key) ?? 0)
    this.#sizes.set(key, own)
  }

  /** By how much requests have grown, with one that was counted as `tokens`. */
  #grownTo({ own, prefix, isAlive }: { own: number; prefix: Prefix; isAlive: boolean }, tokens: number): { tokens: number; characters: number } {
    const { last } = this
    const before = last?.grown ?? { tokens: 0, characters: 0 }
    const [by, characters] = [tokens - (last?.own ?? 0), own - (this.#answered ?? own)]
    // Another model counts in other tokens, and has no cache.
    if (prefix !== 'kept' || !isAlive || by <= 0 || characters <= 0) return before
    return { tokens: before.tokens + by, characters: before.characters + characters }
  }

  /** The number of tokens of the prompt without us that the provider would have read from its cache. */
  #cached(
    { head, prefix, isAlive, left }: { head: number; prefix: Prefix; isAlive: boolean; left: Left | undefined },
    { cacheRead }: PromptUsage,
    other: AnsweringModel | undefined,
  ): number {
    const { last } = this
    if (last === undefined || prefix === 'rewritten') return cacheRead
    if (left !== undefined && other === undefined) return tokensLeft(left, head * this.#perCharacter, () => last.plain)
    const found = FOUND * last.own
    // After its own summary, everything is new.
    if (this.#plain.summary?.isNew === true)
      return isAlive && (prefix === 'edited' || cacheRead >= found) ? head * this.#perCharacter : Math.min(cacheRead, head * this.#perCharacter)
    if (other !== undefined) return this.#models.found(other.name, cacheRead, () => other.isAlive())
    if (prefix === 'edited') return isAlive ? last.plain : 0
    return cacheRead >= found ? Math.max(0, cacheRead + last.plain - last.own) : cacheRead
  }
}

/** The price of an answer's token in fresh input tokens, where prices are unknown. */
const OUTPUT = 5

function promptOf({ input, cacheRead, cacheWrite }: PromptUsage): number {
  return input + cacheRead + cacheWrite
}

/** The cost of a call, in the prices' unit for a million tokens. */
function answerCost(usage: PromptUsage, prices: PromptPrices): number {
  const { input, cacheRead, output, tiers } = known(prices)
  const all = promptOf(usage)
  return (usage.input * input + usage.cacheRead * cacheRead + written(usage, prices)) * factorAt(tiers, all) + (usage.output ?? 0) * output
}

/** The cost of what a call has written, each token by the lifetime that the answer tells, or else that the request asks for. */
function written({ cacheWrite, cacheWrite1h }: Pick<PromptUsage, 'cacheWrite' | 'cacheWrite1h'>, prices: PromptPrices): number {
  const hour = cacheWrite1h ?? (prices.asksHour === true ? cacheWrite : 0)
  return writeCost(known(prices), { cacheWrite, cacheWriteHour: hour > 0 ? hour : 0 })
}

/** Prices with the usual ratios for what is unknown. */
function known({
  input,
  cacheRead,
  cacheWrite,
  output = 0,
  tiers = [],
  outputAbove = () => 0,
}: PromptPrices): Required<Omit<PromptPrices, 'asksHour' | 'plainAsksHour' | 'isPlan'>> {
  if (!(input > 0)) return { input: 1, cacheRead: 0.1, cacheWrite: 1, output: OUTPUT, tiers, outputAbove: () => 0 }
  const written = { cacheRead: cacheRead > 0 ? cacheRead : 0.1 * input, cacheWrite: cacheWrite > 0 ? cacheWrite : input }
  return { tiers, outputAbove, input, ...written, output: output > 0 ? output : OUTPUT * input }
}
