/** The MCP server's view of a store: opened for reading only, and only the sessions and folders that it may show. */
import { realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import type { ObjectDocument, StoreOptions } from '../../index.js'
import { asStored, inStore } from '../native/index.ts'
import type { Store } from '../native/index.ts'
import { invalid } from '../core/index.ts'

/** The sessions and folders that may be shown. */
interface Limits {
  /** IDs of the sessions whose turns and tool outputs may be shown. */
  sessions: readonly string[]
  /** Folders. Only files in them that the sessions have encountered may be shown. */
  folders: readonly string[]
}

/** A store of which only a part may be shown. */
export class LimitedStore {
  readonly #options: StoreOptions
  readonly #limits: Limits

  constructor(options: StoreOptions, limits: Limits) {
    this.#options = options.kind === 'memory' ? options : { ...options, readOnly: true }
    this.#limits = { sessions: limits.sessions, folders: limits.folders.map((folder) => asStored(canonical(resolve(folder)))) }
  }

  /**
   * Opens the store for one answer, and passes it to `work` with those of the sessions that it has; only one of them if `session` is
   * given. Between two answers nothing is open, so that a session that ends can tidy up.
   */
  read<T>(session: string | undefined, work: (store: Store, sessions: readonly string[]) => Promise<T>): Promise<T> {
    const { sessions } = this.#limits
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
    if (document.type !== 'file' || document.source === null) return false
    const { path } = document.source as { path?: unknown }
    return typeof path === 'string' && this.#limits.folders.some((folder) => path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`))
  }
}

function canonical(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    // The project may have been deleted; its files keep their names.
    return path
  }
}
