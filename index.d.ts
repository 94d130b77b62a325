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

/** The native half of the class `ContextManager` in lib/session/manager.ts, which documents the methods. */
export declare class ContextManager {
  constructor()
  start(options: OpenOptions, file?: string | undefined | null): Promise<undefined>
  /** The ID of the session; empty before `start`. */
  get sessionId(): string
  indexFile(path: string, content?: Content | undefined | null, callId?: string | undefined | null): Promise<IndexResult>
  indexWritten(path: string, content?: Content | undefined | null, callId?: string | undefined | null): Promise<IndexResult>
  indexFiles(paths: Array<string>): Promise<IndexedFiles>
  indexFileDeletion(path: string): Promise<IndexResult>
  discover(paths: Array<string>): Promise<Array<IndexResult>>
  recordToolcall(call: Toolcall): Promise<string>
  appendTurn(message: object): Promise<{ turnCount: number }>
  setSystemPrompt(text: string): Promise<undefined>
  activate(id: string, part?: Part | undefined | null): Promise<SetChange>
  deactivate(id: string): Promise<SetChange>
  pin(id: string): Promise<SetChange>
  unpin(id: string): Promise<SetChange>
  promote(id: string): Promise<SetChange>
  demote(id: string): Promise<SetChange>
  sessionSets(): Promise<SessionSets>
  orphaned(): Promise<Array<string>>
  assemble(): Promise<Assembled>
  get(id: string): Promise<ObjectDocument | null>
  getAsOf(id: string, at: string | AsOf): Promise<ObjectDocument | null>
  history(id: string, part?: HistoryPart | undefined | null): Promise<Version[]>
  diff(id: string, fromTx: number, toTx: number): Promise<string>
  query(filter: QueryFilter): Promise<ObjectDocument[]>
  search(text: string, options?: SearchOptions | undefined | null): Promise<Array<SearchHit>>
  stats(): Promise<Stats>
  storeState(): Promise<StoreState>
  watch(listener: (event: WatchEvent) => void): () => void
  watchTouches(listener: (event: WatchEvent) => void): () => void
  reconcile(): Promise<Array<IndexResult>>
  flush(): Promise<undefined>
  pause(): Promise<undefined>
  close(): Promise<StoreState | undefined | null>
  receive(call: Toolcall): Promise<ReceivedResult>
  advance(messages: Array<IncomingMessage>, call: ModelCall): Promise<Plan>
  look(): Promise<undefined>
  settle(): Promise<undefined>
  resync(messages: Array<IncomingMessage>, recorded: number, call: ModelCall): Promise<Plan>
  answerRead(path: string, offset?: number | undefined | null, limit?: number | undefined | null, callId?: string | undefined | null): Promise<string | undefined | null>
  checkEdit(path: string): Promise<string | undefined | null>
  guardEdit(path: string, oldTexts?: Array<string> | undefined | null, callId?: string | undefined | null): Promise<EditGuard>
  checkArguments(args: object): Promise<string | undefined | null>
  staleNotices(): Promise<Array<string>>
  rollNow(call: ModelCall): Promise<Plan>
  previewRoll(call: ModelCall): Promise<RollPreview | undefined | null>
  heldBack(call: ModelCall): Promise<HeldBack | undefined | null>
  undoRoll(): Promise<Plan>
  receipts(): Promise<Array<RollReceipt>>
  restore(sessionId: string, tx: number, times?: Array<string> | undefined | null): Promise<undefined>
  goBack(tx: number): Promise<undefined>
  keepBeginning(messages: number): Promise<undefined>
  point(): Promise<number>
  pointTimes(): Promise<[string, string]>
  exportSession(path: string): Promise<TransferSummary>
}

