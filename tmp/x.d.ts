/** The five types of object. */
export type ObjectType = 'file' | 'toolcall' | 'chat' | 'system_prompt' | 'session'

/** A file: the filesystem namespace and the canonical absolute path inside it. */
export interface FilesystemSource {
  type: 'filesystem'
  filesystemId: string
  path: string
}

/**
 * One version of an object. `xt/id`, `type`, `source` and `identity_hash` never change; everything else is
 * covered by `content_hash`. Fields by type: docs/spec.md.
 */
export interface ObjectDocument {
  'xt/id': string
  type: ObjectType
  /** The source binding; null for an object that exists only in the store. Unknown source types are kept. */
  source: FilesystemSource | { type: string; [field: string]: unknown } | null
  /** SHA-256 of the canonical `{type, source}`; the ID of a sourced object. */
  identity_hash: string
  /** The text; null for files that are deleted, not text, unreadable, too large or only discovered. */
  content?: string | null
  /** SHA-256 of all payload fields except `source_hash` and itself. */
  content_hash: string
  /** SHA-256 of the source's raw bytes; null if they are not known. */
  source_hash?: string | null
  [field: string]: unknown
}

/** Every rejection is an `Error` with one of these as its `code`; see docs/errors.md. */
export type ErrorCode =
  | 'INVALID_ARGUMENT'
  | 'UNKNOWN_OBJECT'
  | 'NOT_CONTENT'
  | 'NULL_CONTENT'
  | 'NOT_ACTIVE'
  | 'CONFLICT'
  | 'STORE_UNAVAILABLE'
  | 'STORE_CORRUPT'
  | 'STORE_NEWER'
  | 'STORE_FULL'
  | 'IO'
  | 'CLOSED'
  | 'INTERNAL'

/** A file's content: text, or its bytes. */
export type Content = string | Uint8Array


/**
 * Which binding artifact the generated loader actually loaded: `'native'` for
 * a native addon, otherwise the `platformArchABI` of the WASI flavor. Every
 * flavor napi-rs can build is listed, because `NAPI_RS_NATIVE_LIBRARY_PATH`
 * can point the loader at a WASI artifact this package does not build itself.
 */
export declare const __napiBindingTarget: 'native' | 'wasm32-wasi' | 'wasm32-wasip1'

/**
 * One open session: it indexes files, records tool calls and turns, keeps the session's sets, renders the context,
 * and gives access to every version of every object.
 *
 * Every method but `watch` and `watchTouches` returns a promise; a rejection is an `Error` with a `code`
 * of `ErrorCode`. After `close()` every method rejects with `CLOSED`.
 */
