/**
 * The MCP server's view of a store: in-memory copies of the sessions that it may show, so that it can't write
 * anything.
 */
import { realpathSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { ObjectDocument, StoreOptions } from '../../index.js'
import { asStored, inStore } from '../native/index.ts'
import { canWrite, invalid, stamp, withFolder } from '../core/index.ts'
import { ContextManager } from '../session/index.ts'

/** The sessions and folders that may be shown. */
interface Limits {
  /** IDs of the sessions whose turns and tool outputs may be shown. */
  sessions: readonly string[]
  /** Folders. Only files in them that the sessions have encountered may be shown. */
  folders: readonly string[]
}

/** A store that can't report changes is read again after this time, in milliseconds. */
const REMOTE_AGE_MS = 10_000

/** A store of which only a part may be shown. */
export class LimitedStore {
  readonly #options: StoreOptions
  readonly #limits: Limits
  #copies = new Map<string, ContextManager>()
  #state: string | undefined
  #queue: Promise<unknown> = Promise.resolve()

  constructor(options: StoreOptions, limits: Limits) {
    this.#options = options
    this.#limits = { sessions: limits.sessions, folders: limits.folders.map((folder) => asStored(canonical(resolve(folder)))) }
  }

  /** Passes up-to-date copies of the sessions to `work`; only one of them if `session` is given. */
  read<T>(session: string | undefined, work: (copies: readonly ContextManager[]) => Promise<T>): Promise<T> {
    const result = this.#queue.then(async () => {
      await this.#refresh()
      if (session === undefined) return work([...this.#copies.values()])
      const copy = this.#copies.get(session)
      if (copy === undefined) throw invalid(`this server shows no session "${session}"; it was started for ${this.#limits.sessions.join(', ')}`)
      return work([copy])
    })
    this.#queue = result.catch(() => {})
    return result
  }

  /** True if an object may be shown. */
  shows(document: ObjectDocument): boolean {
    if (document.type === 'toolcall') return true
    if (document.type !== 'file' || document.source === null) return false
    const { path } = document.source as { path?: unknown }
    return typeof path === 'string' && this.#limits.folders.some((folder) => path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`))
  }

  async close(): Promise<void> {
    await this.#queue
    await this.#forget()
  }

  async #refresh(): Promise<void> {
    const state = this.#stateNow()
    if (state === this.#state) return
    await this.#forget()
    await withFolder(async (folder) => {
      const options = this.#options
      const readable = options.kind === 'sqlite' && !canWrite(options.path) ? { ...options, readOnly: true } : options
      for (const [index, session] of this.#limits.sessions.entries()) {
        const file = join(folder, `${index}.jsonl`)
        try {
          await inStore(readable, (store) => store.export(file, session))
        } catch (error) {
          // The session may start later.
          if ((error as { code?: string }).code === 'UNKNOWN_OBJECT') continue
          throw error
        }
        const copy = await ContextManager.importSession(file, {
          sessionId: session,
          cwd: '/',
          store: { kind: 'memory' },
          filesystemId: 'mcp',
          watch: false,
          watchUnmapped: false,
        })
        this.#copies.set(session, copy)
      }
    })
    this.#state = state
  }

  async #forget(): Promise<void> {
    const copies = [...this.#copies.values()]
    this.#copies = new Map()
    this.#state = undefined
    for (const copy of copies) await copy.close()
  }

  #stateNow(): string {
    if (this.#options.kind !== 'sqlite') return String(Math.floor(Date.now() / REMOTE_AGE_MS))
    return [this.#options.path, `${this.#options.path}-wal`].map(stamp).join(' ')
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
