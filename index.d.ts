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
  /** The text; null for what is deleted, not text, unreadable, too large or only discovered. */
  content?: string | null
  /** SHA-256 of all payload fields but `source_hash` and itself. */
  content_hash: string
  /** SHA-256 of the source's raw bytes; null where they are not known. */
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
 * A client's hold on one session: it indexes files, records tool calls and turns, keeps the session's sets,
 * renders the context, and answers questions about every version of every object.
 *
 * Every method but `watch` and `watchTouches` returns a promise; a rejection is an `Error` with a `code`
 * of `ErrorCode`. After `close()` every method rejects with `CLOSED`.
 */
export declare class ContextManager {
  /**
   * Opens the store, and starts the session or, where the store knows it, resumes it: files that changed
   * meanwhile get a new version, and what can't be reached keeps its last one.
   *
   * Rejects with `INVALID_ARGUMENT`, `STORE_UNAVAILABLE`, `STORE_CORRUPT`, `STORE_NEWER` or `STORE_FULL`.
   */
  static open(options: OpenOptions): Promise<ContextManager>
  /**
   * Imports an exported session and opens it. Under another `sessionId` than the file's it becomes a copy with
   * that ID, which shares the objects and goes its own way from there.
   *
   * Rejects with `INVALID_ARGUMENT` for a file that is no whole export of one session (nothing was written),
   * `CONFLICT` where the store has the session with another history, `IO`, and as `open`.
   */
  static importSession(path: string, options: OpenOptions): Promise<ContextManager>
  /** The session that this instance is bound to. */
  get sessionId(): string
  /**
   * Indexes a file that the agent has read: it enters the metadata pool and the active set.
   *
   * `content` is the whole file as the tool read it; without it the file is read from disk. Text is hashed
   * as its UTF-8 bytes, so callers that have the bytes hand over bytes. A file that is not text is indexed
   * with null content and a `reason`.
   *
   * Rejects with `IO` when there is no readable regular file, `INVALID_ARGUMENT` for an impossible path.
   */
  indexFile(path: string, content?: Content | undefined | null): Promise<IndexResult>
  /**
   * Indexes a file that the agent has written: it enters the metadata pool and is not activated by that.
   *
   * Rejects as `indexFile`.
   */
  indexWritten(path: string, content?: Content | undefined | null): Promise<IndexResult>
  /**
   * Indexes many files, for instance all of a project, so that they can be searched and are known to the model: they
   * enter the metadata pool, and the active set stays as it is. Several threads read while another one writes.
   *
   * A file that can't be read is in `refused` and stops no other. Rejects with what the store reports; what was written
   * before that stays, and a repetition goes on from there.
   */
  indexFiles(paths: Array<string>): Promise<IndexedFiles>
  /** Records that a file is confirmed to be deleted: a version with null content. The history stays. */
  indexFileDeletion(path: string): Promise<IndexResult>
  /** Takes in paths that were only seen (ls, find, grep): metadata without content. Never overwrites. */
  discover(paths: Array<string>): Promise<Array<IndexResult>>
  /**
   * Records a tool call of the current turn: a `toolcall` object that is active until the window lets it
   * go. Files that it read, wrote or named are indexed. Resolves with the object's ID.
   */
  recordToolcall(call: Toolcall): Promise<string>
  /**
   * Starts a turn with the user's message, or adds the assistant's answer to the current one. A message is
   * `{ role, content, … }` as pi-ai shapes it; an answer's other fields are kept as its metadata.
   */
  appendTurn(message: object): Promise<{ turnCount: number }>
  /** Records the system prompt; the same text again writes nothing. */
  setSystemPrompt(text: string): Promise<undefined>
  /**
   * Puts an object into the active set and gives its content. `id` is a full ID, a handle, or either with
   * `@txId` for a historical version, which leaves the sets as they are.
   */
  activate(id: string, part?: Part | undefined | null): Promise<SetChange>
  /** Takes an object out of the active set; its metadata stays. */
  deactivate(id: string): Promise<SetChange>
  /** Exempts an object from auto-collapse. */
  pin(id: string): Promise<SetChange>
  /** Takes back a pin. */
  unpin(id: string): Promise<SetChange>
  /** Puts an object of the session index into the metadata pool. */
  promote(id: string): Promise<SetChange>
  /** Takes an object out of the metadata pool and the active set; the session index keeps it. */
  demote(id: string): Promise<SetChange>
  /** The session's four sets. */
  sessionSets(): Promise<SessionSets>
  /**
   * The canonical view: system prompt, metadata pool, chat, active content, byte for byte the same for the
   * same state. Its cost follows the length of the conversation.
   */
  assemble(): Promise<Assembled>
  /** The latest version of an object, or null. */
  get(id: string): Promise<ObjectDocument | null>
  /** The version of an object at a point of the two times, or null. A text is a valid time. */
  getAsOf(id: string, at: string | AsOf): Promise<ObjectDocument | null>
  /**
   * The versions of an object, oldest first; none for an unknown one. All of them, or a part: with `limit` and `after`
   * a long history is read piece by piece, and only what is asked for is held in memory.
   *
   * The documents share what they have in common, such as the turns of a chat, so treat them as read-only.
   */
  history(id: string, part?: HistoryPart | undefined | null): Promise<Version[]>
  /**
   * The difference of two versions' contents as a unified diff; empty where they are equal. A version is named
   * by the `txId` that `history` gives for it.
   */
  diff(id: string, fromTx: number, toTx: number): Promise<string>
  /** The objects that fit a filter, in the order in which they were first written. */
  query(filter: QueryFilter): Promise<ObjectDocument[]>
  /** Full-text search over the contents of all versions, best match first. */
  search(text: string, options?: SearchOptions | undefined | null): Promise<Array<SearchHit>>
  /** Figures of the session. */
  stats(): Promise<Stats>
  /** How the session's store stands: its kind, and for XTDB what waits to be sent. */
  storeState(): Promise<StoreState>
  /**
   * Calls a listener when a tracked file changes outside the agent's own calls. Returns the function that
   * ends it. Watching does not keep the process alive. Throws `CLOSED`.
   */
  watch(listener: (event: WatchEvent) => void): () => void
  /**
   * Calls a listener as soon as a tracked file is touched, before it is read: for what need not know more, such as a
   * mark in an editor. The action is `touched`; a version that comes of it is told to the listeners of `watch` once
   * it is stored. Returns the function that ends it. Throws `CLOSED`.
   */
  watchTouches(listener: (event: WatchEvent) => void): () => void
  /**
   * Compares every file of the session with the disk, and indexes what has changed: for sessions that do not watch.
   * Returns what was written. A file is only read where its size, times or inode number differ from what an earlier
   * comparison saw.
   */
  reconcile(): Promise<Array<IndexResult>>
  /** Waits until what was written to disk before the call has been seen by the trackers and indexed. */
  flush(): Promise<undefined>
  /**
   * Ends the trackers. The session's state is in the store at any time, so this is all that a pause takes;
   * `open` with the same session ID resumes it, here or elsewhere.
   */
  pause(): Promise<undefined>
  /** Pauses the session and closes the store. Closing twice is fine. */
  close(): Promise<undefined>
  /**
   * Writes this session with the whole history of everything it has encountered as JSON Lines, readable by its
   * owner only. A file that is there already is replaced when the new one is whole.
   *
   * Rejects with `IO`, and what the store reports.
   */
  exportSession(path: string): Promise<TransferSummary>
  /**
   * Records a tool result before the harness stores it, and says what to put before it. `content` is the
   * complete output, before any truncation. It survives the end of the process then, and a loss of power after
   * `settle`.
   */
  receive(call: Toolcall): Promise<ReceivedResult>
  /**
   * Takes in the messages that are new since the last call, records what is not recorded yet, and decides
   * what the next model call shall see. Between two rolls no message that was sent before is replaced. What it
   * records survives the end of the process then, and a loss of power after `settle`.
   */
  advance(messages: Array<IncomingMessage>, call: ModelCall): Promise<Plan>
  /**
   * Waits until what `receive`, `advance` and `resync` have recorded survives a loss of power too, as all else does
   * once its promise is fulfilled. Meanwhile the harness can go on.
   */
  settle(): Promise<undefined>
  /**
   * Rebuilds what is visible from the messages of the branch that the harness is on now, with earlier edits
   * already in them. The first `recorded` messages are in the store already.
   */
  resync(messages: Array<IncomingMessage>, recorded: number, call: ModelCall): Promise<Plan>
  /**
   * What to answer to a read of a file, just indexed, whose lines are still visible in the model's request:
   * where they are, or what has changed in them since. Null: show the lines. `offset` is the first line,
   * counted from 1, and `limit` the number of lines.
   */
  answerRead(path: string, offset?: number | undefined | null, limit?: number | undefined | null): Promise<string | undefined | null>
  /**
   * Checks an edit of a file: if it has changed since the model last saw or wrote it, the
   * refusal with the difference, after which the model knows the change. Null: go on.
   */
  checkEdit(path: string): Promise<string | undefined | null>
  /**
   * Checks a call's arguments: where a whole one is a marker that stands for collapsed text, the sentence to
   * refuse the call with. Null: go on.
   */
  checkArguments(args: object): Promise<string | undefined | null>
  /**
   * Lines for the model about files that it knows in another version than they are in now, each version
   * once. `advance` gives the same in its plan; this is for the moment between a prompt and its first call.
   */
  staleNotices(): Promise<Array<string>>
  /** Rolls everything that is stale now, because a person asked for it. */
  rollNow(call: ModelCall): Promise<Plan>
  /** Takes back the latest roll of this process: its messages are to be shown in full again. */
  undoRoll(): Promise<Plan>
  /** The receipts of this process's rolls, oldest first. */
  receipts(): Promise<Array<RollReceipt>>
  /**
   * Takes over pool, active and pinned sets and the chat as they were after a transaction of a session:
   * this one (a step to another branch) or the one that it was forked from. The index becomes the union.
   * Transaction 0 is before any other: nothing has been encountered, and nothing said.
   *
   * `times`, as `pointTimes` gave them, find the point also in a store that the session was moved to, where the
   * transactions have other numbers. Rejects with `UNKNOWN_OBJECT` where the store does not have the point.
   */
  restore(sessionId: string, tx: number, times?: Array<string> | undefined | null): Promise<undefined>
  /** The session's newest own transaction, for `restore`. */
  point(): Promise<number>
  /** The valid times that the session's document and its chat have at that point, in any store; RFC 3339. */
  pointTimes(): Promise<[string, string]>
}