export declare class ContextManager {
  /**
   * Opens the store and starts the session, or resumes it if the store has it. On a resume, files that have
   * changed get a new version, and unreachable files keep their last one.
   *
   * Rejects with `INVALID_ARGUMENT`, `STORE_UNAVAILABLE`, `STORE_CORRUPT`, `STORE_NEWER` or `STORE_FULL`.
   */
  static open(options: OpenOptions): Promise<ContextManager>
  /**
   * Imports an exported session and opens it. If `sessionId` differs from the file's, the session becomes a copy
   * with that ID: it shares the objects and then develops independently.
   *
   * Rejects with `INVALID_ARGUMENT` if the file is not a complete export of one session (nothing was written),
   * `CONFLICT` if the store has the session with a different history, `IO`, and like `open`.
   */
  static importSession(path: string, options: OpenOptions): Promise<ContextManager>
  /** The ID of the open session. */
  get sessionId(): string
  /**
   * Indexes a file that the agent has read. The file enters the metadata pool and the active set.
   *
   * `content` is the whole file as the tool read it; if it is absent, the file is read from disk. Text is hashed
   * as UTF-8, so pass bytes if you have them. A file that is not text is indexed with null content and a `reason`.
   *
   * Rejects with `IO` if there is no readable regular file, and `INVALID_ARGUMENT` for an impossible path.
   */
  indexFile(path: string, content?: Content | undefined | null): Promise<IndexResult>
  /**
   * Indexes a file that the agent has written. The file enters the metadata pool but is not activated.
   *
   * Rejects like `indexFile`.
   */
  indexWritten(path: string, content?: Content | undefined | null): Promise<IndexResult>
  /**
   * Indexes many files, for instance a whole project, so that the model knows them and they can be searched. They
   * enter the metadata pool; the active set does not change. Several threads read while another writes.
   *
   * Unreadable files are listed in `refused` and don't stop the others. Rejects if the store fails; files written
   * before that stay, and a repeated call continues from there.
   */
  indexFiles(paths: Array<string>): Promise<IndexedFiles>
  /** Records that a file has been deleted, as a version with null content. The history stays. */
  indexFileDeletion(path: string): Promise<IndexResult>
  /**
   * Records paths that were only seen (by ls, find or grep) as metadata without content. Never overwrites
   * anything.
   */
  discover(paths: Array<string>): Promise<Array<IndexResult>>
  /**
   * Records a tool call of the current turn as a `toolcall` object, which is active until it leaves the window.
   * Files that it read, wrote or named are indexed. Resolves with the object's ID.
   */
  recordToolcall(call: Toolcall): Promise<string>
  /**
   * Starts a turn with the user's message, or adds the assistant's answer to the current one. A message is `{
   * role, content, … }` in the shape of pi-ai; other fields of an answer are kept as its metadata.
   */
  appendTurn(message: object): Promise<{ turnCount: number }>
  /** Records the system prompt. Writes nothing if the text has not changed. */
  setSystemPrompt(text: string): Promise<undefined>
  /**
   * Adds an object to the active set and returns its content. `id` is a full ID, a handle, or either with `@txId`
   * for an old version, which does not change the sets.
   */
  activate(id: string, part?: Part | undefined | null): Promise<SetChange>
  /** Removes an object from the active set; its metadata stays in the pool. */
  deactivate(id: string): Promise<SetChange>
  /** Keeps an object from collapsing automatically. */
  pin(id: string): Promise<SetChange>
  /** Removes a pin. */
  unpin(id: string): Promise<SetChange>
  /** Adds an object of the session index to the metadata pool. */
  promote(id: string): Promise<SetChange>
  /** Removes an object from the metadata pool and the active set; it stays in the session index. */
  demote(id: string): Promise<SetChange>
  /** The session's four sets. */
  sessionSets(): Promise<SessionSets>
  /**
   * The canonical view: system prompt, metadata pool, chat and active content. The same state gives the same
   * bytes. The cost grows with the length of the conversation.
   */
  assemble(): Promise<Assembled>
  /** The latest version of an object, or null. */
  get(id: string): Promise<ObjectDocument | null>
  /** The version of an object at a point in the two times, or null. A string is a valid time. */
  getAsOf(id: string, at: string | AsOf): Promise<ObjectDocument | null>
  /**
   * The versions of an object, oldest first; empty for an unknown object. All of them, or a part: with `limit` and
   * `after` a long history is read piece by piece, and only what is asked for is held in memory.
   *
   * The documents share what they have in common, such as the turns of a chat, so treat them as read-only.
   */
  history(id: string, part?: HistoryPart | undefined | null): Promise<Version[]>
  /**
   * The difference between the contents of two versions as a unified diff; empty if they are equal. `fromTx` and
   * `toTx` are `txId`s from `history`.
   *
   * Rejects with `UNKNOWN_OBJECT` if one of the versions does not exist, and `INVALID_ARGUMENT` if only the hash of one is
   * stored.
   */
  diff(id: string, fromTx: number, toTx: number): Promise<string>
  /** The objects that match a filter, in the order in which they were first written. */
  query(filter: QueryFilter): Promise<ObjectDocument[]>
  /** Searches the contents of all versions, best match first. */
  search(text: string, options?: SearchOptions | undefined | null): Promise<Array<SearchHit>>
  /** Statistics of the session. */
  stats(): Promise<Stats>
  /** The state of the session's store: its kind, and for XTDB what is waiting to be sent. */
  storeState(): Promise<StoreState>
  /**
   * Calls a listener once for each change of a file of the session, whoever made it. Returns a function that stops it.
   * Watching does not keep the process alive. Throws `CLOSED`.
   */
  watch(listener: (event: WatchEvent) => void): () => void
  /**
   * Calls a listener as soon as a tracked file is touched, before it is read, for instance to mark it in an
   * editor. The action is `touched`. If the file has changed, the listeners of `watch` hear of the new version
   * once it is stored. Returns a function that stops it. Throws `CLOSED`.
   */
  watchTouches(listener: (event: WatchEvent) => void): () => void
  /**
   * Compares every file of the session with the disk and indexes those that have changed, for sessions that don't
   * watch. Returns what was written. A file is read only if its size, times or inode number have changed since an
   * earlier comparison.
   */
  reconcile(): Promise<Array<IndexResult>>
  /** Waits until the trackers have seen and indexed everything written to disk before the call. */
  flush(): Promise<undefined>
  /**
   * Stops the trackers. The store always has the session's state, so nothing else is needed for a pause; `open`
   * with the same session ID resumes it, here or elsewhere.
   */
  pause(): Promise<undefined>
  /** Pauses the session and closes the store. Closing twice is fine. */
  close(): Promise<undefined>
  /**
   * Writes this session, with the whole history of everything it has encountered, as JSON Lines, readable only by
   * the owner. An existing file is replaced once the new one is complete.
   *
   * Rejects with `IO`, and with the errors of the store.
   */
  exportSession(path: string): Promise<TransferSummary>
  /**
   * Records a tool result before the harness stores it, and returns the line to put before it. `content` is the
   * complete output, before any truncation. When the promise resolves, the record survives the end of the process;
   * after `settle` it also survives a power failure.
   */
  receive(call: Toolcall): Promise<ReceivedResult>
  /**
   * Takes the messages that are new since the last call, records those not recorded yet, and decides what the next
   * model call will see. Between two rolls, no message that was already sent is replaced. When the promise
   * resolves, the record survives the end of the process; after `settle` it also survives a power failure.
   */
  advance(messages: Array<IncomingMessage>, call: ModelCall): Promise<Plan>
  /**
   * Waits until everything that `receive`, `advance` and `resync` recorded also survives a power failure. Other
   * writes do so as soon as their promise resolves. The harness can continue meanwhile.
   */
  settle(): Promise<undefined>
  /**
   * Rebuilds the visible state from the messages of the harness's current branch, with earlier edits already
   * applied. The first `recorded` messages are already in the store.
   */
  resync(messages: Array<IncomingMessage>, recorded: number, call: ModelCall): Promise<Plan>
  /**
   * The answer to a read of a file, just indexed, whose lines are still visible in the model's request: where they
   * are, or what has changed in them since. Null means: show the lines. `offset` is the first line, counted from
   * 1, and `limit` the number of lines.
   */
  answerRead(path: string, offset?: number | undefined | null, limit?: number | undefined | null): Promise<string | undefined | null>
  /**
   * Checks an edit of a file. If the file has changed since the model last saw or wrote it, returns a refusal with
   * the difference; after that, the model counts as knowing the change. Null means: go ahead.
   */
  checkEdit(path: string): Promise<string | undefined | null>
  /**
   * Checks the arguments of a call. If one of them is nothing but a marker for collapsed text, returns the message
   * to refuse the call with. Null means: go ahead.
   */
  checkArguments(args: object): Promise<string | undefined | null>
  /**
   * Notices for the model about files that have changed since the version it knows, once for each version.
   * `advance` returns the same in its plan; call this between a prompt and its first model call.
   */
  staleNotices(): Promise<Array<string>>
  /** Rolls everything stale now, at the user's request. */
  rollNow(call: ModelCall): Promise<Plan>
  /** Undoes the latest roll of this process: its messages are shown as before it. */
  undoRoll(): Promise<Plan>
  /** The receipts of the rolls in effect, oldest first. */
  receipts(): Promise<Array<RollReceipt>>
  /**
   * Restores the pool, the active and pinned sets, and the chat to their state after a transaction of a session:
   * this one (when moving to another branch) or the one it was forked from. The index becomes the union of both.
   * Transaction 0 comes before all others: nothing encountered, nothing said.
   *
   * Pass the result of `pointTimes` as `times` to find the point even in a store that the session was moved to,
   * where transactions have different numbers. Rejects with `UNKNOWN_OBJECT` if the store does not have the point.
   */
  restore(sessionId: string, tx: number, times?: Array<string> | undefined | null): Promise<undefined>
  /** The session's newest own transaction, for `restore`. */
  point(): Promise<number>
  /** The valid times of the session's document and its chat at that point, the same in every store; RFC 3339. */
  pointTimes(): Promise<[string, string]>
}

