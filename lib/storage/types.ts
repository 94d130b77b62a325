/** A tool output as its file holds it, in JSON. */
export interface StoredContext {
  /** The tool that returned the result. */
  toolName: string
  /** The work that the tool was asked to do, in words. Relevance is decided by this text. */
  toolDescription: string
  /** The tool's arguments, as JSON keeps them. */
  args: Record<string, unknown>
  /** When the result was saved: ISO 8601, UTC, milliseconds. */
  timestamp: string
  /** The task it belongs to. */
  taskId?: number
  /** The query it belongs to, from {@link ContextManager.hashQuery}. */
  queryId?: string
  /** The result, as JSON keeps it. `undefined` and functions are kept as `null`. */
  result: unknown
}

/** The part of a saved output that stays in memory. Pointers are frozen. */
export interface ContextPointer {
  /** The file's absolute path. */
  readonly filepath: string
  /** The last segment of the path. */
  readonly filename: string
  /** As in {@link StoredContext}. */
  readonly toolName: string
  /** As in {@link StoredContext}. */
  readonly toolDescription: string
  /** As in {@link StoredContext}; a copy, so later changes to the caller's object don't affect it. */
  readonly args: Record<string, unknown>
  /** As in {@link StoredContext}. */
  readonly taskId?: number
  /** As in {@link StoredContext}. */
  readonly queryId?: string
}

/**
 * The part of `node:fs/promises` that this package needs; that module fits. Rejections carry Node's codes: `ENOENT`
 * if something does not exist, `EEXIST` if an exclusive write hits an existing file.
 */
export interface IFileSystem {
  /** Creates a directory with its missing parents. */
  mkdir(path: string, options: { recursive: true; mode: number }): Promise<unknown>
  /** Creates a file (`wx`: it must not exist), for `mode`'s readers; `flush` makes it durable. */
  writeFile(path: string, data: string, options: { encoding: 'utf8'; flag: 'wx'; mode: number; flush: boolean }): Promise<unknown>
  /** A file's whole text. */
  readFile(path: string, encoding: 'utf8'): Promise<string>
  /** The names in a directory. */
  readdir(path: string): Promise<string[]>
  /** Moves a file to its final name. */
  rename(from: string, to: string): Promise<unknown>
  /** Removes a file. */
  unlink(path: string): Promise<unknown>
  /** Says whether a path is a regular file; rejects if nothing is there. */
  stat(path: string): Promise<{ isFile(): boolean }>
}

/**
 * Orders pointers by relevance, best first: returns the `filepath`s of those that matter. It should give up when
 * `signal` is aborted, because its answer is then ignored.
 */
export type Ranker = (query: string, pointers: readonly ContextPointer[], options: { signal: AbortSignal }) => readonly string[] | Promise<readonly string[]>

/** The options of `new ContextManager()`. All have defaults. */
export interface StorageOptions {
  /** The folder of the files: absolute, relative to the working directory, or starting with `~/`. Default `~/.agent/context`. */
  contextDir?: string
  /** Outputs smaller than this many bytes are cached as far as `cacheBytes` allows; all go to disk. Default 32,768. */
  persistThreshold?: number
  /** Used instead of the local file system, with the same guarantees as far as it keeps its own. */
  fileSystem?: IFileSystem
  /**
   * Called with debug messages about what is skipped and done. Exceptions are ignored, so a logger can't make a save
   * fail.
   */
  onDebug?: (message: string, data?: unknown) => void
  /** Describes a call in words; default: the tool's name in words, and its string arguments. */
  describe?: (toolName: string, args: Record<string, unknown>) => string
  /** The number of bytes of saved outputs that also stay in memory; the least recently used leave first. Default 0: none. */
  cacheBytes?: number
  /** The event that a finished save survives: a power failure (default), or only the end of the process. */
  durability?: 'power' | 'process'
  /** Used by {@link ContextManager.selectRelevantContextsAsync} instead of the keyword rule. */
  ranker?: Ranker
  /** The longest time of `ranker` before the keyword rule is used, in milliseconds. Default 10,000. */
  rankerTimeoutMs?: number
  /** Remove the files that this instance has saved when it is closed or the process exits. Default false. */
  autoCleanup?: boolean
}