/** Texts by name, bounded by bytes; what was used least recently goes first. */
export declare class OutputCache {
  /** At most `capacity` bytes of texts that are shorter than `threshold` bytes. */
  constructor(capacity: number, threshold: number)
  /** Keeps a text and says whether it fits. */
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
  /** `path` is absolute. `durable`: a finished save survives a power failure, not only the end of the process. */
  constructor(path: string, durable: boolean)
  /**
   * Writes a new file and resolves with its name. `args` is JSON text; `timestamp` is in milliseconds.
   * Rejects with `INVALID_ARGUMENT`, `STORE_FULL` or `IO`.
   */
  save(tool: string, args: string, text: string, timestamp: number, counter: number): Promise<string>
  /** Reads whole files by name, in the order given. */
  load(names: Array<string>): Promise<Array<OutputText>>
  /** Reads the metadata of files by name, in the order given. */
  metadata(names: Array<string>): Promise<Array<OutputText>>
  /** The names of all output files, oldest first. Rejects with `IO`. */
  names(): Promise<Array<string>>
  /** Removes all output files and leftovers, and resolves with their number. Rejects with `IO`. */
  clear(): Promise<number>
  /** Removes some files by name, and resolves with the number of those that existed. Rejects with `IO`. */
  remove(names: Array<string>): Promise<number>
  /** The same before it returns: for a process that is about to exit. Throws `IO`. */
  removeNow(names: Array<string>): number
}