/** A cache of texts by name with a limit in bytes; the least recently used text leaves first. */
export declare class OutputCache {
  /** At most `capacity` bytes of texts that are shorter than `threshold` bytes. */
  constructor(capacity: number, threshold: number)
  /** Stores a text. Returns whether it fits. */
  put(name: string, text: string): boolean
  /** The text of a name, or null. */
  get(name: string): string | null
  /** Drops one text. */
  remove(name: string): void
  /** Drops all texts. */
  clear(): void
  /** Bytes of all names and texts. */
  get bytes(): number
}

/** One directory of output files; nothing is read or created before the first call. */
export declare class OutputDirectory {
  /**
   * `path` is absolute. If `durable` is true, a finished save survives a power failure and not only the end of the
   * process.
   */
  constructor(path: string, durable: boolean)
  /**
   * Writes a new file and resolves with its name. `args` is JSON text; `timestamp` is in milliseconds.
   * Rejects with `INVALID_ARGUMENT`, `STORE_FULL` or `IO`.
   */
  save(tool: string, args: string, text: string, timestamp: number, counter: number): Promise<string>
  /** Reads whole files by name, in the given order. */
  load(names: Array<string>): Promise<Array<OutputText>>
  /** Reads the metadata of files by name, in the given order. */
  metadata(names: Array<string>): Promise<Array<OutputText>>
  /** The names of all output files, oldest first. Rejects with `IO`. */
  names(): Promise<Array<string>>
  /** Removes all output files and leftovers. Resolves with their number. Rejects with `IO`. */
  clear(): Promise<number>
  /** Removes some files by name, and resolves with the number of those that existed. Rejects with `IO`. */
  remove(names: Array<string>): Promise<number>
  /** The same, synchronously, for a process that is about to exit. Throws `IO`. */
  removeNow(names: Array<string>): number
}

/** Ranks the descriptions added to it by the keyword rule. */
export declare class RelevanceIndex {
  /** An empty index. */
  constructor()
  /** Adds a description and returns its place. */
  add(description: string): number
  /** Positions in `places` of the matches, best first; null if nothing matches. */
  rank(query: string, places: Uint32Array): Uint32Array | null
  /** Forgets all descriptions; places start at 0 again. */
  clear(): void
}

/** Ranks descriptions that are in no index by the keyword rule, block by block. */
export declare class RelevanceRanking {
  /** An empty ranking. */
  constructor(query: string)
  /** Adds descriptions, joined to one text; `lengths` has the length of each. */
  add(joined: string, lengths: Uint32Array): void
  /** Positions of the matches, best first, counted over all blocks; null if nothing matches. */
  order(): Uint32Array | null
}

/** A point in the two times. */
export interface AsOf {
  /** What held at this time, RFC 3339. */
  validTime?: string
  /** What the store knew at this time, RFC 3339. */
  txTime?: string
  /** What the store knew after this transaction. */
  txId?: number
}

