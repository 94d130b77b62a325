/** The MCP server's view of a store: opened for reading only, and only the sessions and folders that it may show. */
import type { ObjectDocument, StoreOptions } from '../../index.js'
import { inStore } from '../native/index.ts'
import type { Store } from '../native/index.ts'
import { invalid } from '../core/index.ts'
import { isIn, Reach } from './reach.ts'
import type { ClientPaths } from './reach.ts'

/** The sessions and folders that may be shown. */
interface Limits {
  /** IDs of the sessions whose turns and tool outputs may be shown. */
  sessions: readonly string[]
  /** Folders, by the client's paths. Only files in them that the sessions have encountered may be shown. */
  folders: readonly string[]
  /** The meaning of the client's paths. */
  paths?: ClientPaths
}

/** A store of which only a part may be shown. */
export class LimitedStore {
  readonly #options: StoreOptions
  readonly #sessions: readonly string[]
  readonly #folders: readonly NonNullable<ReturnType<Reach['placeOf']>>[]
  /** The files that the client can reach. */
  readonly reach: Reach

  /** Throws `INVALID_ARGUMENT` for a folder that no mount covers, if the filesystem of other paths has no ID. */
  constructor(options: StoreOptions, limits: Limits) {
    this.#options = options.kind === 'memory' ? options : { ...options, readOnly: true }
    this.#sessions = limits.sessions
    this.reach = new Reach(limits.paths ?? {})
    this.#folders = limits.folders.map((folder) => {
      const place = this.reach.placeOf(folder)
      if (place === undefined) throw invalid(`no mount covers the folder "${folder}"; name the filesystem of other paths with filesystemId`)
      return place
    })
  }

  /**
   * Opens the store for one answer, and passes it to `work` with those of the sessions that it has; only one of them if `session` is
   * given. Between two answers nothing is open, so that a session that ends can tidy up.
   */
  read<T>(session: string | undefined, work: (store: Store, sessions: readonly string[]) => Promise<T>): Promise<T> {
    const sessions = this.#sessions
    if (session !== undefined && !sessions.includes(session))
      throw invalid(`this server shows no session "${session}"; it was started for ${sessions.join(', ')}`)
    return inStore(this.#options, async (store) => {
      const wanted = session === undefined ? sessions : [session]
      const found = await Promise.all(wanted.map((one) => store.get(`session:${one}`)))
      // A session may start later.
      return work(
        store,
        wanted.filter((_, at) => found[at] !== null),
      )
    })
  }

  /** True if an object may be shown. */
  shows(document: ObjectDocument): boolean {
    if (document.type === 'toolcall') return true
    return document.type === 'file' && this.#folders.some((folder) => isIn(document, folder))
  }
}