/** The keyword rule over the descriptions that were added. */
export declare class RelevanceIndex {
  /** An empty index. */
  constructor()
  /** Adds a description and returns its place. */
  add(description: string): number
  /** Positions in `places` of what matches, best first; null where nothing does. */
  rank(query: string, places: Uint32Array): Uint32Array | null
  /** Forgets all descriptions; places start at 0 again. */
  clear(): void
}

/** The keyword rule over descriptions that are in no index, block by block. */
export declare class RelevanceRanking {
  /** A ranking of nothing as yet. */
  constructor(query: string)
  /** Adds descriptions, joined to one text; `lengths` has the length of each. */
  add(joined: string, lengths: Uint32Array): void
  /** Positions of what matches, best first, counted over all blocks; null where nothing does. */
  order(): Uint32Array | null
}

/** A point of the two times. */
export interface AsOf {
  /** What held at this time, RFC 3339. */
  validTime?: string
  /** What the store knew at this time, RFC 3339. */
  txTime?: string
  /** What the store knew after this transaction. */
  txId?: number
}

/** The canonical view of a session: four sections in their order; the same state gives the same bytes. */
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
  /** The blocks of `activeContent`, for callers who must not parse. */
  blocks: Array<Block>
}

/** One block of the fourth section. */
export interface Block {
  /** The object's ID. */
  id: string
  /** Its content, verbatim. */
  content: string
}