/** The canonical view of a session: four sections in order. The same state gives the same bytes. */
export interface Assembled {
  /** The system prompt. */
  systemPrompt: string
  /** One line for each object of the metadata pool. */
  metadataPool: string
  /** The conversation, with `toolcall_ref` lines in place of outputs. */
  chat: unknown[]
  /** One block for each object of the active set. */
  activeContent: string
  /** All four as one text. */
  text: string
  /** The blocks of `activeContent`, so that callers need not parse it. */
  blocks: Array<Block>
}

/** One block of the fourth section. */
export interface Block {
  /** The object's ID. */
  id: string
  /** Its content, verbatim. */
  content: string
}

/** Arguments that replace the full ones of a call. */
export interface CollapsedCall {
  /** The harness's call ID. */
  callId: string
  /** The position among the tool calls of the message, counted from 0. */
  position: number
  /** The arguments to show. */
  args: object
}

/** A version that failed the integrity check. */
export interface Damage {
  /** The object's ID; absent where the damage lies outside any version. */
  id?: string
  /** The version's transaction. */
  txId?: number
  /** What is wrong, in words. */
  what: string
}

/** One message to replace in what the model sees. */
export type Edit =
  | { kind: 'result'; /** The message. */
    key: string; /** The object behind it. */
    object: string; /** Its new text; if absent, restore the message as the harness has it. */
  text?: string }
  | { kind: 'message'; /** The message. */
    key: string; /** The calls whose arguments to replace. */
    calls: Array<CollapsedCall>; /** The blocks to shorten or leave out; none if the call did not set `shortens`. */
  texts: Array<TextEdit> }
  | { kind: 'gone'; /** The message. */
  key: string }

/** When and why the owner of a store erased something of a version. */
export interface ErasedMark {
  /** When, RFC 3339. */
  at: string
  /** The owner's words. */
  why: string
}

/**
 * Writes the histories of a store, or of one of its sessions, as JSON Lines.
 *
 * Rejects with `UNKNOWN_OBJECT` if the store does not have the session, `IO`, and with the errors of the store.
 */
export declare function exportStore(store: StoreOptions, path: string, sessionId?: string | undefined | null): Promise<TransferSummary>

/**
 * The IDs of the objects that a name may stand for: the object with this ID; else the files with this canonical path;
 * else the objects whose IDs, or whose short names as models and people see them (`673a446c`), begin so. At most 20.
 *
 * Rejects with the errors of the store.
 */
export declare function findObjects(store: StoreOptions, name: string): Promise<Array<string>>

/**
 * Looks for secrets of known shapes in all versions of a store, with the rules of gitleaks. It names the places, never the
 * secrets: in a name that contains one, `[secret]` or a mark such as `[redacted: github-pat]` stands in its place.
 *
 * Rejects with the errors of the store.
 */
export declare function findSecrets(store: StoreOptions): Promise<Array<SecretPlace>>

/**
 * Erases texts from a store for good: from all versions, the search index, the log and the free pages of a file; from XTDB
 * with `evict`, and from the journal in front of it. Envelopes, hashes and times stay. The versions say when and why, and
 * the same text is never stored again. A file is rewritten, which needs free space of twice its size. An interrupted call
 * is completed by repeating it.
 *
 * Rejects with `INVALID_ARGUMENT` for an unknown object, path or session and for a text that is too short; with
 * `STORE_FULL` if there is not enough free space (nothing was erased then); and with the errors of the store.
 */
export declare function forgetStore(store: StoreOptions, wanted: Array<Forgetting>, why: string): Promise<Forgotten>

/** What is to be forgotten: one of these. */
export interface Forgetting {
  /** The ID of an object. */
  id?: string
  /** The canonical path of files. */
  path?: string
  /** A text, wherever it occurs. */
  text?: string
  /** A session, with what no other session has encountered. */
  sessionId?: string
  /** `true`: every secret that `findSecrets` finds. */
  secrets?: boolean
}

/** What was forgotten. */
export interface Forgotten {
  /** Distinct texts. */
  texts: number
  /** Versions that say so now. */
  versions: number
}

/** Which part of a history to return. */
export interface HistoryPart {
  /** Only versions of later transactions than this one: the `txId` of the last version of the previous part. */
  after?: number
  /**
   * At most this many versions, the oldest ones. The versions of one transaction are not divided, so there may be a
   * few more.
   */
  limit?: number
}

/**
 * Writes those versions of an export that a store does not have yet, with the same IDs, hashes, order and valid
 * times. An interrupted import can be repeated.
 *
 * Rejects with `INVALID_ARGUMENT` if the file is damaged, incomplete or not an export (nothing was written),
 * `CONFLICT` if the store has an object with the same ID and a different history, `IO`, and with the errors of the
 * store.
 */
export declare function importStore(store: StoreOptions, path: string): Promise<TransferSummary>

/** A message of the harness that the engine has not seen yet. */
export interface IncomingMessage {
  /** The harness's own name for the message, used again in the plan. */
  key: string
  /** The message in the shape of pi-ai: `{ role, content, … }`. */
  message: object
}

/** What indexing many files did. */
export interface IndexedFiles {
  /** What happened to each indexed file, in the order of the given paths. */
  indexed: Array<IndexResult>
  /** The paths without a readable regular file, in the given order. */
  refused: Array<RefusedFile>
}

