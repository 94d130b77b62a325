/** A tool output as its file holds it, in JSON. */
export interface StoredContext {
  /** The tool that gave the result. */
  toolName: string
  /** What the tool was asked to do, in words; what relevance is decided by. */
  toolDescription: string
  /** The tool's arguments, as JSON keeps them. */
  args: Record<string, unknown>
  /** When the result was saved: ISO 8601, UTC, milliseconds. */
  timestamp: string
  /** The task it belongs to. */
  taskId?: number
  /** The query it belongs to, as {@link ContextManager.hashQuery} gives it. */
  queryId?: string
  /** The result, as JSON keeps it. `undefined` and functions are kept as `null`. */
  result: unknown
}

/** What stays in memory of a saved output. Pointers are frozen. */
export interface ContextPointer {
  /** The file's absolute path. */
  readonly filepath: string
  /** The last segment of the path. */
  readonly filename: string
  /** As in {@link StoredContext}. */
  readonly toolName: string
  /** As in {@link StoredContext}. */
  readonly toolDescription: string
  /** As in {@link StoredContext}: a copy, which later changes of the caller's object do not reach. */
  readonly args: Record<string, unknown>
  /** As in {@link StoredContext}. */
  readonly taskId?: number
  /** As in {@link StoredContext}. */
  readonly queryId?: string
}

/**
 * The part of `node:fs/promises` that this package needs; that module is one. Rejections carry Node's codes:
 * `ENOENT` for what does not exist, `EEXIST` for an exclusive write to what does.
 */
export interface IFileSystem {
  /** Creates a directory with its missing parents. */
  mkdir(path: string, options: { recursive: true; mode: number }): Promise<unknown>
  /** Creates a file (`wx`: it must not exist), for `mode`'s readers; `flush` makes it durable. */
  writeFile(
    path: string,
    data: string,
    options: { encoding: 'utf8'; flag: 'wx'; mode: number; flush: boolean },
  ): Promise<unknown>
  /** A file's whole text. */
  readFile(path: string, encoding: 'utf8'): Promise<string>
  /** The names in a directory. */
  readdir(path: string): Promise<string[]>
  /** Moves a file to its final name. */
  rename(from: string, to: string): Promise<unknown>
  /** Removes a file. */
  unlink(path: string): Promise<unknown>
  /** Says whether a path is a regular file; rejects where there is nothing. */
  stat(path: string): Promise<{ isFile(): boolean }>
}

/**
 * Orders pointers by relevance, best first: returns the `filepath`s of those that matter. It should give up
 * when `signal` is aborted; its answer is no longer waited for then.
 */
export type Ranker = (
  query: string,
  pointers: readonly ContextPointer[],
  options: { signal: AbortSignal },
) => readonly string[] | Promise<readonly string[]>

/** The options of `new ContextManager()`. All have defaults. */
export interface StorageOptions {
  /** Where the files are: absolute, relative to the working directory, or starting with `~/`. Default `~/.agent/context`. */
  contextDir?: string
  /** Outputs of fewer bytes than this are cached where `cacheBytes` allows; all go to disk. Default 32,768. */
  persistThreshold?: number
  /** Used in place of the native file access, with the same guarantees as far as it keeps its own. */
  fileSystem?: IFileSystem
  /** Told of what is skipped, and of what is done. What it throws is ignored: a logger can't fail a save. */
  onDebug?: (message: string, data?: unknown) => void
  /** Describes a call in words; default: the tool's name in words, and its string arguments. */
  describe?: (toolName: string, args: Record<string, unknown>) => string
  /** Bytes of saved outputs that also stay in memory, least recently used out first. Default 0: none. */
  cacheBytes?: number
  /** What a finished save survives: a power failure (default), or the end of the process only. */
  durability?: 'power' | 'process'
  /** Used by {@link ContextManager.selectRelevantContextsAsync} in place of the keyword rule. */
  ranker?: Ranker
  /** How long `ranker` may take, in milliseconds, before the keyword rule answers. Default 10,000. */
  rankerTimeoutMs?: number
  /** Remove what this instance has saved when it is closed, or when the process exits. Default false. */
  autoCleanup?: boolean
}