/** Arguments that stand in place of a call's full ones. */
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
  /** What does not fit, in words. */
  what: string
}

/** One message to replace in what the model sees. */
export type Edit =
  | { kind: 'result'; /** The message. */
    key: string; /** The object behind it. */
    object: string; /** Its new text; absent: put back the message as the harness has it. */
  text?: string }
  | { kind: 'arguments'; /** The message. */
    key: string; /** The calls whose arguments to replace; none: put back the message as the harness has it. */
  calls: Array<CollapsedCall> }

/**
 * Writes the histories of a store, or of one of its sessions, as JSON Lines.
 *
 * Rejects with `UNKNOWN_OBJECT` for a session that the store does not have, `IO`, and what the store reports.
 */
export declare function exportStore(store: StoreOptions, path: string, sessionId?: string | undefined | null): Promise<TransferSummary>

/**
 * Erases texts from a database file for good: from all versions, the search index, the log and the free pages. Envelopes,
 * hashes and times stay; the versions say when and why, and what was erased is never stored again. The file is written
 * anew, which takes twice its length of free room. What a call that was interrupted has left is done by the same call
 * again.
 *
 * Rejects with `INVALID_ARGUMENT` for an unknown object, path or session, for a text that is too short and for a store
 * that is no file, `STORE_FULL` without that room (nothing was erased then), and what the store reports.
 */
export declare function forgetStore(store: StoreOptions, wanted: Array<Forgetting>, why: string): Promise<Forgotten>

/** What is to be forgotten: one of these. */
export interface Forgetting {
  /** The ID of an object. */
  id?: string
  /** The canonical path of files. */
  path?: string
  /** A text, wherever it stands. */
  text?: string
  /** A session, with what no other session has encountered. */
  sessionId?: string
}

/** What was forgotten. */
export interface Forgotten {
  /** Distinct texts. */
  texts: number
  /** Versions that say so now. */
  versions: number
}

/** Which part of a history to give. */
export interface HistoryPart {
  /** Only versions of later transactions than this one: the `txId` of the last version of the part before. */
  after?: number
  /**
   * So many versions at most, the oldest ones. The versions of one transaction are not divided, so there may be a few
   * more.
   */
  limit?: number
}

/**
 * Writes the versions of an export that a store does not have yet: same IDs, hashes, order and valid times. An
 * interrupted import can be repeated.
 *
 * Rejects with `INVALID_ARGUMENT` for a file that is damaged, cut or no export (nothing was written), `CONFLICT`
 * where the store has an object of the same ID with another history, `IO`, and what the store reports.
 */
export declare function importStore(store: StoreOptions, path: string): Promise<TransferSummary>

/** A message of the harness that the engine has not seen yet. */
export interface IncomingMessage {
  /** The harness's own name for the message; it comes back in the plan. */
  key: string
  /** The message as pi-ai shapes it: `{ role, content, … }`. */
  message: object
}

/** What indexing many files did. */
export interface IndexedFiles {
  /** What happened to each file that could be indexed, in the order of their paths. */
  indexed: Array<IndexResult>
  /** The paths without a readable regular file, in their order. */
  refused: Array<RefusedFile>
}

/** What indexing did. */
export interface IndexResult {
  /** The object's ID. */
  id: string
  /** What happened to it. */
  action: 'created' | 'updated' | 'unchanged' | 'deleted'
  /** Why the object has no text, as the end of a sentence "the file …". */
  reason?: string
}