/** What indexing did. */
export interface IndexResult {
  /** The object's ID. */
  id: string
  /** What happened to it. */
  action: 'created' | 'updated' | 'unchanged' | 'deleted'
  /** Why the object has no text, as the end of a sentence that begins "the file …". */
  reason?: string
}

/**
 * The sessions of a store, the one that was written last first.
 *
 * Rejects with the errors of the store.
 */
export declare function listSessions(store: StoreOptions): Promise<Array<SessionSummary>>

/** The circumstances of the next model call. */
export interface ModelCall {
  /** The model's name. A change of model means a cold cache. */
  model: string
  /** The model's prices. */
  prices: ModelPrices
  /**
   * How many content blocks the provider looks back for a cached prefix: 20 for Anthropic's API; absent for
   * providers that reuse any common prefix.
   */
  lookbackBlocks?: number
  /**
   * How many earlier endings of a user's message or a group of outputs the provider looks back for a cached prefix: 20 for
   * OpenAI's models from GPT-5.6 on; absent for other providers.
   */
  lookbackEndings?: number
  /**
   * What the provider does with the model's reasoning once something before it has changed: `none` (it does not check),
   * `keeps` (it checks, but the model still reads it), `drops` (it drops that reasoning and all later reasoning) or
   * `refuses` (it refuses the request). Default `none`.
   */
  binding?: 'none' | 'keeps' | 'drops' | 'refuses'
  /**
   * Whether text between the calls of an answer is part of the model's reasoning, which must stay as it is or leave as a
   * whole. Default false.
   */
  textIsReasoning?: boolean
  /** The context window in tokens; 0 when unknown. */
  contextWindow: number
  /** How long the provider keeps a prefix, in milliseconds. */
  cacheTtlMs: number
  /** The harness's clock, in milliseconds since the epoch. */
  nowMs: number
  /** Estimated tokens of the system prompt and the tool declarations. */
  systemTokens: number
  /** Roll only at the start of a user's turn, for models whose reasoning depends on an unchanged prefix. */
  onlyAtUserTurn: boolean
  /** Whether the next call starts a user's turn. */
  atUserTurn: boolean
  /** Whether a roll may happen now. */
  rolls: boolean
  /**
   * Whether the harness can shorten texts in messages and leave out whole messages: edits with `texts`, and edits of the
   * kind `gone`. Default false: then only outputs and arguments collapse.
   */
  shortens?: boolean
}

/** Prices per million tokens, as a model catalogue lists them; only their ratios matter. Zero means unknown. */
export interface ModelPrices {
  /** Fresh input. */
  input: number
  /** Cached input. */
  cacheRead: number
  /** Writing to the cache. */
  cacheWrite: number
  /** `false` for a model that caches nothing. */
  caches?: boolean
  /** Sizes from which on the whole request costs more, as `cost.tiers` in Pi's model catalogue. Default: none. */
  tiers?: Array<PriceStep>
}

/** A rule that maps a prefix of the agent's paths to the filesystem that the client sees. */
export interface MountMapping {
  /** The prefix as the agent sees it, absolute, for instance `/workspace`. */
  agentPrefix: string
  /** The prefix on the filesystem that `filesystemId` names, for instance `/home/me/project`. */
  canonicalPrefix: string
  /** The filesystem namespace of everything below the prefix. */
  filesystemId: string
}

/**
 * The versions of an object, oldest first, or a part of them; empty for an unknown object.
 *
 * Rejects with the errors of the store.
 */
export declare function objectHistory(store: StoreOptions, id: string, part?: HistoryPart | undefined | null): Promise<Version[]>

/** How a session is opened. */
export interface OpenOptions {
  /** The harness's ID of the session. A session that the store already has is resumed. */
  sessionId: string
  /** The agent's working directory, absolute, as the agent sees it. */
  cwd: string
  /** Where objects are stored. Default: SQLite at `defaultStorePath()` (main entry), memory (native class). */
  store?: StoreOptions
  /** The agent's home directory, for paths that begin with `~`. */
  home?: string
  /** The system prompt to record. */
  systemPrompt?: string
  /** The filesystem namespace of paths that no mount covers. */
  filesystemId?: string
  /** How the agent's paths map to paths that the client can read. */
  mounts?: Array<MountMapping>
  /** The auto-collapse window. */
  window?: WindowOptions
  /** How long text stays in what the model is shown. */
  stay?: StayOptions
  /** Whether files are watched. Default true. */
  watch?: boolean
  /** Whether paths that no mount covers are the client's own. Default: true without mounts, else false. */
  watchUnmapped?: boolean
  /** Tell filesystems apart by device number where no mount applies. Default false. */
  detectDevices?: boolean
  /**
   * Take secrets of known shapes out of what is recorded, before it is stored. Files stay as they are, and so does what
   * the model is sent while this process runs. Default false.
   */
  redact?: boolean
}

/** A fresh file name for an output. `args` is JSON text. Throws `INVALID_ARGUMENT`. */
export declare function outputFileName(tool: string, args: string, timestamp: number, counter: number): string

/** Those of some file names that are outputs, oldest first; with `temporary`, the leftovers instead. */
export declare function outputNames(names: Array<string>, temporary: boolean): Array<string>

/** The first 12 hexadecimal digits of a query's SHA-256. */
export declare function outputQueryHash(query: string): string

/** The name of an output's file until it is complete. */
export declare function outputTemporaryName(fileName: string): string

