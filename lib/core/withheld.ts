/**
 * Content that a host has taken out of its conversation or reworded is not brought back: neither by `activate` or `pin`,
 * nor as a hit of `search`. Only the host's conversation says what that is, so its projection is asked.
 */
import type { ContextManager, SearchHit, SearchOptions, SetChange } from '../../index.js'
import { shared } from './shared.ts'

/** Answers whether an object may be shown again. */
type Judge = (name: string) => Promise<boolean>

const judges = shared('judges', () => new WeakMap<object, Judge>())

/** From now on, asks `permits` before something of a session is brought back. */
export function ask(manager: ContextManager, permits: Judge): void {
  judges.set(manager, permits)
}

/** The most hits of a search. */
const MOST_HITS = 1_000

/** The hits of a search without `limit`. */
const HITS = 20

/** The answer to a request for what may not be shown again; undefined if it may. */
export async function refusal(manager: ContextManager, id: unknown): Promise<SetChange | undefined> {
  const permits = judges.get(manager)
  if (permits === undefined || typeof id !== 'string' || (await permits(id))) return undefined
  const message = `${id} was changed in the conversation or removed from it, so it can't be shown again`
  return { ok: false, id, code: 'NULL_CONTENT', message, visible: false }
}

/** Searches, and leaves out what may not be shown again. `search` is the search itself. */
export async function permitted(
  manager: ContextManager,
  search: (options: SearchOptions) => Promise<SearchHit[]>,
  options: SearchOptions,
): Promise<SearchHit[]> {
  const permits = judges.get(manager)
  if (permits === undefined) return search(options)
  const limit = options.limit ?? HITS
  for (let asked = limit; ; asked = Math.min(MOST_HITS, 4 * asked)) {
    const hits = await search({ ...options, limit: asked })
    const allowed = await Promise.all(hits.map((hit) => mayShow(manager, hit, permits)))
    const kept = hits.filter((_, index) => allowed[index])
    if (kept.length >= limit || hits.length < asked || asked >= MOST_HITS) return kept.slice(0, limit)
  }
}

async function mayShow(manager: ContextManager, { id, type, isLatest }: SearchHit, permits: Judge): Promise<boolean> {
  // An earlier version of this session's chat has what the host has reworded since.
  if (id === `chat:${manager.sessionId}`) return isLatest
  return type !== 'toolcall' || !(await isOwn(manager, id)) || permits(id)
}

/**
 * True if this session has encountered an object. An object that only others have is not part of the host's conversation.
 */
async function isOwn(manager: ContextManager, id: string): Promise<boolean> {
  return (await manager.sessionSets()).sessionIndex.includes(id)
}