/** The circumstances of the model call that comes next. */
export interface ModelCall {
  /** The model's name; another one than before has a cold cache. */
  model: string
  /** The model's prices. */
  prices: ModelPrices
  /**
   * How many content blocks back the provider looks for a cached prefix: 20 for Anthropic's API, absent for
   * providers that reuse any common prefix.
   */
  lookbackBlocks?: number
  /** The context window in tokens; 0 when unknown. */
  contextWindow: number
  /** How long the provider keeps a prefix, in milliseconds. */
  cacheTtlMs: number
  /** The harness's clock, in milliseconds since the epoch. */
  nowMs: number
  /** Estimated tokens of system prompt and tool declarations. */
  systemTokens: number
  /** Roll only where a user's turn starts, for models whose reasoning depends on an unchanged prefix. */
  onlyAtUserTurn: boolean
  /** Whether the next call begins a user's turn. */
  atUserTurn: boolean
  /** Whether rolls may happen at all now. */
  rolls: boolean
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
}

/** A rule that translates a prefix of the agent's paths to the filesystem that the client sees. */
export interface MountMapping {
  /** The prefix as the agent sees it, absolute, for instance `/workspace`. */
  agentPrefix: string
  /** The prefix on the filesystem that `filesystemId` names, for instance `/home/me/project`. */
  canonicalPrefix: string
  /** The filesystem namespace of everything below the prefix. */
  filesystemId: string
}

/** How a session is opened. */
export interface OpenOptions {
  /** The session, as the harness names it. One that the store knows is resumed. */
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
  /** How the agent's paths translate to paths that the client can read. */
  mounts?: Array<MountMapping>
  /** The auto-collapse window. */
  window?: WindowOptions
  /** Whether files are watched. Default true. */
  watch?: boolean
  /** Whether paths that no mount covers are the client's own. Default: true without mounts, else false. */
  watchUnmapped?: boolean
  /** Tell filesystems apart by device number where no mount says. Default false. */
  detectDevices?: boolean
}

/** A fresh file name for an output. `args` is JSON text. Throws `INVALID_ARGUMENT`. */
export declare function outputFileName(tool: string, args: string, timestamp: number, counter: number): string

/** The output names among some file names, oldest first; with `temporary`, the leftovers' names instead. */
export declare function outputNames(names: Array<string>, temporary: boolean): Array<string>

/** The first 12 hexadecimal digits of a query's SHA-256. */
export declare function outputQueryHash(query: string): string

/** The name that an output's file has until it is whole. */
export declare function outputTemporaryName(fileName: string): string

/** What became of one file that was asked for: its text, or why there is none. */
export interface OutputText {
  /** The file's text (for metadata: a JSON object of the fields without the result). */
  text?: string
  /** Why there is no text, as a clause that follows the file's name. */
  reason?: string
}

/** Which part of a content to give. */
export interface Part {
  /** First and last line, counted from 1. */
  lines?: [number, number]
  /** Only lines that match this regular expression; ASCII letters in both cases, unless it has a capital one. */
  grep?: string
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
   * What it would cost to change the next request at its very start, in fresh input tokens: the part of it
   * that is cached, written again. 0 on a dead cache. Only `advance` says it, as `spent`.
   */
  rewriteCost: number
  /** What this process's model calls have cost so far, in fresh input tokens, without the answers. */
  spent: number
  /** What `point` says now; of `advance` only. */
  point?: number
  /** What `pointTimes` says now; of `advance` only. */
  pointTimes?: [string, string]
}

/** Which objects a query wants; absent fields do not restrict. */
export interface QueryFilter {
  /** Only objects of this type. */
  type?: ObjectType
  /** Only objects of this session: its infrastructure, and what its index holds. */
  sessionId?: string
  /** Only files at or below this path, as the agent writes it. */
  pathPrefix?: string
  /** Only objects that changed at this time or later, RFC 3339. */
  since?: string
}

/** What a tool result shall show when it enters the transcript. */
export interface ReceivedResult {
  /** The object's ID. */
  id: string
  /** Its short name, which the projection uses. */
  handle: string
  /** The line to put before the output; absent where a reference would not be shorter than the output. */
  header?: string
}

/** A path that could not be indexed. */
export interface RefusedFile {
  /** The path as it was given. */
  path: string
  /** `IO` or `INVALID_ARGUMENT`. */
  code: ErrorCode
  /** Why, as a sentence. */
  message: string
}