/** The result for one requested file: its text, or why there is none. */
export interface OutputText {
  /** The file's text (for metadata: a JSON object of the fields without the result). */
  text?: string
  /** Why there is no text, as a clause that follows the file's name. */
  reason?: string
}

/** Which part of a content to return. */
export interface Part {
  /** First and last line, counted from 1: `[120, 180]`, or `"120-180"` as the tool `activate` and the commands take it. */
  lines?: [number, number] | string
  /**
   * Only lines that match this regular expression. It ignores the case of ASCII letters unless it contains a
   * capital one. Matching takes time in proportion to the text; look-around and back-references are refused.
   */
  grep?: string
}

/** A part of a text. */
export interface Passage {
  /** The requested lines, verbatim; matches as `number: line`. If not all fit, the last line says how many are left. */
  text: string
  /** How many lines (or matches) it has. */
  lines: number
  /** How many were requested or match. */
  of: number
  /** The number of lines of the whole text. */
  total: number
}

/** What to do before the next model call. */
export interface Plan {
  /** Messages to replace in what the model sees. */
  edits: Edit[]
  /** Lines to add at the end of what the model sees. */
  notices: Array<string>
  /** The receipt of the roll among the edits, if there was one. */
  receipt?: RollReceipt
  /** Estimated tokens of the next request. */
  contextTokens: number
  /** Estimated tokens of what could be rolled. */
  staleTokens: number
  /**
   * The cost of changing the very start of the next request, in fresh input tokens: its cached part, written
   * again. 0 if the cache is cold. Set only by `advance`, like `spent`.
   */
  rewriteCost: number
  /** What this process's model calls have cost so far, in fresh input tokens, without the answers. */
  spent: number
  /** The current result of `point`; set only by `advance`. */
  point?: number
  /** The current result of `pointTimes`; set only by `advance`. */
  pointTimes?: [string, string]
}

/**
 * A step in a model's price. A request with more input tokens than this, cached ones included, costs `factor` times as much,
 * on all of its tokens.
 */
export interface PriceStep {
  /** Input tokens that a request may have at the lower price. */
  inputTokensAbove: number
  /** The price above, as a multiple of the price below the first step; more than 1. */
  factor: number
}

/** What was removed from a store, or would be. */
export interface Pruned {
  /** The sessions, the oldest first. */
  sessions: Array<SessionSummary>
  /** Objects, including the sessions' own documents. */
  objects: number
  /** About how many bytes of the file become free. */
  freedBytes: number
  /** How many bytes of it were in use before. */
  usedBytes: number
  /** Whether the file has shrunk. If not, new data will use the free space. */
  isShorter: boolean
}

/** Which sessions to remove from a store: give an age, a size, a project, or several of them. */
export interface PruneOptions {
  /** Sessions that have been neither written nor opened for this many days. */
  olderThanDays?: number
  /** As many of the oldest sessions as necessary to use no more bytes than this. */
  maxBytes?: number
  /** Only sessions that worked in this folder or below it. */
  project?: string
  /** Only report what would be removed. */
  dryRun?: boolean
}

/**
 * Removes sessions from a store, together with what only they have encountered. They can be imported again. Sessions written
 * or opened within the last day stay.
 *
 * Rejects with `INVALID_ARGUMENT` if neither an age, a size nor a project is given, and with the errors of the store.
 */
export declare function pruneStore(store: StoreOptions, options: PruneOptions): Promise<Pruned>

/** Which objects a query returns. Absent fields do not restrict it. */
export interface QueryFilter {
  /** Only objects of this type. */
  type?: ObjectType
  /** Only objects of this session: its infrastructure and the objects in its index. */
  sessionId?: string
  /** Only files at or below this path, as the agent writes it. */
  pathPrefix?: string
  /** Only objects that changed at this time or later, RFC 3339. */
  since?: string
}

/**
 * The version of an object that holds now, or held after a transaction; `null` if there is none.
 *
 * Rejects with the errors of the store.
 */
export declare function readObject(store: StoreOptions, id: string, txId?: number | undefined | null): Promise<Version | null>

/** What to show when a tool result enters the transcript. */
export interface ReceivedResult {
  /** The object's ID. */
  id: string
  /** Its short name, used in the projection. */
  handle: string
  /** The line to put before the output; absent where a reference would not be shorter than the output. */
  header?: string
}

/**
 * The text as `redact` stores it, with a mark such as `[redacted: github-pat]` in place of each secret; null if it has none.
 *
 * Never rejects.
 */
export declare function redactedText(text: string): Promise<string | undefined | null>

/** A path that could not be indexed. */
export interface RefusedFile {
  /** The given path. */
  path: string
  /** `IO` or `INVALID_ARGUMENT`. */
  code: ErrorCode
  /** Why, as a sentence. */
  message: string
}

/** What a roll removed, what it cost, and when it pays for itself. For people; it never enters the chat. */
export interface RollReceipt {
  /** How many items were replaced by references. */
  items: number
  /**
   * Blocks of reasoning that were not stale but depended on what changed: they left too, or the provider drops them. Absent
   * for none.
   */
  reasoningLost?: number
  /** Those of them that belonged to the turn in which the roll happened. */
  reasoningLostRunning?: number
  /** Tokens removed from the request. */
  removedTokens: number
  /** What it cost once, in fresh input tokens. */
  cost: number
  /** What each later call saves, in fresh input tokens. */
  gain: number
  /** Model calls until it has paid for itself; absent if it never does. */
  paysBackAfterCalls?: number
  /** Why it happened. */
  reason: 'free' | 'pays' | 'pressure' | 'hard' | 'asked'
}

