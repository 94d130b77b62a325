/** The tool outputs of one directory, and the pointers to them. */
import { homedir } from 'node:os'
import { join, resolve, sep } from 'node:path'
import { OutputCache } from './cache.ts'
import { describeCall } from './describe.ts'
import { OutputDirectory, type OutputText } from './directory.ts'
import { expect, reasonOf, StorageError } from './error.ts'
import { atExit } from './exit.ts'
import { Gate } from './gate.ts'
import { outputQueryHash } from './names.ts'
import { askRanker } from './ranker.ts'
import { rank, RelevanceIndex } from './relevance.ts'
import { isRecord, storedContext } from './stored.ts'
import type { ContextPointer, StorageOptions, StoredContext } from './types.ts'

/** The data of a pointer: a stored context without its result. */
type Metadata = Pick<StoredContext, 'toolName' | 'toolDescription' | 'args'> & {
  taskId?: number | undefined
  queryId?: string | undefined
}

const DEFAULT_THRESHOLD = 32 * 1024
const DEFAULT_RANKER_TIMEOUT = 10_000
/** The number of files whose texts {@link ContextManager.restorePointers} holds at a time. */
const RESTORED_AT_ONCE = 32

/**
 * The tool outputs of one directory. Several instances and processes may share a directory: files are complete or
 * absent, and no two saves use the same name. Each instance has its own pointers.
 *
 * Rejections are errors with a `code`: `INVALID_ARGUMENT`, `STORE_FULL` (no room on the device), `IO` (any other
 * refusal of the system) and `CLOSED`.
 */
export class ContextManager {
  readonly #directory: string
  readonly #prefix: string
  readonly #files: OutputDirectory
  readonly #cache: OutputCache | undefined
  readonly #options: StorageOptions
  readonly #gate = new Gate()
  readonly #index = new RelevanceIndex()
  /** Each pointer's place in the index. */
  #places = new WeakMap<ContextPointer, number>()
  /** In the order in which their saves began, as numbered by `#order`. */
  #pointers: ContextPointer[] = []
  #order: number[] = []
  #begun = 0
  #saves = 0
  /** Names of the files that this instance has saved, if it removes them when it ends. */
  #own: string[] = []
  #forgetExit: (() => unknown) | undefined
  #closed = false

  /**
   * Reads and creates nothing; the first save creates the directory.
   * @throws StorageError `INVALID_ARGUMENT` for an option of the wrong type.
   */
  constructor(options: StorageOptions = {}) {
    checkOptions(options)
    this.#options = { ...options }
    this.#directory = absolute(options.contextDir)
    this.#prefix = this.#directory.endsWith(sep) ? this.#directory : this.#directory + sep
    const durable = options.durability !== 'process'
    this.#files = new OutputDirectory(this.#directory, durable, options.fileSystem)
    if (options.cacheBytes) this.#cache = new OutputCache(options.cacheBytes, options.persistThreshold ?? DEFAULT_THRESHOLD)
    if (options.autoCleanup && options.fileSystem === undefined) {
      this.#forgetExit = atExit(() => this.#files.removeNow(this.#own))
    }
  }

  /**
   * Saves a tool's output to its own file and resolves with the file's path once the file is durable. Arguments and
   * result are captured at the time of the call. The pointer exists when the promise resolves.
   * @param taskId Groups outputs for {@link getPointersForTask}.
   * @param queryId Groups outputs for {@link getPointersForQuery}; see {@link hashQuery}.
   */
  async saveContext(toolName: string, args: Record<string, unknown>, result: unknown, taskId?: number, queryId?: string): Promise<string> {
    this.#checkOpen()
    expect(typeof toolName === 'string', "the tool's name must be a string")
    expect(taskId === undefined || Number.isFinite(taskId), 'taskId must be a number or absent')
    expect(queryId === undefined || typeof queryId === 'string', 'queryId must be a string or absent')
    const argsText = json(args, "the tool's arguments")
    const kept: unknown = JSON.parse(argsText)
    expect(isRecord(kept), "the tool's arguments must be an object")
    const now = new Date()
    const toolDescription = this.#describe(toolName, kept)
    const metadata = { toolName, toolDescription, args: kept, timestamp: now.toISOString(), taskId, queryId }
    const text = `${JSON.stringify(metadata).slice(0, -1)},"result":${json(result, "the tool's result")}}`
    const [began, count] = [this.#begun++, this.#saves++]
    return await this.#gate.pass(async () => {
      this.#checkOpen()
      const name = await this.#files.save(toolName, argsText, text, now.getTime(), count)
      this.#cache?.put(name, text)
      if (this.#options.autoCleanup) this.#own.push(name)
      const { filepath } = this.#insert(began, name, metadata)
      this.#debug('saved a tool output', { filepath, toolName })
      return filepath
    })
  }

