/**
 * The context manager for TypeScript hosts: {@link ContextManager}, one open session, and {@link Store}, what the owner of a
 * store does with it.
 *
 * @module
 */
export { defaultFilesystemId, DrivenSession, Store } from './native/index.ts'
export { Projection } from './projection/index.ts'
export type { ProjectedModel, ProjectionOptions, Shape, ShapeName } from './projection/index.ts'
export { ContextManager } from './session/index.ts'
export type { OpenOptions } from './session/index.ts'
export { defaultStorePath } from './core/index.ts'

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
  ForgetOptions,
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
  StoredObject,
  StoreHit,
  StoreLimits,
  StoreOptions,
  StoreState,
  TextEdit,
  Toolcall,
  TransactionMark,
  TransferSummary,
  Version,
  WatchEvent,
  WindowOptions,
} from '../index.js'
