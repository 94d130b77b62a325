/** The class `ContextManager`: one open session. */
import type {
  AsOf,
  Assembled,
  Content,
  HistoryPart,
  IndexedFiles,
  IndexResult,
  ObjectDocument,
  Part,
  QueryFilter,
  SearchHit,
  SearchOptions,
  SessionSets,
  SetChange,
  Stats,
  StoreState,
  Toolcall,
  TransferSummary,
  Version,
  WatchEvent,
} from '../../index.js'
import {
  abortable,
  calling,
  checkAsOf,
  checkedSignal,
  checkHistoryPart,
  checkPart,
  checkQuery,
  checkSearch,
  crossed,
  crossedHistory,
  crossing,
  invalid,
  noteBirth,
  permitted,
  refusal,
  shown,
} from '../core/index.ts'
import { DrivenSession, native, toolcall } from '../native/index.ts'
import { Projection } from '../projection/index.ts'
import { checkedOptions, started } from './opening.ts'
import type { OpenOptions } from './opening.ts'
import { guarded } from './listener.ts'

/**
 * One open session: it indexes files, records tool calls and turns, keeps the session's sets, renders the context, and gives
 * access to every version of every object.
 *
 * `await using manager = await ContextManager.open(…)` closes it. Every method but `watch` and `watchTouches` returns a
 * promise; a rejection is an `Error` with a `code` of `ErrorCode`. After `close()` every method rejects with `CLOSED`. The
 * methods that it inherits from {@link DrivenSession} are for drivers.
 */
export class ContextManager extends DrivenSession implements AsyncDisposable {
  #projection = new Projection(this)
  #isClosed = false

  private constructor() {
    super()
  }

  /**
   * Opens the store and starts the session, or resumes it if the store has it. On a resume, files that have changed get a
   * new version, and unreachable files keep their last one.
   *
   * Without `options.store`, the store is the SQLite file at `defaultStorePath()`. Without `options.home`, paths that start
   * with `~` refer to the user's home directory. Aborting `control.signal` rejects with the signal's reason.
   *
   * Rejects with `INVALID_ARGUMENT` (also for an option that does not exist), `STORE_UNAVAILABLE`, `STORE_CORRUPT`,
   * `STORE_NEWER` or `STORE_FULL`.
   */
  static async open(options: OpenOptions, control: { signal?: AbortSignal } = {}): Promise<ContextManager> {
    const signal = checkedSignal(control.signal)
    signal?.throwIfAborted()
    const opening = ContextManager.#opened(options)
    return signal === undefined ? opening : abortable(opening, signal)
  }

  /**
   * Imports an exported session and opens it. If `options.sessionId` differs from the file's, the session becomes a copy
   * with that ID: it shares the objects and then develops independently.
   *
   * Rejects with `INVALID_ARGUMENT` if the file is not a complete export of one session (nothing was written), `CONFLICT` if
   * the store has the session with a different history, `IO`, and like `open`.
   */
  static async importSession(path: string, options: OpenOptions): Promise<ContextManager> {
    return ContextManager.#opened(options, path)
  }

