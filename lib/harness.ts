/**
 * The context manager for harnesses without Pi: a projection of any conversation, in the shape of a provider or of an SDK.
 *
 * @module
 */
export { Projection } from './harness/projection.ts'
export type { ProjectedModel, ProjectionOptions } from './harness/projection.ts'
export type { PartEdit } from './driver/edits.ts'
export type { Reading, Shape } from './harness/shape.ts'
export type { ShapeName } from './harness/shapes.ts'
export { recall, RECALL, RECALL_DESCRIPTION, RECALL_PARAMETERS } from './harness/recall.ts'
export type { RecallInput } from './harness/recall.ts'
export { modelNamed } from './models/model.ts'
export type { NamedModel, NamedModelOptions } from './models/model.ts'
export { rulesOf } from './models/rules.ts'
export type { Binding, ModelCache, ModelRules, ReasoningRule, Route } from './models/rules.ts'