  /** All pointers, in the order in which their saves began. The array is a copy. */
  getAllPointers(): ContextPointer[] {
    return [...this.#pointers]
  }

  /** The pointers saved under a query's id, in order. */
  getPointersForQuery(queryId: string): ContextPointer[] {
    return this.#pointers.filter((pointer) => pointer.queryId === queryId)
  }

  /** The pointers saved under a task's id, in order. */
  getPointersForTask(taskId: number): ContextPointer[] {
    return this.#pointers.filter((pointer) => pointer.taskId === taskId)
  }

  /**
   * Reads outputs, in the order of the given paths. Files that are missing, damaged or outside the directory are left
   * out with a debug message. Each call returns new objects.
   */
  async loadContexts(filepaths: string[]): Promise<StoredContext[]> {
    this.#checkOpen()
    expect(Array.isArray(filepaths), 'filepaths must be an array of file paths')
    const names = filepaths.map((filepath) => this.#nameOf(filepath))
    const cached = names.map((name) => (name === undefined ? undefined : this.#cache?.get(name)))
    const wanted = names.filter((name, i): name is string => name !== undefined && cached[i] == null)
    const read = wanted.length > 0 ? await this.#files.load(wanted) : []
    let next = 0
    const contexts: StoredContext[] = []
    names.forEach((name, i) => {
      try {
        if (name === undefined) throw new Error('it is not in the context directory')
        const { text, reason } = cached[i] == null ? (read[next++] ?? {}) : { text: cached[i] }
        if (text === undefined) throw new Error(reason)
        contexts.push(storedContext(text))
        if (cached[i] == null) this.#cache?.put(name, text)
      } catch (error) {
        this.#debug('skipped a tool output', { filepath: filepaths[i], reason: reasonOf(error) })
      }
    })
    return contexts
  }

  /**
   * The paths of the pointers whose description shares keywords with the query, those with the most first, ties in
   * the given order. If none does, the paths of all pointers in the given order.
   *
   * A keyword is a word of more than two characters; a word is a run of letters, marks and digits of any script,
   * compared without regard to case and after Unicode normalisation (NFKC).
   */
  selectRelevantContexts(query: string, pointers: ContextPointer[]): string[] {
    expect(typeof query === 'string', 'the query must be a string')
    expect(Array.isArray(pointers), 'pointers must be an array of context pointers')
    const order = this.#rank(query, pointers)
    if (order === null) return pointers.map((pointer) => pointer.filepath)
    return Array.from(order, (i) => pointers[i]!.filepath)
  }

  /**
   * The same, using the option `ranker`. The keyword rule is used without a ranker, or if it throws, rejects,
   * takes longer than `rankerTimeoutMs`, or names none of the pointers.
   */
  async selectRelevantContextsAsync(query: string, pointers: ContextPointer[]): Promise<string[]> {
    const { ranker, rankerTimeoutMs } = this.#options
    if (ranker === undefined) return this.selectRelevantContexts(query, pointers)
    expect(typeof query === 'string', 'the query must be a string')
    expect(Array.isArray(pointers), 'pointers must be an array of context pointers')
    const ranking = await askRanker(ranker, query, pointers, rankerTimeoutMs ?? DEFAULT_RANKER_TIMEOUT)
    if ('filepaths' in ranking) return ranking.filepaths
    this.#debug('the ranker gave no answer; the keyword rule was used', { reason: ranking.reason })
    return this.selectRelevantContexts(query, pointers)
  }

  /** An id for a query: the first 12 hexadecimal digits of the SHA-256 of its UTF-8 bytes. */
  static hashQuery(query: string): string {
    expect(typeof query === 'string', 'the query must be a string')
    return outputQueryHash(query)
  }

  /**
   * Adds pointers for those files of the directory that this instance has no pointer for, oldest first, and resolves
   * with their number. Results don't stay in memory. Damaged files are left out with a debug message.
   */
  async restorePointers(): Promise<number> {
    this.#checkOpen()
    return await this.#gate.alone(async () => {
      const known = new Set(this.#pointers.map((pointer) => pointer.filename))
      const names = (await this.#files.names()).filter((name) => !known.has(name))
      const before = this.size
      for (let at = 0; at < names.length; at += RESTORED_AT_ONCE) {
        const part = names.slice(at, at + RESTORED_AT_ONCE)
        const read = await this.#files.load(part)
        part.forEach((name, i) => this.#restore(name, read[i] ?? {}))
      }
      return this.size - before
    })
  }

  /** Forgets all pointers. Files stay. A save in progress adds its pointer when it is done. */
  clearPointers(): void {
    this.#pointers = []
    this.#order = []
    this.#places = new WeakMap()
    this.#index.clear()
  }

  /**
   * Removes the output files of the directory, whichever instance wrote them, and the remains of interrupted saves.
   * All other files, the directory and the pointers stay. Waits for saves that began earlier.
   */
  async clearContextDir(): Promise<void> {
    this.#checkOpen()
    await this.#gate.alone(() => this.#clearFiles())
  }

  /** Removes the files, then forgets the pointers; the pointers stay if the files can't be removed. */
  async clear(): Promise<void> {
    this.#checkOpen()
    await this.#gate.alone(async () => {
      await this.#clearFiles()
      this.clearPointers()
    })
  }

  /**
   * Waits for saves and, with `autoCleanup`, removes the files that this instance has saved and forgets its pointers.
   * Later asynchronous calls reject with `CLOSED`; closing again does nothing.
   */
  async close(): Promise<void> {
    this.#closed = true
    await this.#gate.alone(async () => {
      if (this.#options.autoCleanup) {
        await this.#files.remove(this.#own)
        this.#own = []
        this.clearPointers()
      }
      this.#cache?.clear()
      this.#forgetExit?.()
    })
  }

  /** `await using` closes. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /** The number of pointers. */
  get size(): number {
    return this.#pointers.length
  }

  /** The context directory's absolute path. */
  getContextDir(): string {
    return this.#directory
  }

  #restore(name: string, { text, reason }: OutputText): void {
    try {
      if (text === undefined) throw new Error(reason)
      this.#insert(this.#begun++, name, storedContext(text))
    } catch (error) {
      this.#debug('skipped a tool output', { filepath: this.#prefix + name, reason: reasonOf(error) })
    }
  }