/** The native half of the class `Store` in lib/native/store.ts, which documents the methods. */
export declare class Store {
  /** An instance that is not open yet. */
  constructor()
  /** Opens the store. */
  start(options: StoreOptions): Promise<undefined>
  close(): Promise<StoreState | undefined | null>
  state(): Promise<StoreState>
  sessions(): Promise<Array<SessionSummary>>
  search(text: string, options?: SearchOptions | undefined | null): Promise<Array<StoreHit>>
  sessionOf(id: string): Promise<SessionSummary | undefined | null>
  find(name: string, sessionId?: string | undefined | null): Promise<Array<string>>
  objects(sessionId?: string | undefined | null): Promise<Array<StoredObject>>
  history(id: string, part?: HistoryPart | undefined | null): Promise<Version[]>
  get(id: string, txId?: number | undefined | null): Promise<Version | null>
  findSecrets(): Promise<Array<SecretPlace>>
  export(path: string, sessionId?: string | undefined | null): Promise<TransferSummary>
  import(path: string): Promise<TransferSummary>
  verify(): Promise<Array<Damage>>
  forget(wanted: Array<Forgetting>, why: string, options?: ForgetOptions | undefined | null): Promise<Forgotten>
  prune(options: PruneOptions): Promise<Pruned>
  limits(): Promise<StoreLimits>
  setLimits(limits: StoreLimits): Promise<undefined>
}

/** The first line of an active content, by its object's full ID. */
export declare function activeHeading(id: string): string

/** A point in the two times. */
export interface AsOf {
  /** The state that held at this time, RFC 3339. */
  validTime?: string
  /** The state that the store knew at this time, RFC 3339. */
  txTime?: string
  /** The state that the store knew after this transaction. */
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

/** The call that a mark in place of a long argument names. Null if the text is anything but one mark. */
export declare function callInMark(text: string): string | null

/**
 * The changes that a call would make to files; `args` is the JSON text of its arguments. Empty for a tool that changes no file.
 *
 * Throws `INVALID_ARGUMENT` for another text.
 */
export declare function changesOfCall(name: string, args: string): Array<PlannedChange>

/** Reads an export whole. Rejects with `INVALID_ARGUMENT` if it can't be imported, and `IO`. */
export declare function checkExport(path: string): Promise<undefined>

/** Arguments that replace the full ones of a call. */
export interface CollapsedCall {
  /** The harness's call ID. */
  callId: string
  /** The position among the tool calls of the message, counted from 0. */
  position: number
  /** The arguments to show. */
  args: object
}

/** The content hash of a payload in JSON. */
export declare function contentHash(payload: string): string

/** A version that failed the integrity check. */
export interface Damage {
  /** The object's ID; absent where the damage lies outside any version. */
  id?: string
  /** The version's transaction. */
  txId?: number
  /** The damage, in words. */
  what: string
}

/**
 * The filesystem namespace of this machine's own files, as their `source.filesystemId` names it: SHA-256 of the machine's ID in
 * hexadecimal digits (Linux: of the trimmed `/etc/machine-id`; Windows: of the `MachineGuid`). Null on a machine without an
 * ID, such as macOS: there each store keeps a random one.
 */
export declare function defaultFilesystemId(): string | null

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
    key: string; /** For a tool result: the reference that stood, or would have stood, in its place. */
  reference?: string }

/** The instruction to an edit tool: at most one of the two is there, and with neither the tool makes the edit. */
export interface EditGuard {
  /** The answer to give instead of making the edit. */
  refusal?: string
  /** The text to add to the edit's result: the file has changed elsewhere, and how. */
  difference?: string
}

/** When and why the owner of a store erased something of a version. */
export interface ErasedMark {
  /** When, RFC 3339. */
  at: string
  /** The owner's words. */
  why: string
}

/**
 * The beginning of the user's own first words in the texts of a conversation, without what hosts put around them; without any,
 * of the first command. Null if a host wrote all of it.
 */
export declare function firstWords(texts: Array<string>): string | null

/** The options of `forget`. */
export interface ForgetOptions {
  /** Only count what would be erased; only in a database file. */
  dryRun?: boolean
}

/** The objects or texts to forget: one of these. */
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

/** The counts of what was forgotten. */
export interface Forgotten {
  /** Distinct texts. */
  texts: number
  /** Versions that say so now. */
  versions: number
}

/** The header of an output, by its object's handle. */
export declare function headerLine(handle: string): string

/** The line before an output. */
export interface HeaderLine {
  /** The handle of the output's object. */
  id: string
  /** The length of the line in UTF-16 units, with its line break if it has one. */
  length: number
}

