/** Facts about models, by their names. Other folders import only this file. */
export {
  askedOf,
  askingForDrops,
  BINDING_FIELD,
  binds,
  isBindingRefusal,
  isFieldRefusal,
  ObservedBinding,
  readReport,
  withBindingBeta,
  Withheld,
  withoutReasoning,
} from './binding.ts'
export type { BindingReport } from './binding.ts'
export { brokenTokens, callsBack, effortCause, modelCause, pauseCause } from './cache-break.ts'
export type { CachedCall } from './cache-break.ts'
export { CacheOdds, CALL_KINDS, LEAST_LOSS, noCounts, PAUSES, pauseOf } from './cache-odds.ts'
export type { AnsweredCall, CacheCounts, CallKind, KeptLost, NextCall, Pause } from './cache-odds.ts'
export { compactionOf, firstKept, INSTRUCTIONS, PI_COMPACTION, piCompaction, SUMMARIZED_RESULT, SUMMARY_TOKENS } from './compaction.ts'
export type { CompactionRule, PiCompaction } from './compaction.ts'
export { ConversationLifetimes, isAnthropicApi, LIFETIME_MS, LIFETIME_OPTIONS, LIFETIME_WRITE, slackOf } from './lifetime.ts'
export type { Asked, CacheLifetime, Choice, Chosen, LastChoice, LifetimeMoment, LifetimeOption, TakenChoice, Written } from './lifetime.ts'
export { countsTogether, soundUsage } from './counts.ts'
export type { GivenCounts, SoundUsage } from './counts.ts'
export { leftApart, livesOf, tokensLeft } from './lives.ts'
export type { ApartLives, Left } from './lives.ts'
export { addLoss, noLoss } from './losses.ts'
export type { LossSum } from './losses.ts'
export { modelNamed, modelPriced } from './model.ts'
export type { NamedModel, NamedModelOptions } from './model.ts'
export { readName } from './name.ts'
export {
  callCost,
  factorAt,
  factorsOf,
  HOUR_WRITE,
  isAmount,
  isGivenPrices,
  LONG_WINDOW,
  lossAt,
  lossCost,
  PRICE_NAMES,
  pricesOf,
  pricesWith,
  ratesAt,
  UNKNOWN_PRICES,
  USUAL_OUTPUT,
  USUAL_WINDOW,
  windowOf,
  writeCost,
} from './prices.ts'
export type { CallTokens, CataloguePrices, GivenPrices, PriceFactor } from './prices.ts'
export { isSame, originsOf, replacedSentences } from './replaced.ts'
export type { EditOrigin, ReplacedMessage } from './replaced.ts'
export { appendsTools, BINDINGS, cacheNamed, rulesOf } from './rules.ts'
export type { Binding, CacheKind, ModelCache, ModelRules, ReasoningRule, Route } from './rules.ts'