/** One hit of a search. */
export interface SearchHit {
  /** The object's ID. */
  id: string
  /** The object's short name in this session; absent if the session has not encountered it. */
  handle?: string
  /** The object's type. */
  type: ObjectType
  /** A file's path as the agent sees it. */
  path?: string
  /** The tool of a tool call. */
  tool?: string
  /** The newest version with this content. */
  txId: number
  /** Whether that is the object's latest version. */
  isLatest: boolean
  /** The first line that matches, counted from 1. */
  line: number
  /** That line, shortened around the match. */
  snippet: string
  /** Higher is better; comparable within one answer only. */
  score: number
  /** The whole hit as a line for the model; it starts with the name to activate. */
  shown: string
}

/** Restricts a search. */
export interface SearchOptions {
  /** At most this many hits, and at most 1,000. Default 20. */
  limit?: number
  /** Only objects of this type. */
  type?: ObjectType
  /** Only files and tool calls in the index of this session. Default: the whole store. */
  sessionId?: string
}

/**
 * Full-text search over all sessions of a store, best match first.
 *
 * Rejects with the errors of the store.
 */
export declare function searchStore(store: StoreOptions, text: string, options?: SearchOptions | undefined | null): Promise<Array<StoreHit>>

/** Secrets that one rule has found in one object. The secrets themselves are not given. */
export interface SecretPlace {
  /** The object's ID. */
  id: string
  /** A file's canonical path. */
  path?: string
  /** The tool of a tool call. */
  tool?: string
  /** The first transaction whose version has one. */
  txId: number
  /** The line of the first one in the content, counted from 1; absent where it is in arguments or in a turn. */
  line?: number
  /** The rule of gitleaks that found it, for instance `aws-access-token`. */
  rule: string
  /** How many different ones there are in all versions. */
  count: number
}

/** The four sets of a session, as object IDs in the order in which they entered. */
export interface SessionSets {
  /** Every content object that the session has encountered; never shrinks. */
  session_index: Array<string>
  /** The objects that are visible as metadata. */
  metadata_pool: Array<string>
  /** The objects whose content is loaded. */
  active_set: Array<string>
  /** The objects that are exempt from auto-collapse. */
  pinned_set: Array<string>
}

/** A session of a store. */
export interface SessionSummary {
  /** Its ID. */
  id: string
  /** Turns of its chat. */
  turns: number
  /** Objects that it has encountered. */
  objects: number
  /** When it was last written, RFC 3339. */
  lastWritten: string
  /** The folder that it worked in, if that is known. */
  folder?: string
  /** The beginning of the first prompt, on one line. */
  firstPrompt?: string
}

/**
 * The answer to a change of the session's sets. A refusal is an answer and not an error, because it is meant for the
 * model.
 */
export interface SetChange {
  /** Whether it was done. */
  ok: boolean
  /** The object's ID. */
  id: string
  /** A sentence for the model. */
  message: string
  /** Why not: `UNKNOWN_OBJECT`, `NOT_CONTENT`, `NULL_CONTENT`, `NOT_ACTIVE` or `INVALID_ARGUMENT`. */
  code?: ErrorCode
  /** After an activation: the content, or the requested part of it. */
  content?: string
  /** After the activation of a tool call whose arguments have collapsed in the last projection: the full arguments. */
  arguments?: object
  /**
   * After an activation: whether the whole content is still visible in the last projection. `message` then names the
   * result in which it is.
   */
  visible: boolean
}

/** Figures of a session. */
export interface Stats {
  /** Estimated tokens of the next request (characters / 4). */
  contextTokens: number
  /** Estimated tokens of the active set's contents. */
  activeTokens: number
  /** Content objects in the session index. */
  objects: number
  /** Rolls that this process has executed. */
  rolls: number
}

/**
 * How long text stays in what the model is shown: `keep` for good, or a number of model calls. By default each text stays
 * as long as keeping it costs less than the expected cost of needing it again.
 */
export interface StayOptions {
  /** The model's reasoning, if its provider allows removing it. */
  thinking?: 'keep' | number
  /** Calls: once their outputs and arguments are old they become one line. */
  calls?: 'keep' | number
  /** The model's prose, and long texts of users. */
  prose?: 'keep' | number
  /**
   * What a missed use weighs. Larger numbers keep everything longer, and cost more. By default 3.5, and 8 from the
   * 40th call on; 0.42 of that if only outputs and arguments can leave.
   */
  weight?: number
}

/** One hit of a search over a whole store. */
export interface StoreHit {
  /** The object's ID. */
  id: string
  /** The object's type. */
  type: ObjectType
  /** A file's canonical path. */
  path?: string
  /** The tool of a tool call. */
  tool?: string
  /** The arguments of a tool call. */
  args?: Record<string, unknown>
  /** The newest version with this content. */
  txId: number
  /** Whether that is the object's latest version. */
  isLatest: boolean
  /** The first line that matches, counted from 1. */
  line: number
  /** That line, shortened around the match. */
  snippet: string
}

