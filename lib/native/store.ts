/** The class `Store`: what the owner of a store does with it, without opening a session. */
import type {
  Damage,
  Forgetting,
  ForgetOptions,
  Forgotten,
  HistoryPart,
  Pruned,
  PruneOptions,
  SearchOptions,
  SecretPlace,
  SessionSummary,
  StoredObject,
  StoreHit,
  StoreLimits,
  StoreOptions,
  StoreState,
  TransferSummary,
  Version,
} from '../../index.js'
import {
  calling,
  checkForgetting,
  checkHistoryPart,
  checkLimits,
  checkPrune,
  checkSearch,
  checkStore,
  crossed,
  crossedHistory,
  defaultStorePath,
} from '../core/index.ts'
import { native } from './native.ts'

/**
 * An open store: its sessions, a search over all of them, every version of every object, moving histories between stores,
 * and removing what should not be kept.
 *
 * `await using store = await Store.open()` closes it. A rejection is an `Error` with a `code` of `ErrorCode`; after
 * `close()` every method rejects with `CLOSED`. Sessions may be open in the same store, here and in other processes.
 */
export class Store extends native.Store implements AsyncDisposable {
  private constructor() {
    super()
  }

  /**
   * Opens a store. Without options, it is the SQLite file at `defaultStorePath()`. A file that does not exist is created. On
   * XTDB without a `journal`, every call goes to the node.
   *
   * Rejects with `INVALID_ARGUMENT`, `STORE_UNAVAILABLE`, `STORE_CORRUPT`, `STORE_NEWER` or `STORE_FULL`.
   */
  static async open(options?: StoreOptions): Promise<Store> {
    const place = options ?? { kind: 'sqlite', path: defaultStorePath() }
    checkStore(place)
    const store = new Store()
    await calling(() => store.start(place))
    return store
  }

  /**
   * Reads an exported file whole, for instance before opening a new store for it. Rejects with `INVALID_ARGUMENT` if it is
   * damaged, incomplete or no export, and `IO`.
   */
  static checkExport(path: string): Promise<undefined> {
    return calling(() => native.checkExport(path))
  }

  /** Returns the state of the store: its kind, and for XTDB what is waiting to be sent. */
  override state(): Promise<StoreState> {
    return calling(() => super.state())
  }

  /** Returns the sessions, the one that was written last first. */
  override sessions(): Promise<SessionSummary[]> {
    return calling(() => super.sessions())
  }

  /**
   * Searches the contents of all sessions, or of one, best match first.
   *
   * Rejects with `UNKNOWN_OBJECT` if the store does not have the session.
   */
  override async search(text: string, options?: SearchOptions | null): Promise<StoreHit[]> {
    const hits = await calling(() => {
      checkSearch(options)
      return super.search(text, options)
    })
    for (const hit of hits) if (hit.args !== undefined) hit.args = crossed(hit.args)
    return hits
  }

  /** Returns the newest session that has encountered an object; null if none has. */
  override async sessionOf(id: string): Promise<SessionSummary | null> {
    return (await calling(() => super.sessionOf(id))) ?? null
  }

  /**
   * Returns the IDs of the objects that a name may stand for: the object with this ID; else the files with this canonical
   * path; else up to 20 objects whose IDs or short names begin so. With a session, only of its objects.
   *
   * Rejects with `UNKNOWN_OBJECT` if the store does not have the session.
   */
  override find(name: string, sessionId?: string | null): Promise<string[]> {
    return calling(() => super.find(name, sessionId))
  }

  /**
   * Returns the objects of the store, or of one of its sessions, with what their versions take up. Reads all of them.
   *
   * Rejects with `UNKNOWN_OBJECT` if the store does not have the session.
   */
  override async objects(sessionId?: string | null): Promise<StoredObject[]> {
    const objects = await calling(() => super.objects(sessionId))
    for (const object of objects) if (object.args !== undefined) object.args = crossed(object.args)
    return objects
  }