  #insert(began: number, filename: string, metadata: Metadata): ContextPointer {
    const { toolName, toolDescription, args, taskId, queryId } = metadata
    const pointer: ContextPointer = Object.freeze({
      filepath: this.#prefix + filename,
      filename,
      toolName,
      toolDescription,
      args,
      ...(taskId === undefined ? undefined : { taskId }),
      ...(queryId === undefined ? undefined : { queryId }),
    })
    let at = this.#order.length
    while (at > 0 && this.#order[at - 1]! > began) at -= 1
    this.#order.splice(at, 0, began)
    this.#pointers.splice(at, 0, pointer)
    this.#places.set(pointer, this.#index.add(toolDescription))
    return pointer
  }

  #rank(query: string, pointers: ContextPointer[]): Uint32Array | null {
    const places = new Uint32Array(pointers.length)
    for (let i = 0; i < pointers.length; i += 1) {
      const place = this.#places.get(pointers[i]!)
      // Pointers of another instance, from earlier, or made by hand, are in no index.
      if (place === undefined)
        return rank(
          query,
          pointers.map(({ toolDescription }) => toolDescription),
        )
      places[i] = place
    }
    return this.#index.rank(query, places)
  }

  async #clearFiles(): Promise<void> {
    this.#cache?.clear()
    const removed = await this.#files.clear()
    this.#own = []
    this.#debug('cleared the context directory', { directory: this.#directory, removed })
  }

  /** The name of a file in the directory; undefined for a path outside it. */
  #nameOf(filepath: unknown): string | undefined {
    if (typeof filepath !== 'string') return undefined
    const path = resolve(filepath)
    const name = path.startsWith(this.#prefix) ? path.slice(this.#prefix.length) : ''
    return name === '' || name.includes(sep) ? undefined : name
  }

  #describe(toolName: string, args: Record<string, unknown>): string {
    const { describe } = this.#options
    try {
      const description: unknown = describe?.(toolName, args)
      if (typeof description === 'string') return description
      if (describe !== undefined) throw new Error('it returned no string')
    } catch (error) {
      this.#debug('describe failed; the default description was used', { toolName, reason: reasonOf(error) })
    }
    return describeCall(toolName, args)
  }

  #debug(message: string, data?: unknown): void {
    try {
      this.#options.onDebug?.(message, data)
    } catch {
      // As documented, exceptions of a listener are ignored.
    }
  }

  #checkOpen(): void {
    if (this.#closed) throw new StorageError('CLOSED', 'this ContextManager is closed: create another one')
  }
}

function absolute(directory = join('~', '.agent', 'context')): string {
  const home = /^~(?=$|[/\\])/u
  return resolve(home.test(directory) ? directory.replace(home, () => homedir()) : directory)
}

/** JSON text; values that JSON can't represent (`undefined`, a function) become null. */
function json(value: unknown, what: string): string {
  try {
    return JSON.stringify(value) ?? 'null'
  } catch (error) {
    const message = `${what} can't be written as JSON: ${reasonOf(error)}; pass plain values without cycles`
    throw new StorageError('INVALID_ARGUMENT', message, error)
  }
}

function checkOptions(options: StorageOptions): void {
  expect(isRecord(options), 'the options must be an object')
  const { contextDir, persistThreshold, cacheBytes, rankerTimeoutMs, durability } = options
  expect(contextDir === undefined || (typeof contextDir === 'string' && contextDir !== ''), 'contextDir must be a path')
  expect(!contextDir?.includes('\0'), 'contextDir must not contain a NUL character')
  for (const [name, value] of Object.entries({ persistThreshold, cacheBytes, rankerTimeoutMs })) {
    expect(value === undefined || (typeof value === 'number' && value >= 0), `${name} must be a number of 0 or more`)
  }
  expect(durability === undefined || durability === 'power' || durability === 'process', "durability must be 'power' or 'process'")
  for (const name of ['onDebug', 'describe', 'ranker'] as const) {
    expect(options[name] === undefined || typeof options[name] === 'function', `${name} must be a function`)
  }
}