/**
 * Returns the limits of a database file; sets them first if they are given. Without limits, nothing is removed
 * automatically.
 *
 * Rejects with `INVALID_ARGUMENT` for a store that is not a file, and with the errors of the store.
 */
export declare function storeLimits(store: StoreOptions, limits?: StoreLimits | undefined | null): Promise<StoreLimits>

/** Limits of a store. While the store is idle, sessions beyond them are removed automatically. */
export interface StoreLimits {
  /** How many bytes of the file may be in use. */
  maxBytes?: number
  /** Sessions that have not been opened for this many days are removed. */
  maxDays?: number
}

/** Where objects are stored. */
export type StoreOptions =
  | { kind: 'memory' }
  | { kind: 'sqlite'; /** The database file. The file and its folder are created if needed, readable only by their owner. */
    path: string; /**
     * `power` (default): a commit survives a power failure. `process`: it survives the end of the
     * process, and is faster.
     */
  durability?: 'process' | 'power' }
  | { kind: 'xtdb'; /** A node, for instance `http://127.0.0.1:3000`. */
    url: string; /** Further nodes of the same database, for fail-over. */
    urls?: Array<string>; /** The time limit of one request in milliseconds. Default 10,000. */
    timeoutMs?: number; /**
     * A file on this machine that takes every write immediately and sends it on in order, so that no call waits
     * for a node and nothing is lost while the node is down. Default: chosen by the main entry point. Without a
     * journal (native class), every call waits for the node.
     */
  journal?: string }

/** The state of a store. For XTDB behind a journal, what is waiting there for the node. */
export interface StoreState {
  /** The kind of the store. */
  kind: 'memory' | 'sqlite' | 'xtdb'
  /** The XTDB node that answers, or the first one tried; without user name and password. */
  url?: string
  /** Whether XTDB answered the last request; absent without a journal. */
  connected?: boolean
  /** How many transactions of the journal XTDB does not have yet. */
  queued: number
  /** Since when the oldest of them has been waiting, RFC 3339; absent if none is. */
  waitingSince?: string
  /** Whether this process sends the journal's transactions; absent without a journal. */
  sender?: boolean
  /**
   * How many objects changed by others still have to be fetched from XTDB, as far as known; 0 if the journal is up
   * to date, absent without one.
   */
  behind?: number
  /** The last error, until the operation succeeds again. */
  lastError?: string
}

/** A block of a message that is shortened or left out. */
export interface TextEdit {
  /** The block, counted from 0 among those of the message as it was handed over; 0 for a content that is one text. */
  block: number
  /** Its new text; absent: leave the block out. */
  text?: string
}

/**
 * The requested lines of a text, up to `maxUnits` UTF-16 units. They are searched away from the event loop, in time
 * proportional to the text, whatever the pattern.
 *
 * Rejects with `INVALID_ARGUMENT` for a range that is not in the text, for a pattern that is not a regular expression
 * without look-around and back-references, and if neither is given.
 */
export declare function textPart(text: string, part: Part, maxUnits: number): Promise<Passage>

/** A tool execution. */
export interface Toolcall {
  /** The harness's call ID, verbatim. */
  id: string
  /** The tool's name. */
  tool: string
  /** The arguments as the model gave them. */
  args: object
  /** A short form of the arguments for people. */
  argsDisplay?: string
  /** The complete output text. */
  content: string
  /** Whether the tool succeeded. */
  status: 'ok' | 'fail'
  /** IDs of file objects that the call concerns. Files that the engine finds itself are added. */
  fileRefs?: Array<string>
  /**
   * The ID of the call whose program made this one. The output of such a call goes to the program and not to the
   * model. It is recorded and can be searched, but does not appear in pool, window or chat.
   */
  parent?: string
}

/** What an export or import did. */
export interface TransferSummary {
  /** The objects in the file. */
  objects: number
  /** The versions in the file. */
  versions: number
  /** The versions that the store did not have; 0 for an export. */
  written: number
}

/** The number of turns of a chat. */
export interface TurnCount {
  /** Turns, including the current one. */
  turnCount: number
}

/**
 * Reads a whole store and lists each version that does not match its stored hash. An empty list means an intact
 * store.
 */
export declare function verifyStore(store: StoreOptions): Promise<Array<Damage>>

/** One version of an object. */
export interface Version {
  /** The whole document. */
  document: ObjectDocument
  /** The transaction that wrote it; strictly increasing within a store. */
  txId: number
  /** When the store learned of it, RFC 3339. */
  txTime: string
  /** The time from which it holds, RFC 3339. */
  validTime: string
  /** Set if the owner of the store has erased something of it: texts are missing or say `[erased]`. */
  erased?: ErasedMark
}

/** Something that happened to a tracked file outside the agent's own calls. */
export interface WatchEvent {
  /** The object's ID; empty for a warning. */
  id: string
  /** The path as the agent sees it; the text of a warning. */
  path: string
  /** What happened. */
  action: 'created' | 'updated' | 'unchanged' | 'deleted' | 'orphaned' | 'warning' | 'touched'
}

/** How long tool outputs stay active without being pinned. */
export interface WindowOptions {
  /** How many of the most recent tool outputs of one turn stay active. Default 5. */
  perTurn?: number
  /** For how many turns tool outputs stay active, including the current one. Default 3. */
  turnsBack?: number
}