/** Text that could leave the request and is held back. For people; it never enters the chat. */
export interface HeldBack {
  /** Estimated tokens that would leave. */
  tokens: number
  /**
   * Why they stay: rolls may not happen now (`off`); they leave with the next call (`due`); most of it is still likely to be
   * needed (`young`); the model has to see it first (`unseen`); it leaves only where a user's turn starts (`turn`); reasoning
   * of the running turn depends on it (`bound`); reasoning of earlier turns would be lost and is worth more (`reasoning`);
   * writing the cache again costs more than keeping it has cost (`dear`); rolls have cost as much as they may (`debt`).
   */
  because: 'off' | 'due' | 'young' | 'unseen' | 'turn' | 'bound' | 'reasoning' | 'dear' | 'debt'
  /**
   * When they may leave: with the next call, when the user speaks next (`prompt`), in about `calls` calls, or when the user
   * speaks after a `pause` of `pauseMs`. Absent if that can't be told.
   */
  chance?: 'call' | 'prompt' | 'calls' | 'pause'
  /** For `calls`: in about how many. */
  calls?: number
  /** For `pause`: how long, in milliseconds. */
  pauseMs?: number
}

/** The part of a history to return. */
export interface HistoryPart {
  /** Only versions of later transactions than this one: the `txId` of the last version of the previous part. */
  after?: number
  /**
   * At most this many versions, the oldest ones. The versions of one transaction are not divided, so there may be a
   * few more.
   */
  limit?: number
}

/** Writes the line of a hit. */
export declare function hitLine(hit: HitLine): string

/** The line of a hit of a search. It names a path, a tool or another type. */
export interface HitLine {
  /** The handle or the full ID of the object. */
  id: string
  /** The transaction of the version with the text, if that is not the latest one. */
  txId?: number
  /** The path of a file, as the agent sees it. */
  path?: string
  /** True if the client can't reach the file. */
  isOrphaned?: boolean
  /** The tool of a call. */
  tool?: string
  /** The type of another object. */
  type?: string
  /** The first line that matches, counted from 1. */
  line: number
  /** The text of that line, shortened around the match. */
  snippet: string
}

/** A message of the harness that the engine has not seen yet. */
export interface IncomingMessage {
  /** The harness's own name for the message, used again in the plan. */
  key: string
  /** The message in the shape of pi-ai: `{ role, content, … }`. */
  message: object
}

/** The outcome of indexing many files. */
export interface IndexedFiles {
  /** The outcome for each indexed file, in the order of the given paths. */
  indexed: Array<IndexResult>
  /** The paths without a readable regular file, in the given order. */
  refused: Array<RefusedFile>
}

/** The outcome of indexing. */
export interface IndexResult {
  /** The object's ID. */
  id: string
  /** The outcome for the object. */
  action: 'created' | 'updated' | 'unchanged' | 'deleted'
  /** Why the object has no text, as the end of a sentence that begins "the file …". */
  reason?: string
}

/** True if the last line of a text says that it is the beginning of a longer one, which a roll has left. */
export declare function isBegunText(text: string): boolean

/** True if a text consists of a host's words and such a reference. */
export declare function isPointedText(text: string): boolean

