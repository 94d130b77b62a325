/**
 * Tool outputs on disk, found again by relevance: the entry `pi-context-manager/storage`.
 *
 * Each output is one JSON file in one directory; in memory there is a light pointer to it. The class stands
 * alone: it needs no session and no store. {@link indexContextDir} and {@link storeFileSystem} join it with the
 * `ContextManager` of the package's main entry.
 *
 * @module
 */
export { type IndexedDirectory, indexContextDir, storeFileSystem, type ToolcallStore } from './bridge.ts'
export { describeCall } from './describe.ts'
export { StorageError } from './error.ts'
export type { StorageErrorCode } from './error.ts'
export type { ContextPointer, IFileSystem, Ranker, StorageOptions, StoredContext } from './types.ts'
export { ContextManager } from './storage.ts'
