/**
 * The context manager for TypeScript harnesses.
 *
 * `ContextManager` is the native class with some conveniences: `open` has a default store and accepts an
 * `AbortSignal`, `await using` closes the instance, and a listener of `watch` or `watchTouches` that throws can't end
 * the process.
 *
 * @module
 */
import { homedir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'
import type { ContextManager as Native, OpenOptions as NativeOptions, StoreOptions, Toolcall, WatchEvent } from '../index.js'
import { coded, coding, invalid } from './errors.ts'
import { noteBirth } from './harness/births.ts'
import { Projection } from './harness.ts'
import type { ProjectedModel, ShapeName } from './harness.ts'
import { journalOf } from './journal.ts'
import { native } from './native.ts'

export { Projection } from './harness.ts'
export type { ProjectedModel, ProjectionOptions, Shape, ShapeName } from './harness.ts'

export type {
  AsOf,
  Assembled,
  Block,
  CollapsedCall,
  Content,
  Edit,
  ErrorCode,
  FilesystemSource,
  HistoryPart,
  IncomingMessage,
  IndexResult,
  IndexedFiles,
  ModelCall,
  ModelPrices,
  MountMapping,
  ObjectDocument,
  ObjectType,
  Part,
  Plan,
  PriceStep,
  QueryFilter,
  ReceivedResult,
  RefusedFile,
  RollReceipt,
  SearchHit,
  SearchOptions,
  SessionSets,
  SetChange,
  Stats,
  StoreOptions,
  StoreState,
  Toolcall,
  Version,
  WatchEvent,
  WindowOptions,
} from '../index.js'

/** How a session is opened, and how its messages are projected. */
export interface OpenOptions extends NativeOptions {
  /** How {@link ContextManager.transformContext} renders. Default `anchored`. */
  layout?: 'anchored' | 'sections'
  /** The model that {@link ContextManager.transformContext} renders for; a function if it may change. */
  model?: ProjectedModel | (() => ProjectedModel)
  /** The shape of {@link ContextManager.transformContext}'s messages. Default: detected from the messages. */
  shape?: ShapeName
}

/** One open session. Also an async disposable: `await using manager = await ContextManager.open(…)`. */
export interface ContextManager extends Native, AsyncDisposable {
  /**
   * Returns the messages to send to the provider instead of the harness's own, in the same shape: pi-ai's,
   * Anthropic's, OpenAI's (chat completions and responses) or the AI SDK's. New messages are recorded on the way. The
   * cost depends on what is new. The harness keeps its own messages unchanged and passes all of them at each call.
   *
   * The model needs a way to bring back what has collapsed: give it a tool that calls `activate`, or use the entry
   * point for your framework. See {@link Projection} for more options.
   *
   * Rejects with `INVALID_ARGUMENT` for messages of an unknown shape, and with the errors of the store. After a
   * rejection you can send your messages as they are; the next call records what is missing.
   */
  transformContext<T>(messages: T[]): Promise<T[]>
}

/** Creates `ContextManager` instances. */
export interface ContextManagerClass {
  /**
   * Opens the store and starts the session, or resumes it if the store has it.
   *
   * Without `options.store`, the store is the SQLite file at {@link defaultStorePath}. Without `options.home`, paths
   * that start with `~` refer to the user's home directory. Aborting rejects with the signal's reason.
   */
  open(options: OpenOptions, control?: { signal?: AbortSignal }): Promise<ContextManager>
  /**
   * Imports an exported session and opens it. If `sessionId` differs from the file's, the session becomes a copy with
   * that ID: it shares the file objects and then develops independently.
   *
   * Rejects with `INVALID_ARGUMENT` if the file is not a complete export of one session, `CONFLICT`, `IO`, and like
   * `open`.
   */
  importSession(path: string, options: OpenOptions): Promise<ContextManager>
  readonly prototype: ContextManager
}

/** The class that keeps a session's context. */
export const ContextManager: ContextManagerClass = comfortable()

/**
 * The default path of the embedded store: `pi-context-manager/context.db` in the user's data directory
 * (`$XDG_DATA_HOME`, on macOS `~/Library/Application Support`, on Windows `%LOCALAPPDATA%`, else `~/.local/share`).
 */
export function defaultStorePath(): string {
  const data = process.env['XDG_DATA_HOME']
  const base = data !== undefined && isAbsolute(data) ? data : dataFolder()
  return join(base, 'pi-context-manager', 'context.db')
}

/** The directory where programs keep a user's data. On Windows only the user can read it. */
function dataFolder(): string {
  if (process.platform === 'darwin') return join(homedir(), 'Library', 'Application Support')
  if (process.platform === 'win32') return process.env['LOCALAPPDATA'] ?? join(homedir(), 'AppData', 'Local')
  return join(homedir(), '.local', 'share')
}

/** The store, with defaults for the paths that the user left open. */
function withPlaces(store: StoreOptions | undefined): StoreOptions {
  if (store === undefined) return { kind: 'sqlite', path: defaultStorePath() }
  if (store.kind !== 'xtdb' || store.journal !== undefined) return store
  return { ...store, journal: journalOf(store.url, dirname(defaultStorePath())) }
}

const projections = new WeakMap<Native, Projection>()

function comfortable(): ContextManagerClass {
  const nativeClass = native.ContextManager
  const prototype = nativeClass.prototype as ContextManager
  // A second copy of this file finds the work of the first one done.
  if (prototype[Symbol.asyncDispose] === undefined) {
    const { watch, watchTouches } = prototype
    for (const name of ['receive', 'recordToolcall'] as const) noting(prototype, name)
    const guarding = (subscribe: typeof watch) => ({
      value(this: Native, listener: (event: WatchEvent) => void): () => void {
        if (typeof listener !== 'function') throw invalid('a listener is a function')
        return subscribe.call(this, guarded(listener))
      },
    })
    coding(nativeClass.prototype)
    Object.defineProperties(prototype, {
      [Symbol.asyncDispose]: {
        value(this: Native): Promise<void> {
          return this.close()
        },
      },
      transformContext: {
        async value<T>(this: Native, messages: T[]): Promise<T[]> {
          if (!Array.isArray(messages)) throw invalid('messages is an array of messages')
          let projection = projections.get(this)
          if (projection === undefined) projections.set(this, (projection = new Projection(this)))
          return projection.transform(messages)
        },
      },
      watch: guarding(watch),
      watchTouches: guarding(watchTouches),
    })
  }
  return {
    prototype,
    async open(options, control = {}) {
      const { signal } = control
      signal?.throwIfAborted()
      const opening = withCodes(() => nativeClass.open(nativeOptions(options))).then((manager) => projected(manager, options))
      return signal === undefined ? opening : abortable(opening, signal)
    },
    async importSession(path, options) {
      return projected(await withCodes(() => nativeClass.importSession(path, nativeOptions(options))), options)
    },
  }
}

/** Remembers which calls the harness recorded itself, because the projection has to know. */
function noting(prototype: Native, name: 'receive' | 'recordToolcall'): void {
  const method = prototype[name] as (call: Toolcall) => Promise<unknown>
  Object.defineProperty(prototype, name, {
    value(this: Native, call: Toolcall): Promise<unknown> {
      const recorded = method.call(this, call)
      noteBirth(this, (call as Toolcall | undefined)?.id)
      return recorded
    },
    writable: true,
    configurable: true,
  })
}

async function withCodes<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    throw coded(error)
  }
}