  /** Returns the version of an object that holds now, or the one that a transaction wrote; null if that version does not exist. */
  override async get(id: string, txId?: number | null): Promise<Version | null> {
    return crossed(await calling(() => super.get(id, txId)))
  }

  /**
   * Returns the versions of an object, oldest first (by valid time, then by transaction), or a part of them; none for an unknown
   * object. The documents share what they have in common, so treat them as read-only.
   */
  override async history(id: string, part?: HistoryPart | null): Promise<Version[]> {
    const pages = await calling(() => {
      checkHistoryPart(part)
      return super.history(id, part)
    })
    return crossedHistory(pages, native.contentHash)
  }

  /**
   * Writes the histories of the store, or of one of its sessions, as JSON Lines, readable only by the owner. An existing
   * file is replaced once the new one is complete.
   *
   * Rejects with `UNKNOWN_OBJECT` if the store does not have the session, and `IO`.
   */
  override export(path: string, sessionId?: string | null): Promise<TransferSummary> {
    return calling(() => super.export(path, sessionId))
  }

  /**
   * Writes those versions of an export that the store does not have yet, with the same IDs, hashes, order and valid times.
   * An interrupted import can be repeated.
   *
   * Rejects with `INVALID_ARGUMENT` if the file is damaged, incomplete or no export (nothing was written), `CONFLICT` if the
   * store has an object with the same ID and a different history, and `IO`.
   */
  override import(path: string): Promise<TransferSummary> {
    return calling(() => super.import(path))
  }

  /** Reads the whole store and returns each version that does not match its stored hash; none means an intact store. */
  override verify(): Promise<Damage[]> {
    return calling(() => super.verify())
  }

  /**
   * Looks for secrets of known shapes in all versions, with the rules of gitleaks. Names the places, never the secrets.
   */
  override findSecrets(): Promise<SecretPlace[]> {
    return calling(() => super.findSecrets())
  }

  /**
   * Erases texts for good: from all versions, the search index, the log and the free pages of a file; from XTDB with
   * `evict`, and from the journal in front of it. Envelopes, hashes and times stay. The versions say when and why, and the
   * same text is never stored again. A file is rewritten, which needs free space of three times its size. An interrupted
   * call is completed by repeating it. With `dryRun`, nothing is changed, and the counts are those of what would be erased.
   *
   * Rejects with `INVALID_ARGUMENT` for an unknown object, path or session and for a text that is too short, and
   * `STORE_FULL` if there is not enough free space: nothing was erased then, or, if the disk filled up meanwhile, the texts
   * can't be read any more and the error says that their bytes are left until the call is repeated.
   */
  override forget(wanted: Forgetting[], why: string, options?: ForgetOptions | null): Promise<Forgotten> {
    return calling(() => {
      checkForgetting(wanted, options)
      return super.forget(wanted, why, options)
    })
  }

  /**
   * Removes sessions, together with what only they have encountered. They can be imported again. Sessions written or opened
   * within the last day stay.
   *
   * Rejects with `INVALID_ARGUMENT` if neither an age, a size nor a project is given.
   */
  override prune(options: PruneOptions): Promise<Pruned> {
    return calling(() => {
      checkPrune(options)
      return super.prune(options)
    })
  }

  /**
   * Returns the limits of a database file. Without limits, nothing is removed automatically.
   *
   * Rejects with `INVALID_ARGUMENT` for a store that is not a file.
   */
  override limits(): Promise<StoreLimits> {
    return calling(() => super.limits())
  }

  /** Sets the limits of a database file; an absent one is removed. Rejects like `limits`. */
  override setLimits(limits: StoreLimits): Promise<undefined> {
    return calling(() => {
      checkLimits(limits)
      return super.setLimits(limits)
    })
  }

  /** Closes the store. Resolves with its last state, as the `close` of a session does. Closing twice is fine. */
  override async close(): Promise<StoreState | undefined> {
    return (await calling(() => super.close())) ?? undefined
  }

  /** Closes. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}
