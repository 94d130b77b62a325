/**
 * The context manager for TypeScript hosts: {@link ContextManager}, one open session, and {@link Store}, what the owner of a
 * store does with it.
 *
 * @module
 */
export { DrivenSession } from './driven.ts'
export { defaultFilesystemId } from './filesystem.ts'
export { Projection } from './harness.ts'
export type { ProjectedModel, ProjectionOptions, Shape, ShapeName } from './harness.ts'
export { ContextManager } from './manager.ts'
export type { OpenOptions } from './options.ts'
export { defaultStorePath } from './place.ts'
export { Store } from './store.ts'

export type {
  AsOf,
  Assembled,
  Block,
  CollapsedCall,
  Content,
  Damage,
  Edit,
  EditGuard,
  ErasedMark,
  ErrorCode,
  FilesystemSource,
  Forgetting,
  Forgotten,
  HeldBack,
  HistoryPart,
  IncomingMessage,
  IndexedFiles,
  IndexResult,
  ModelCall,
  ModelPrices,
  MountMapping,
  ObjectDocument,
  ObjectType,
  Part,
  Plan,
  PriceStep,
  Pruned,
  PruneOptions,
  QueryFilter,
  ReceivedResult,
  RefusedFile,
  RollPreview,
  RollReceipt,
  SearchHit,
  SearchOptions,
  SecretPlace,
  SessionSets,
  SessionSummary,
  SetChange,
  Stats,
  StayOptions,
  StoreHit,
  StoreLimits,
  StoreOptions,
  StoreState,
  TextEdit,
  Toolcall,
  TransferSummary,
  Version,
  WatchEvent,
  WindowOptions,
} from '../index.js'