  /**
   * Returns the messages to send to the provider instead of the host's own, in the same shape: pi-ai's, Anthropic's,
   * OpenAI's (chat completions and responses) or the AI SDK's. New messages are recorded on the way. The cost depends on
   * what is new. The host keeps its own messages unchanged and passes all of them at each call.
   *
   * The model needs a way to bring back what has collapsed: give it a tool that calls `activate`, or use the entry point for
   * your framework. See {@link Projection} for more options.
   *
   * If the store fails, resolves with the messages as they were last sent and the new ones as they are, with a process
   * warning; the next call records what is missing. Rejects with `INVALID_ARGUMENT` for messages of an unknown shape, or of a
   * conversation that another has followed in this session.
   */
  async transformContext<T>(messages: T[]): Promise<T[]> {
    if (!Array.isArray(messages)) throw invalid(`messages must be an array of messages, not ${shown(messages)}`)
    if (this.#isClosed) throw Object.assign(new Error('the session is closed; open it again to continue'), { code: 'CLOSED' as const })
    return this.#projection.transform(messages)
  }

  /** The ID of the session. */
  override get sessionId(): string {
    return super.sessionId
  }

  /**
   * Indexes a file that the agent has read. The file enters the metadata pool and the active set.
   *
   * `content` is the whole file as the tool read it; if it is absent, the file is read from disk. Text is hashed as UTF-8,
   * so pass bytes if you have them. A file that is not text is indexed with null content and a `reason`. With `callId`, the
   * ID of the tool call, the call's result counts as exactly what was read here.
   *
   * `action` says what this call has written. With `watch` (the default) the session's own tracker often indexes a change first:
   * then it is `unchanged`, and the listeners of `watch` have heard of the change. React there, or open with `watch: false`.
   *
   * Rejects with `IO` if the path has no readable regular file, and `INVALID_ARGUMENT` for an impossible path.
   */
  override indexFile(path: string, content?: Content | null, callId?: string | null): Promise<IndexResult> {
    return calling(() => super.indexFile(path, content, callId))
  }

  /**
   * Indexes a file that the agent has written. The file enters the metadata pool but is not activated. `callId` as for
   * `indexFile`.
   *
   * Rejects like `indexFile`.
   */
  override indexWritten(path: string, content?: Content | null, callId?: string | null): Promise<IndexResult> {
    return calling(() => super.indexWritten(path, content, callId))
  }

  /**
   * Indexes many files, for instance a whole project, so that the model knows them and they can be searched. They enter the
   * metadata pool; the active set does not change. Several threads read while another writes.
   *
   * Unreadable files are listed in `refused` and don't stop the others. Rejects if the store fails; files written before
   * that stay, and a repeated call continues from there.
   */
  override indexFiles(paths: string[]): Promise<IndexedFiles> {
    return calling(() => super.indexFiles(paths))
  }

  /** Records that a file has been deleted, as a version with null content. The history stays. */
  override indexFileDeletion(path: string): Promise<IndexResult> {
    return calling(() => super.indexFileDeletion(path))
  }

  /** Records paths that were only seen (by ls, find or grep) as metadata without content. Never overwrites anything. */
  override discover(paths: string[]): Promise<IndexResult[]> {
    return calling(() => super.discover(paths))
  }

  /**
   * Records a tool call of the current turn as a `toolcall` object, which is active until it leaves the window. Files that
   * it read, wrote or named are indexed. Resolves with the object's ID.
   */
  override recordToolcall(call: Toolcall): Promise<string> {
    const recorded = calling(() => super.recordToolcall(toolcall(call)))
    noteBirth(this, (call as Toolcall | undefined)?.id)
    return recorded
  }

  /**
   * Starts a turn with the user's message, or adds the assistant's answer to the current one. A message is
   * `{ role, content, … }` in the shape of pi-ai; other fields of an answer are kept as its metadata.
   */
  override appendTurn(message: object): Promise<{ turnCount: number }> {
    return calling(() => super.appendTurn(crossing(message, 'a message')))
  }

  /** Records the system prompt. Writes nothing if the text has not changed. */
  override setSystemPrompt(text: string): Promise<undefined> {
    return calling(() => super.setSystemPrompt(text))
  }

  /**
   * Adds an object to the active set and returns its content, or a part of it. `id` is a full ID, a handle, or either with
   * `@txId` for an old version, which does not change the sets. Text that the host has since changed in its conversation or
   * removed from it is refused as `NULL_CONTENT`.
   */
  override async activate(id: string, part?: Part | null): Promise<SetChange> {
    const refused = await refusal(this, id)
    if (refused !== undefined) return refused
    const change = await calling(() => {
      checkPart(part)
      return super.activate(id, part)
    })
    if (change.arguments != null) change.arguments = crossed(change.arguments)
    return change
  }

  /** Removes an object from the active set; its metadata stays in the pool. */
  override deactivate(id: string): Promise<SetChange> {
    return calling(() => super.deactivate(id))
  }

  /** Keeps an object from collapsing automatically. */
  override async pin(id: string): Promise<SetChange> {
    return (await refusal(this, id)) ?? calling(() => super.pin(id))
  }

  /** Removes a pin. */
  override unpin(id: string): Promise<SetChange> {
    return calling(() => super.unpin(id))
  }

  /** Adds an object of the session index to the metadata pool. */
  override promote(id: string): Promise<SetChange> {
    return calling(() => super.promote(id))
  }

  /** Removes an object from the metadata pool and the active set; it stays in the session index. */
  override demote(id: string): Promise<SetChange> {
    return calling(() => super.demote(id))
  }

  /** Returns the session's four sets. */
  override sessionSets(): Promise<SessionSets> {
    return calling(() => super.sessionSets())
  }

  /**
   * Returns the files of the session index that this client can't reach now, in the order in which they entered: on another
   * machine, inside a sandbox, or on a drive that was not mounted at the last look. They keep their last version, and the model
   * may still use it. A file that was deleted is not among them.
   */
  override orphaned(): Promise<string[]> {
    return calling(() => super.orphaned())
  }

  /**
   * Returns the canonical view: system prompt, metadata pool, chat and active content. The same state gives the same bytes.
   * The cost grows with the length of the conversation.
   */
  override async assemble(): Promise<Assembled> {
    const view = await calling(() => super.assemble())
    view.chat = crossed(view.chat)
    return view
  }

  /** Returns the latest version of an object, or null. */
  override async get(id: string): Promise<ObjectDocument | null> {
    return crossed(await calling(() => super.get(id)))
  }

  /** Returns the version of an object at a point in the two times, or null. A string is a valid time. */
  override async getAsOf(id: string, at: string | AsOf): Promise<ObjectDocument | null> {
    const document = await calling(() => {
      checkAsOf(at)
      return super.getAsOf(id, at)
    })
    return crossed(document)
  }

  /**
   * Returns the versions of an object, oldest first (by valid time, then by transaction); none for an unknown object. With
   * `limit` and `after` a long history is read piece by piece, and only what is asked for is held in memory.
   *
   * The documents share what they have in common, such as the turns of a chat, so treat them as read-only.
   */
  override async history(id: string, part?: HistoryPart | null): Promise<Version[]> {
    const pages = await calling(() => {
      checkHistoryPart(part)
      return super.history(id, part)
    })
    return crossedHistory(pages, native.contentHash)
  }

  /**
   * Returns the difference between the contents of two versions as a unified diff; empty if they are equal. `fromTx` and
   * `toTx` are `txId`s from `history`. The diff is whole, so it may be longer than both texts together: cut it before you
   * show it to a model. If more than 20,000 lines of both lie between the first and the last change, it may be longer than it had
   * to be, which a line before it says.
   *
   * Rejects with `UNKNOWN_OBJECT` if one of the versions does not exist, and `INVALID_ARGUMENT` if only the hash of one is
   * stored.
   */
  override diff(id: string, fromTx: number, toTx: number): Promise<string> {
    return calling(() => super.diff(id, fromTx, toTx))
  }

  /** Returns the objects that match a filter, in the order in which they were first written. */
  override async query(filter: QueryFilter): Promise<ObjectDocument[]> {
    const documents = await calling(() => {
      checkQuery(filter)
      return super.query(filter)
    })
    return crossed(documents)
  }

  /**
   * Searches the contents of all versions, best match first. Text that the host has changed in its conversation or removed from
   * it is not found.
   */
  override async search(text: string, options?: SearchOptions | null): Promise<SearchHit[]> {
    const search = (one: SearchOptions): Promise<SearchHit[]> =>
      calling(() => {
        checkSearch(one)
        return super.search(text, one)
      })
    return permitted(this, search, options ?? {})
  }

  /** Returns figures of the session. */
  override stats(): Promise<Stats> {
    return calling(() => super.stats())
  }

  /** Returns the state of the session's store: its kind, and for XTDB the writes that wait to be sent. `close` returns it as well. */
  override storeState(): Promise<StoreState> {
    return calling(() => super.storeState())
  }

  /**
   * Calls a listener once for each change of a file of the session, by any program. Returns a function that stops it.
   * Watching does not keep the process alive. An error of the listener becomes a process warning. Throws `CLOSED`.
   */
  override watch(listener: (event: WatchEvent) => void): () => void {
    return super.watch(guarded(listener))
  }

  /**
   * Calls a listener as soon as a tracked file is touched, before it is read, for instance to mark it in an editor. The
   * action is `touched`. If the file has changed, the listeners of `watch` hear of the new version once it is stored.
   * Returns a function that stops it. Throws `CLOSED`.
   */
  override watchTouches(listener: (event: WatchEvent) => void): () => void {
    return super.watchTouches(guarded(listener))
  }

  /**
   * Compares every file of the session with the disk and indexes those that have changed, for sessions that don't watch.
   * Returns what was written. A file is read only if its size, times or inode number have changed since an earlier
   * comparison.
   */
  override reconcile(): Promise<IndexResult[]> {
    return calling(() => super.reconcile())
  }

  /**
   * Waits until the trackers have seen and indexed everything written to disk before the call, and until the store has
   * nothing left to do: no text to index, nothing to send.
   */
  override flush(): Promise<undefined> {
    return calling(() => super.flush())
  }

  /**
   * Writes this session, with the whole history of everything it has encountered, as JSON Lines, readable only by the
   * owner. An existing file is replaced once the new one is complete.
   *
   * Rejects with `IO`, and with the errors of the store.
   */
  override exportSession(path: string): Promise<TransferSummary> {
    return calling(() => super.exportSession(path))
  }

  /**
   * Stops the trackers. The store always has the session's state, so nothing else is needed for a pause; `open` with the
   * same session ID resumes it, here or elsewhere.
   */
  override pause(): Promise<undefined> {
    return calling(() => super.pause())
  }

  /**
   * Pauses the session and closes the store. Resolves with the store's last state: `queued` says how many transactions the XTDB
   * database does not have yet. They stay in the journal, and the next session on it sends them. Closing twice is fine, and
   * resolves with undefined.
   */
  override async close(): Promise<StoreState | undefined> {
    this.#isClosed = true
    return (await calling(() => super.close())) ?? undefined
  }

  /** Closes. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  static async #opened(options: OpenOptions, file?: string): Promise<ContextManager> {
    const { layout, model, shape, ...rest } = checkedOptions(options)
    const manager = new ContextManager()
    await started(manager, rest, file)
    manager.#projection = new Projection(manager, {
      ...(layout === undefined ? {} : { layout }),
      ...(model === undefined ? {} : { model }),
      ...(shape === undefined ? {} : { shape }),
    })
    return manager
  }
}