/** The circumstances of the next model call. */
export interface ModelCall {
  /** The model's name. A change of model means a cold cache. */
  model: string
  /** The model's prices. */
  prices: ModelPrices
  /**
   * Number of content blocks that the provider looks back for a cached prefix: 20 for Anthropic's API; absent for
   * providers that reuse any common prefix.
   */
  lookbackBlocks?: number
  /**
   * Number of earlier endings of a user's message or a group of outputs that the provider looks back for a cached
   * prefix: 20 for OpenAI's models from GPT-5.6 on; absent for other providers.
   */
  lookbackEndings?: number
  /**
   * The provider's treatment of the model's reasoning once something before it has changed: `none` (it does not
   * check), `keeps` (it checks, but the model still reads it), `drops` (it drops that reasoning and all later
   * reasoning) or `refuses` (it refuses the request). Default `none`.
   */
  binding?: 'none' | 'keeps' | 'drops' | 'refuses'
  /**
   * True if text between the calls of an answer is part of the model's reasoning, which must stay as it is or leave
   * as a whole. Default false.
   */
  textIsReasoning?: boolean
  /** The context window in tokens; 0 when unknown. */
  contextWindow: number
  /** Time that the provider keeps a prefix, in milliseconds. */
  cacheTtlMs: number
  /**
   * The likelihood that the provider still has the last request in its cache, from 0 (it is known to be gone, because the harness has
   * changed the tools or the system prompt, so that everything stale leaves now) to 1. Default 1. A cut of the request is
   * priced with it. Lifetime and model are checked apart from it.
   */
  cacheKept?: number
  /** The harness's clock, in milliseconds since the epoch. */
  nowMs: number
  /**
   * When the last request was sent, in milliseconds since the epoch, where the engine does not know: an earlier process sent it, in
   * the form that the record gives it, or the harness has sent it again. The provider then has it cached, for the time that it
   * keeps a prefix.
   */
  sentMs?: number
  /**
   * The number of the first messages passed to `resync` that this request had as they are now: the harness has changed something
   * behind them since, and the provider has nothing of that cached. Default: all.
   */
  sentMessages?: number
  /** Estimated tokens of the system prompt and the tool declarations. */
  systemTokens: number
  /** Roll only at the start of a user's turn, for models whose reasoning depends on an unchanged prefix. */
  onlyAtUserTurn: boolean
  /** True if the next call starts a user's turn. */
  atUserTurn: boolean
  /** True if a roll may happen now. */
  rolls: boolean
  /**
   * True if what has left in earlier rolls stays out where no roll may happen now, once the conversation was read again. Default:
   * as `rolls`.
   */
  repeats?: boolean
  /**
   * The harness's name for the end of its conversation, for `advance`: it is recorded with the notices that come there, so that
   * a later process finds their place.
   */
  place?: string
  /**
   * True if nothing may be added at that end. The notices wait for a call where it may: then each file that has changed since the
   * model saw it gets one line. Default false.
   */
  closed?: boolean
  /**
   * True if the harness can shorten texts in messages and leave out whole messages: edits with `texts`, and edits of
   * the kind `gone`. Default false: then only outputs and arguments collapse.
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
  /**
   * The filesystem namespace of everything below the prefix, in the same form as that of the session. Default: that of this
   * machine's own files (`defaultFilesystemId()`), as it is right for a folder of the host that a container mounts.
   */
  filesystemId?: string
}

/** The name of an object in a path such as `id=05f49740` or `id=05f49740@7`. Null for the path of a file. */
export declare function nameInPath(path: string): string | null

/** The names of objects anywhere in a text or in JSON, each once and in order: handles, as headers and references have them. */
export declare function namesInText(text: string): Array<string>

/** The options for opening a session. */
export interface OpenOptions {
  /** The harness's ID of the session. A session that the store already has is resumed. */
  sessionId: string
  /**
   * True if the caller has just made this ID, so that nothing can have been recorded of the session anywhere. Then it
   * also opens while no XTDB node answers; without it, such a session is refused, because another machine may have it.
   * A session that is found is resumed anyway. Default false.
   */
  isNew?: boolean
  /** The agent's working directory, absolute, as the agent sees it. */
  cwd: string
  /**
   * True if `cwd` is a guess of the caller: relative paths are resolved against it, but it isn't recorded as the folder that the
   * session works in, by which `sessions` and `prune` choose. Default false.
   */
  guessesCwd?: boolean
  /** The store of the objects. Default: SQLite at `defaultStorePath()` (main entry), memory (native class). */
  store?: StoreOptions
  /** The agent's home directory, for paths that begin with `~`. */
  home?: string
  /** The system prompt to record. */
  systemPrompt?: string
  /** The filesystem namespace of paths that no mount covers: 1 to 512 bytes, no control characters, no blanks at its ends. */
  filesystemId?: string
  /** The mapping of the agent's paths to paths that the client can read. */
  mounts?: Array<MountMapping>
  /** The auto-collapse window. */
  window?: WindowOptions
  /** Time that text stays in the messages for the model. */
  stay?: StayOptions
  /** True if files are watched. Default true. */
  watch?: boolean
  /** True if paths that no mount covers are the client's own. Default: true without mounts, else false. */
  watchUnmapped?: boolean
  /** Tell filesystems apart by device number where no mount applies. Default false. */
  detectDevices?: boolean
  /**
   * Take secrets of known shapes out of what is recorded, before it is stored. Files stay as they are, and so does what
   * the model is sent while this process runs. Default false.
   */
  redact?: boolean
}

/** The output of a command in what its agent makes of it. Null if the whole text is the output. */
export declare function outputAlone(text: string): string | null

/** The part of a content to return. */
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
  /** Number of its lines (or matches). */
  lines: number
  /** Number of lines or matches that were requested or match. */
  of: number
  /** The number of lines of the whole text. */
  total: number
}

