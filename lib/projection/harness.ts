/**
 * The context manager for harnesses without Pi: a projection of any conversation, in the shape of a provider or of an SDK.
 *
 * @module
 */
export { CacheLifetimes } from './cache-lifetimes.ts'
export type { CachedRequest, CachedUsage } from './cache-lifetimes.ts'
export { Projection } from './projection.ts'
export type { ProjectedModel, ProjectionOptions } from './projection.ts'
export type { PartEdit } from './driver/edits.ts'
export type { Reading, Shape } from './shape.ts'
export type { ShapeName } from './shapes.ts'
export { recall, RECALL, RECALL_DESCRIPTION, RECALL_PARAMETERS } from './recall.ts'
export type { RecallInput } from './recall.ts'
export { modelNamed, rulesOf } from '../models/index.ts'
export type { Binding, LifetimeOption, ModelCache, ModelRules, NamedModel, NamedModelOptions, ReasoningRule, Route } from '../models/index.ts'