/** The options of the native class: options that it does not know are removed, and open paths get defaults. */
function nativeOptions(options: OpenOptions): NativeOptions {
  if (typeof options !== 'object' || options === null) throw invalid('the options are an object with sessionId and cwd')
  if (![undefined, 'anchored', 'sections'].includes(options.layout)) throw invalid("layout is 'anchored' or 'sections'")
  const { layout: _layout, model: _model, shape: _shape, ...rest } = options
  return { ...rest, store: withPlaces(options.store), home: options.home ?? homedir() }
}

function projected(manager: Native, { layout, model, shape }: OpenOptions): ContextManager {
  const options = {
    ...(layout === undefined ? {} : { layout }),
    ...(model === undefined ? {} : { model }),
    ...(shape === undefined ? {} : { shape }),
  }
  projections.set(manager, new Projection(manager, options))
  return manager as ContextManager
}

/** Reports what a listener throws, instead of letting it end the process. */
function guarded(listener: (event: WatchEvent) => void): (event: WatchEvent) => void {
  return (event) => {
    try {
      listener(event)
    } catch (error) {
      process.emitWarning(error instanceof Error ? error : String(error), { code: 'CONTEXT_LISTENER' })
    }
  }
}

async function abortable(opening: Promise<ContextManager>, signal: AbortSignal): Promise<ContextManager> {
  let abort = () => {}
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
  })
  try {
    return await Promise.race([opening, aborted])
  } catch (error) {
    // An instance opened too late is closed again; its own failure no longer matters.
    opening.then((manager) => manager.close()).catch(() => {})
    throw error
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