/**
 * The kind of text that a host has written in place of a whole output: `cleared` (the host has left it out) or `unchanged` (a file was
 * read once more, and an earlier result has it). Null for an output.
 */
export declare function placeholderIn(output: string): 'cleared' | 'unchanged' | null

/** The steps to take before the next model call. */
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
  /** The cost of this process's model calls so far, in fresh input tokens, without the answers. */
  spent: number
  /** The current result of `point`; set only by `advance`. */
  point?: number
  /** The current result of `pointTimes`; set only by `advance`. */
  pointTimes?: [string, string]
}

/** A file that a call is about to change. */
export interface PlannedChange {
  /** The file, as the agent wrote its path. */
  path: string
  /** The texts that the call replaces; absent if it replaces the whole file, or says nothing of them. */
  oldTexts?: Array<string>
}

/** A host's words that point to an earlier result, with the reference of that result below them. */
export declare function pointedText(words: string, reference: string): string

/** The line that points to the output of a call, by the name of its object and its tool alone. */
export declare function pointerLine(id: string, tool: string): string

/** A line of the metadata pool. */
export interface PoolLine {
  /** The object's full ID. */
  id: string
  /** The type of the object. */
  type: 'file' | 'toolcall'
  /** The path of a file, as the agent sees it. */
  path?: string
  /** The kind of text in a file: `ts`. */
  fileType?: string
  /** The size of a file in UTF-16 units. */
  charCount?: number
  /** True if the client can't reach the file; absent for a call. */
  isOrphaned?: boolean
  /** The tool of a call. */
  tool?: string
  /** The status of the call. */
  status?: 'ok' | 'fail'
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

/** The sessions and objects that were removed from a store, or would be. */
export interface Pruned {
  /** The sessions, the oldest first. */
  sessions: Array<SessionSummary>
  /** Objects, including the sessions' own documents. */
  objects: number
  /** About how many bytes of the file become free. */
  freedBytes: number
  /** Bytes of it that were in use before. */
  usedBytes: number
  /** True if the file has shrunk. If not, new data will use the free space. */
  isShorter: boolean
}

/** The sessions to remove from a store: give an age, a size, a project, or several of them. */
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

/** The objects that a query returns. Absent fields do not restrict it. */
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

/** Reads the first line of a text as the header of an output. Null if it is not one. */
export declare function readHeader(text: string): HeaderLine | null

/** Reads the line of a hit; its snippet stays as it is shown. Null for any other text. */
export declare function readHit(line: string): HitLine | null

/** Reads a line of the metadata pool. Null for any other text. */
export declare function readPoolLine(line: string): PoolLine | null

/** Reads the first line of a text as the reference to an output. Null if it is not one. */
export declare function readReference(text: string): ReferenceLine | null

/** The handle and the header to show when a tool result enters the transcript. */
export interface ReceivedResult {
  /** The object's ID. */
  id: string
  /** Its short name, used in the projection. */
  handle: string
  /** The line to put before the output; absent where a reference would not be shorter than the output. */
  header?: string
}

/**
 * Recognizes calls of agents, all calls of a message at once. `calls` is the JSON text of a list of names and arguments, of which
 * texts and lists of texts are enough.
 *
 * Returns the JSON text of a list: for each call `null` if the engine does not know its tool, or `tool` and, where there is
 * something to say, `names` (arguments that the engine calls otherwise), `items` (a list among them: its `field`, and the `names` in
 * its elements), `command` (on one line, where the arguments have it in another form), `isScript` (the command is all that the
 * engine gets), `reads`, `writes`, and `shows` (the lines that a shell shows: `path`, `first`, `last` unless it is the end,
 * `numbered`).
 *
 * Throws `INVALID_ARGUMENT` for another text.
 */
export declare function recognizeCalls(calls: string): string

/**
 * The text as `redact` stores it, with a mark such as `[redacted: github-pat]` in place of each secret; null if it has none.
 *
 * Never rejects.
 */
export declare function redactedText(text: string): Promise<string | undefined | null>

/** The line in place of an output. */
export interface ReferenceLine {
  /** The handle or the full ID of the call's object. */
  id: string
  /** The tool that was called. */
  tool: string
  /** The status of the call; absent where the line is a pointer alone. */
  status?: 'ok' | 'fail'
  /** The outcome of the call: `2 failed: a.test.ts (exit 1)`. */
  outcome?: string
  /** True if its file had changed by the time when the line was first sent. */
  hasChanged: boolean
}

/** A path that could not be indexed. */
export interface RefusedFile {
  /** The given path. */
  path: string
  /** `IO` or `INVALID_ARGUMENT`. */
  code: ErrorCode
  /** Why, as a sentence. */
  message: string
}

/** The effect of a roll. */
export interface RollPreview {
  /** The receipt that it would have. */
  receipt: RollReceipt
  /** The IDs of the calls whose outputs it would collapse. */
  outputs: Array<string>
}

/** The receipt of a roll: what it removed and cost, and when it pays for itself. For people; it never enters the chat. */
export interface RollReceipt {
  /** Number of items that were replaced by references. */
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
  /** The one-time cost, in fresh input tokens, rounded. */
  cost: number
  /** The saving of each later call, in fresh input tokens, rounded. */
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
  /** True if that is the object's latest version. */
  isLatest: boolean
  /** The first line that matches, counted from 1; 0 where the text is damaged, as `snippet` says then. */
  line: number
  /** The text of that line, shortened around the match. */
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
  /** Number of different ones in all versions. */
  count: number
}

/** The four sets of a session, as object IDs in the order in which they entered. */
export interface SessionSets {
  /** Every content object that the session has encountered; never shrinks. */
  sessionIndex: Array<string>
  /** The objects that are visible as metadata. */
  metadataPool: Array<string>
  /** The objects whose content is loaded. */
  activeSet: Array<string>
  /** The objects that are exempt from auto-collapse. */
  pinnedSet: Array<string>
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
  /**
   * The folder that it worked in: the one in its prompt, else the working directory that it was last opened with. A session
   * that only an earlier version has opened has the one that contains all of its files, if there is one.
   */
  folder?: string
  /** The beginning of the first prompt, on one line. */
  firstPrompt?: string
}

/**
 * The answer to a change of the session's sets. A refusal is an answer and not an error, because it is meant for the
 * model.
 */
export interface SetChange {
  /** True if it was done. */
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

/**
 * The lines of a file that an output shows, without their numbers. Null if the output is anything but consecutively numbered
 * lines.
 */
export declare function shownLines(output: string): string | null

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
 * Time that text stays in the messages for the model: `keep` for good, or a number of model calls. By default each text
 * stays as long as keeping it costs less than the expected cost of needing it again.
 */
export interface StayOptions {
  /** The model's reasoning, if its provider allows removing it. */
  thinking?: 'keep' | number
  /** Calls: once their outputs and arguments are old they become one line. */
  calls?: 'keep' | number
  /** The model's prose, and long texts of users. */
  prose?: 'keep' | number
  /**
   * The weight of a missed use. Larger numbers keep everything longer, and cost more. By default 4, or 1.68 if only
   * outputs and arguments can leave.
   */
  weight?: number
  /**
   * The share of what the agent's own requests would have cost that rolls may have cost beyond what they have saved since,
   * besides 5,000 fresh tokens. It bounds how far any session can fall behind one in which nothing leaves. 0: nothing at all,
   * those tokens included; `none`: no bound, and text leaves once it has paid its price once instead of twice. A dead cache, a
   * full window and rolls that a user asks for are exempt. Default 0.03.
   */
  debtCap?: 'none' | number
}

/** An object of a store, and what its versions take up. */
export interface StoredObject {
  /** Its ID. */
  id: string
  /** Its type. */
  type: ObjectType
  /** A file's canonical path. */
  path?: string
  /** The tool of a tool call. */
  tool?: string
  /** The arguments of a tool call. */
  args?: Record<string, unknown>
  /** The transactions of its versions, in the order of its history. */
  written: Array<TransactionMark>
  /** Bytes of the versions as an export writes them, without compression or sharing. */
  bytes: number
}

/** One hit of a search over a whole store. */
export interface StoreHit {
  /** The object's ID. */
  id: string
  /** The object's type. */
  type: ObjectType
  /** A file's canonical path. */
  path?: string
  /** True if a file is not on this machine's disks; absent for other objects. */
  isOrphaned?: boolean
  /** The tool of a tool call. */
  tool?: string
  /** The arguments of a tool call. */
  args?: Record<string, unknown>
  /** The newest version with this content. */
  txId: number
  /** True if that is the object's latest version. */
  isLatest: boolean
  /** The first line that matches, counted from 1; 0 where the text is damaged, as `snippet` says then. */
  line: number
  /** The text of that line, shortened around the match. */
  snippet: string
  /** The newest session that has encountered the object; absent if none has. */
  session?: string
  /** The folder that this session worked in, if that is known. */
  folder?: string
  /** From when on that version holds, RFC 3339. */
  time?: string
}

/** Limits of a store. While the store is idle, sessions beyond them are removed automatically. */
export interface StoreLimits {
  /** The most bytes of the file that may be in use. */
  maxBytes?: number
  /** Sessions that have not been opened for this many days are removed. */
  maxDays?: number
}

/** The place where objects are stored. */
export type StoreOptions =
  | { kind: 'memory' }
  | { kind: 'sqlite'; /** The database file. The file and its folder are created if needed, readable only by their owner. */
    path: string; /**
     * `power` (default): a commit survives a power failure. `process`: it survives the end of the
     * process, and is faster.
     */
    durability?: 'process' | 'power'; /**
     * Opens the file for reading only, also one that can't be written, such as a backup on a read-only disk: nothing is
     * written to it or beside it, no session waits, and each call sees the newest versions. `import`, `forget`, `prune` and
     * `setLimits` are refused. A session of it is kept in memory as it was when it was opened; what it writes is lost.
     */
  readOnly?: boolean }
  | { kind: 'xtdb'; /** A node, for instance `http://127.0.0.1:3000`. */
    url: string; /** Further nodes of the same database, for fail-over. */
    urls?: Array<string>; /** The time limit of one request in milliseconds. Default 10,000. */
    timeoutMs?: number; /**
     * A file on this machine that takes every write immediately and sends it on in order, so that no call waits
     * for a node and nothing is lost while the node is down. Default: chosen by the main entry point. Without a
     * journal (native class), every call waits for the node.
     */
    journal?: string; /** As for a file. With a journal, the journal is read, and no node. */
  readOnly?: boolean }

/** The state of a store. For XTDB behind a journal, what is waiting there for the node. */
export interface StoreState {
  /** The kind of the store. */
  kind: 'memory' | 'sqlite' | 'xtdb'
  /** The XTDB node that answers, or the first one tried; without user name and password. */
  url?: string
  /** True if XTDB answered the last request; absent without a journal. */
  connected?: boolean
  /** Number of the journal's transactions that XTDB does not have yet. */
  queued: number
  /** Since when the oldest of them has been waiting, RFC 3339; absent if none is. */
  waitingSince?: string
  /** True if this process sends the journal's transactions; absent without a journal. */
  sender?: boolean
  /**
   * Number of objects changed by others that still have to be fetched from XTDB, as far as known; 0 if the journal is up
   * to date, absent without one.
   */
  behind?: number
  /** The last error, until the operation succeeds again. */
  lastError?: string
  /**
   * A notice about the database or the journal: that it was restored from a backup, replaced or copied. Absent if
   * nothing of that kind happened since the store was opened.
   */
  notice?: string
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
  /** The success or failure of the tool. */
  status: 'ok' | 'fail'
  /** IDs of file objects that the call concerns. Files that the engine finds itself are added. */
  fileRefs?: Array<string>
  /**
   * The ID of the call whose program made this one. The output of such a call goes to the program and not to the
   * model. It is recorded and can be searched, but does not appear in pool, window or chat.
   */
  parent?: string
}

/** A transaction of a store. */
export interface TransactionMark {
  /** Its number. */
  txId: number
  /** When the store learned of it, RFC 3339. */
  txTime: string
}

/** The outcome of an export or import. */
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
  /** The kind of event. */
  action: 'created' | 'updated' | 'unchanged' | 'deleted' | 'orphaned' | 'warning' | 'touched'
}

/** Time that tool outputs stay active without being pinned. */
export interface WindowOptions {
  /** Number of the most recent tool outputs of one turn that stay active. Default 5. */
  perTurn?: number
  /** For how many turns tool outputs stay active, including the current one. Default 3. */
  turnsBack?: number
}

/** A text without the numbers of its lines. Null if it has none. */
export declare function withoutLineNumbers(text: string): string | null