/** What a roll removed, what it cost, and when it has paid for itself. Made for people, never for the chat. */
export interface RollReceipt {
  /** How many items were replaced by references. */
  items: number
  /** Tokens that left the request. */
  removedTokens: number
  /** What it cost once, in fresh input tokens. */
  cost: number
  /** What each later call saves, in fresh input tokens. */
  gain: number
  /** Model calls until it has paid for itself; absent when it never does. */
  paysBackAfterCalls?: number
  /** Why it happened. */
  reason: 'free' | 'pays' | 'pressure' | 'hard' | 'asked'
}

/** A place where a search found its words. */
export interface SearchHit {
  /** The object's ID. */
  id: string
  /** The object's short name in this session; absent where the session has not encountered it. */
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
  /** All of it as a line for the model, which begins with the name to activate it by. */
  shown: string
}

/** Restricts a search. */
export interface SearchOptions {
  /** At most this many hits. Default 20. */
  limit?: number
  /** Only objects of this type. */
  type?: ObjectType
  /** Only files and tool calls in the index of this session. Default: the whole store. */
  sessionId?: string
}

/** The four sets of a session: object IDs in the order in which they entered. */
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

/** The answer to a change of the session's sets. A refusal is an answer, not an error: it is made for the model. */
export interface SetChange {
  /** Whether it was done. */
  ok: boolean
  /** The object's ID. */
  id: string
  /** A sentence for the model. */
  message: string
  /** Why not: `UNKNOWN_OBJECT`, `NOT_CONTENT`, `NULL_CONTENT`, `NOT_ACTIVE` or `INVALID_ARGUMENT`. */
  code?: ErrorCode
  /** The content or the part of it, after an activation. */
  content?: string
  /** After an activation of a tool call whose arguments are collapsed in what was projected last: the full ones. */
  arguments?: object
  /** After an activation: whether the whole content is still visible in what was projected last. */
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

/** Where objects are stored. */
export type StoreOptions =
  | { kind: 'memory' }
  | { kind: 'sqlite'; /** The database file. It and its folder are created, readable by their owner only. */
    path: string; /**
     * `power` (default): a commit survives a power failure. `process`: it survives the end of the
     * process, and is faster.
     */
  durability?: 'process' | 'power' }
  | { kind: 'xtdb'; /** A node, for instance `http://127.0.0.1:3000`. */
    url: string; /** Further nodes of the same database, for fail-over. */
    urls?: Array<string>; /** The time limit of one request in milliseconds. Default 10,000. */
    timeoutMs?: number; /**
     * A file on this machine that takes every write at once and sends it on in order, so that nobody waits
     * for a node and nothing is lost while it is away. Default: chosen by the main entry; without one (native
     * class) every call waits for the node.
     */
  journal?: string }

/** How a store stands. For XTDB behind a journal: what waits there until the node takes it. */
export interface StoreState {
  /** The kind of the store. */
  kind: 'memory' | 'sqlite' | 'xtdb'
  /** The XTDB node that answers, or the first that is tried; without user name and password. */
  url?: string
  /** Whether XTDB answered the last request; absent without a journal. */
  connected?: boolean
  /** How many transactions of the journal XTDB does not have yet. */
  queued: number
  /** Since when the oldest of them waits, RFC 3339; absent where none does. */
  waitingSince?: string
  /** Whether this process is the one that sends for the journal; absent without a journal. */
  sender?: boolean
  /**
   * How many objects that others changed are still to be fetched from XTDB, as far as known; 0 where the journal is up
   * to date, absent without one.
   */
  behind?: number
  /** What went wrong last, and has not gone well since. */
  lastError?: string
}

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
  /** IDs of file objects that the call concerns; those that the engine finds itself are added. */
  fileRefs?: Array<string>
  /**
   * The ID of the call whose program made this one. Such a call's output goes to the program and not to the model: it is
   * recorded and found by search, and takes no place in pool, window and chat.
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
  /** Turns, the current one included. */
  turnCount: number
}

/** Reads all of a store and names each version whose stored hash does not fit. Empty means intact. */
export declare function verifyStore(store: StoreOptions): Promise<Array<Damage>>

/** One version of an object. */
export interface Version {
  /** The whole document. */
  document: ObjectDocument
  /** The transaction that wrote it; rises strictly within a store. */
  txId: number
  /** When the store learned of it, RFC 3339. */
  txTime: string
  /** From when on it holds, RFC 3339. */
  validTime: string
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
  /** How many turns back tool outputs stay active, the current one included. Default 3. */
  turnsBack?: number
}
